//! Receives webhooks: verifies, stores, answers.
//!
//! `cargo run --example verify_webhook`

use std::collections::BTreeMap;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::receiver::EventKey;
use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
use http::{Request, Response};

/// Your database: the bytes of each event, under a unique key.
pub(crate) type Store = BTreeMap<EventKey, Vec<u8>>;

pub(crate) fn handle(
    verifier: &Verifier,
    store: &mut Store,
    request: &Request<Vec<u8>>,
    now: Timestamp,
) -> Response<String> {
    match verifier.receive(request.headers(), request.body(), now) {
        Ok(receipt) => {
            store.insert(receipt.key().clone(), request.body().clone());
            receipt.stored().into_response() // it is not sent again: handle it later
        }
        Err(error) => {
            eprintln!("rejected: {error}"); // for you; the sender gets an empty 400
            error.into_response()
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = SigningSecret::parse("whsec_kept-where-secrets-are")?;
    let (verifier, mut store) = (Verifier::new(secret.clone()), Store::default());
    let body = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00Z","origin":null,
        "api_version":"2026-01-15","account_id":"acct_1","data":{"message":"hello"}}"#;
    let now = now();
    let mut request = testing::signed_request(&Signer::new(secret), "ping", "evt_1", body, now)?;
    println!("genuine: {}", handle(&verifier, &mut store, &request, now).status());
    println!("again: {}", handle(&verifier, &mut store, &request, now).status());
    request.body_mut().push(b'\n');
    println!("altered: {}", handle(&verifier, &mut store, &request, now).status());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a host has a clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}
