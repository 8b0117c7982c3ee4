//! Verifies webhooks in an axum handler: answers right, logs the reason, keeps the event.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::Router;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::EventError;
use call_assistant::webhook::{SigningSecret, Verifier, WebhookResponse};

struct App {
    verifier: Verifier,
    events: Mutex<BTreeMap<(AccountId, EventId), Vec<u8>>>,
    unread: Mutex<Vec<Vec<u8>>>,
}

async fn webhook(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let now = Timestamp::from(SystemTime::now());
    let verified = match app.verifier.verify(&headers, &body, now) {
        Ok(verified) => verified,
        Err(error) => {
            eprintln!("webhook rejected: {error}");
            return error.into_response();
        }
    };
    match verified.event() {
        Ok(event) => {
            let mut events = app.events.lock().unwrap();
            match events.insert((event.account_id, event.id), verified.bytes().to_vec()) {
                None => WebhookResponse::Accepted.into_response(),
                Some(_) => WebhookResponse::Duplicate.into_response(),
            }
        }
        Err(error) => {
            eprintln!("not an event: {error}");
            if let EventError::Malformed(_) = error {
                app.unread.lock().unwrap().push(verified.bytes().to_vec());
            }
            error.into_response()
        }
    }
}

fn main() {
    let secret = SigningSecret::parse("whsec_from-your-secret-store").unwrap();
    let app = Arc::new(App {
        verifier: Verifier::new(secret),
        events: Mutex::default(),
        unread: Mutex::default(),
    });
    let _router: Router = Router::new().route("/webhooks", post(webhook)).with_state(app);
}
