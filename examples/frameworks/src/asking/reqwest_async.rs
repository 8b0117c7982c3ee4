//! reqwest.

use std::error::Error;
use std::time::Duration;

use call_assistant::json::MAX_JSON_LEN;
use http::{Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Body, Client};

/// Make one, and keep it: it keeps the connections.
///
/// # Errors
/// There is no TLS to be had, for instance.
pub fn http_client() -> Result<Client, reqwest::Error> {
    Client::builder().redirect(Policy::none()).build()
}

/// For [`run_async`](super::run_async).
///
/// # Errors
/// There is no answer, or not all of it.
pub async fn send(
    http: &Client,
    request: Request<()>,
    limit: Duration,
) -> Result<Response<Vec<u8>>, Box<dyn Error + Send + Sync>> {
    let mut request = reqwest::Request::try_from(request.map(|()| ""))?;
    *request.timeout_mut() = Some(limit);
    let mut response = http.execute(request).await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_JSON_LEN {
            return Err("the answer is too long".into());
        }
    }
    Ok(Response::<Body>::from(response).map(|_| body))
}
