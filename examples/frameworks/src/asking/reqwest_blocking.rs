//! reqwest without async.

use std::io::{self, Read as _};

use call_assistant::rest::ApiRequest;
use call_assistant::rest::client::Client;
use http::Response;
use reqwest::redirect::Policy;

use super::{LONGEST_ANSWER, NotAnswered, PATIENCE};

/// Make one, and keep it: it keeps the connections.
///
/// # Errors
/// There is no TLS to be had, for instance.
pub fn http_client() -> Result<reqwest::blocking::Client, reqwest::Error> {
    reqwest::blocking::Client::builder().timeout(PATIENCE).redirect(Policy::none()).build()
}

/// # Errors
/// There is no answer, see [`NotAnswered`].
pub fn ask<O: ApiRequest>(
    http: &reqwest::blocking::Client,
    client: &Client,
    operation: &O,
) -> Result<O::Response, NotAnswered<io::Error>> {
    let lost = |error| NotAnswered::Lost(io::Error::other(error));
    let request = client.request(operation).map_err(NotAnswered::Unsendable)?;
    let request = request.map(|()| "").try_into().map_err(lost)?;
    let mut response = http.execute(request).map_err(lost)?;
    let mut head = Response::new(());
    *head.status_mut() = response.status();
    *head.headers_mut() = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    let limit = u64::try_from(LONGEST_ANSWER).unwrap_or(u64::MAX);
    response.take(limit).read_to_end(&mut body).map_err(NotAnswered::Lost)?;
    client.read(operation, &head.into_parts().0, &body).map_err(NotAnswered::Refused)
}
