//! One HTTP connection to an endpoint: one request at a time, and the beginning of each response.

use std::net::IpAddr;
use std::time::Duration;

use call_assistant::webhook::sender::{Excerpt, FailureReason, Outcome};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::failure::Failure;

/// How long to read a body after the head, which decides the outcome.
const LISTEN: Duration = Duration::from_secs(1);

/// The longest head of a response, in bytes.
const HEAD: usize = 1024 * 1024;

/// The most header fields of a response: 256. A response with more counts as none, whatever its status. The
/// client fills a list of so many for each response.
const FIELDS: usize = 256;

/// An open connection. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// The task that drives the connection. It ends when this is dropped, whatever the peer does.
    _driver: JoinSet<()>,
    /// The address of the peer.
    pub(super) address: IpAddr,
    pub(super) opened: Instant,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(super) struct ExchangeError {
    pub(super) failure: Failure,
    /// The request, if the connection was found closed before any byte of it was written.
    pub(super) unsent: Option<Request<Full<Bytes>>>,
}

impl From<Failure> for ExchangeError {
    fn from(failure: Failure) -> Self {
        Self { failure, unsent: None }
    }
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        error.failure
    }
}

impl Connection {
    /// Starts HTTP on a stream.
    ///
    /// # Errors
    /// The connection ended at once.
    pub(super) async fn new<S>(stream: S, address: IpAddr, titled: bool) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = http1::Builder::new()
            .max_buf_size(HEAD)
            .max_headers(FIELDS)
            .title_case_headers(titled)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::of_exchange(&error))?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The request's own end says what went wrong.
            let _ = connection.await;
        });
        Ok(Self { requests, _driver: driver, address, opened: Instant::now() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        // The client reads before it writes, and gives back only what it has not begun to write.
        let sent = self.requests.try_send_request(request).await;
        let response = sent.map_err(|mut error| ExchangeError {
            unsent: error.take_message(),
            failure: Failure::of_exchange(&error.into_error()),
        })?;
        // The client's limit is one on its buffer, which may have grown past it in the last step.
        let len = response.headers().iter().fold(0_usize, |len, (name, value)| {
            let field = name.as_str().len().saturating_add(value.len());
            len.saturating_add(field).saturating_add(": \r\n".len())
        });
        if len > HEAD {
            return Err(Failure::new(Outcome::Reset, FailureReason::HeadTooLarge).into());
        }
        Ok(response)
    }

    /// Reads the first bytes of a body: one more than is kept, to know whether there are more.
    /// Returns the connection if it is ready for another request.
    pub(super) async fn beginning(mut self, mut body: Incoming) -> (Vec<u8>, Option<Self>) {
        let mut read = Vec::new();
        let is_ready = tokio::time::timeout(LISTEN, async {
            while read.len() <= Excerpt::MAX_LEN {
                let Some(frame) = body.frame().await else {
                    return self.requests.ready().await.is_ok();
                };
                let Ok(frame) = frame else { return false };
                if let Some(data) = frame.data_ref() {
                    let room = Excerpt::MAX_LEN.saturating_add(1).saturating_sub(read.len());
                    read.extend_from_slice(data.get(..room).unwrap_or(data));
                }
            }
            false
        });
        let is_ready = is_ready.await.unwrap_or(false);
        (read, is_ready.then_some(self))
    }
}
