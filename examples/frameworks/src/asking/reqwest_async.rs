//! reqwest.

use call_assistant::rest::ApiRequest;
use call_assistant::rest::client::Client;
use http::Response;
use reqwest::Error;
use reqwest::redirect::Policy;

use super::{LONGEST_ANSWER, NotAnswered, PATIENCE};

/// Make one, and keep it: it keeps the connections.
///
/// # Errors
/// There is no TLS to be had, for instance.
pub fn http_client() -> Result<reqwest::Client, Error> {
    reqwest::Client::builder().timeout(PATIENCE).redirect(Policy::none()).build()
}

/// # Errors
/// There is no answer, see [`NotAnswered`].
pub async fn ask<O: ApiRequest>(
    http: &reqwest::Client,
    client: &Client,
    operation: &O,
) -> Result<O::Response, NotAnswered<Error>> {
    let request = client.request(operation).map_err(NotAnswered::Unsendable)?;
    let request = request.map(|()| "").try_into().map_err(NotAnswered::Lost)?;
    let mut response = http.execute(request).await.map_err(NotAnswered::Lost)?;
    let mut body = Vec::new();
    // A longer one is cut, and read as one that broke off.
    while body.len() <= LONGEST_ANSWER
        && let Some(chunk) = response.chunk().await.map_err(NotAnswered::Lost)?
    {
        body.extend_from_slice(&chunk);
    }
    let (head, _) = Response::<reqwest::Body>::from(response).into_parts();
    client.read(operation, &head, &body).map_err(NotAnswered::Refused)
}
