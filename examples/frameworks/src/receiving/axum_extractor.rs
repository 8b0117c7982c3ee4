//! axum, as an extractor: a handler with an argument [`Genuine`] is called only for genuine
//! deliveries.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use call_assistant::webhook::receiver::Receipt;

use super::{Hooks, LONGEST_BODY, now};

/// A delivery that was verified.
#[derive(Debug)]
pub struct Genuine {
    pub receipt: Receipt,
    /// The bytes to store.
    pub bytes: Bytes,
}

impl FromRequest<Arc<Hooks>> for Genuine {
    type Rejection = Response;

    async fn from_request(request: Request, hooks: &Arc<Hooks>) -> Result<Self, Response> {
        let (head, body) = request.into_parts();
        let body = Request::from_parts(head.clone(), body);
        let bytes = Bytes::from_request(body, hooks).await.map_err(IntoResponse::into_response)?;
        match hooks.verifier.receive(&head.headers, &bytes, now()) {
            Ok(receipt) => Ok(Self { receipt, bytes }),
            Err(refused) => Err(refused.into_response()),
        }
    }
}

pub fn app(hooks: Hooks) -> Router {
    Router::new()
        .route("/hooks", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(Arc::new(hooks))
}

async fn receive(State(hooks): State<Arc<Hooks>>, genuine: Genuine) -> Response {
    match genuine.receipt.event() {
        Ok(event) => println!("{} {}", event.id, event.event_type()),
        Err(error) => println!("signed, but not an event: {error}"),
    }
    hooks.keep(genuine.receipt, &genuine.bytes).into_response()
}
