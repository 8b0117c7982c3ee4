//! hyper, with the pool of hyper-util.

use std::time::Duration;

use bytes::Bytes;
use call_assistant::json::MAX_JSON_LEN;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::Answer;

/// The client, for requests without a body.
pub type Http = Client<HttpConnector, Empty<Bytes>>;

/// Creates a client. Create only one client, because the client keeps the connections.
#[must_use]
pub fn http_client() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

/// Sends a request, for [`run_async`](super::run_async).
///
/// # Errors
/// The answer is missing or incomplete.
pub async fn send(http: &Http, request: Request<()>, limit: Duration) -> Answer {
    let answer = async {
        let (head, body) = http.request(request.map(|()| Empty::new())).await?.into_parts();
        let body = Limited::new(body, MAX_JSON_LEN).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body.into()))
    };
    timeout(limit, answer).await?
}
