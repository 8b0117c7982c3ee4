//! Receives webhooks in an axum handler: verifies, stores, answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::response::Response;
use axum::{Router, body::Body, routing::post};
use bytes::Bytes;
use call_assistant::webhook::receiver::EventKey;
use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
use call_assistant_frameworks::receiving::now;
use http::{HeaderMap, Request};
use tower::ServiceExt as _;

pub(crate) struct App {
    pub(crate) verifier: Verifier,
    /// Your database: the bytes of each event, under a unique key.
    pub(crate) events: Mutex<BTreeMap<EventKey, Bytes>>,
}

/// `Bytes`, not `Json`: exactly what was sent is verified.
async fn webhook(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    match app.verifier.receive(&headers, &body, now()) {
        Ok(receipt) => {
            app.events.lock().unwrap().insert(receipt.key().clone(), body);
            receipt.stored().into_response() // it is not sent again: handle it later
        }
        Err(error) => {
            eprintln!("rejected: {error}"); // for you; the sender gets an empty 400
            error.into_response()
        }
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new().route("/webhooks", post(webhook)).with_state(app)
}

pub(crate) fn app(secret: SigningSecret) -> Arc<App> {
    Arc::new(App { verifier: Verifier::new(secret), events: Mutex::default() })
}

/// A delivery of `ping`, to be sent to the router.
pub(crate) fn delivery(secret: SigningSecret, body: &[u8]) -> Request<Body> {
    let request = testing::signed_request(&Signer::new(secret), "ping", "evt_1", body, now());
    let (mut head, body) = request.expect("ASCII").into_parts();
    head.uri = http::Uri::from_static("/webhooks");
    Request::from_parts(head, Body::from(body))
}

pub(crate) const PING: &[u8] = br#"{"id":"evt_1","type":"ping","account_id":"acct_1",
    "created_at":"2026-01-01T00:00:00Z","origin":null,"api_version":"2026-01-15",
    "data":{"message":"hello"}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = SigningSecret::parse("whsec_kept-where-secrets-are")?;
    let app = app(secret.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    // In place of `axum::serve`.
    let response = runtime.block_on(router(app.clone()).oneshot(delivery(secret, PING)))?;
    println!("{}, {} event", response.status(), app.events.lock().unwrap().len());
    Ok(())
}
