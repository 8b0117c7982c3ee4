//! reqwest without async.

use std::io::Read as _;
use std::time::Duration;

use call_assistant::json::MAX_JSON_LEN;
use http::{Request, Response};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;

use super::Answer;

/// Creates a client. Create only one client, because the client keeps the connections.
///
/// # Errors
/// The client cannot be built, for example without TLS.
pub fn http_client() -> Result<Client, reqwest::Error> {
    Client::builder().redirect(Policy::none()).build()
}

/// Sends a request, for [`run`](super::run).
///
/// # Errors
/// The answer is missing or incomplete.
pub fn send(http: &Client, request: Request<()>, limit: Duration) -> Answer {
    let mut request = reqwest::blocking::Request::try_from(request.map(|()| ""))?;
    *request.timeout_mut() = Some(limit);
    let mut response = http.execute(request)?;
    let mut answer = Response::new(());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    response.take(MAX_JSON_LEN as u64).read_to_end(&mut body)?;
    Ok(answer.map(|()| body))
}
