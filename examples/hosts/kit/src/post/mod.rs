//! One POST: connect, or reuse an idle connection, send, and read the beginning of the response.

mod connect;
mod connection;
mod failure;
mod kept;
pub mod signed;

use std::path::Path;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{EndpointUrl, Excerpt, FailureReason, LogEntry, Outcome};
use http::header::{HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::time::Instant;

use self::connect::{Trust, connect};
use self::connection::{Connection, ExchangeError};
use self::failure::Failure;
use self::kept::Kept;
use crate::post::signed::Signed;

pub use self::connect::on_thread;

/// What an attempt holds of its endpoint's limit: a clone of it is dropped when the attempt ends, and
/// another when the thread that looks up the name has returned, which may be later. So there are
/// never more of those threads than the limit.
pub trait Held: Clone + Send + 'static {}

impl<T: Clone + Send + 'static> Held for T {}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub outcome: Outcome,
    /// When the outcome was known. The next attempt waits from here, not from the end of a slow body.
    pub at: Timestamp,
    /// The time until then, by a monotonic clock.
    pub took: Duration,
    /// The reason for a missing response.
    pub reason: Option<FailureReason>,
    /// The header fields of the response, if there was one.
    pub headers: Option<Excerpt>,
    /// The beginning of the response's body, if there was a response.
    pub body: Option<Vec<u8>>,
    /// What signed the request, if there was one: set by the host.
    pub signed: Option<Signed>,
}

impl Sent {
    /// Creates the result of an attempt that ended at this time, without a response and without delay.
    pub fn without_answer(outcome: Outcome, at: Timestamp) -> Self {
        let took = Duration::ZERO;
        Self { outcome, at, took, reason: None, headers: None, body: None, signed: None }
    }

    /// Tells whether this machine had no socket, port or memory for it. A shortage has hundreds of these in a second,
    /// and none of them is worth a row or a line.
    pub fn lacks_resources(&self) -> bool {
        self.reason == Some(FailureReason::OutOfResources)
    }

    /// Adds to a log entry what only the host has seen.
    pub fn describe(&self, entry: &mut LogEntry) {
        entry.took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        entry.reason.clone_from(&self.reason);
        entry.headers.clone_from(&self.headers);
    }
}

/// A client that sends requests and keeps connections for a while. Clones share them.
#[derive(Clone, Debug)]
pub struct Client {
    trust: Trust,
    kept: Kept,
    /// Whether names of header fields are written `Like-This`.
    titled: bool,
}

impl Client {
    /// Creates a client that trusts Mozilla's roots and the certificates of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or contains no usable certificate.
    pub fn new(trust_ca: Option<&Path>) -> Result<Self, String> {
        let trust = Trust::new(trust_ca).map_err(|error| format!("--trust-ca: {error}"))?;
        let kept = Kept::default();
        tokio::spawn(kept.clone().close_idle());
        Ok(Self { trust, kept, titled: false })
    }

    /// Returns a client with connections of its own that writes names of header fields `Like-This`, for
    /// the tests of a receiver. Nothing else has changed.
    pub fn titled(&self) -> Self {
        Self { trust: self.trust.clone(), kept: Kept::default(), titled: true }
    }

    /// Sends a request and waits for the head of the response, `patience` for everything up to
    /// there. It is `now` when this begins.
    pub async fn send(
        &self,
        target: &EndpointUrl,
        request: Request<Full<Bytes>>,
        patience: Duration,
        now: Timestamp,
        held: &impl Held,
    ) -> Sent {
        let began = Instant::now();
        let mut reached = FailureReason::NoConnection;
        let answered = tokio::time::timeout(
            patience,
            self.exchange(target, in_origin_form(target, request), patience, held, &mut reached),
        );
        let answered = answered.await;
        let took = began.elapsed();
        let at = now.saturating_add(took).floor_to_micros();
        match answered {
            Err(_) => {
                Sent { took, reason: Some(reached), ..Sent::without_answer(Outcome::TimedOut, at) }
            }
            Ok(Err(Failure { outcome, reason })) => {
                Sent { took, reason, ..Sent::without_answer(outcome, at) }
            }
            Ok(Ok((response, connection))) => {
                let outcome = Outcome::Answered(response.status());
                let headers = Some(Excerpt::from_fields(response.headers()));
                // What comes after the head changes nothing, so neither does its end.
                let (body, connection) = connection.beginning(response.into_body()).await;
                if let Some(connection) = connection {
                    self.kept.put(target, connection);
                }
                Sent { took, headers, body: Some(body), ..Sent::without_answer(outcome, at) }
            }
        }
    }

    async fn exchange(
        &self,
        target: &EndpointUrl,
        request: Request<Full<Bytes>>,
        patience: Duration,
        held: &impl Held,
        reached: &mut FailureReason,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        let request = match self.kept.take(target) {
            None => request,
            Some(mut connection) => {
                *reached = FailureReason::NoResponse;
                match connection.exchange(request).await {
                    Ok(response) => return Ok((response, connection)),
                    Err(ExchangeError { unsent: Some(request), .. }) => {
                        *reached = FailureReason::NoConnection;
                        request
                    }
                    Err(ExchangeError { failure, .. }) => return Err(failure),
                }
            }
        };
        let stream = connect(target, patience, held).await?;
        let address = stream.peer_addr().map_err(|_| Failure::from(Outcome::Reset))?.ip();
        let mut connection = if target.url().scheme() == "https" {
            *reached = FailureReason::NoHandshake;
            let stream = self.trust.handshake(target, stream).await?;
            *reached = FailureReason::NoResponse;
            Connection::new(stream, address, self.titled).await?
        } else {
            *reached = FailureReason::NoResponse;
            Connection::new(stream, address, self.titled).await?
        };
        let response = connection.exchange(request).await?;
        Ok((response, connection))
    }
}

/// Returns the host and port of a target, for the log: its path may hold what only its owner should know.
pub fn host(target: &EndpointUrl) -> &str {
    target.uri().authority().map_or("", |authority| authority.as_str())
}

/// Writes the target as a server expects it, unlike a proxy: only the path, and the host in a header.
fn in_origin_form(target: &EndpointUrl, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let path = target.uri().path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
    if let Some(authority) = target.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
    request
}
