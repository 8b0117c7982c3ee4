//! One POST: connect, send, and read as much of the answer as is worth keeping.

mod connect;

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{MAX_EXCERPT_LEN, Outcome, Target};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use self::connect::connect;
use crate::support::clock;

pub(crate) use self::connect::Trust;

/// What an attempt holds of its endpoint's limit: a clone of it is dropped when the attempt ends, and
/// another when the thread that looks up the name has returned, which may be later. So there are
/// never more of those threads than the limit.
pub(crate) trait Held: Clone + Send + 'static {}

impl<T: Clone + Send + 'static> Held for T {}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) outcome: Outcome,
    /// When that was clear. The next attempt waits from here on, not from the end of a slow body.
    pub(crate) at: Timestamp,
    /// The beginning of the response's body, if there was a response.
    pub(crate) body: Option<Vec<u8>>,
}

impl Sent {
    /// What came of an attempt that nobody answered, as of now.
    pub(crate) fn without_answer(outcome: Outcome) -> Self {
        Self { outcome, at: clock::now(), body: None }
    }
}

/// How long to listen to a body, once the head has decided.
const LISTEN: Duration = Duration::from_secs(1);

/// The longest head of a response, in bytes.
const HEAD: usize = 64 * 1024;

/// The most fields in its head. With more there is no answer to go by, whatever its status.
const FIELDS: usize = 256;

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
    let answered = tokio::time::timeout(patience, async {
        let request = in_origin_form(target, request);
        let stream = connect(target, patience, held).await?;
        if target.url().scheme() == "https" {
            let stream = trust.handshake(target, stream).await?;
            exchange(TokioIo::new(stream), request, &mut drivers).await
        } else {
            exchange(TokioIo::new(stream), request, &mut drivers).await
        }
    });
    match answered.await {
        Err(_) => Sent::without_answer(Outcome::TimedOut),
        Ok(Err(outcome)) => Sent::without_answer(outcome),
        Ok(Ok(response)) => {
            let at = clock::now();
            let outcome = Outcome::Answered(response.status());
            // What comes after the head changes nothing, so neither does its end.
            let body = beginning(response.into_body()).await;
            Sent { outcome, at, body: Some(body) }
        }
    }
}

async fn exchange<S>(
    stream: TokioIo<S>,
    request: Request<Full<Bytes>>,
    drivers: &mut JoinSet<()>,
) -> Result<Response<Incoming>, Outcome>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD)
        .max_headers(FIELDS)
        .handshake(stream)
        .await
        .map_err(|_| Outcome::Reset)?;
    drivers.spawn(async move {
        // The request's own end says what went wrong.
        let _ = connection.await;
    });
    sender.send_request(request).await.map_err(|_| Outcome::Reset)
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
