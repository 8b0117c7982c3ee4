//! axum, as an extractor: a handler that takes [`Genuine`] is called for genuine events only.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use call_assistant::webhook::event::Event;

use super::{Hooks, LONGEST_BODY, now};

/// An event whose delivery was verified.
#[derive(Debug)]
pub struct Genuine {
    pub event: Event,
    /// What to store.
    pub bytes: Bytes,
}

impl FromRequest<Arc<Hooks>> for Genuine {
    type Rejection = Response;

    async fn from_request(request: Request, hooks: &Arc<Hooks>) -> Result<Self, Response> {
        let (head, body) = request.into_parts();
        let body = Request::from_parts(head.clone(), body);
        let bytes = Bytes::from_request(body, hooks).await.map_err(IntoResponse::into_response)?;
        let verified = hooks
            .verifier
            .verify(&head.headers, &bytes, now())
            .map_err(|refused| refused.into_response())?;
        match verified.event() {
            Ok(event) => Ok(Self { event, bytes }),
            // What is genuine and no event is stored here: the handler is for events.
            Err(_) => Err(hooks.keep(&verified).into_response()),
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
    let receipt = hooks.store(&genuine.bytes);
    println!("{} {}", genuine.event.id, genuine.event.event_type());
    receipt.into_response()
}
