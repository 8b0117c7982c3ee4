//! reqwest.

use std::time::Duration;

use http::{Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, Error};

use super::LONGEST_ANSWER;

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
pub async fn send(
    http: &Client,
    request: Request<()>,
    time_limit: Duration,
) -> Result<Response<Vec<u8>>, Error> {
    let mut request = reqwest::Request::try_from(request.map(|()| ""))?;
    *request.timeout_mut() = Some(time_limit);
    let mut response = http.execute(request).await?;
    let mut body = Vec::new();
    // A longer one is cut, and read as one that broke off.
    while body.len() <= LONGEST_ANSWER
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(Response::<reqwest::Body>::from(response).map(|_| body))
}
