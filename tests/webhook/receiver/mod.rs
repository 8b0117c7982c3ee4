//! The customer's side: what has arrived already, and in which order.

use std::sync::LazyLock;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, InboxEntry, Receipt};
use call_assistant::webhook::{Signer, SigningSecret, Verifier, WebhookResponse, testing};
use http::Request;

use crate::dice::at;

mod inbox;
mod inbox_entry;
mod moved_appointment;
mod receipt;
mod version;

static SECRET: LazyLock<SigningSecret> =
    LazyLock::new(|| SigningSecret::parse("whsec_test").unwrap());
static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::new(SECRET.clone()));
static VERIFIER: LazyLock<Verifier> = LazyLock::new(|| Verifier::new(SECRET.clone()));

fn ping(account: &str, id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"ping","created_at":"2026-01-01T00:00:00Z","origin":null,
            "api_version":"2026-01-15","account_id":"{account}","data":{{"message":"hello"}}}}"#
    )
}

fn delivery(id: &str, body: &str) -> Request<Vec<u8>> {
    testing::signed_request(&SIGNER, "ping", id, body.as_bytes(), at(0)).unwrap()
}

/// A genuine event of an account, as it has just arrived.
fn receipt(account: &str, name: &str) -> Receipt {
    let id = format!("evt_{name}");
    let request = delivery(&id, &ping(account, &id));
    VERIFIER.receive(request.headers(), request.body(), at(0)).unwrap()
}

/// What becomes of a copy, given what is stored.
fn claim(stored: Option<&InboxEntry>, lease: Duration, now: Timestamp) -> ClaimOutcome {
    receipt("acct_1", "1").claim(stored, lease, now)
}

#[track_caller]
fn taken(claim: ClaimOutcome) -> ActiveClaim {
    match claim {
        ClaimOutcome::Process(claimed) => claimed,
        other @ ClaimOutcome::Answer(_) => panic!("{other:?}"),
    }
}

fn is_busy(claim: &ClaimOutcome) -> bool {
    matches!(claim, ClaimOutcome::Answer(WebhookResponse::Unavailable))
}

fn is_duplicate(claim: &ClaimOutcome) -> bool {
    matches!(claim, ClaimOutcome::Answer(WebhookResponse::Duplicate { .. }))
}

#[track_caller]
fn busy(claim: ClaimOutcome) {
    assert!(is_busy(&claim), "{claim:?}");
}

#[track_caller]
fn duplicate(claim: ClaimOutcome) {
    assert!(is_duplicate(&claim), "{claim:?}");
}
