//! An endpoint that answers when the scenario says so, and remembers what.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use checker::checks::Answers;

/// How long anything may take on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Receiver {
    port: u16,
    asked: mpsc::UnboundedReceiver<Asked>,
    shared: Shared,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Asked(oneshot::Sender<u16>);

#[derive(Clone)]
struct Shared {
    asked: mpsc::UnboundedSender<Asked>,
    /// What everybody is answered.
    all: watch::Sender<Option<u16>>,
    /// By event.
    answers: Arc<Mutex<HashMap<String, Answers>>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = mpsc::unbounded_channel();
        let (all, _) = watch::channel(None);
        let shared = Shared { asked: sender, all, answers: Arc::default() };
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                let service = hyper::service::service_fn(move |request| {
                    let shared = shared.clone();
                    async move { shared.answer(request).await }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Self { port, asked, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Asked {
        let asked = tokio::time::timeout(PATIENCE, self.asked.recv()).await;
        asked.expect("a request comes").unwrap()
    }

    /// Answers everything that waits or will come.
    pub(crate) fn answer_all(&self, status: u16) {
        self.shared.all.send_replace(Some(status));
    }

    pub(crate) fn requests(&self) -> i64 {
        self.shared.answers.lock().unwrap().values().map(|each| i64::from(each.requests)).sum()
    }

    pub(crate) fn answers(&self, event: &str) -> Answers {
        self.shared.answers.lock().unwrap().get(event).cloned().unwrap_or_default()
    }
}

impl Asked {
    pub(crate) fn answer(self, status: u16) {
        self.0.send(status).unwrap();
    }
}

impl Shared {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let event = head.headers["x-service-delivery"].to_str().unwrap();
        let _ = body.collect().await;
        self.change(event, |answers| answers.requests += 1);
        let (answer, answered) = oneshot::channel();
        let _ = self.asked.send(Asked(answer));
        let mut all = self.all.subscribe();
        let status = tokio::select! {
            Ok(status) = answered => status,
            Ok(status) = all.wait_for(Option::is_some) => status.unwrap(),
            else => 500,
        };
        self.change(event, |answers| {
            answers.good += u32::from((200..300).contains(&status));
            answers.gone += u32::from(status == 410);
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    }

    fn change(&self, event: &str, change: impl FnOnce(&mut Answers)) {
        change(self.answers.lock().unwrap().entry(event.to_owned()).or_default());
    }
}
