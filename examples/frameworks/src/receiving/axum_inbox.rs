//! axum, in the other order: claim, handle, done, answer.
//!
//! For a program without a queue whose handler is quick: the service waits ten seconds.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use call_assistant::webhook::Verifier;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox, Receipt};
use http::HeaderMap;

use super::{LONGEST_BODY, now};

pub struct App {
    pub verifier: Verifier,
    pub inbox: Mutex<Inbox>,
    /// Acts on an event. An error gives it back: the service sends it again.
    pub handle: fn(&Receipt) -> Result<(), String>,
}

pub fn app(app: Arc<App>) -> Router {
    Router::new()
        .route("/hooks", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(app)
}

async fn receive(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let receipt = match app.verifier.receive(&headers, &body, now()) {
        Ok(receipt) => receipt,
        Err(refused) => return refused.into_response(),
    };
    let inbox = || app.inbox.lock().unwrap_or_else(PoisonError::into_inner);
    let claim = inbox().claim(receipt, ActiveClaim::LEASE, now());
    match claim {
        ClaimOutcome::Process(claimed) => match (app.handle)(claimed.receipt()) {
            Ok(()) => inbox().done(claimed, now()).into_response(),
            Err(_) => inbox().failed(claimed).into_response(),
        },
        ClaimOutcome::Answer(response) => response.into_response(),
    }
}
