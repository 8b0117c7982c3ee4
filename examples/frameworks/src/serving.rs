//! Serving the API with axum.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::rest::server::{Received, Rejection, RequestHead};

use crate::receiving::now;

/// A host that has issued no key. `call_assistant::guide::serving` shows a host with a database.
#[derive(Debug)]
pub struct Host;

/// Serves the whole API, because the exchange selects the operation.
pub fn router(host: Arc<Host>) -> Router {
    Router::new().fallback(api).with_state(host)
}

async fn api(State(host): State<Arc<Host>>, request: Request) -> Response {
    let (head, _) = request.into_parts(); // axum discards the body
    let id = RequestId::from_random(host.random());
    let answer = host.serve(&RequestHead::from_parts(&head), id, now()).await;
    answer.unwrap_or_else(Rejection::into_response).map(Body::from)
}

impl Host {
    #[expect(clippy::unused_async, reason = "a database is asked here")]
    async fn serve(
        &self,
        head: &RequestHead<'_>,
        id: RequestId,
        now: Timestamp,
    ) -> Result<http::Response<Vec<u8>>, Rejection> {
        Err(Received::new(head, id)?.identify(None, now)?.internal_error())
    }

    fn random(&self) -> [u8; 16] {
        let half = crate::asking::random;
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(half().into_iter().chain(half())).for_each(|(to, from)| *to = from);
        bytes
    }
}
