//! What `guide::comparison` says of other crates, tried. Each table of that page is written here and
//! compared with the page, so a new version of a crate that behaves otherwise fails this test.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::{Signer, SigningSecret, Verifier};
use http::HeaderMap;

const PAGE: &str = include_str!("../../../src/guide/comparison.md");
const NEW: &str = "whsec_bm90IGEgc2VjcmV0IGF0IGFsbCwgcmVhbGx5IG5vdA==";
const OLD: &str = "whsec_YW5vdGhlciBvbmUsIHdoaWNoIHdhcyB2YWxpZCBiZWZvcmU=";
const NOW: i64 = 1_767_225_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(seconds).unwrap()
}

/// Returns the digest of a body, as the header has it.
fn digest(secret: &str, body: &[u8], seconds: i64) -> String {
    let header = Signer::new(SigningSecret::parse(secret).unwrap()).sign(body, at(seconds));
    header.as_str().split_once("v1=").unwrap().1.to_owned()
}

#[track_caller]
fn is_on_the_page(table: &str) {
    assert!(PAGE.contains(table), "guide::comparison should have this table:\n{table}");
}

fn word(accepted: bool) -> &'static str {
    if accepted { "accepted" } else { "refused" }
}

/// The three crates that verify this scheme, over headers and bodies that a sender, a proxy or an
/// attacker may produce.
#[test]
fn forms_of_this_scheme() {
    let body = br#"{"id":"evt_1"}"#.as_slice();
    let bytes = b"{\"id\":\"\xff\"}".as_slice();
    let good = digest(NEW, body, NOW);
    let late = digest(NEW, body, NOW - 301);
    let early = digest(NEW, body, NOW + 301);
    let (upper, other) = (good.to_uppercase(), "0".repeat(64));
    let rows: [(&str, String, &[u8]); 11] = [
        ("as published", format!("t={NOW},v1={good}"), body),
        ("the valid `v1` after another `v1`", format!("t={NOW},v1={other},v1={good}"), body),
        (
            "the valid `v1` next to a `v1` that is not hex",
            format!("t={NOW},v1=none,v1={good}"),
            body,
        ),
        ("uppercase hex", format!("t={NOW},v1={upper}"), body),
        ("two timestamps", format!("t=1,t={NOW},v1={good}"), body),
        ("a sign before the timestamp", format!("t=+{NOW},v1={good}"), body),
        ("a part without `=`", format!("t={NOW},v1={good},x"), body),
        ("301 s old", format!("t={},v1={late}", NOW - 301), body),
        ("301 s ahead", format!("t={},v1={early}", NOW + 301), body),
        ("17 parts", format!("t={NOW},v1={good}{}", ",v0=1".repeat(15)), body),
        ("a body that is not UTF-8", format!("t={NOW},v1={}", digest(NEW, bytes, NOW)), bytes),
    ];
    let mut table = String::from(
        "| header or body | this crate | `async-stripe-webhook` | `webhook-verify` |\n|---|---|---|---|\n",
    );
    for (name, header, body) in rows {
        let ours = ours(&header, body);
        let text = str::from_utf8(body);
        let stripe = text.map_or("takes `&str`", |body| word(stripe(NEW, &header, body)));
        let verify = word(webhook_verify(&header, body));
        writeln!(table, "| {name} | {} | {stripe} | {verify} |", word(ours)).unwrap();
    }
    is_on_the_page(&table);
}

