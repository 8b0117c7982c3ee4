//! Why a signature does not match: each cause is brought about, and found again, proven.

mod accidents;
mod body;
mod header;
mod key_candidates;
mod rest;

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::{Cause, Evidence, Explanation};
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

#[track_caller]
fn explain(header: &str, body: &[u8], secret: &str) -> Explanation {
    let headers = DeliveryHeaders::new().signature(header.as_bytes());
    let explanation = Evidence::new(headers, body, secret).explain(at(NOW));
    let shown = format!("{explanation} {explanation:?}");
    assert!(!shown.contains(secret.trim().trim_matches('"')), "{shown}");
    for part in header.split("v1=").skip(1) {
        assert!(part.len() < 16 || !shown.contains(&part[..16]), "{shown}");
    }
    explanation
}

/// What was found, in a line: `proven` or `guessed`, and the codes.
#[track_caller]
fn line(explanation: &Explanation) -> String {
    let how = if explanation.is_proven() { "proven" } else { "guessed" };
    let codes = explanation.causes().iter().map(Cause::as_str);
    for code in codes.clone() {
        assert!(documented().any(|documented| documented == code), "{code} is not documented");
    }
    core::iter::once(how).chain(codes).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn found(header: &str, body: &[u8], secret: &str) -> String {
    line(&explain(header, body, secret))
}

const NOTHING: &str = "guessed";

/// The codes in the tables of the page of `Cause`.
fn documented() -> impl Iterator<Item = &'static str> {
    let page = include_str!("../../../../src/webhook/explain/explanation.rs");
    page.lines().filter_map(|line| line.strip_prefix("/// | `")?.split('`').next())
}

/// Each code is a promise: a test here brings it about.
#[test]
fn every_documented_code_is_in_a_test() {
    let tests = [
        include_str!("accidents.json"),
        include_str!("body.rs"),
        include_str!("header.rs"),
        include_str!("rest.rs"),
        include_str!("key_candidates.rs"),
        include_str!("../../../bytes/src/cause.rs"),
    ]
    .concat();
    assert!(documented().count() > 40);
    for code in documented() {
        let is_pinned = tests.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|w| w == code);
        assert!(is_pinned, "{code}");
    }
}

#[test]
fn what_is_genuine_is_said_to_be() {
    assert_eq!(found(&header(BODY.as_bytes()), BODY.as_bytes(), SECRET), "proven");
    let explanation = explain(&header(b""), b"", SECRET);
    assert_eq!(explanation.to_string(), "proven: nothing is wrong with the signature");
}
