//! Monitoring: `/metrics`, `/healthz` and `/readyz`.
//!
//! The dashboard's address has them, and `--metrics ADDR` opens another address with only these three.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use call_assistant::metrics::{CONTENT_TYPE, OpenMetrics};
use call_assistant::rest::server;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use crate::http::answer::{Answer, Answered, Error, json, text};
use crate::program::process;
use crate::program::shutdown::Shutdown;
use crate::store::{LoadRow, Metrics, Refused, Store, Writes};
use crate::{lock, log};

/// The counters of this process's public API. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ApiTally(Arc<Mutex<server::ApiMetrics>>);

impl ApiTally {
    /// Changes the counters.
    pub fn count(&self, count: impl FnOnce(&mut server::ApiMetrics)) {
        count(&mut lock(&self.0));
    }

    fn read(&self) -> server::ApiMetrics {
        *lock(&self.0)
    }
}

/// The responder of monitoring. Clones share it.
#[derive(Clone, Debug)]
pub struct Monitor<S> {
    store: S,
    api: Option<ApiTally>,
    stop: Option<Shutdown>,
}
const METHODS: &str = "GET, HEAD";

const BUILD_INFO: &str = "call_assistant_build_info";
const STORE_UP: &str = "call_assistant_store_up";
const LOG_DROPPED: &str = "call_assistant_log_dropped";

impl<S: Store> Monitor<S> {
    /// Creates a monitor of a store and its sender.
    pub fn new(store: S) -> Self {
        Self { store, api: None, stop: None }
    }

    /// Adds the counters of this process's public API.
    pub fn with_api(self, tally: ApiTally) -> Self {
        Self { api: Some(tally), ..self }
    }

    /// Sets the shutdown from whose signal on it is not ready.
    pub fn until(self, stop: Shutdown) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Answers a request to an address that has nothing else.
    pub async fn answer(self, request: Request<Incoming>, _peer: SocketAddr) -> Answer {
        let path = request.uri().path().trim_start_matches('/');
        self.route(request.method(), path).await.unwrap_or_else(Error::answer)
    }

    /// Answers one of the three paths.
    pub async fn route(&self, method: &Method, path: &str) -> Answered {
        let reads = *method == Method::GET || *method == Method::HEAD;
        match path {
            "metrics" | "healthz" | "readyz" if !reads => Err(Error::Method(METHODS.to_owned())),
            "metrics" => self.metrics().await,
            "readyz" => self.ready().await,
            "healthz" => {
                Ok(text(StatusCode::OK, "text/plain; charset=utf-8", "alive\n".to_owned()))
            }
            _ => Err(Error::NoSuchPath),
        }
    }

    async fn metrics(&self) -> Answered {
        let Metrics { sender, load, is_up, gauges, others } = self.store.metrics().await;
        let api = self.api.as_ref().map(ApiTally::read);
        let write = || {
            let mut text = OpenMetrics::new(String::new());
            sender.write(&mut text)?;
            if let Some(api) = api {
                api.write(&mut text)?;
            }
            let version = ("version", env!("CARGO_PKG_VERSION"));
            text.gauge(BUILD_INFO, "The version of the program.", [([version], 1)])?;
            let help = "Lines of the log that were dropped because their reader is too slow.";
            text.counter(LOG_DROPPED, help, [([], log::dropped())])?;
            text.gauge(STORE_UP, "Whether the store answers.", [([], u8::from(is_up))])?;
            if let Some(gauges) = gauges {
                gauges.write(&mut text)?;
            }
            let load = load.map(LoadRow::families).unwrap_or_default();
            let process = process::families();
            load.iter().chain(&others).chain(&process).try_for_each(|of| of.write(&mut text))?;
            text.end()
        };
        let written = write().map_err(|error| Refused::Unavailable(error.to_string()))?;
        Ok(text(StatusCode::OK, CONTENT_TYPE, written))
    }

    async fn ready(&self) -> Answered {
        if self.stop.as_ref().is_some_and(Shutdown::is_near) {
            return Err(Error::Stopping);
        }
        let writes = match self.store.ready().await {
            Ok(Writes::Stored) => "stored",
            Ok(Writes::Waiting) => "waiting",
            Err(Refused::Unavailable(why)) => return Err(Error::NotReady(why)),
            Err(refused) => return Err(refused.into()),
        };
        Ok(json(StatusCode::OK, &json!({ "ready": true, "writes": writes })))
    }
}
