//! Explanations: whatever single thing went wrong, it is found, proven and named.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call_assistant::Timestamp;
use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::{Cause, Evidence};
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
    /// The codes of what went wrong.
    codes: Vec<&'static str>,
    /// To how many digits the digest was cut.
    digits: usize,
    /// How JSON was signed that was written again.
    style: &'static str,
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
    written.truncate(mishap.digits);

    let header = format!("t={},v1={written}", mishap.time);
    let headers = DeliveryHeaders::new().signature(header.as_bytes()).delivery(b"evt_1");
    let signed = mishap.message.get(NOW.len() + 1..).unwrap_or_default();
    let evidence = Evidence::new(headers, &mishap.received, &mishap.given);
    let evidence = match mishap.codes[..] {
        ["secret_other"] => evidence.with_known_secret("whsec_staging").with_known_secret(SECRET),
        ["delivery_other"] => match &mishap.other {
            Some((header, body)) => {
                let headers = DeliveryHeaders::new().signature(header.as_bytes());
                evidence.with_known_delivery(headers, body)
            }
            None => evidence.with_known_delivery(DeliveryHeaders::new(), signed),
        },
        _ => evidence,
    };
    let now = Timestamp::from_unix(NOW.parse().unwrap()).unwrap();
    let found = evidence.explain(now);
    let codes: Vec<_> = found.causes().iter().map(Cause::as_str).collect();
    assert_eq!((found.is_proven(), &codes), (true, &mishap.codes), "{found}");
    if codes == ["body_rewritten"] {
        let style = format!("the same JSON was signed, {}", mishap.style);
        assert!(found.to_string().ends_with(&style), "{found}, and not {style}");
    }
    let shown = format!("{found} {found:?}");
    assert!(!shown.contains(BARE) && !shown.contains(DECODED), "{shown}");
    assert!(!shown.contains(&written[..16]), "{shown}");
}

