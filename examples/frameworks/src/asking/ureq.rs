//! ureq.

use std::error::Error;
use std::time::Duration;

use call_assistant::json::MAX_JSON_LEN;
use http::{Request, Response};
use ureq::Agent;

/// Creates a client. Create only one client, because the client keeps the connections.
#[must_use]
pub fn http_client() -> Agent {
    Agent::config_builder().max_redirects(0).http_status_as_error(false).build().into()
}

/// Sends a request, for [`run`](super::run).
///
/// # Errors
/// The answer is missing or incomplete.
pub fn send(
    http: &Agent,
    request: Request<()>,
    limit: Duration,
) -> Result<Response<Vec<u8>>, Box<dyn Error + Send + Sync>> {
    let request = http.configure_request(request).timeout_global(Some(limit)).build();
    let (head, mut body) = http.run(request)?.into_parts();
    let body = body.with_config().limit(MAX_JSON_LEN as u64).read_to_vec()?;
    Ok(Response::from_parts(head, body))
}
