//! axum, in the other order: claim, handle, done, answer.
//!
//! This order is for a program without a queue and with a quick handler, because the service waits ten
//! seconds. The handler may block, for example on a database, so it runs on a separate thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox, Receipt};
use call_assistant::webhook::{Verifier, WebhookResponse};
use http::HeaderMap;
use tokio::task::spawn_blocking;

use super::{LONGEST_BODY, now};

pub struct App {
    pub verifier: Verifier,
    pub inbox: Mutex<Inbox>,
    /// Handles an event. After an error, the service sends the event again.
    pub handle: fn(&Receipt) -> Result<(), String>,
}

impl App {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    let claimed = match app.inbox().claim(receipt, ActiveClaim::LEASE, now()) {
        ClaimOutcome::Process(claimed) => claimed,
        ClaimOutcome::Answer(response) => return response.into_response(),
    };
    let handled = spawn_blocking(move || match (app.handle)(claimed.receipt()) {
        Ok(()) => app.inbox().done(claimed, now()),
        Err(_) => app.inbox().failed(claimed),
    });
    // A handler that panics leaves the event claimed until its lease expires.
    handled.await.unwrap_or(WebhookResponse::Unavailable).into_response()
}
