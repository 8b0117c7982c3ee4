//! Posting webhooks with reqwest.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use call_assistant::webhook::sender::{AddressError, EndpointUrl, EndpointUrlError, Outcome};
use http::Request;
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

/// Creates a client. Create only one. `target` is `EndpointUrl::parse`.
///
/// # Errors
/// The client cannot be built, for example without TLS.
pub fn http_client(target: ParseTarget) -> Result<Client, reqwest::Error> {
    Client::builder()
        .redirect(Policy::none())
        .pool_max_idle_per_host(0) // each attempt makes a connection, to an address that is checked
        .no_proxy() // a proxy would look up the name, unchecked
        .dns_resolver(Checked(target))
        .build()
}

type ParseTarget = fn(&str) -> Result<EndpointUrl, EndpointUrlError>;

/// A look-up that returns only allowed addresses. If the URL has an address in place of a name,
/// there is no look-up, because `EndpointUrl::parse` has checked the address.
struct Checked(ParseTarget);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let target = self.0(&format!("https://{}/", name.as_str()));
        Box::pin(async move {
            let target = target?;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(passing(&target, found)?.into_iter()) as Addrs)
        })
    }
}

/// Returns the allowed addresses.
///
/// # Errors
/// No address is allowed.
pub fn passing(
    target: &EndpointUrl,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, AddressError> {
    let (mut passed, mut refused) = (Vec::new(), None);
    for address in found {
        match target.check(address.ip()) {
            Ok(()) => passed.push(address),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if passed.is_empty() => Err(error),
        _ => Ok(passed),
    }
}

/// Sends a request. The status decides the outcome, so the body of the answer is not read.
pub async fn post(http: &Client, request: Request<Vec<u8>>, limit: Duration) -> Outcome {
    let Ok(mut request) = reqwest::Request::try_from(request) else { return Outcome::Forbidden };
    *request.timeout_mut() = Some(limit);
    let error = match http.execute(request).await {
        Ok(response) => return Outcome::Answered(response.status()),
        Err(error) => error,
    };
    if cause::<AddressError>(&error).is_some() || cause::<EndpointUrlError>(&error).is_some() {
        return Outcome::Forbidden;
    }
    match cause::<io::Error>(&error) {
        _ if error.is_timeout() => Outcome::TimedOut,
        _ if error.is_dns() => Outcome::Dns,
        Some(io) if matches!(io.raw_os_error(), Some(23 | 24)) => Outcome::Unsent, // no file left
        Some(io) if io.kind() == ErrorKind::InvalidData => Outcome::Tls, // a certificate, for instance
        Some(io) if io.kind() == ErrorKind::ConnectionReset => Outcome::Reset,
        _ if error.is_connect() => Outcome::Refused,
        _ => Outcome::Reset,
    }
}

/// Returns the first cause of this type.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |&error| error.source())
        .find_map(|error| error.downcast_ref())
}
