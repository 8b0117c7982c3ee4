//! reqwest.

use std::error::Error;
use std::time::Duration;

use call_assistant::json::MAX_JSON_LEN;
use http::{Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Body, Client};

/// Creates a client. Create only one client, because the client keeps the connections.
///
/// # Errors
/// The client cannot be built, for example without TLS.
pub fn http_client() -> Result<Client, reqwest::Error> {
    Client::builder().redirect(Policy::none()).build()
}

/// Sends a request, for [`run_async`](super::run_async).
///
/// # Errors
/// The answer is missing or incomplete.
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
