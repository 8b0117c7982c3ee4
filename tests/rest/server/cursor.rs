//! Cursors: round trips, one text each, and everything that is refused.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::rest::Mode;
use call_assistant::rest::server::{Cursor, CursorError, CursorKeys};
use hmac::{Hmac, KeyInit as _, Mac as _};
use proptest::prelude::*;

use crate::{at, filters, instants, second, within};

const SECRET: [u8; 32] = [0x7c; 32];

fn keys() -> CursorKeys {
    CursorKeys::new(1, SECRET)
}

fn account(id: &str) -> AccountId {
    AccountId::parse(id).unwrap()
}

/// The text of a cursor of `acct_1`.
fn sealed(cursor: &Cursor) -> String {
    keys().seal(&account("acct_1"), Mode::Live, cursor)
}

fn opened(text: &str) -> Result<Cursor, CursorError> {
    keys().open(&account("acct_1"), Mode::Live, text)
}

fn cursor(id: &str, after: Option<Timestamp>, before: Option<Timestamp>) -> Cursor {
    Cursor::new(at(1_234_567_890), CallId::parse(id).unwrap()).with_filter(within(after, before))
}

fn sample() -> Cursor {
    cursor("call_01J9ZK5T7Q3W8XN4R6V2YB", Some(at(5)), Some(second(9)))
}

fn bytes_of(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// A cursor signed as the module's page says, by nothing of the library's.
fn forge(secret: [u8; 32], account: &str, live: bool, body: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&secret).unwrap();
    mac.update(b"calls cursor");
    mac.update(&[u8::from(live), account.len() as u8]);
    mac.update(account.as_bytes());
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    URL_SAFE_NO_PAD.encode([body, &digest[..16]].concat())
}

fn instant(seconds_since_year_0: u128, nanos: u128) -> [u8; 9] {
    (seconds_since_year_0 << 30 | nanos).to_be_bytes()[7..].try_into().unwrap()
}

// D-22: the format, from the outside.
#[test]
fn a_cursor_is_what_its_page_says() {
    let epoch = 62_167_219_200_u128;
    let id = b"call_1";
    let body =
        [&[0x11, 1][..], &instant(epoch + 10, 3), &instant(epoch + 5, 999_999_999), id].concat();
    let text = forge(SECRET, "acct_1", true, &body);
    let expected =
        Cursor::new(Timestamp::from_parts(10, 3).unwrap(), CallId::parse("call_1").unwrap())
            .with_filter(within(Timestamp::from_parts(5, 999_999_999), None));
    assert_eq!(opened(&text), Ok(expected.clone()));
    assert_eq!(sealed(&expected), text);
}

// A fixed text: a change of format without a change of version fails here.
#[test]
fn the_text_of_version_1_stays() {
    let text = sealed(&sample());
    assert_eq!(
        text,
        "EwEDuLKNQE37ONIDuLKNQAAAAAUDuLKNQkAAAABjYWxsXzAxSjlaSzVUN1EzVzhYTjRSNlYyWUIzG_g4m388pSjx\
         UIa2OAwj"
    );
}

// D-22: bounded, whatever the ids are.
#[test]
fn lengths_stay_within_their_bounds() {
    let account = account(&"a".repeat(255));
    let id = |len| "c".repeat(len);
    let (after, before) = (Some(Timestamp::MIN), Some(Timestamp::MAX));
    for (cursor, len) in [
        (cursor(&id(27), None, None), 72),
        (cursor(&id(27), after, None), 84),
        (cursor(&id(27), after, before), 96),
        (cursor(&id(40), after, before), 114),
        (cursor(&id(255), after, before), CursorKeys::MAX_LEN),
        (cursor(&id(1), None, None), 38),
    ] {
        let text = keys().seal(&account, Mode::Test, &cursor);
        assert_eq!(text.len(), len);
        assert_eq!(keys().open(&account, Mode::Test, &text), Ok(cursor));
    }
}

// LIST-4, D-22: to another account, another mode.
#[test]
fn a_cursor_belongs_to_one_account_and_mode() {
    let text = sealed(&sample());
    for (id, mode) in [
        ("acct_2", Mode::Live),
        ("acct_1", Mode::Test),
        ("acct_", Mode::Live),
        ("acct_11", Mode::Live),
    ] {
        let other = account(id);
        assert_eq!(keys().open(&other, mode, &text), Err(CursorError::Digest), "{id}");
    }
    // Nor does it say whose it is.
    let bytes = bytes_of(&text);
    assert!(!bytes.windows(6).any(|part| part == b"acct_1"));
}

// LIST-4: each bit of each byte.
#[test]
fn every_flipped_bit_is_refused() {
    let bytes = bytes_of(&sealed(&sample()));
    for bit in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let error = opened(&URL_SAFE_NO_PAD.encode(&altered)).unwrap_err();
        let is_expected = match error {
            CursorError::Version { version, .. } => {
                (4..8).contains(&bit) && version == altered[0] >> 4
            }
            CursorError::UnknownKey { id, .. } => (8..16).contains(&bit) && id == altered[1],
            _ => !(4..16).contains(&bit) && error == CursorError::Digest,
        };
        assert!(is_expected, "bit {bit}: {error}");
    }
}

