//! An HTTP/1.1 server on hyper for untrusted clients.
//!
//! An untrusted client may send a head one byte at a time, an endless body, or nothing on ten
//! thousand connections. The defence is here once, for every example that listens:
//! - a head must be complete in time, and has a size limit;
//! - a response must be read in time, and is not lost if the request is not read to its end or the peer
//!   closes its own side first;
//! - a body is read by [`read_body`] only, with a limit on its size and on the time for all of it;
//! - the number of connections is limited. A new connection replaces the one that has been idle for
//!   longest, so idle clients block nobody. One whose request's body is still to come is idle;
//! - a lack of file descriptors is treated in the same way;
//! - a client that asks too often is told so a moment later. Its connection is idle until then. Else refusals at full
//!   speed would take more of this process than what is refused.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Extensions, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::peer::Peer;
use crate::program::shutdown::Shutdown;
use crate::{lock, log};

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most open connections.
    pub connections: usize,
    /// How long a peer may keep the server waiting: to the end of the head of its next request, from
    /// the previous answer or from the start, and for an answer to be taken.
    pub patience: Duration,
}

/// The longest head of a request, and what a connection buffers at most, in bytes. What is longer is
/// answered by the HTTP library, without an envelope.
const HEAD: usize = 64 * 1024;

/// The most fields in a head. More are answered by the HTTP library too.
const FIELDS: usize = 256;

/// How long an answer with status 429 is held back: 250 ms.
const HELD_BACK: Duration = Duration::from_millis(250);

/// How long running requests may take after shutdown is requested.
const GRACE: Duration = Duration::from_secs(5);

/// How long an answer may still be on its way then. After that, who asks for nothing is left.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Returns a method for a log: those that are known, for anything else may be a secret, or very long.
pub fn method(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "(other)",
    }
}

/// Answers requests until shutdown, then lets those that have begun finish.
pub async fn serve<H, F, B>(listener: TcpListener, limits: Limits, handler: H, shutdown: Shutdown)
where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connections = Arc::new(Connections::default());
    loop {
        let accepted = tokio::select! {
            () = shutdown.requested() => break,
            accepted = listener.accept() => accepted,
        };
        log::tried("accept", &accepted);
        let Ok((stream, peer)) = accepted else {
            // Mostly too many open files. Some other peer's failure is as harmless to repeat.
            connections.close_oldest_idle();
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        while connections.open() >= limits.connections && !connections.close_oldest_idle() {
            // Every one of them is being answered, which does not take long.
            sleep(Duration::from_millis(5)).await;
        }
        let place = connections.enter();
        tokio::spawn(converse(stream, peer, place, limits, handler.clone(), shutdown.clone()));
    }
    drop(listener);
    let began = Instant::now();
    while connections.open() > 0 && began.elapsed() < GRACE {
        sleep(Duration::from_millis(10)).await;
        if began.elapsed() >= LAST_WORDS {
            while connections.close_oldest_idle() {}
        }
    }
}

async fn converse<H, F, B>(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    limits: Limits,
    handler: H,
    shutdown: Shutdown,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    // Answers are small and written whole: waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let place = Arc::new(place);
    let service = service_fn(|mut request: Request<Incoming>| {
        match request.body().is_end_stream() {
            true => place.busy(),
            // Its sender may be slow on purpose: the connection stays idle until the body is read.
            false => drop(request.extensions_mut().insert(Arc::clone(&place))),
        }
        let (place, answer) = (Arc::clone(&place), handler(request, peer));
        async move {
            let answer = answer.await;
            place.idle();
            if answer.status() == StatusCode::TOO_MANY_REQUESTS {
                sleep(HELD_BACK).await;
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .half_close(true)
        .max_buf_size(HEAD)
        .max_header_size(HEAD)
        .max_headers(FIELDS)
        .serve_connection(TokioIo::new(Peer::new(stream, limits.patience)), service);
    tokio::pin!(connection);
    tokio::select! {
        // An error of a connection is caused by its peer, which knows it.
        _ = connection.as_mut() => return,
        () = place.closed.notified() => return,
        () = shutdown.requested() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = place.closed.notified() => {}
        () = sleep(GRACE) => {}
    }
}

/// The reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is longer than the limit.
    #[error("the body is too large")]
    TooLarge,
    /// The body did not arrive in time.
    #[error("the body took too long")]
    TooSlow,
    /// The body is incomplete, or not what its head says.
    #[error("the body is incomplete")]
    Broken,
}

/// Reads the whole body of a request with these extensions, if it is short enough and comes soon enough.
///
/// # Errors
/// [`BodyError`] says why.
pub async fn read_body(
    of: &Extensions,
    body: Incoming,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, BodyError> {
    let read = tokio::time::timeout(patience, Limited::new(body, limit).collect()).await;
    if let Some(place) = of.get::<Arc<Place>>() {
        place.busy();
    }
    match read {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

/// The connections that are open, and which of them are idle, the longest first.
#[derive(Debug, Default)]
struct Connections(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// The next number to give out: numbers tell the order in which connections became idle.
    next: u64,
    idle: BTreeMap<u64, Arc<Notify>>,
}

/// One connection's place among those that are open, given back when dropped.
#[derive(Debug)]
struct Place {
    all: Arc<Connections>,
    closed: Arc<Notify>,
    /// Its number while it is idle, and for good once it was told to close.
    idle: Mutex<Option<u64>>,
}

impl Connections {
    fn enter(self: &Arc<Self>) -> Place {
        let mut open = lock(&self.0);
        open.count = open.count.saturating_add(1);
        drop(open);
        let place = Place { all: Arc::clone(self), closed: Arc::default(), idle: Mutex::new(None) };
        place.idle();
        place
    }

    fn open(&self) -> usize {
        lock(&self.0).count
    }

    /// Closes an idle connection, and returns false if none is.
    fn close_oldest_idle(&self) -> bool {
        lock(&self.0).close_first()
    }
}

impl Open {
    fn close_first(&mut self) -> bool {
        let Some((_, closed)) = self.idle.pop_first() else { return false };
        // Its place is free from now on, so that whoever needs it does not wait for its task.
        self.count = self.count.saturating_sub(1);
        closed.notify_one();
        true
    }
}

impl Place {
    fn busy(&self) {
        let mut idle = lock(&self.idle);
        // One that was told to close a moment ago stays as it is: its place is given away already.
        *idle = idle.filter(|number| lock(&self.all.0).idle.remove(number).is_none());
    }

    fn idle(&self) {
        let mut idle = lock(&self.idle);
        if idle.is_some() {
            return;
        }
        let mut open = lock(&self.all.0);
        let number = open.next;
        open.next = open.next.wrapping_add(1);
        open.idle.insert(number, Arc::clone(&self.closed));
        *idle = Some(number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let idle = lock(&self.idle);
        let mut open = lock(&self.all.0);
        // One that is idle, and no longer among the idle, was told to close and is not counted.
        if idle.is_none_or(|number| open.idle.remove(&number).is_some()) {
            open.count = open.count.saturating_sub(1);
        }
    }
}
