//! ureq.

use call_assistant::rest::ApiRequest;
use call_assistant::rest::client::Client;
use ureq::{Agent, Error};

use super::{LONGEST_ANSWER, NotAnswered, PATIENCE};

/// Make one, and keep it: it keeps the connections.
#[must_use]
pub fn http_client() -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .max_redirects(0)
        // A refusal is an answer, and its body says what it is.
        .http_status_as_error(false)
        .build();
    config.into()
}

/// # Errors
/// There is no answer, see [`NotAnswered`].
pub fn ask<O: ApiRequest>(
    http: &Agent,
    client: &Client,
    operation: &O,
) -> Result<O::Response, NotAnswered<Error>> {
    let request = client.request(operation).map_err(NotAnswered::Unsendable)?;
    let (head, mut body) = http.run(request).map_err(NotAnswered::Lost)?.into_parts();
    let limit = u64::try_from(LONGEST_ANSWER).unwrap_or(u64::MAX);
    let body = body.with_config().limit(limit).read_to_vec().map_err(NotAnswered::Lost)?;
    client.read(operation, &head, &body).map_err(NotAnswered::Refused)
}