// LIST-4: two differences in the digest are not one that cancels out, wherever it is folded.
#[test]
fn two_flipped_bits_do_not_make_up_for_each_other() {
    let bytes = bytes_of(&sealed(&sample()));
    for first in bytes.len() - 16..bytes.len() {
        for second in bytes.len() - 16..first {
            let mut altered = bytes.clone();
            altered[first] ^= 1;
            altered[second] ^= 1;
            let text = URL_SAFE_NO_PAD.encode(altered);
            let refused = opened(&text);
            assert_eq!(refused, Err(CursorError::Digest), "{first}, {second}");
        }
    }
}

// LIST-4, D-5: truncated at either end, up to nothing, and lengthened.
#[test]
fn every_other_length_is_refused() {
    let text = sealed(&sample());
    let bytes = bytes_of(&text);
    for len in 0..bytes.len() {
        for part in [&bytes[..len], &bytes[bytes.len() - len..]] {
            let fault = opened(&URL_SAFE_NO_PAD.encode(part)).unwrap_err();
            match (len, fault) {
                (0, CursorError::Empty) | (1..18, CursorError::Short) => {}
                (
                    18..,
                    CursorError::Digest
                    | CursorError::Version { .. }
                    | CursorError::UnknownKey { .. },
                ) => {}
                (len, fault) => panic!("{len} bytes: {fault}"),
            }
        }
    }
    for len in 1..text.len() {
        let fault = opened(&text[..len]).unwrap_err();
        let alone = len % 4 == 1; // no bytes have so many characters
        assert!(fault != CursorError::Empty && (!alone || fault == CursorError::Encoding));
    }
    for more in [&[0][..], b"a", &[0xff; 16]] {
        let text = URL_SAFE_NO_PAD.encode([&bytes, more].concat());
        assert_eq!(opened(&text), Err(CursorError::Digest));
    }
    let long = "A".repeat(CursorKeys::MAX_LEN + 1);
    let error = opened(&long).unwrap_err();
    assert!(matches!(error, CursorError::TooLong { len, .. } if len == long.len()), "{error}");
}

// D-22: other texts of the same bytes.
#[test]
fn only_one_text_is_accepted() {
    let padded = cursor("c", None, None); // 28 bytes: 38 characters, two of padding
    let text = sealed(&padded);
    let bytes = bytes_of(&text);
    let mut trailing = text.clone().into_bytes();
    *trailing.last_mut().unwrap() += 1;
    let mut others = vec![
        URL_SAFE.encode(&bytes),
        format!("{text}="),
        format!("{text}=="),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{}\n{}", &text[..8], &text[8..]),
        format!("{text}\u{e9}"),
        String::from_utf8(trailing).unwrap(),
    ];
    let standard = STANDARD.encode(&bytes);
    others.push(standard.trim_end_matches('=').replace(['+', '/'], "+"));
    others.push(text.replace(['-', '_'], "/"));
    for other in others.into_iter().filter(|other| *other != text) {
        assert_eq!(opened(&other), Err(CursorError::Encoding), "{other:?}");
    }
}

// D-22: what is authentic and yet not what this version writes.
#[test]
fn authentic_nonsense_is_refused() {
    let good = instant(63_000_000_000, 7);
    let last = instant(315_569_519_999, 999_999_999);
    let over = [instant(315_569_520_000, 0), instant(63_000_000_000, 1_000_000_000), [0xff; 9]];
    let earlier = instant(62_999_999_999, 7);
    let mut bodies: Vec<Vec<u8>> = vec![
        vec![0x10, 1],                               // nothing in it
        [&[0x10, 1], &good[..]].concat(),            // no id
        [&[0x10, 1], &good[..8]].concat(),           // half an instant
        [&[0x14, 1], &good[..], b"call_1"].concat(), // a filter nobody knows
        [&[0x18, 1], &good[..], b"call_1"].concat(),
        [&[0x11, 1], &good[..]].concat(), // the filter is not there
        [&[0x13, 1], &good[..], &good, b"call_1"].concat(), // nor is this one
        [&[0x13, 1], &good[..], &good, &earlier, b"c"].concat(), // bounds the wrong way round
        [&[0x10, 1], &good[..], b"call 1"].concat(), // not an id
        [&[0x10, 1], &good[..], b"call_\xc3\xa9"].concat(),
        [&[0x10, 1], &good[..], b"\xff"].concat(),
        [&[0x10, 1], &good[..], &[b'c'; 256]].concat(),
    ];
    bodies.extend(over.map(|over| [&[0x10, 1], &over[..], b"call_1"].concat()));
    bodies.extend(over.map(|over| [&[0x11, 1], &good[..], &over, b"call_1"].concat()));
    for body in bodies {
        let text = forge(SECRET, "acct_1", true, &body);
        let opened = opened(&text);
        assert_eq!(opened, Err(CursorError::Contents), "{body:x?}");
    }
    // While the last instant there is can be written.
    let body = [&[0x10, 1], &last[..], b"call_1"].concat();
    let opened = opened(&forge(SECRET, "acct_1", true, &body)).unwrap();
    assert_eq!(opened.started_at, Timestamp::MAX);
}

