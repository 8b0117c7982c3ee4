//! The customers' endpoints, good and bad, which remember what they answered.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::checks::Answers;

/// How an endpoint behaves, by the second part of its path.
pub(super) const KINDS: [&str; 8] = ["ok", "ok", "ok", "mostly", "half", "down", "silent", "gone"];

#[derive(Clone, Debug)]
pub struct Receiver {
    port: u16,
    answers: Arc<Mutex<HashMap<(String, String), Answers>>>,
    /// Events that came to an endpoint of another account.
    strays: Arc<Mutex<BTreeSet<String>>>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = Self { port, answers: Arc::default(), strays: Arc::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let receiver = serving.clone();
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let receiver = receiver.clone();
                        async move { receiver.answer(request).await }
                    });
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    let _ = connection.await;
                });
            }
        });
        receiver
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn answers(&self, endpoint: &str, event: &str) -> Answers {
        let answers = self.answers.lock().unwrap();
        answers.get(&(endpoint.to_owned(), event.to_owned())).cloned().unwrap_or_default()
    }

    /// Returns each event that came to an endpoint of another account.
    pub fn strays(&self) -> Vec<String> {
        self.strays.lock().unwrap().iter().cloned().collect()
    }

    fn note_stray(&self, endpoint: &str, body: &[u8]) {
        let event: Value = serde_json::from_slice(body).unwrap();
        let account = event["account_id"].as_str().unwrap();
        if !endpoint.starts_with(&format!("whep_{account}_")) {
            let stray = format!("{endpoint} was sent an event of {account}: {}", event["id"]);
            self.strays.lock().unwrap().insert(stray);
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let mut path = head.uri.path().trim_start_matches('/').split('/');
        let (endpoint, kind) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
        let event = head.headers.get("x-service-delivery");
        let event = event.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        // A sender that is killed has sent a part.
        if let Ok(body) = body.collect().await {
            self.note_stray(endpoint, &body.to_bytes());
        }
        let key = (endpoint.to_owned(), event);
        let nth = {
            let mut answers = self.answers.lock().unwrap();
            let seen = answers.entry(key.clone()).or_default();
            seen.requests += 1;
            seen.requests
        };
        // Which events fail, and when, is the same in every run.
        let dice = key.1.bytes().map(u32::from).sum::<u32>();
        let status = match kind {
            "mostly" if (dice + nth).is_multiple_of(5) => 500,
            "half" if (dice + nth).is_multiple_of(2) => 503,
            "down" => 500,
            "gone" if dice.is_multiple_of(40) => {
                // Its owner may move it meanwhile.
                tokio::time::sleep(Duration::from_millis(200)).await;
                410
            }
            "silent" => {
                tokio::time::sleep(Duration::from_secs(20)).await;
                504
            }
            _ => 204,
        };
        {
            let mut answers = self.answers.lock().unwrap();
            let seen = answers.entry(key).or_default();
            seen.good += u32::from((200..300).contains(&status));
            seen.gone += u32::from(status == 410);
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    }
}
