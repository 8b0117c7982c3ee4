//! One POST: connect, send, and read as much of the answer as is worth keeping.

mod connect;
mod failure;

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Excerpt, FailureReason, LogEntry, MAX_EXCERPT_LEN, Outcome, Target,
};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::connect::connect;
use self::failure::Failure;
use crate::support::clock;

pub(crate) use self::connect::{Trust, on_thread};

/// What an attempt holds of its endpoint's limit: a clone of it is dropped when the attempt ends, and
/// another when the thread that looks up the name has returned, which may be later. So there are
/// never more of those threads than the limit.
pub(crate) trait Held: Clone + Send + 'static {}

impl<T: Clone + Send + 'static> Held for T {}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) outcome: Outcome,
    /// When that was clear. The next attempt waits from here on, not from the end of a slow body.
    pub(crate) at: Timestamp,
    /// How long it took until then, by a clock that nobody sets.
    pub(crate) took: Duration,
    /// Why there was no response.
    pub(crate) reason: Option<FailureReason>,
    /// The header fields of the response, if there was one.
    pub(crate) headers: Option<Excerpt>,
    /// The beginning of the response's body, if there was a response.
    pub(crate) body: Option<Vec<u8>>,
}

impl Sent {
    /// An attempt that ended at this time without an answer, and without taking any.
    pub(crate) fn without_answer(outcome: Outcome, at: Timestamp) -> Self {
        let took = Duration::ZERO;
        Self { outcome, at, took, reason: None, headers: None, body: None }
    }

    /// An attempt that was given up because the host stops.
    pub(crate) fn stopped(began: Instant) -> Self {
        Self {
            took: began.elapsed(),
            reason: Some(FailureReason::Stopping),
            ..Self::without_answer(Outcome::Unsent, clock::now())
        }
    }

    /// Writes into a log entry what only the host has seen.
    pub(crate) fn describe(&self, entry: &mut LogEntry) {
        entry.took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        entry.reason.clone_from(&self.reason);
        entry.headers.clone_from(&self.headers);
    }
}

/// How long to listen to a body, once the head has decided.
const LISTEN: Duration = Duration::from_secs(1);

/// The longest head of a response, in bytes.
const HEAD: usize = 1024 * 1024;

/// The most fields in its head. With more there is no answer to go by, whatever its status.
const FIELDS: usize = 1000;

/// Sends a request and waits for the head of the response, `patience` for everything up to there.
pub(crate) async fn send(
    target: &Target,
    request: Request<Full<Bytes>>,
    trust: &Trust,
    patience: Duration,
    held: &impl Held,
) -> Sent {
    // Whatever drives the connection ends when this is dropped.
    let mut drivers = JoinSet::new();
    let began = Instant::now();
    let mut reached = FailureReason::NoConnection;
    let answered = tokio::time::timeout(patience, async {
        let request = in_origin_form(target, request);
        let stream = connect(target, patience, held).await?;
        if target.url().scheme() == "https" {
            reached = FailureReason::NoHandshake;
            let stream = trust.handshake(target, stream).await?;
            reached = FailureReason::NoResponse;
            exchange(TokioIo::new(stream), request, &mut drivers).await
        } else {
            reached = FailureReason::NoResponse;
            exchange(TokioIo::new(stream), request, &mut drivers).await
        }
    });
    let answered = answered.await;
    let (at, took) = (clock::now(), began.elapsed());
    match answered {
        Err(_) => {
            Sent { took, reason: Some(reached), ..Sent::without_answer(Outcome::TimedOut, at) }
        }
        Ok(Err(Failure { outcome, reason })) => {
            Sent { took, reason, ..Sent::without_answer(outcome, at) }
        }
        Ok(Ok(response)) => {
            let outcome = Outcome::Answered(response.status());
            let headers = Some(Excerpt::of_fields(response.headers()));
            // What comes after the head changes nothing, so neither does its end.
            let body = Some(beginning(response.into_body()).await);
            Sent { took, headers, body, ..Sent::without_answer(outcome, at) }
        }
    }
}

async fn exchange<S>(
    stream: TokioIo<S>,
    request: Request<Full<Bytes>>,
    drivers: &mut JoinSet<()>,
) -> Result<Response<Incoming>, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD)
        .max_headers(FIELDS)
        .handshake(stream)
        .await
        .map_err(|error| Failure::of_exchange(&error))?;
    drivers.spawn(async move {
        // The request's own end says what went wrong.
        let _ = connection.await;
    });
    let response =
        sender.send_request(request).await.map_err(|error| Failure::of_exchange(&error))?;
    // The client's limit is one on its buffer, which may have grown past it in the last step.
    let len = response.headers().iter().fold(0_usize, |len, (name, value)| {
        let field = name.as_str().len().saturating_add(value.len());
        len.saturating_add(field).saturating_add(": \r\n".len())
    });
    if len > HEAD {
        return Err(Failure::new(Outcome::Reset, FailureReason::HeadTooLarge));
    }
    Ok(response)
}
/// What a server, other than a proxy, expects: the path alone, and the host beside it.
fn in_origin_form(target: &Target, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let path = target.uri().path_and_query().map_or("/", |path| path.as_str());
    if let Ok(path) = Uri::try_from(path) {
        *request.uri_mut() = path;
    }
    if let Some(authority) = target.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    request
}

/// The first bytes of a body: one more than is kept, to know whether there are more.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    let _ = tokio::time::timeout(LISTEN, async {
        while read.len() <= MAX_EXCERPT_LEN
            && let Some(Ok(frame)) = body.frame().await
        {
            if let Some(data) = frame.data_ref() {
                let room = MAX_EXCERPT_LEN.saturating_add(1).saturating_sub(read.len());
                read.extend_from_slice(data.get(..room).unwrap_or(data));
            }
        }
    })
    .await;
    read
}
