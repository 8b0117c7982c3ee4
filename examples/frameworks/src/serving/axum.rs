//! axum: one handler for every path.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use call_assistant::id::RequestId;
use call_assistant::rest::server::RequestHead;

use super::Host;
use crate::receiving::now;

/// No routes: an unknown path is refused in the same form as everything else.
pub fn app(host: Arc<Host>) -> Router {
    Router::new().fallback(api).with_state(host)
}

async fn api(State(host): State<Arc<Host>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts(); // no operation has a body
    let id = RequestId::from_random(random());
    let answer = host.serve(&RequestHead::from_parts(&parts), id, now()).await;
    let response = answer.unwrap_or_else(|rejection| {
        eprintln!("{}: {}", rejection.request_id(), rejection.reason()); // the caller is not told
        rejection.into_response()
    });
    response.map(Body::from)
}

/// Sixteen random bytes.
#[expect(clippy::expect_used, reason = "an id has to be unique")]
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
