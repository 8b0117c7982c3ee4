//! Why a signature does not match: each cause is brought about, and found again, proven.

use std::time::Duration;

use call_assistant::webhook::explain::{
    Blanks, BodyChange, Cause, Escapes, Evidence, Explanation, KeyOrder, SecretChange, TextChange,
};
use call_assistant::webhook::{
    DeliveryHeaders, DigestReason, SecretError, SignatureReason, SigningSecret, Verifier,
    VerifyError,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{NOW, at};

const SECRET: &str = "whsec_cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw";

/// As the service would write it: an event, with what escapes and charsets differ about.
const BODY: &str = concat!(
    r#"{"id":"evt_1","type":"call.ended","created_at":"2026-01-01T00:00:00+00:00","#,
    r#""api_version":"2026-01-01","account_id":"acct_1","origin":{"source":"voice","#,
    r#""credential_id":null,"idempotency_key":null},"data":{"object":{"id":"call_1","#,
    r#""caller":{"contact_id":null,"phone_number":"+49 30 1","display_name":"Zoë <M&M's>"},"#,
    r#""summary":"see https://example.com/a \"b\"\n","appointment_ids":[],"extra":{}}}}"#,
);

fn hex(key: &[u8], message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The header of a body that was signed as it should be.
fn header(signed: &[u8]) -> String {
    keyed(SECRET.as_bytes(), signed)
}

fn keyed(key: &[u8], signed: &[u8]) -> String {
    format!("t={NOW},v1={}", hex(key, &[format!("{NOW}.").as_bytes(), signed].concat()))
}

fn explain(header: &str, body: &[u8], secret: &str) -> Explanation {
    let headers = DeliveryHeaders::new().signature(header.as_bytes());
    let explanation = Evidence::new(headers, body, secret).explain(at(NOW));
    shows_nothing(&explanation, header, secret);
    explanation
}

fn shows_nothing(explanation: &Explanation, header: &str, secret: &str) {
    let shown = format!("{explanation} {explanation:?}");
    assert!(!shown.contains(secret.trim().trim_matches('"')), "{shown}");
    for part in header.split("v1=").skip(1) {
        assert!(part.len() < 16 || !shown.contains(&part[..16]), "{shown}");
    }
}

fn proven(header: &str, body: &[u8], secret: &str) -> Vec<Cause> {
    let explanation = explain(header, body, secret);
    assert!(explanation.is_proven(), "{explanation}");
    explanation.causes().to_vec()
}

#[test]
fn what_is_genuine_is_said_to_be() {
    assert_eq!(proven(&header(BODY.as_bytes()), BODY.as_bytes(), SECRET), []);
    let explanation = explain(&header(b""), b"", SECRET);
    assert_eq!(explanation.to_string(), "proven: nothing is wrong with the signature");
}

#[test]
fn a_body_that_was_changed() {
    use BodyChange::*;
    let body = BODY.as_bytes();
    let lines = b"{\n\"id\":\n1}";
    let crlf = b"{\r\n\"id\":\r\n1}";
    let bom = |body: &[u8]| [b"\xef\xbb\xbf", body].concat();
    let marked = bom(body);
    let mojibake: String = body.iter().map(|byte| char::from(*byte)).collect();
    let windows = "{\"a\":\"\u{e2}\u{201a}\u{ac}\"}";
    let latin1: Vec<u8> = BODY.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let utf16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_marked_little = [b"\xff\xfe", utf16.as_slice()].concat();
    let utf16_marked: Vec<u8> =
        format!("\u{feff}{BODY}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    let cases: Vec<(BodyChange, &[u8], Vec<u8>)> = vec![
        (LineEndAdded, body, [body, b"\n"].concat()),
        (LineEndAdded, body, [body, b"\r\n"].concat()),
        (LineEndLost, b"{}\n", b"{}".to_vec()),
        (LineEndLost, b"{}\r\n", b"{}".to_vec()),
        (BlanksAdded, body, [b"\n  ", body, b"\n\n"].concat()),
        (LineEndsToCrLf, lines, crlf.to_vec()),
        // A carriage return by itself is no line end, and stays.
        (LineEndsToCrLf, b"{\r\"id\":\n1}", b"{\r\"id\":\r\n1}".to_vec()),
        (LineEndsToLf, crlf, lines.to_vec()),
        (ByteOrderMarkAdded, body, marked.clone()),
        (ByteOrderMarkLost, &marked, body.to_vec()),
        (ReadAsLatin1, body, mojibake.into_bytes()),
        (ReadAsWindows1252, "{\"a\":\"\u{20ac}\"}".as_bytes(), windows.into()),
        (WrittenAsLatin1, body, latin1),
        (WrittenAsUtf16, body, utf16),
        (WrittenAsUtf16, body, utf16_marked),
        (WrittenAsUtf16, body, utf16_marked_little),
        (Quoted, body, serde_json::to_vec(BODY).unwrap()),
        (Base64, br#"{"id":"evt_1"}"#, b"eyJpZCI6ImV2dF8xIn0=".to_vec()),
        (Base64, b"{\"i", b"eyJp".to_vec()),
        (Base64, b"\xfb\xef\xbe", b"++++".to_vec()),
        (Base64, b"\xfb\xef\xbe", b"----".to_vec()),
        (Base64, b"\xff\xff\xff", b"////".to_vec()),
        (Base64, b"\xff\xff\xff", b"____".to_vec()),
        (BytesLiteral, b"{\"a\":\"it's\"}\n", br#"b'{"a":"it\'s"}\n'"#.to_vec()),
        (BytesLiteral, b"{\"a\":\"\xe9\"}", br#"b'{"a":"\xe9"}'"#.to_vec()),
        (BytesLiteral, b"{\r\n\t\"a\": \"\\n'\"}", br#"b"{\r\n\t\"a\": \"\\n'\"}""#.to_vec()),
    ];
    for (change, signed, received) in cases {
        assert_eq!(proven(&header(signed), &received, SECRET), [Cause::Body(change)]);
    }
    // What is no base64 stands for nothing, though it begins like it; nor does what is no literal.
    for (signed, received) in [
        ("", "="),
        ("{\"i", "eyJpZ"),
        ("{\"id\":", "eyJpZCI6Z"),
        ("{}", r"b'{}\'"),
        ("{}", r"b'{}\x'"),
        ("{}", r"b'{}\x7'"),
        ("{}", r"b'{}\x7g'"),
        ("{}", "b'{}\""),
        ("{}", "b{}"),
    ] {
        assert!(!explain(&header(signed.as_bytes()), received.as_bytes(), SECRET).is_proven());
    }
}

#[test]
fn a_body_that_was_written_again() {
    let rewritten: [(Vec<u8>, &str); 8] = [
        // Python: json.dumps(json.loads(body))
        (
            BODY.replace("\":", "\": ").replace(",\"", ", \"").replace('ë', "\\u00eb").into(),
            "written without blanks",
        ),
        // serde_json: keys in a sorted map
        (
            serde_json::to_vec(&serde_json::from_str::<serde_json::Value>(BODY).unwrap()).unwrap(),
            "written without blanks, its keys in the specification's order",
        ),
        (
            serde_json::to_vec_pretty(&serde_json::from_str::<serde_json::Value>(BODY).unwrap())
                .unwrap(),
            "written without blanks, its keys in the specification's order",
        ),
        // PHP: json_encode(json_decode($body))
        (BODY.replace('/', "\\/").replace('ë', "\\u00eb").into(), "written without blanks"),
        // Go: json.Marshal
        (
            BODY.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").into(),
            "written without blanks",
        ),
        // .NET: System.Text.Json
        (
            BODY.replace("\\\"", "\\u0022")
                .replace('\'', "\\u0027")
                .replace('<', "\\u003C")
                .replace('ë', "\\u00EB")
                .into(),
            "written without blanks",
        ),
        // JavaScript: JSON.stringify(body, null, 2), and a line end
        (
            BODY.replace("{\"", "{\n  \"").replace('}', "\n}").replace("[]", "[\n]").into(),
            "written without blanks",
        ),
        // A byte order mark besides: the JSON is read without it.
        (
            [b"\xef\xbb\xbf", BODY.replace("\":", "\": ").as_bytes()].concat(),
            "written without blanks",
        ),
    ];
    for (received, words) in rewritten {
        let causes = proven(&header(BODY.as_bytes()), &received, SECRET);
        let Some(Cause::Body(change @ BodyChange::Rewritten(_))) = causes.last() else {
            panic!("{causes:?}");
        };
        let shown = change.to_string();
        let (_, form) = shown.split_once("signed was the same JSON ").unwrap();
        assert_eq!(form, words, "{}", String::from_utf8_lossy(&received));
    }
}

#[test]
fn the_form_that_was_signed_is_described() {
    let received = r#"{"b":"é/<","a":[1,1.50,{}]}"#;
    let cases = [
        (r#"{"b": "é/<", "a": [1, 1.50, {}]}"#, Blanks::AfterPunctuation, Escapes::Least, false),
        (r#"{"b":"\u00e9/<","a":[1,1.50,{}]}"#, Blanks::None, Escapes::NonAscii, false),
        (r#"{"b":"\u00E9/<","a":[1,1.50,{}]}"#, Blanks::None, Escapes::NonAsciiUppercase, false),
        (r#"{"b":"é/\u003c","a":[1,1.50,{}]}"#, Blanks::None, Escapes::Html, false),
        (r#"{"b":"\u00E9/\u003C","a":[1,1.50,{}]}"#, Blanks::None, Escapes::HtmlAndNonAscii, false),
        (r#"{"b":"\u00e9\/<","a":[1,1.50,{}]}"#, Blanks::None, Escapes::NonAscii, true),
        (
            "{\n  \"b\": \"é/<\",\n  \"a\": [\n    1,\n    1.50,\n    {}\n  ]\n}",
            Blanks::TwoBlanks,
            Escapes::Least,
            false,
        ),
        (
            "{\n\t\"b\": \"é/<\",\n\t\"a\": [\n\t\t1,\n\t\t1.50,\n\t\t{}\n\t]\n}",
            Blanks::Tabs,
            Escapes::Least,
            false,
        ),
    ];
    for (signed, blanks, escapes, slashes) in cases {
        let causes = proven(&header(signed.as_bytes()), received.as_bytes(), SECRET);
        let [Cause::Body(BodyChange::Rewritten(form))] = causes.as_slice() else {
            panic!("{causes:?}");
        };
        assert_eq!((form.blanks, form.escapes, form.slashes), (blanks, escapes, slashes));
        assert_eq!((form.order, form.line_end), (KeyOrder::AsIs, false), "{signed}");
    }
    // Whatever has an escape of its own gets it, in any form.
    let escapes = r#"{"a":"\"\\a\\/\n\r\t\b\f\u0000\u001f"}"#;
    let spaced = escapes.replace(':', ": ");
    for (signed, received) in [(escapes, &*spaced), (&*spaced, escapes)] {
        let causes = proven(&header(signed.as_bytes()), received.as_bytes(), SECRET);
        assert!(matches!(causes[..], [Cause::Body(BodyChange::Rewritten(_))]), "{causes:?}");
    }
    let signed =
        "{\n    \"a\": [\n        1,\n        1.50,\n        {}\n    ],\n    \"b\": \"é/<\"\n}\n";
    let causes = proven(&header(signed.as_bytes()), received.as_bytes(), SECRET);
    let [Cause::Body(BodyChange::Rewritten(form))] = causes.as_slice() else {
        panic!("{causes:?}");
    };
    assert_eq!(
        (form.blanks, form.order, form.line_end),
        (Blanks::FourBlanks, KeyOrder::Sorted, true)
    );
    assert_eq!(
        form.to_string(),
        "indented by four blanks, its keys sorted, with a line end after it"
    );
}

// D-44, and what else becomes of secrets.
#[test]
fn a_secret_that_was_changed() {
    use SecretChange::*;
    let decoded = b"please do not decode this";
    let bare = &SECRET["whsec_".len()..];
    let padded = "whsec_cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw==";
    let quoted = format!("\"{SECRET}\"");
    let signed = [
        (vec![PrefixDropped], bare.as_bytes(), SECRET),
        (vec![Base64Decoded], decoded, SECRET),
        (vec![Base64Decoded], decoded, padded),
        (vec![LineEnd], &[SECRET.as_bytes(), b"\n"].concat(), SECRET),
        (vec![LineEnd], &[SECRET.as_bytes(), b"\r\n"].concat(), SECRET),
        (vec![SignerQuotes], quoted.as_bytes(), SECRET),
        (vec![Blanks], SECRET.as_bytes(), &format!("{SECRET}\n")),
        (vec![Blanks], SECRET.as_bytes(), &format!(" \u{a0}{SECRET}\t")),
        (vec![Blanks], SECRET.as_bytes(), &format!("\u{feff}{SECRET}")),
        (vec![Blanks], SECRET.as_bytes(), &format!("\u{1b}{SECRET}\0")),
        (vec![Blanks], SECRET.as_bytes(), &format!("{SECRET}\0")),
        (vec![Label], SECRET.as_bytes(), &format!("whsec_{SECRET}")),
        (vec![Quotes], SECRET.as_bytes(), &quoted),
        (vec![Quotes], SECRET.as_bytes(), &format!("\u{201c}{SECRET}\u{201d}")),
        (vec![Blanks, Quotes], SECRET.as_bytes(), &format!("'{SECRET}'\n")),
        (vec![Quotes, Blanks], SECRET.as_bytes(), &format!("\"{SECRET}\n\"")),
        (vec![Label], SECRET.as_bytes(), &format!("WEBHOOK_SECRET={SECRET}")),
        (vec![Quotes, Label], SECRET.as_bytes(), &format!("WEBHOOK_SECRET=\"{SECRET}\"")),
        (vec![PrefixMissing], SECRET.as_bytes(), bare),
        (vec![Base64Decoded], decoded, bare),
    ];
    for (changes, key, given) in signed {
        let causes: Vec<_> = changes.into_iter().map(Cause::Secret).collect();
        let found = proven(&keyed(key, BODY.as_bytes()), BODY.as_bytes(), given);
        assert_eq!(found, causes, "{given:?}");
    }
    let explanation = explain(&keyed(decoded, b"{}"), b"{}", SECRET);
    assert_eq!(
        explanation.to_string(),
        "proven: the signer base64-decodes the secret, as libraries for Standard Webhooks do"
    );
}

#[test]
fn a_header_that_was_changed() {
    use TextChange::*;
    let body = BODY.as_bytes();
    let right = header(body);
    let digest = right.split_once("v1=").unwrap().1.to_owned();
    let right_base64 = base64(&unhex(&digest));
    let milliseconds = format!("{NOW}123");
    let hour_old = format!("{}123", NOW - 3600);
    let with = |t: &str, message: String| {
        format!("t={t},v1={}", hex(SECRET.as_bytes(), message.as_bytes()))
    };
    let cases = [
        (Uppercase, right.replace(&digest, &digest.to_uppercase())),
        (Base64, format!("t={NOW},v1={right_base64}")),
        (Base64, format!("t={NOW},v1={}", right_base64.trim_end_matches('='))),
        (Surrounded, format!("t={NOW},v1=\"{digest}\"")),
        (Surrounded, format!("t={NOW},v1=0x{digest}")),
        // Signatures of other schemes say nothing, and are passed over.
        (Surrounded, format!("t={NOW},v0={},x,v1=\"{digest}\"", "0".repeat(64))),
        (Cut { digits: 63 }, right[..right.len() - 1].to_owned()),
        (Cut { digits: 16 }, right[..right.len() - 48].to_owned()),
        (Milliseconds, with(&milliseconds, format!("{milliseconds}.{BODY}"))),
        (Milliseconds, with(&milliseconds, format!("{NOW}.{BODY}"))),
        // And an hour old, too.
        (Milliseconds, with(&hour_old, format!("{hour_old}.{BODY}"))),
        (SignedMilliseconds, with(&NOW.to_string(), format!("{NOW}000.{BODY}"))),
        (SignedMilliseconds, with(&NOW.to_string(), format!("{NOW}789.{BODY}"))),
        (SignedWithoutTime, with(&NOW.to_string(), BODY.to_owned())),
        (SignedWithoutPeriod, with(&NOW.to_string(), format!("{NOW}{BODY}"))),
    ];
    for (change, header) in cases {
        assert_eq!(proven(&header, body, SECRET), [Cause::Text(change)], "{change:?}");
    }

    // Base64 that looks like a number in hex.
    let (other, right) = (0_u32..)
        .map(|body| (body.to_string(), header(body.to_string().as_bytes())))
        .find(|(_, header)| header.contains("v1=d31"))
        .unwrap();
    let text = base64(&unhex(right.split_once("v1=").unwrap().1));
    assert!(text.starts_with("0x"), "{text}");
    for (header, causes) in [
        (format!("t={NOW},v1={text}"), vec![Cause::Text(Base64)]),
        (format!("t={NOW},v1=\"{text}\""), vec![Cause::Text(Surrounded), Cause::Text(Base64)]),
    ] {
        assert_eq!(proven(&header, other.as_bytes(), SECRET), causes, "{header}");
    }

    // Standard Webhooks, in all its ways.
    let header = with(&NOW.to_string(), format!("evt_1.{NOW}.{BODY}"));
    let headers = DeliveryHeaders::new().signature(header.as_bytes()).delivery(b"evt_1");
    let explanation = Evidence::new(headers, body, SECRET).explain(at(NOW));
    assert_eq!(explanation.causes(), [Cause::Text(SignedWithId)]);
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn base64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let symbols = bytes.chunks(3).flat_map(|chunk| {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        (0..4).map(move |at| match at <= chunk.len() {
            true => char::from(SYMBOLS[usize::try_from(bits >> (18 - 6 * at) & 63).unwrap()]),
            false => '=',
        })
    });
    symbols.collect()
}

#[test]
fn two_things_at_once() {
    let body = BODY.as_bytes();
    let received = [body, b"\n"].concat();
    let found = proven(&header(body), &received, &format!("\"{SECRET}\""));
    let expected = [Cause::Body(BodyChange::LineEndAdded), Cause::Secret(SecretChange::Quotes)];
    assert_eq!(found, expected);

    let received = [b"\xef\xbb\xbf", body, b"\r\n"].concat();
    let found = proven(&header(body), &received, SECRET);
    let expected =
        [Cause::Body(BodyChange::LineEndAdded), Cause::Body(BodyChange::ByteOrderMarkAdded)];
    assert_eq!(found, expected);

    let upper = header(body).to_uppercase().replace("T=", "t=").replace("V1=", "v1=");
    let found = proven(&upper, &[body, b"\n"].concat(), SECRET);
    let expected = [Cause::Body(BodyChange::LineEndAdded), Cause::Text(TextChange::Uppercase)];
    assert_eq!(found, expected);
}

#[test]
fn another_secret_or_another_delivery() {
    let body = BODY.as_bytes();
    let right = header(body);
    let headers = DeliveryHeaders::new().signature(right.as_bytes());
    let found = Evidence::new(headers, body, "whsec_current")
        .known_secret("whsec_staging")
        .known_secret(SECRET)
        .explain(at(NOW));
    assert!(found.is_proven());
    assert_eq!(found.causes(), [Cause::OtherSecret { index: 2 }]);
    assert_eq!(found.to_string(), "proven: another of the known secrets signed it, number 2");

    // This header belongs to that body.
    let other = br#"{"id":"evt_2"}"#;
    let others = header(other);
    let others = DeliveryHeaders::new().signature(others.as_bytes());
    let found = Evidence::new(others, body, SECRET)
        .known_delivery(DeliveryHeaders::new().signature(b"t=1,v1=lost"), b"{}")
        .known_delivery(DeliveryHeaders::new(), other)
        .explain(at(NOW));
    assert!(found.is_proven());
    assert_eq!(found.causes(), [Cause::OtherDelivery { index: 2 }]);
    let words = "proven: header and body belong to two deliveries, the other being number 2";
    assert_eq!(found.to_string(), words);

    // That header belongs to this body.
    let wrong = header(b"who knows");
    let wrong = DeliveryHeaders::new().signature(wrong.as_bytes());
    let found = Evidence::new(wrong, body, SECRET)
        .known_delivery(DeliveryHeaders::new().signature(right.as_bytes()), b"lost")
        .explain(at(NOW));
    assert!(found.is_proven());
    assert_eq!(found.causes(), [Cause::OtherDelivery { index: 1 }]);

    // Another attempt of the same event has the right body: what became of this one says more.
    let received = [body, b"\n"].concat();
    let found = Evidence::new(headers, &received, SECRET)
        .known_delivery(DeliveryHeaders::new(), body)
        .explain(at(NOW));
    assert_eq!(found.causes(), [Cause::Body(BodyChange::LineEndAdded)]);
}

/// Attempts of one event share body and delivery header, and are no two deliveries.
#[test]
fn another_attempt_is_not_another_delivery() {
    let body = BODY.as_bytes();
    let first = header(body);
    let known = DeliveryHeaders::new().signature(first.as_bytes()).delivery(b"evt_1");
    let retried = keyed(b"whsec_rotated", body);
    let retried = DeliveryHeaders::new().signature(retried.as_bytes()).delivery(b"evt_1");
    let cut = &body[..body.len() - 9];
    for (headers, received, causes) in [(retried, body, vec![]), (known, cut, vec![Cause::CutOff])]
    {
        let found =
            Evidence::new(headers, received, SECRET).known_delivery(known, body).explain(at(NOW));
        assert!(!found.is_proven(), "{found}");
        assert_eq!(found.causes(), causes);
    }
}

/// What was signed, given as the body, is the receiver's doing and not the signer's.
#[test]
fn the_signed_text_as_the_body() {
    let signed = format!("{NOW}.{BODY}");
    let found = proven(&header(BODY.as_bytes()), signed.as_bytes(), SECRET);
    assert_eq!(found, [Cause::Body(BodyChange::TimePrepended)]);
}

/// A hostile body is not written a hundred times as long, as often as there are forms.
#[test]
fn what_grows_too_long_is_not_written() {
    const DEPTH: usize = 30;
    let line = |depth, text: &str| format!("\n{}{text}", "\t".repeat(depth));
    for (sevens, written) in [(10_000, true), (40_000, false)] {
        let compact = [&"[".repeat(DEPTH), "7", &",7".repeat(sevens), &"]".repeat(DEPTH)].concat();
        let open: String = (1..DEPTH).map(|depth| line(depth, "[")).collect();
        let close: String = (0..DEPTH).rev().map(|depth| line(depth, "]")).collect();
        let sevens = line(DEPTH, "7") + &line(DEPTH, "7").repeat(sevens).replace("\n", ",\n");
        let form = ["[", &open, &sevens, &close].concat();
        let signature = header(form.as_bytes());
        let headers = DeliveryHeaders::new().signature(signature.as_bytes());
        let found = Evidence::new(headers, compact.as_bytes(), SECRET).explain(at(NOW));
        assert_eq!(found.is_proven(), written, "{found}");
    }
}

/// What verifies is genuine, whatever stands beside it in the header.
#[test]
fn what_stands_beside_the_right_digest_means_nothing() {
    let right = header(b"{}");
    let (time, digest) = right.split_once(",v1=").unwrap();
    let verifier = Verifier::new(SigningSecret::parse(SECRET).unwrap());
    for text in [
        format!("{time},v1={},v1={digest}", digest.to_uppercase()),
        format!("{time},v1={digest},v1={}", digest.to_uppercase()),
        format!("{time},v1={},v1={digest}", &digest[..32]),
        format!("{time},v1=0x{digest},v1={digest}"),
        format!("x=;t=5,{time},v1={digest}"),
        format!("x=y&t=5,v1={digest},{time}"),
        format!("{time},v1={digest},x=;v1={}", "0".repeat(64)),
    ] {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        assert_eq!(verifier.verify_parts(headers, b"{}", at(NOW)).map(drop), Ok(()), "{text}");
        assert_eq!(proven(&text, b"{}", SECRET), [], "{text}");
    }
    // Nor does what a kinder reader than the verifier would find in a part.
    let upper = digest.to_uppercase();
    let found = proven(&format!("{time},v1={upper},v1=x&v1={digest}"), b"{}", SECRET);
    assert_eq!(found, [Cause::Text(TextChange::Uppercase)]);
    // Each secret has made one of the two, and only the other one has written its own as it should.
    let other = keyed(b"whsec_other", b"{}");
    let (_, other) = other.split_once(",v1=").unwrap();
    let text = format!("{time},v1={},v1={other}", digest.to_uppercase());
    let headers = DeliveryHeaders::new().signature(text.as_bytes());
    let found = Evidence::new(headers, b"{}", SECRET).known_secret("whsec_other").explain(at(NOW));
    assert_eq!(found.causes(), [Cause::OtherSecret { index: 1 }]);
}

/// A text that no verifier takes is wrong, though it made the digest.
#[test]
fn what_both_ends_have_wrong_is_said() {
    for (given, error) in [
        (&SECRET["whsec_".len()..], SecretError::Prefix),
        ("whsec_abc\n", SecretError::Character { at: 9 }),
    ] {
        let found = proven(&keyed(given.as_bytes(), b"{}"), b"{}", given);
        assert_eq!(found, [Cause::NoSecret(error)]);
    }
    let explanation = explain(&keyed(b"abc", b"{}"), b"{}", "abc");
    assert_eq!(
        explanation.to_string(),
        "proven: both ends share a text that is no secret, for the signing secret does not begin \
         with whsec_"
    );
}

#[test]
fn what_the_header_alone_shows_is_a_fact() {
    let right = header(b"{}");
    fn facts(headers: DeliveryHeaders<'_>) -> Vec<Cause> {
        let explanation = Evidence::new(headers, b"{}", SECRET).explain(at(NOW));
        assert!(explanation.is_proven());
        explanation.causes().to_vec()
    }
    let one = DeliveryHeaders::new().signature(right.as_bytes());
    assert_eq!(facts(DeliveryHeaders::new()), [Cause::Refused(VerifyError::Missing)]);
    let repeated = facts(one.signature(right.as_bytes()));
    assert!(matches!(repeated[..], [Cause::Refused(VerifyError::Repeated)]));

    let malformed = |text: &str| facts(DeliveryHeaders::new().signature(text.as_bytes()));
    let fault = |fault: SignatureReason| vec![Cause::Refused(fault.into())];
    assert_eq!(malformed(""), fault(SignatureReason::NotPair { part: 1 }));
    assert_eq!(malformed("t=1"), fault(SignatureReason::NoDigest));
    assert_eq!(malformed(&format!("{right},")), fault(SignatureReason::NotPair { part: 3 }));
    assert_eq!(malformed(&right.replace(',', ";")), fault(SignatureReason::Timestamp { part: 1 }));
    let short = VerifyError::IllFormedDigest { part: 2, fault: DigestReason::Length { len: 3 } };
    assert_eq!(malformed("t=1,v1=abc"), [Cause::Refused(short)]);
    // Too little of the right digest to be proof, nothing of it, or more than there is.
    let (time, digest) = right.split_once("v1=").unwrap();
    // In base64, the same.
    for v1 in [&digest[..15], "", &format!("{digest}0"), "zz", "!", &"Q".repeat(42)] {
        let fault = DigestReason::Length { len: v1.len() };
        let error = VerifyError::IllFormedDigest { part: 2, fault };
        assert_eq!(malformed(&format!("{time}v1={v1}")), [Cause::Refused(error)]);
    }
}

#[test]
fn a_time_that_is_off_is_a_fact() {
    let right = header(b"{}");
    let headers = DeliveryHeaders::new().signature(right.as_bytes());
    let late = Evidence::new(headers, b"{}", SECRET).explain(at(NOW + 301));
    assert!(late.is_proven());
    assert!(matches!(late.causes(), [Cause::Refused(VerifyError::TooOld { .. })]));
    assert_eq!(
        late.to_string(),
        "proven: the signature was made 301s ago, more than the tolerance of 300s"
    );
    // As the verifier at hand judges it.
    let within = |tolerance, late| {
        let evidence = Evidence::new(headers, b"{}", SECRET);
        evidence.with_tolerance(Duration::from_secs(tolerance)).explain(at(NOW + late))
    };
    assert_eq!(within(400, 400).causes(), []);
    assert_eq!(
        within(10, 11).to_string(),
        "proven: the signature was made 11s ago, more than the tolerance of 10s"
    );
    let early = Evidence::new(headers, b"{}", SECRET).explain(at(NOW - 301));
    assert!(matches!(early.causes(), [Cause::Refused(VerifyError::TooNew { .. })]));
}

#[test]
fn what_cannot_be_proven_is_a_guess_or_nothing() {
    let guesses = |body: &[u8], id: &[u8]| {
        let forged = keyed(b"whsec_who-knows", b"who knows");
        let headers = DeliveryHeaders::new().signature(forged.as_bytes()).delivery(id);
        let explanation = Evidence::new(headers, body, SECRET).explain(at(NOW));
        assert!(!explanation.is_proven(), "{explanation}");
        explanation
    };
    let deep =
        format!(r#"{{"id":"evt_1","a":{0}{{"b":{0}1{1}}}{1}}}"#, "[".repeat(40), "]".repeat(40));
    let cases: [(&[u8], Vec<Cause>); 11] = [
        (b"", vec![Cause::EmptyBody]),
        (b"{\"id\":\"evt_", vec![Cause::CutOff]),
        (b"id=evt_1", vec![Cause::NotJson]),
        (br#"{"id":"evt_2"}"#, vec![Cause::ContradictsDeliveryHeader]),
        ("{\"id\":\"evt_1\",\"a\":\"\u{fffd}\"}".as_bytes(), vec![Cause::ReplacementCharacters]),
        (br#"{"id":"evt_1"}"#, vec![]),
        (br#"{"type":"evt_2","id":"evt_1"}"#, vec![]),
        // JSON that is too deep to be written again, or that no text can hold, is left as it is. Its
        // id is read all the same.
        (deep.as_bytes(), vec![]),
        (br#"{"id":"evt_2","a":"\ud800"}"#, vec![Cause::ContradictsDeliveryHeader]),
        (br#"{"id":"evt_2","\ud800":1}"#, vec![Cause::ContradictsDeliveryHeader]),
        (br#"{"id":"evt_2","a":[{"b":"\ud800"}]}"#, vec![Cause::ContradictsDeliveryHeader]),
    ];
    for (body, causes) in cases {
        assert_eq!(guesses(body, b"evt_1").causes(), causes);
    }
    assert_eq!(
        guesses(b"", b"").to_string(),
        "a guess: the body is empty, since something has read it before"
    );
    assert!(guesses(b"{}", b"").to_string().starts_with("no cause found: "));
    // Several guesses are alternatives.
    let several = guesses("{\"id\":\"evt_2\",\"a\":\"\u{fffd}\"}".as_bytes(), b"evt_1");
    let [first, second] = several.causes() else { panic!("{several}") };
    assert_eq!(several.to_string(), format!("a guess: {first}, or {second}"));
}

#[test]
fn a_long_body_is_not_searched_for_long() {
    assert_eq!(Evidence::MAX_SEARCHED, 262_144);
    let body = vec![b' '; Evidence::MAX_SEARCHED + 1];
    let without_last = header(&body[1..]);
    assert!(!explain(&without_last, &body, SECRET).is_proven());
    assert_eq!(
        proven(&keyed(&SECRET.as_bytes()[6..], &body), &body, SECRET),
        [Cause::Secret(SecretChange::PrefixDropped)]
    );
    // As long as may be, and a byte longer.
    let mut body = vec![b'1'; Evidence::MAX_SEARCHED + 1];
    let text = header(&body[..Evidence::MAX_SEARCHED]);
    body[Evidence::MAX_SEARCHED] = b'\n';
    assert!(!explain(&text, &body, SECRET).is_proven());
    let text = header(&body[1..Evidence::MAX_SEARCHED]);
    let found = proven(&text, &body[1..], SECRET);
    assert_eq!(found, [Cause::Body(BodyChange::LineEndAdded)]);
}

// Each of the thousand times that may have been signed costs a digest of the body.
#[test]
fn milliseconds_are_looked_for_under_short_bodies_only() {
    let longest = vec![b'1'; 16 * 1024];
    let signed = |body: &[u8]| {
        format!(
            "t={NOW},v1={}",
            hex(SECRET.as_bytes(), &[format!("{NOW}789.").as_bytes(), body].concat())
        )
    };
    let found = proven(&signed(&longest), &longest, SECRET);
    assert_eq!(found, [Cause::Text(TextChange::SignedMilliseconds)]);
    let longer = [&longest[..], b"1"].concat();
    assert!(!explain(&signed(&longer), &longer, SECRET).is_proven());
}

#[test]
fn changes_to_the_text_are_said_in_words() {
    let cases = [
        (TextChange::Uppercase, "the digest is in uppercase hex"),
        (TextChange::Base64, "the digest is in base64, not in lowercase hex"),
        (TextChange::Surrounded, "there is something around the digest"),
        (TextChange::Cut { digits: 16 }, "the digest was cut to 16 digits"),
        (TextChange::Milliseconds, "t is in milliseconds, not in seconds"),
        (TextChange::SignedMilliseconds, "the time was signed in milliseconds and sent in seconds"),
        (TextChange::SignedWithoutTime, "the body was signed without the time"),
        (
            TextChange::SignedWithoutPeriod,
            "time and body were signed without the period between them",
        ),
        (
            TextChange::SignedWithId,
            "the delivery's id was signed too, as libraries for Standard Webhooks do",
        ),
    ];
    for (change, words) in cases {
        assert_eq!(change.to_string(), words);
        assert_eq!(Cause::Text(change).to_string(), words);
    }
}

#[test]
fn the_evidence_shows_neither_secrets_nor_bodies() {
    let header = header(b"{}");
    let headers = DeliveryHeaders::new().signature(header.as_bytes());
    let evidence = Evidence::new(headers, b"{}", SECRET)
        .known_secret("whsec_another")
        .known_delivery(headers, b"[]");
    assert_eq!(
        format!("{evidence:?}"),
        format!("Evidence {{ headers: {headers:?}, body_len: 2, secrets: 2, deliveries: 1 }}")
    );
}
