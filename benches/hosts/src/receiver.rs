//! A receiver that answers 204 at once, and one that never answers.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[derive(Debug, Default)]
struct Got {
    count: AtomicU32,
    waits: Mutex<Vec<Duration>>,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) silent_url: String,
    got: Arc<Got>,
}

/// What a body says of when it was accepted, in microseconds.
pub(crate) const ACCEPTED: &str = "accepted_us=";

pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let got = Arc::new(Got::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let shared = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let got = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(request, &got));
                    let _ =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let silent_url = format!("http://{}/hook", silent.local_addr().expect("an address"));
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = silent.accept().await {
                open.push(stream);
            }
        });
        Self { url, silent_url, got }
    }

    pub(crate) fn reset(&self) {
        self.got.count.store(0, Ordering::SeqCst);
        self.got.waits.lock().expect("no panic").clear();
    }

    pub(crate) fn count(&self) -> u32 {
        self.got.count.load(Ordering::SeqCst)
    }

    /// The median and the 99th of a hundred. What never came counts as a minute.
    pub(crate) fn waits(&self, all: u32) -> [Duration; 2] {
        let mut waits = self.got.waits.lock().expect("no panic").clone();
        waits.resize(waits.len().max(all as usize), Duration::from_secs(60));
        waits.sort_unstable();
        [50, 99].map(|part| waits[(waits.len() - 1) * part / 100])
    }
}

async fn answer(
    request: Request<Incoming>,
    got: &Got,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    if let Ok(body) = request.into_body().collect().await {
        let body = body.to_bytes();
        let text = String::from_utf8_lossy(&body);
        let accepted = text.split_once(ACCEPTED).and_then(|(_, rest)| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse::<u64>().ok()
        });
        if let Some(accepted) = accepted {
            let wait = Duration::from_micros(micros().saturating_sub(accepted));
            got.waits.lock().expect("no panic").push(wait);
        }
        got.count.fetch_add(1, Ordering::SeqCst);
    }
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
