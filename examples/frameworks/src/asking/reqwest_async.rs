//! reqwest.

use std::time::Duration;

use bytes::BytesMut;
use http::{Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Error};

use super::{Answer, LONGEST_ANSWER};

/// Make one, and keep it: it keeps the connections.
///
/// # Errors
/// There is no TLS to be had, for instance.
pub fn http_client() -> Result<Client, Error> {
    Client::builder().redirect(Policy::none()).build()
}

/// For [`run_async`](super::run_async).
///
/// # Errors
/// There is no answer, or not all of it.
pub async fn send(http: &Client, request: Request<()>, limit: Duration) -> Answer {
    let mut request = reqwest::Request::try_from(request.map(|()| ""))?;
    *request.timeout_mut() = Some(limit);
    let mut response = http.execute(request).await?;
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST_ANSWER {
            return Err("the answer is too long".into());
        }
    }
    Ok(Response::<Body>::from(response).map(|_| body.freeze()))
}