// LIST-4: other versions, signed with our own key.
#[test]
fn other_versions_are_refused() {
    let instant = instant(63_000_000_000, 7);
    for version in (0..16).filter(|version| *version != 1) {
        let body = [&[version << 4, 1], &instant[..], b"call_1"].concat();
        let error = opened(&forge(SECRET, "acct_1", true, &body)).unwrap_err();
        assert!(
            matches!(error, CursorError::Version { version: v, .. } if v == version),
            "{error}"
        );
    }
}

// The length in front of the account's id: what is cut off here must not count there.
#[test]
fn bytes_do_not_move_between_account_and_cursor() {
    let body = [&[0x10, 1], &instant(63_000_000_000, 7)[..], b"call_1"].concat();
    let digest_of = |signed: &[u8]| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&SECRET).unwrap();
        mac.update(signed);
        mac.finalize().into_bytes()[..16].to_vec()
    };
    for signed in [
        [b"calls cursor\x01", &b"acct_1"[..], &body].concat(), // without a length
        [b"calls cursor", &b"\x01\x05acct_1"[..], &body].concat(), // with another
        [&b"\x01\x06acct_1"[..], &body].concat(),              // without the label
        [b"calls cursor", &b"\x06acct_1"[..], &body].concat(), // without the mode
        body.clone(),
    ] {
        let text = URL_SAFE_NO_PAD.encode([&body[..], &digest_of(&signed)].concat());
        let opened = opened(&text);
        assert_eq!(opened, Err(CursorError::Digest));
    }
}

// D-23: the first signs, all verify; a key taken away takes its cursors along.
#[test]
fn keys_rotate() {
    let (old, new) = ([1; 32], [2; 32]);
    let ours = account("acct_1");
    let before = CursorKeys::new(7, old);
    let prepared = CursorKeys::new(7, old).with_key(8, new).unwrap();
    let rotated = CursorKeys::new(8, new).with_key(7, old).unwrap();
    let after = CursorKeys::new(8, new);

    let opens = |by: &CursorKeys, text: &str| by.open(&ours, Mode::Live, text);
    let of_old = before.seal(&ours, Mode::Live, &sample());
    let of_new = rotated.seal(&ours, Mode::Live, &sample());
    assert_eq!(prepared.seal(&ours, Mode::Live, &sample()), of_old);
    assert_eq!(after.seal(&ours, Mode::Live, &sample()), of_new);
    assert_ne!(of_old, of_new);
    for ring in [&prepared, &rotated] {
        assert_eq!(opens(ring, &of_old), Ok(sample()));
        assert_eq!(opens(ring, &of_new), Ok(sample()));
    }
    assert!(matches!(opens(&before, &of_new), Err(CursorError::UnknownKey { id: 8, .. })));
    assert!(matches!(opens(&after, &of_old), Err(CursorError::UnknownKey { id: 7, .. })));

    // Another key under an old number.
    let reused = CursorKeys::new(7, [3; 32]);
    assert_eq!(opens(&reused, &of_old), Err(CursorError::Digest));
    // A cursor renamed to the other key of the ring.
    let mut renamed = bytes_of(&of_old);
    renamed[1] = 8;
    assert_eq!(opens(&rotated, &URL_SAFE_NO_PAD.encode(renamed)), Err(CursorError::Digest));

    let taken = rotated.with_key(7, [4; 32]).unwrap_err();
    assert_eq!(taken.id, 7);
    assert_eq!(taken.to_string(), "the ring has a cursor key with id 7");
    assert_eq!(before.with_key(7, old).unwrap_err().id, 7);
}

#[test]
fn keys_do_not_show() {
    let keys =
        CursorKeys::new(7, *b"thirty-two bytes of a secret key").with_key(9, [200; 32]).unwrap();
    assert_eq!(
        format!("{keys:?}"),
        "CursorKeys { first: CursorKey { id: 7, .. }, others: [CursorKey { id: 9, .. }] }"
    );
}

prop_compose! {
    fn any_cursor()(
        started_at in instants(),
        id in "[!-~]{1,255}",
        filter in filters(),
    ) -> Cursor {
        Cursor::new(started_at, CallId::parse(&id).unwrap()).with_filter(filter)
    }
}

proptest! {
    #[test]
    fn what_was_sealed_opens_the_same(
        cursor in any_cursor(),
        account in "[!-~]{1,255}",
        live: bool,
        key: [u8; 32],
        id: u8,
    ) {
        let keys = CursorKeys::new(id, key);
        let account = AccountId::parse(&account).unwrap();
        let mode = if live { Mode::Live } else { Mode::Test };
        let text = keys.seal(&account, mode, &cursor);
        prop_assert!(text.len() <= CursorKeys::MAX_LEN);
        prop_assert_eq!(keys.open(&account, mode, &text), Ok(cursor));
    }
}
