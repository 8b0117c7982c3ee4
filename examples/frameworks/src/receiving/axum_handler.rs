//! axum, in a handler: store, answer, handle later. `Hooks::keep` stores the event.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http::HeaderMap;

use super::{Hooks, LONGEST_BODY, now};

pub fn app(hooks: Hooks) -> Router {
    Router::new()
        .route("/hooks", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(Arc::new(hooks))
}

/// Takes `Bytes`, not `Json`, because the signature covers the received bytes.
async fn receive(State(hooks): State<Arc<Hooks>>, headers: HeaderMap, body: Bytes) -> Response {
    match hooks.verifier.receive(&headers, &body, now()) {
        Ok(receipt) => hooks.keep(receipt, &body).into_response(),
        Err(refused) => refused.into_response(),
    }
}
