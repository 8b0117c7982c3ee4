//! Explanations: whatever single thing went wrong, it is found, proven and named.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call_assistant::Timestamp;
use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::{
    Blanks, BodyChange, Cause, Escapes, Evidence, KeyOrder, SecretChange, TextChange,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const SECRET: &str = "whsec_cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw";
const BARE: &str = "cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw";
const DECODED: &str = "please do not decode this";
const NOW: &str = "1767225600";

/// What went wrong, beginning with what would be right.
struct Mishap {
    key: String,
    given: String,
    message: Vec<u8>,
    received: Vec<u8>,
    time: String,
    write: fn([u8; 32]) -> String,
    /// Another delivery's header and body, where two got mixed up.
    other: Option<(String, Vec<u8>)>,
    /// Of JSON that was written again, none: what is to be named is its form, with these blanks.
    cause: Option<Cause>,
    blanks: Blanks,
    /// What went wrong besides.
    second: Option<Cause>,
}

/// Two bytes say what goes wrong, the rest is the body. Where nothing can go wrong in that way with
/// that body, nothing is asked of the explanation.
pub fn cause(bytes: &[u8]) {
    let Some((&[kind, how], body)) = bytes.split_first_chunk::<2>() else { return };
    let Some(mishap) = happens(kind, how, body) else { return };
    let mut mac = Hmac::<Sha256>::new_from_slice(mishap.key.as_bytes()).unwrap();
    mac.update(&mishap.message);
    let digest: [u8; 32] = mac.finalize().into_bytes().into();
    let mut written = (mishap.write)(digest);
    if let Some(Cause::Text(TextChange::Cut { digits })) = mishap.cause {
        written.truncate(digits);
    }

    let header = format!("t={},v1={written}", mishap.time);
    let headers = DeliveryHeaders::new().signature(header.as_bytes()).delivery(b"evt_1");
    let signed = mishap.message.get(NOW.len() + 1..).unwrap_or_default();
    let evidence = Evidence::new(headers, &mishap.received, &mishap.given);
    let evidence = match mishap.cause {
        Some(Cause::OtherSecret { .. }) => {
            evidence.known_secret("whsec_staging").known_secret(SECRET)
        }
        Some(Cause::OtherDelivery { .. }) => match &mishap.other {
            Some((header, body)) => {
                let headers = DeliveryHeaders::new().signature(header.as_bytes());
                evidence.known_delivery(headers, body)
            }
            None => evidence.known_delivery(DeliveryHeaders::new(), signed),
        },
        _ => evidence,
    };
    let now = Timestamp::from_unix(NOW.parse().unwrap()).unwrap();
    let found = evidence.explain(now);
    assert!(found.is_proven(), "{found}, and not {:?}", mishap.cause);
    match (&mishap.cause, found.causes()) {
        (Some(_), found) => {
            let expected = mishap.cause.iter().chain(&mishap.second);
            assert!(found.iter().eq(expected.clone()), "{found:?}, and not {expected:?}");
        }
        (None, [Cause::Body(BodyChange::Rewritten(form))]) => {
            assert_eq!((form.blanks, form.order), (mishap.blanks, KeyOrder::AsIs));
            assert_eq!((form.escapes, form.slashes), (Escapes::Least, false));
        }
        (None, found) => panic!("{found:?}"),
    }
    let shown = format!("{found} {found:?}");
    assert!(!shown.contains(BARE) && !shown.contains(DECODED), "{shown}");
    assert!(!shown.contains(&written[..16]), "{shown}");
}

fn happens(kind: u8, how: u8, body: &[u8]) -> Option<Mishap> {
    let mut mishap = Mishap {
        key: SECRET.into(),
        given: SECRET.into(),
        message: [NOW.as_bytes(), b".", body].concat(),
        received: body.into(),
        time: NOW.into(),
        write: hex,
        other: None,
        cause: None,
        blanks: [Blanks::None, Blanks::TwoBlanks][usize::from(how & 1)],
        second: None,
    };
    let first = usize::from(how & 1);
    mishap.cause = match kind % 30 {
        kind @ 0..=10 => {
            let (change, signed, received) = changed(kind, first, body)?;
            if signed == received {
                return None;
            }
            mishap.message = [NOW.as_bytes(), b".", &signed].concat();
            mishap.received = received;
            change.map(Cause::Body)
        }
        11 => {
            mishap.given = [format!("\t{SECRET}\n"), format!("\u{feff}{SECRET}")][first].clone();
            Some(Cause::Secret(SecretChange::Blanks))
        }
        12 => {
            let quotes = [["\"", "\""], ["\u{201c}", "\u{201d}"]][first];
            mishap.given = quotes.join(SECRET);
            Some(Cause::Secret(SecretChange::Quotes))
        }
        13 => {
            mishap.given = format!("SIGNING_SECRET={SECRET}");
            Some(Cause::Secret(SecretChange::Label))
        }
        14 => {
            mishap.given = BARE.into();
            Some(Cause::Secret(SecretChange::PrefixMissing))
        }
        15 => {
            mishap.key = BARE.into();
            Some(Cause::Secret(SecretChange::PrefixDropped))
        }
        16 => {
            mishap.key = DECODED.into();
            mishap.given = [SECRET.to_owned(), format!("{SECRET}==")][first].clone();
            Some(Cause::Secret(SecretChange::Base64Decoded))
        }
        17 => {
            mishap.key = [SECRET, ["\n", "\r\n"][first]].concat();
            Some(Cause::Secret(SecretChange::LineEnd))
        }
        18 => {
            mishap.key = [["\"", "\""], ["'", "'"]][first].join(SECRET);
            Some(Cause::Secret(SecretChange::SignerQuotes))
        }
        19 => {
            mishap.write = |digest| hex(digest).to_ascii_uppercase();
            Some(Cause::Text(TextChange::Uppercase))
        }
        20 => {
            mishap.write = |digest| STANDARD.encode(digest);
            Some(Cause::Text(TextChange::Base64))
        }
        21 => {
            mishap.write = [
                |digest| format!("\"{}\"", hex(digest)),
                |digest| format!("sha256={}", hex(digest)),
            ][first];
            Some(Cause::Text(TextChange::Surrounded))
        }
        22 => Some(Cause::Text(TextChange::Cut { digits: 16 + usize::from(how) % 48 })),
        23 => {
            mishap.time = format!("{NOW}{:03}", u16::from(how) * 3);
            let signed = [NOW, &mishap.time][first];
            mishap.message = [signed.as_bytes(), b".", body].concat();
            Some(Cause::Text(TextChange::Milliseconds))
        }
        24 => {
            // Which of the two put the time there cannot be told.
            if body.starts_with(b"1767225600.") {
                return None;
            }
            let before = [b"".as_slice(), NOW.as_bytes()][first];
            mishap.message = [before, body].concat();
            let causes = [TextChange::SignedWithoutTime, TextChange::SignedWithoutPeriod];
            Some(Cause::Text(causes[first]))
        }
        25 => {
            mishap.message = [b"evt_1.", NOW.as_bytes(), b".", body].concat();
            Some(Cause::Text(TextChange::SignedWithId))
        }
        26 => {
            mishap.given = "whsec_current".into();
            Some(Cause::OtherSecret { index: 2 })
        }
        27 => {
            if first == 1 {
                if body == b"lost" {
                    return None;
                }
                // The header is that of a body that was lost, and this body's is there as well.
                mishap.other = Some((header(SECRET, body), b"lost".to_vec()));
                mishap.message = [NOW.as_bytes(), b".another"].concat();
            } else {
                mishap.received = [body, b"?"].concat();
            }
            Some(Cause::OtherDelivery { index: 1 })
        }
        28 => {
            mishap.received = [b"\xef\xbb\xbf", body, b"\r\n"].concat();
            mishap.second = Some(Cause::Body(BodyChange::ByteOrderMarkAdded));
            Some(Cause::Body(BodyChange::LineEndAdded))
        }
        _ => {
            mishap.received = [body, b"\n"].concat();
            mishap.given = format!("\"{SECRET}\"");
            mishap.second = Some(Cause::Secret(SecretChange::Quotes));
            Some(Cause::Body(BodyChange::LineEndAdded))
        }
    };
    Some(mishap)
}

/// What was signed of a body and what was received, if it can come to that.
fn changed(kind: u8, first: usize, body: &[u8]) -> Option<(Option<BodyChange>, Vec<u8>, Vec<u8>)> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let own = body.to_vec();
    let end = [b"\n".as_slice(), b"\r\n"][first];
    Some(match kind {
        0 => (Some(BodyChange::LineEndAdded), own, [body, end].concat()),
        1 => (Some(BodyChange::LineEndLost), [body, end].concat(), own),
        2 => {
            let trimmed = body.trim_ascii().to_vec();
            let received = [b" \n", body, b"\t "].concat();
            (Some(BodyChange::BlanksAdded), trimmed, received)
        }
        3 => {
            if body.contains(&b'\r') {
                return None;
            }
            let lines = body.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
            match first {
                0 => (Some(BodyChange::LineEndsToCrLf), own, lines),
                _ => (Some(BodyChange::LineEndsToLf), lines, own),
            }
        }
        4 if first == 0 => (Some(BodyChange::ByteOrderMarkAdded), own, [BOM, body].concat()),
        4 => (Some(BodyChange::ByteOrderMarkLost), [BOM, body].concat(), own),
        5 => {
            let received: String = body.iter().map(|byte| char::from(*byte)).collect();
            (Some(BodyChange::ReadAsLatin1), own, received.into_bytes())
        }
        6 => {
            let chars = core::str::from_utf8(body).ok()?.chars();
            let received: Vec<u8> = chars.map(|c| u8::try_from(c).ok()).collect::<Option<_>>()?;
            if core::str::from_utf8(&received).is_ok() {
                return None;
            }
            (Some(BodyChange::WrittenAsLatin1), own, received)
        }
        7 => {
            let text =
                core::str::from_utf8(body).ok().filter(|text| !text.starts_with('\u{feff}'))?;
            let units = format!("\u{feff}{text}");
            let units = units.encode_utf16();
            let received = match first {
                0 => units.flat_map(u16::to_le_bytes).collect(),
                _ => units.flat_map(u16::to_be_bytes).collect(),
            };
            (Some(BodyChange::WrittenAsUtf16), own, received)
        }
        8 => {
            let text = core::str::from_utf8(body).ok()?;
            (Some(BodyChange::Quoted), own, serde_json::to_vec(text).unwrap())
        }
        9 if first == 0 => (Some(BodyChange::Base64), own, STANDARD.encode(body).into_bytes()),
        9 => (Some(BodyChange::BytesLiteral), own, literal(body).into_bytes()),
        _ => {
            let json: serde_json::Value = serde_json::from_slice(body).ok()?;
            let compact = serde_json::to_vec(&json).unwrap();
            let pretty = serde_json::to_vec_pretty(&json).unwrap();
            match first {
                0 => (None, compact, pretty),
                _ => (None, pretty, compact),
            }
        }
    })
}

/// The header that belongs to this body.
fn header(key: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    let mac = mac.chain_update(NOW).chain_update(".").chain_update(body);
    format!("t={NOW},v1={}", hex(mac.finalize().into_bytes().into()))
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).fold(
        String::with_capacity(64),
        |mut text, half| {
            text.push(char::from_digit(half.into(), 16).unwrap());
            text
        },
    )
}

/// As Python prints bytes.
fn literal(body: &[u8]) -> String {
    let mut text = String::from("b'");
    for byte in body {
        match byte {
            b'\\' | b'\'' => text.extend(['\\', char::from(*byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('\'');
    text
}