fn happens(kind: u8, how: u8, body: &[u8]) -> Option<Mishap> {
    let first = usize::from(how & 1);
    let right = || Mishap {
        key: SECRET.into(),
        given: SECRET.into(),
        message: [NOW.as_bytes(), b".", body].concat(),
        received: body.into(),
        time: NOW.into(),
        write: hex,
        other: None,
        codes: Vec::new(),
        digits: usize::MAX,
        style: ["written without spaces", "indented by two spaces"][first],
    };
    // One thing is not as it should be.
    let given = |given: String, code| Mishap { given, codes: vec![code], ..right() };
    let key = |key: String, code| Mishap { key, codes: vec![code], ..right() };
    let signed = |message: Vec<u8>, code| Mishap { message, codes: vec![code], ..right() };
    let received = |received: Vec<u8>, code| Mishap { received, codes: vec![code], ..right() };
    let written =
        |write: fn([u8; 32]) -> String, code| Mishap { write, codes: vec![code], ..right() };
    Some(match kind % 42 {
        kind @ 0..=10 => {
            let (change, signed, received) = changed(kind, first, body)?;
            if signed == received {
                return None;
            }
            let message = [NOW.as_bytes(), b".", &signed].concat();
            Mishap { message, received, codes: vec![change], ..right() }
        }
        11 => given(
            [format!("\t{SECRET}\n"), format!("\u{feff}{SECRET}")][first].clone(),
            "secret_space",
        ),
        12 => given([["\"", "\""], ["\u{201c}", "\u{201d}"]][first].join(SECRET), "secret_quotes"),
        13 => given(format!("SIGNING_SECRET={SECRET}"), "secret_label"),
        14 => given(BARE.into(), "secret_prefix_missing"),
        15 => key(BARE.into(), "signer_prefix_dropped"),
        16 => {
            let given = [SECRET, ["", "=="][first]].concat();
            Mishap { given, ..key(DECODED.into(), "signer_base64_decoded") }
        }
        17 => key([SECRET, ["\n", "\r\n"][first]].concat(), "signer_line_end"),
        18 => key([["\"", "\""], ["'", "'"]][first].join(SECRET), "signer_quotes"),
        19 => written(|digest| hex(digest).to_ascii_uppercase(), "digest_uppercase"),
        20 => written(|digest| STANDARD.encode(digest), "digest_base64"),
        21 if first == 0 => written(|digest| format!("\"{}\"", hex(digest)), "digest_surrounded"),
        21 => written(|digest| format!("sha256={}", hex(digest)), "digest_surrounded"),
        22 => Mishap { digits: 16 + usize::from(how) % 48, ..written(hex, "digest_cut") },
        23 => {
            let time = format!("{NOW}{:03}", u16::from(how) * 3);
            let message = [[NOW, &time][first].as_bytes(), b".", body].concat();
            Mishap { time, ..signed(message, "time_milliseconds") }
        }
        // Which of the two put the time or the period there cannot be told.
        24 if body.starts_with(b"1767225600.") || body.starts_with(b".") => return None,
        24 if first == 0 => signed(body.into(), "signed_without_time"),
        24 => signed([NOW.as_bytes(), body].concat(), "signed_without_period"),
        25 => signed([b"evt_1.", NOW.as_bytes(), b".", body].concat(), "signed_with_id"),
        26 => given("whsec_current".into(), "secret_other"),
        27 if first == 1 => {
            if body == b"lost" {
                return None;
            }
            // The header is that of a body that was lost, and this body's is there as well.
            let other = Some((header(SECRET, body), b"lost".to_vec()));
            Mishap { other, ..signed([NOW.as_bytes(), b".another"].concat(), "delivery_other") }
        }
        27 if body.windows(14).any(|bytes| bytes == b"evt_of-another") => return None,
        27 => received(br#"{"id":"evt_of-another"}"#.to_vec(), "delivery_other"),
        28 => {
            let codes = vec!["body_line_end_added", "body_byte_order_mark_added"];
            Mishap { received: [b"\xef\xbb\xbf", body, b"\r\n"].concat(), codes, ..right() }
        }
        29 => {
            let (received, given) = ([body, b"\n"].concat(), format!("\"{SECRET}\""));
            let codes = vec!["body_line_end_added", "secret_quotes"];
            Mishap { received, given, codes, ..right() }
        }
        kind @ 30..=36 => {
            let (change, whole) = wrapped(kind, first, body)?;
            received(whole, change)
        }
        37 => given(STANDARD.encode(SECRET), "secret_base64"),
        38 => given([SECRET, [";", ","][first]].concat(), "secret_punctuation"),
        39 => given([SECRET, ["\\n", "\\r\\n"][first]].concat(), "secret_literal_line_end"),
        40 => {
            let (front, back) = SECRET.split_at(7 + usize::from(how) % 30);
            given([front, ["\n", "\u{200b}"][first], back].concat(), "secret_space_inside")
        }
        _ => received([b".", body].concat(), "body_period_prepended"),
    })
}

/// What was signed of a body and what was received, if it can come to that.
fn changed(kind: u8, first: usize, body: &[u8]) -> Option<(&'static str, Vec<u8>, Vec<u8>)> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let own = body.to_vec();
    let end = [b"\n".as_slice(), b"\r\n"][first];
    Some(match kind {
        0 => ("body_line_end_added", own, [body, end].concat()),
        1 => ("body_line_end_removed", [body, end].concat(), own),
        2 => {
            let received = [b" \n", body, b"\t "].concat();
            ("body_space_added", body.trim_ascii().to_vec(), received)
        }
        3 if body.contains(&b'\r') => return None,
        3 => {
            let lines = body.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
            match first {
                0 => ("body_line_ends_to_crlf", own, lines),
                _ => ("body_line_ends_to_lf", lines, own),
            }
        }
        4 if first == 0 => ("body_byte_order_mark_added", own, [BOM, body].concat()),
        4 => ("body_byte_order_mark_removed", [BOM, body].concat(), own),
        5 => {
            let received: String = body.iter().map(|byte| char::from(*byte)).collect();
            ("body_read_as_latin1", own, received.into_bytes())
        }
        6 => {
            let chars = core::str::from_utf8(body).ok()?.chars();
            let received: Vec<u8> = chars.map(|c| u8::try_from(c).ok()).collect::<Option<_>>()?;
            if core::str::from_utf8(&received).is_ok() {
                return None;
            }
            ("body_written_as_latin1", own, received)
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
            ("body_written_as_utf16", own, received)
        }
        8 => {
            let text = core::str::from_utf8(body).ok()?;
            ("body_quoted", own, serde_json::to_vec(text).unwrap())
        }
        9 if first == 0 => ("body_base64", own, STANDARD.encode(body).into_bytes()),
        9 => ("body_bytes_literal", own, literal(body).into_bytes()),
        _ => {
            let json: serde_json::Value = serde_json::from_slice(body).ok()?;
            let mut written = [serde_json::to_vec(&json), serde_json::to_vec_pretty(&json)];
            written.rotate_left(first);
            let [signed, received] = written.map(Result::unwrap);
            ("body_rewritten", signed, received)
        }
    })
}

/// What was received of an object that was put into something else.
fn wrapped(kind: u8, first: usize, body: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let text = core::str::from_utf8(body).ok().filter(|text| text.starts_with('{'))?;
    let bytes = || body.iter();
    Some(match kind {
        30 => {
            let digits: String = bytes().map(|byte| format!("%{byte:02X}")).collect();
            ("body_form_encoded", [["payload=", ""][first], &*digits].concat().into_bytes())
        }
        31 => {
            let (front, back) = body.split_at(body.len() / 2);
            let frame = |chunk: &[u8]| {
                [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
            };
            let chunks = if front.is_empty() { vec![back] } else { vec![front, back] };
            let frames: Vec<u8> = chunks.into_iter().flat_map(frame).collect();
            ("body_chunked", [&frames[..], b"0\r\n\r\n"].concat())
        }
        32 => {
            let end = ["\r\n", "\n"][first];
            let head = ["POST / HTTP/1.1", "host: h", "", ""].join(end);
            ("body_request", [head.as_bytes(), body].concat())
        }
        33 => {
            let envelope = serde_json::json!({ "headers": {}, "body": text, "count": 1 });
            ("body_wrapped", envelope.to_string().into_bytes())
        }
        34 => {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            if escaped == text {
                return None;
            }
            ("body_html_escaped", escaped.into_bytes())
        }
        35 => {
            let list: Vec<String> = bytes().map(u8::to_string).collect();
            let list = list.join([",", ", "][first]);
            ("body_byte_list", format!("{{\"type\":\"Buffer\",\"data\":[{list}]}}").into_bytes())
        }
        _ => {
            let digits: String = bytes().map(|byte| format!("{byte:02x}")).collect();
            ("body_hex", [["\\x", ""][first], &*digits].concat().into_bytes())
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
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As Python prints bytes.
fn literal(body: &[u8]) -> String {
    let escaped = body.iter().map(|byte| match byte {
        b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        b' '..=b'~' => char::from(*byte).into(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("b'{}'", escaped.collect::<String>())
}
