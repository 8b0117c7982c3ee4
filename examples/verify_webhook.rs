//! Verifies webhooks in a handler: answers, logs the reason, keeps the event.

#[path = "support/clock.rs"]
mod clock;

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::{Signer, SigningSecret, Verifier, WebhookResponse, testing};
use http::{Request, Response};

/// Your database: the bytes of each event, by account and id, and what was no event.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) events: BTreeMap<(AccountId, EventId), Vec<u8>>,
    pub(crate) unreadable: Vec<Vec<u8>>,
}

pub(crate) fn handle(
    verifier: &Verifier,
    store: &mut Store,
    request: &Request<Vec<u8>>,
    now: Timestamp,
) -> Response<String> {
    let verified = match verifier.verify(request.headers(), request.body(), now) {
        Ok(verified) => verified,
        Err(error) => {
            eprintln!("rejected: {error}"); // for you; the sender gets an empty 400
            return error.into_response();
        }
    };
    let event = match verified.event() {
        Ok(event) => event,
        Err(error) => {
            eprintln!("signed, but not an event: {error}");
            store.unreadable.push(verified.bytes().to_vec()); // it may not come again
            return error.into_response();
        }
    };
    match store.events.insert((event.account_id, event.id), verified.bytes().to_vec()) {
        None => WebhookResponse::Accepted.into_response(),
        Some(_) => WebhookResponse::Duplicate.into_response(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = SigningSecret::parse("whsec_kept-where-secrets-are")?;
    let (verifier, mut store) = (Verifier::new(secret.clone()), Store::default());
    let body = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00Z","origin":null,
        "api_version":"2026-01-15","account_id":"acct_1","data":{"message":"hello"}}"#;
    let now = clock::now();
    let mut request = testing::signed_request(&Signer::new(secret), "ping", "evt_1", body, now)?;
    println!("genuine: {}", handle(&verifier, &mut store, &request, now).status());
    println!("again: {}", handle(&verifier, &mut store, &request, now).status());
    request.body_mut().push(b'\n');
    println!("altered: {}", handle(&verifier, &mut store, &request, now).status());
    Ok(())
}
