//! What may have happened to the body.

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::Evidence;

use super::{BODY, NOTHING, SECRET, explain, found, header, keyed};
use crate::wire::{NOW, at};

// `tests/bytes/src/cause.rs` has the plain changes.
#[test]
fn a_body_that_was_changed() {
    let windows = "{\"a\":\"\u{e2}\u{201a}\u{ac}\"}";
    let utf16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [(&str, &[u8], &[u8]); 11] = [
        // A carriage return by itself is no line end, and stays.
        ("body_line_ends_to_crlf", b"{\r\"id\":\n1}", b"{\r\"id\":\r\n1}"),
        ("body_read_as_windows1252", "{\"a\":\"\u{20ac}\"}".as_bytes(), windows.as_bytes()),
        ("body_written_as_utf16", BODY.as_bytes(), &utf16),
        ("body_base64", b"{\"i", b"eyJp"),
        ("body_base64", b"\xfb\xef\xbe", b"++++"),
        ("body_base64", b"\xfb\xef\xbe", b"----"),
        ("body_base64", b"\xff\xff\xff", b"////"),
        ("body_base64", b"\xff\xff\xff", b"____"),
        ("body_form_encoded", br#"{"a":"b=c"}"#, br#"payload={"a":"b=c"}"#),
        ("body_bytes_literal", b"{\"a\":\"\xe9\"}", br#"b'{"a":"\xe9"}'"#),
        ("body_bytes_literal", b"{\r\n\t\"a\": \"\\n'\"}", br#"b"{\r\n\t\"a\": \"\\n'\"}""#),
    ];
    for (code, signed, received) in cases {
        let shown = String::from_utf8_lossy(received);
        let found = found(&header(signed), received, SECRET);
        assert_eq!(found, format!("proven {code}"), "{shown}");
    }
    // What is not base64 stands for nothing, though it begins like it; nor does what is no literal.
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
        let explanation = explain(&header(signed.as_bytes()), received.as_bytes(), SECRET);
        assert!(!explanation.is_proven(), "{received}: {explanation}");
    }
}

/// What is said of the style in which a body was signed, and of nothing else.
#[track_caller]
fn style(signed: &str, received: &[u8]) -> String {
    let explanation = explain(&header(signed.as_bytes()), received, SECRET);
    let shown = explanation.to_string();
    assert!(shown.starts_with("proven: "), "{shown}");
    assert_eq!(explanation.causes().last().map(|cause| cause.as_str()), Some("body_rewritten"));
    let style = shown.split_once("the same JSON was signed, ");
    style.unwrap_or_else(|| panic!("{shown}")).1.to_owned()
}

#[test]
fn a_body_that_was_written_again() {
    let value = serde_json::from_str::<serde_json::Value>(BODY).unwrap();
    let rewritten: [(&str, Vec<u8>, &str); 3] = [
        (
            "serde_json: keys in a sorted map",
            serde_json::to_vec(&value).unwrap(),
            "written without spaces, its keys in the protocol's order",
        ),
        (
            ".NET: System.Text.Json",
            BODY.replace("\\\"", "\\u0022")
                .replace('\'', "\\u0027")
                .replace('<', "\\u003C")
                .replace('ë', "\\u00EB")
                .into(),
            "written without spaces",
        ),
        (
            "a byte order mark, too: the JSON is read without it",
            [b"\xef\xbb\xbf", BODY.replace("\":", "\": ").as_bytes()].concat(),
            "written without spaces",
        ),
    ];
    for (who, received, expected) in rewritten {
        assert_eq!(style(BODY, &received), expected, "{who}");
    }
}

#[test]
fn the_style_that_was_signed_is_described() {
    let received = r#"{"b":"é/<","a":[1,1.50,{}]}"#.as_bytes();
    for (signed, expected) in [
        (r#"{"b": "é/<", "a": [1, 1.50, {}]}"#, "written with a space after each colon and comma"),
        (
            r#"{"b":"\u00e9/<","a":[1,1.50,{}]}"#,
            r"written without spaces, \u00e9 for what is not ASCII",
        ),
        (
            r#"{"b":"\u00E9/<","a":[1,1.50,{}]}"#,
            r"written without spaces, \u00E9 for what is not ASCII",
        ),
        (r#"{"b":"é/\u003c","a":[1,1.50,{}]}"#, r"written without spaces, \u003c for <"),
        (
            r#"{"b":"\u00E9/\u003C","a":[1,1.50,{}]}"#,
            r"written without spaces, \u003C for < and \u00E9 for what is not ASCII",
        ),
        (
            r#"{"b":"\u00e9\/<","a":[1,1.50,{}]}"#,
            r"written without spaces, \u00e9 for what is not ASCII, \/ for /",
        ),
        (
            "{\n  \"b\": \"é/<\",\n  \"a\": [\n    1,\n    1.50,\n    {}\n  ]\n}",
            "indented by two spaces",
        ),
        ("{\n\t\"b\": \"é/<\",\n\t\"a\": [\n\t\t1,\n\t\t1.50,\n\t\t{}\n\t]\n}", "indented by tabs"),
        (
            "{\n    \"a\": [\n        1,\n        1.50,\n        {}\n    ],\n    \"b\": \"é/<\"\n}\n",
            "indented by four spaces, its keys sorted, with a line end after it",
        ),
    ] {
        assert_eq!(style(signed, received), expected, "{signed}");
    }
    // Whatever has an escape of its own gets it, in any style.
    let escapes = r#"{"a":"\"\\a\\/\n\r\t\b\f\u0000\u001f"}"#;
    let spaced = escapes.replace(':', ": ");
    for (signed, received) in [(escapes, &*spaced), (&*spaced, escapes)] {
        let found = found(&header(signed.as_bytes()), received.as_bytes(), SECRET);
        assert_eq!(found, "proven body_rewritten", "{signed}");
    }
}

/// A hostile body is not written a hundred times as long, as often as there are styles.
#[test]
fn what_grows_too_long_is_not_written() {
    const DEPTH: usize = 30;
    let line = |depth, text: &str| format!("\n{}{text}", "\t".repeat(depth));
    for (sevens, written) in [(10_000, true), (40_000, false)] {
        let compact = [&"[".repeat(DEPTH), "7", &",7".repeat(sevens), &"]".repeat(DEPTH)].concat();
        let open: String = (1..DEPTH).map(|depth| line(depth, "[")).collect();
        let close: String = (0..DEPTH).rev().map(|depth| line(depth, "]")).collect();
        let lines = line(DEPTH, "7") + &line(DEPTH, "7").repeat(sevens).replace("\n", ",\n");
        let signed = ["[", &open, &lines, &close].concat();
        let signature = header(signed.as_bytes());
        let headers = DeliveryHeaders::new().signature(signature.as_bytes());
        let found = Evidence::new(headers, compact.as_bytes(), SECRET).explain(at(NOW));
        assert_eq!(found.is_proven(), written, "{sevens} sevens: {found}");
    }
}

/// What was signed, given as the body, is the receiver's doing and not the signer's.
#[test]
fn the_signed_text_as_the_body() {
    let signed = format!("{NOW}.{BODY}");
    let found = found(&header(BODY.as_bytes()), signed.as_bytes(), SECRET);
    assert_eq!(found, "proven body_time_prepended");
}

#[test]
fn a_long_body_is_not_searched_for_long() {
    assert_eq!(Evidence::MAX_SEARCHED, 262_144);
    let body = vec![b' '; Evidence::MAX_SEARCHED + 1];
    let without_last = header(&body[1..]);
    assert!(!explain(&without_last, &body, SECRET).is_proven());
    let seen = found(&keyed(&SECRET.as_bytes()[6..], &body), &body, SECRET);
    assert_eq!(seen, "proven signer_prefix_dropped");
    // As long as may be, and a byte longer.
    let mut body = vec![b'1'; Evidence::MAX_SEARCHED + 1];
    let text = header(&body[..Evidence::MAX_SEARCHED]);
    body[Evidence::MAX_SEARCHED] = b'\n';
    assert_eq!(found(&text, &body, SECRET), NOTHING);
    let text = header(&body[1..Evidence::MAX_SEARCHED]);
    assert_eq!(found(&text, &body[1..], SECRET), "proven body_line_end_added");
}
