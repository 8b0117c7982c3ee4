//! reqwest without async.

use std::error::Error;
use std::io::Read as _;
use std::time::Duration;

use http::{Request, Response};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;

use super::LONGEST_ANSWER;

/// Make one, and keep it: it keeps the connections.
///
/// # Errors
/// There is no TLS to be had, for instance.
pub fn http_client() -> Result<Client, reqwest::Error> {
    Client::builder().redirect(Policy::none()).build()
}

/// For [`run`](super::run).
///
/// # Errors
/// There is no answer, or not all of it.
pub fn send(
    http: &Client,
    request: Request<()>,
    time_limit: Duration,
) -> Result<Response<Vec<u8>>, Box<dyn Error>> {
    let mut request = reqwest::blocking::Request::try_from(request.map(|()| ""))?;
    *request.timeout_mut() = Some(time_limit);
    let mut response = http.execute(request)?;
    let mut answer = Response::new(Vec::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    response.take(LONGEST_ANSWER as u64).read_to_end(answer.body_mut())?;
    Ok(answer)
}
