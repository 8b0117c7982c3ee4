//! Cursors: round trips, one text each, and everything that is refused.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
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

/// A cursor of `acct_1`, signed as the module's page says, by nothing of the library's.
fn forge(body: &[u8]) -> String {
    let mac = Hmac::<sha2::Sha256>::new_from_slice(&SECRET).unwrap();
    let mac = mac.chain_update(b"calls cursor\x01\x06acct_1").chain_update(body);
    URL_SAFE_NO_PAD.encode([body, &mac.finalize().into_bytes()[..16]].concat())
}

fn instant(seconds_since_year_0: u128, nanos: u128) -> [u8; 9] {
    (seconds_since_year_0 << 30 | nanos).to_be_bytes()[7..].try_into().unwrap()
}

// D-22: the format, from the outside: what is signed begins with a label, the mode, and the account behind
// its length.
#[test]
fn a_cursor_is_what_its_page_says() {
    let epoch = 62_167_219_200_u128;
    let instants = [instant(epoch + 10, 3), instant(epoch + 5, 999_999_999)].concat();
    let text = forge(&[&[0x11, 1], &instants[..], b"call_1"].concat());
    let filter = within(Timestamp::from_parts(5, 999_999_999), None);
    let expected =
        Cursor::new(Timestamp::from_parts(10, 3).unwrap(), CallId::parse("call_1").unwrap())
            .with_filter(filter);
    assert_eq!(opened(&text), Ok(expected.clone()));
    assert_eq!(sealed(&expected), text);
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
    let digest = bytes.len() - 16;
    for (first, second) in (0..16).flat_map(|first| (0..first).map(move |second| (first, second))) {
        let mut altered = bytes.clone();
        altered[digest + first] ^= 1;
        altered[digest + second] ^= 1;
        let refused = opened(&URL_SAFE_NO_PAD.encode(altered));
        assert_eq!(refused, Err(CursorError::Digest), "{first}, {second}");
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
            let is_expected = match fault {
                CursorError::Empty => len == 0,
                CursorError::Short => (1..18).contains(&len),
                CursorError::Version { .. } | CursorError::UnknownKey { .. } => len >= 18,
                _ => len >= 18 && fault == CursorError::Digest,
            };
            assert!(is_expected, "{len} bytes: {fault}");
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
    let text = sealed(&cursor("c", None, None)); // 28 bytes: 38 characters, two of padding
    let mut trailing = text.clone().into_bytes();
    *trailing.last_mut().unwrap() += 1;
    for other in [
        URL_SAFE.encode(bytes_of(&text)),
        format!("{text}="),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{}\n{}", &text[..8], &text[8..]),
        format!("{text}\u{e9}"),
        String::from_utf8(trailing).unwrap(),
    ] {
        assert_eq!(opened(&other), Err(CursorError::Encoding), "{other:?}");
    }
    // Where one alphabet has these, the other has others.
    for alphabet in ["+", "/"] {
        let other = format!("{alphabet}{}", &text[1..]);
        assert_eq!(opened(&other), Err(CursorError::Encoding), "{other:?}");
    }
}

// D-22: what is authentic and yet not what this version writes.
#[test]
fn authentic_nonsense_is_refused() {
    let good = instant(63_000_000_000, 7);
    let twice = [good, good].concat();
    let falling = [good, good, instant(62_999_999_999, 7)].concat();
    let long = [b'c'; 256];
    let over = [instant(315_569_520_000, 0), instant(63_000_000_000, 1_000_000_000), [0xff; 9]];
    let bodies = [
        (0x10, &[][..], &b""[..]), // nothing in it
        (0x10, &good, b""),        // no id
        (0x10, &good[..8], b""),   // half an instant
        (0x14, &good, b"call_1"),  // a filter nobody knows
        (0x18, &good, b"call_1"),
        (0x11, &good, b""),        // the filter is not there
        (0x13, &twice, b"call_1"), // nor is this one
        (0x13, &falling, b"c"),    // bounds the wrong way round
        (0x10, &good, b"call 1"),  // not an id
        (0x10, &good, b"call_\xc3\xa9"),
        (0x10, &good, b"\xff"),
        (0x10, &good, &long),
    ];
    let mut bodies =
        bodies.map(|(head, instants, id)| [&[head, 1], instants, id].concat()).to_vec();
    bodies.extend(over.map(|over| [&[0x10, 1], &over[..], b"call_1"].concat()));
    bodies.extend(over.map(|over| [&[0x11, 1], &good[..], &over, b"call_1"].concat()));
    for body in bodies {
        assert_eq!(opened(&forge(&body)), Err(CursorError::Contents), "{body:x?}");
    }
    // While the last instant there is can be written.
    let last = instant(315_569_519_999, 999_999_999);
    let opened = opened(&forge(&[&[0x10, 1], &last[..], b"call_1"].concat())).unwrap();
    assert_eq!(opened.started_at, Timestamp::MAX);
}

// D-23: the first signs, all verify; a key taken away takes its cursors along.
#[test]
fn keys_rotate() {
    let (old, new, ours) = ([1; 32], [2; 32], account("acct_1"));
    let before = CursorKeys::new(7, old);
    let prepared = CursorKeys::new(7, old).with_key(8, new).unwrap();
    let rotated = CursorKeys::new(8, new).with_key(7, old).unwrap();
    let after = CursorKeys::new(8, new);

    let seals = |by: &CursorKeys| by.seal(&ours, Mode::Live, &sample());
    let opens = |by: &CursorKeys, text: &str| by.open(&ours, Mode::Live, text);
    let (of_old, of_new) = (seals(&before), seals(&rotated));
    assert_eq!((seals(&prepared), seals(&after)), (of_old.clone(), of_new.clone()));
    assert_ne!(of_old, of_new);
    for text in [&of_old, &of_new] {
        assert_eq!(
            [&prepared, &rotated].map(|ring| opens(ring, text)),
            [Ok(sample()), Ok(sample())]
        );
    }
    assert!(matches!(opens(&before, &of_new), Err(CursorError::UnknownKey { id: 8, .. })));
    assert!(matches!(opens(&after, &of_old), Err(CursorError::UnknownKey { id: 7, .. })));
    // Another key under an old number, and a cursor renamed to the other key of the ring.
    assert_eq!(opens(&CursorKeys::new(7, [3; 32]), &of_old), Err(CursorError::Digest));
    let mut renamed = bytes_of(&of_old);
    renamed[1] = 8;
    assert_eq!(opens(&rotated, &URL_SAFE_NO_PAD.encode(renamed)), Err(CursorError::Digest));

    let shown = "CursorKeys { first: CursorKey { id: 7, .. }, others: [CursorKey { id: 8, .. }] }";
    assert_eq!(format!("{prepared:?}"), shown);
    for ring in [rotated, before] {
        let taken = ring.with_key(7, [4; 32]).unwrap_err();
        assert_eq!(
            (taken.id, taken.to_string().as_str()),
            (7, "the ring has a cursor key with id 7")
        );
    }
}

proptest! {
    #[test]
    fn what_was_sealed_opens_the_same(
        started_at in instants(),
        call in "[!-~]{1,255}",
        filter in filters(),
        account in "[!-~]{1,255}",
        live: bool,
        key: [u8; 32],
        id: u8,
    ) {
        let cursor = Cursor::new(started_at, CallId::parse(&call).unwrap()).with_filter(filter);
        let (keys, account) = (CursorKeys::new(id, key), AccountId::parse(&account).unwrap());
        let mode = if live { Mode::Live } else { Mode::Test };
        let text = keys.seal(&account, mode, &cursor);
        prop_assert!(text.len() <= CursorKeys::MAX_LEN);
        prop_assert_eq!(keys.open(&account, mode, &text), Ok(cursor));
    }
}
