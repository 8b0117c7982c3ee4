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
pub struct Genuine(pub Event);

impl FromRequest<Arc<Hooks>> for Genuine {
    type Rejection = Response;

    async fn from_request(request: Request, hooks: &Arc<Hooks>) -> Result<Self, Response> {
        let (head, body) = request.into_parts();
        let body = Request::from_parts(head.clone(), body);
        let body = Bytes::from_request(body, hooks).await.map_err(IntoResponse::into_response)?;
        let verified = hooks
            .verifier
            .verify(&head.headers, &body, now())
            .map_err(|refused| refused.into_response())?;
        let event = verified.event().map_err(|error| error.receipt().into_response())?;
        Ok(Self(event))
    }
}

pub fn app(hooks: Hooks) -> Router {
    Router::new()
        .route("/hooks", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(Arc::new(hooks))
}

async fn receive(State(hooks): State<Arc<Hooks>>, Genuine(event): Genuine) -> Response {
    hooks.store(event).into_response()
}
