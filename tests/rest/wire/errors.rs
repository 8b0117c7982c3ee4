//! The error envelope, by the tables of section 7 of the specification.

use std::collections::BTreeSet;

use call_assistant::id::RequestId;
use call_assistant::rest::{ApiError, ErrorCode, ErrorType};

/// Section 7's table, D-2 where it is silent, D-3 for the code of our own (ERR-2, ERR-3).
const TABLE: [(u16, &str, &str); 11] = [
    (400, "invalid_parameter", "invalid_request"),
    (400, "invalid_cursor", "invalid_request"),
    (401, "invalid_credentials", "authentication_error"),
    (402, "subscription_inactive", "permission_error"),
    (403, "insufficient_scope", "permission_error"),
    (403, "plan_upgrade_required", "permission_error"),
    (403, "account_closed", "permission_error"),
    (404, "resource_not_found", "invalid_request"),
    (429, "rate_limit_exceeded", "rate_limit_error"),
    (500, "internal_error", "api_error"),
    (405, "method_not_allowed", "invalid_request"),
];

fn request_id() -> RequestId {
    RequestId::parse("req_7f3a").unwrap()
}

/// ERR-2, ERR-3, D-2
#[test]
fn each_code_has_the_status_and_type_of_the_table() {
    let known = ErrorCode::KNOWN.iter().map(|code| {
        let (status, error_type) = (code.status().unwrap(), code.error_type().unwrap());
        (status.as_u16(), code.as_str(), error_type.as_str().to_owned())
    });
    let table = TABLE.map(|(status, code, error_type)| (status, code, error_type.to_owned()));
    assert_eq!(known.collect::<Vec<_>>(), table);
    let unknown = ErrorCode::from("teapot");
    assert_eq!((unknown.status(), unknown.error_type()), (None, None));
}

/// ERR-1: four fields, all texts, all there. ERR-5: no two codes look alike.
#[test]
fn each_code_is_written_as_the_envelope_and_read_back() {
    let mut messages = BTreeSet::new();
    for (_, code, error_type) in TABLE {
        let error = ApiError::new(ErrorCode::from(code), request_id());
        let json: serde_json::Value = serde_json::from_slice(&error.to_json()).unwrap();
        let message = error.message.clone();
        let fields = serde_json::json!({
            "type": error_type, "code": code, "message": message, "request_id": "req_7f3a",
        });
        assert_eq!(json, serde_json::json!({ "error": fields }));
        assert!(messages.insert(message), "{code}");
        assert_eq!(ApiError::from_json(&error.to_json()), Ok(error));
    }
}

#[test]
fn a_message_may_say_more() {
    let mut error = ApiError::new(ErrorCode::InvalidParameter, request_id());
    error.message = "limit must be from 1 to 100".into();
    let read = ApiError::from_json(&error.to_json()).unwrap();
    assert_eq!(read.message, "limit must be from 1 to 100");
    assert_eq!(read.to_string(), "invalid_parameter: limit must be from 1 to 100 (req_7f3a)");
}

/// A newer service, or a sloppy one, does not break a client (ERR-4).
#[test]
fn a_reader_survives_what_it_does_not_know_and_what_is_missing() {
    let read = |json: &str| ApiError::from_json(json.as_bytes()).unwrap();
    let new = read(
        r#"{"trace":[1],"error":{"type":"quota","code":"daily_quota","message":"m",
            "request_id":"req_1","docs":{"url":"x"}}}"#,
    );
    assert_eq!(new.code, ErrorCode::from("daily_quota"));
    assert_eq!(new.error_type, Some(ErrorType::from("quota")));
    assert_eq!(ApiError::from_json(&new.to_json()), Ok(new));

    let bare = read(r#"{"error":{"code":"account_closed"}}"#);
    assert_eq!(bare.code, ErrorCode::AccountClosed);
    assert_eq!((bare.error_type, bare.request_id), (None, None));
    assert_eq!(bare.message, ApiError::new(ErrorCode::AccountClosed, request_id()).message);

    let wrong =
        read(r#"{"error":{"code":"account_closed","type":5,"message":null,"request_id":"0815"}}"#);
    assert_eq!(wrong.to_string(), "account_closed: The account is scheduled for deletion.");
    assert_eq!((wrong.error_type, wrong.request_id), (None, None));
}

/// KEY-7: whoever wrote an error, what is shown of it is one line, short, and shows no key.
#[test]
fn an_error_shows_in_one_line_without_a_key() {
    let key = "service_live_d41d8cd98f00b204e9800998ecf8427e";
    let long = "x".repeat(60_000);
    for (row, text, shown) in [
        ("a key", key.to_owned(), "service_live_[redacted]"),
        ("a secret", format!("see whsec_{long}"), "see whsec_[redacted]"),
        ("a line end", "a\nERROR b\r\u{2028}\u{1b}[2J".into(), r"a\nERROR b\r\u{2028}\u{1b}[2J"),
        ("another direction", "a\u{202e}b".into(), r"a\u{202e}b"),
        ("60,000 characters", long.clone(), "xxxx"),
        ("any language", "\u{e9}\u{1f4de}".into(), "\u{e9}\u{1f4de}"),
    ] {
        let text_json = serde_json::to_string(&text).unwrap();
        let json = format!(
            r#"{{"error":{{"type":{text_json},"code":{text_json},"message":{text_json},"request_id":"req_{key}"}}}}"#
        );
        let error = ApiError::from_json(json.as_bytes()).unwrap();
        // The texts themselves are kept, for whoever branches on them.
        assert_eq!((error.code.as_str(), error.message.as_str()), (&*text, &*text), "{row}");
        assert_eq!(error.request_id, None, "{row}");
        let (code, kind) = (error.code.clone(), error.error_type.clone().unwrap());
        let [code, kind] = [format!("{code} {code:?}"), format!("{kind} {kind:?}")];
        for printed in [error.to_string(), format!("{error:?}"), code, kind] {
            let shown = [shown.to_owned(), shown.replace('\\', r"\\")];
            assert!(shown.iter().any(|shown| printed.contains(shown)), "{row}: {printed}");
            assert!(printed.len() < 1_500, "{row}: {} bytes", printed.len());
            assert!(!printed.contains(char::is_control), "{row}: {printed:?}");
            assert!(!printed.contains("d41d8cd9"), "{row}: {printed}");
            assert!(!printed.contains('\u{202e}'), "{row}: {printed}");
        }
    }
}