/// The two crates of the Standard Webhooks scheme, which signs other bytes under other headers.
#[test]
fn forms_of_standard_webhooks() {
    let body = br#"{"id":"evt_1"}"#.as_slice();
    let now = Timestamp::from(SystemTime::now()).unix_seconds();
    let signature = standardwebhooks::Webhook::new(NEW).unwrap().sign("evt_1", now, body).unwrap();
    let two = format!("v1,AAAA {signature}");
    let rows: [(&str, String, String, &[u8]); 5] = [
        ("as published", now.to_string(), signature.clone(), body),
        ("the valid signature after another signature", now.to_string(), two, body),
        ("a sign before the timestamp", format!("+{now}"), signature.clone(), body),
        ("a body that is not UTF-8", now.to_string(), signature.clone(), b"\xff"),
        ("timestamp -9223372036854775808, debug build", i64::MIN.to_string(), signature, body),
    ];
    let mut table =
        String::from("| header or body | `standardwebhooks` | `svix` |\n|---|---|---|\n");
    for (name, time, signature, body) in rows {
        let headers = standard_headers(&time, &signature);
        let standard = standardwebhooks::Webhook::new(NEW).unwrap();
        let svix = svix::webhooks::Webhook::new(NEW).unwrap();
        let standard = verdict(|| standard.verify(body, &headers).is_ok());
        let svix = verdict(|| svix.verify(body, &headers).is_ok());
        writeln!(table, "| {name} | {standard} | {svix} |").unwrap();
    }
    is_on_the_page(&table);
}

/// A rotation: the sender signs with the new secret alone, the receiver knows both.
#[test]
fn several_secrets() {
    let body = b"{}";
    let header = format!("t={NOW},v1={}", digest(NEW, body, NOW));
    let both = Verifier::new(SigningSecret::parse(OLD).unwrap())
        .with_secret(SigningSecret::parse(NEW).unwrap());
    let mut headers = HeaderMap::new();
    headers.insert("x-service-signature", header.parse().unwrap());
    assert!(both.verify(&headers, body, at(NOW)).is_ok());
    // The others take one secret, so the host calls them once for each.
    assert!(!stripe(OLD, &header, "{}") && stripe(NEW, &header, "{}"));
}

/// A header that came twice: of the second copy a host learns nothing from `HeaderMap::get`.
#[test]
fn repeated_headers() {
    let body = b"{}";
    let header = format!("t={NOW},v1={}", digest(NEW, body, NOW));
    let mut headers = HeaderMap::new();
    headers.insert("x-service-signature", header.parse().unwrap());
    headers.append("x-service-signature", "t=1,v1=00".parse().unwrap());
    let verifier = Verifier::new(SigningSecret::parse(NEW).unwrap());
    assert!(verifier.verify(&headers, body, at(NOW)).is_err(), "ours refuses");

    let now = Timestamp::from(SystemTime::now()).unix_seconds();
    let webhook = standardwebhooks::Webhook::new(NEW).unwrap();
    let mut headers =
        standard_headers(&now.to_string(), &webhook.sign("evt_1", now, body).unwrap());
    headers.append("webhook-signature", "v1,AAAA".parse().unwrap());
    assert!(webhook.verify(body, &headers).is_ok(), "standardwebhooks takes the first");
}

fn verdict(verify: impl FnOnce() -> bool) -> &'static str {
    catch_unwind(AssertUnwindSafe(verify)).map_or("panics", word)
}

fn ours(header: &str, body: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert("x-service-signature", header.parse().unwrap());
    let verifier = Verifier::new(SigningSecret::parse(NEW).unwrap());
    verifier.verify(&headers, body, at(NOW)).is_ok()
}

/// The body is no event of Stripe's, so a good signature ends in an error of the parser.
fn stripe(secret: &str, header: &str, body: &str) -> bool {
    let verdict =
        stripe_webhook::Webhook::construct_event_with_timestamp(body, header, secret, NOW);
    matches!(verdict, Err(stripe_webhook::WebhookError::BadParse(_)))
}

fn webhook_verify(header: &str, body: &[u8]) -> bool {
    struct Still;
    impl webhook_verify::Clock for Still {
        fn now(&self) -> u64 {
            NOW.unsigned_abs()
        }
    }
    let options = webhook_verify::VerifyOptions::default().with_clock(Some(Arc::new(Still)));
    let secret = webhook_verify::Secret::new(NEW);
    let headers = [("Stripe-Signature", header)];
    webhook_verify::verify(webhook_verify::Provider::Stripe, &headers, body, &secret, options)
        .is_ok()
}

fn standard_headers(time: &str, signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "evt_1".parse().unwrap());
    headers.insert("webhook-timestamp", time.parse().unwrap());
    headers.insert("webhook-signature", signature.parse().unwrap());
    headers
}
