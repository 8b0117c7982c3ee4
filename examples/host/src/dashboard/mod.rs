//! The dashboard: what the specification leaves to the service's dashboard, and to the assistant
//! itself, as JSON on an address of its own, and a page for people.
//!
//! It has no accounts of its own. It listens on loopback and answers neither another site's page nor
//! a name that somebody has pointed at this address; or it asks for an operator's token: with each
//! request, or once for a cookie. The pages themselves have no data, and ask for it.

mod access;
mod accounts;
mod calls;
mod deliveries;
mod endpoints;
mod extension;
mod login;
mod overview;
mod page;
mod recovery;
mod show;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use call_assistant::Timestamp;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answer::{self, Answer, Error};
use crate::input::{Bad, Fields};
use crate::log;
use crate::monitor::{self, Monitor};
use crate::serve::{self, read_body};
use crate::shutdown::Shutdown;
use crate::store::{Refused, Store};

pub use access::{Access, Token};
pub use extension::Extension;
use login::Logins;

/// The longest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The header of the page's own requests.
const BY_PAGE: &str = "x-dashboard-page";

/// The dashboard's server. Clone it freely.
#[derive(Clone, Debug)]
pub struct Dashboard<S, X = ()> {
    store: S,
    extension: X,
    access: Access,
    logins: Logins,
    allow_loopback: bool,
    policy: HeaderValue,
    stop: Option<Shutdown>,
    monitor: Monitor<S>,
}

/// A request, taken apart.
#[derive(Debug)]
pub struct Asked<'a> {
    pub method: &'a Method,
    /// The segments of the path, percent-decoded. One empty segment is the root.
    pub path: Vec<&'a str>,
    pub query: Vec<(String, String)>,
    pub headers: &'a HeaderMap,
    /// An empty object where there is no body.
    pub body: Value,
    pub now: Timestamp,
}

impl<S: Store> Dashboard<S> {
    /// A dashboard over a store. With `allow_loopback`, endpoints may be on this machine.
    pub fn new(store: S, access: Access, allow_loopback: bool) -> Self {
        let monitor = Monitor::new(store.clone());
        let policy = page::policy(page::DASHBOARD);
        let logins = Logins::default();
        Self { store, extension: (), access, logins, allow_loopback, policy, stop: None, monitor }
    }

    /// With what a host adds to it.
    pub fn extended<X: Extension>(self, extension: X) -> Dashboard<S, X> {
        let Self { store, extension: (), access, logins, allow_loopback, policy, stop, monitor } =
            self;
        Dashboard { store, extension, access, logins, allow_loopback, policy, stop, monitor }
    }
}

impl<S: Store, X: Extension> Dashboard<S, X> {
    /// With a monitor that knows more than the store: the public API of this process.
    pub fn monitored(self, monitor: Monitor<S>) -> Self {
        Self { monitor, ..self }
    }

    /// Refuses what is not complete when the end is asked for.
    pub fn until(self, stop: Shutdown) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Answers a request.
    pub async fn answer(self, request: Request<Incoming>, peer: SocketAddr) -> Answer {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let mut route = String::from("(unknown path)");
        let answered = async {
            if self.stop.as_ref().is_some_and(Shutdown::is_requested) {
                return Err(Error::Stopping);
            }
            self.access.check_origin(&head.headers)?;
            let decoded: Vec<Cow<'_, str>> =
                head.uri.path().trim_start_matches('/').split('/').map(decode).collect();
            let path: Vec<&str> = decoded.iter().map(|segment| &**segment).collect();
            route = template::<X>(&path);
            if let Access::Token(token) = &self.access
                && !matches!(path.as_slice(), [""] | ["explain" | "login"])
            {
                self.logins.check(token, &head.headers, peer)?;
            }
            let body = match head.method {
                Method::POST | Method::PATCH => {
                    let read = read_body(body, MAX_BODY, PATIENCE);
                    let read = tokio::select! {
                        read = read => read,
                        () = self.stopping() => return Err(Error::Stopping),
                    };
                    read.map_err(Error::Body)?
                }
                _ => Default::default(),
            };
            let body = match body.is_empty() {
                true => json!({}),
                false => serde_json::from_slice(&body).map_err(|error| {
                    let at = format!("line {} column {}", error.line(), error.column());
                    Bad::new("", format!("the body is not JSON at {at}"))
                })?,
            };
            let query = head.uri.query().unwrap_or_default().as_bytes();
            let query = url::form_urlencoded::parse(query).into_owned().collect();
            let (method, headers) = (&head.method, &head.headers);
            let now = self.store.now();
            self.route(&Asked { method, path, query, headers, body, now }, peer).await
        };
        let mut answer = answered.await.unwrap_or_else(Error::answer);
        // The page has a form: a browser that finds Basic asks for a password itself.
        if answer.status() == StatusCode::UNAUTHORIZED && head.headers.contains_key(BY_PAGE) {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The page asks every second; that nothing has changed is not worth a line.
        if answer.status() != StatusCode::NOT_MODIFIED {
            let took = began.elapsed().as_micros();
            let status = answer.status().as_u16();
            let method = serve::method(&head.method);
            log::line(&format!("dashboard {method} {route} {status} {took} us"));
        }
        answer
    }

    /// Returns when the end is asked for.
    async fn stopping(&self) {
        match &self.stop {
            Some(stop) => stop.requested().await,
            None => std::future::pending().await,
        }
    }

    async fn route(&self, asked: &Asked<'_>, peer: SocketAddr) -> Result<Answer, Error> {
        let Asked { method, path, .. } = asked;
        if path.first().is_some_and(|first| X::PATHS.contains(first)) {
            return self.extension.route(asked).await;
        }
        if let [path] = path.as_slice()
            && let Some(answered) = self.monitor.route(method, path).await
        {
            return answered;
        }
        let get = *method == Method::GET || *method == Method::HEAD;
        let (post, patch) = (*method == Method::POST, *method == Method::PATCH);
        match path.as_slice() {
            [""] if get => Ok(answer::page(page::DASHBOARD, &self.policy)),
            ["explain"] if get => Ok(answer::page(page::EXPLAIN, &page::own_policy(page::EXPLAIN))),
            ["login"] => self.log_in(asked, peer),
            ["accounts"] if get => self.accounts(asked).await,
            ["accounts", id] if get => self.account(id).await,
            ["accounts", id] if patch => self.change_account(id, asked).await,
            ["accounts", id, "overview"] if get => self.overview(id, asked).await,
            ["accounts", id, "keys"] if get => self.keys(id, asked).await,
            ["accounts", id, "keys"] if post => self.create_key(id, asked).await,
            ["accounts", id, "calls"] if get => self.calls(id).await,
            ["accounts", id, "calls"] if post => self.record_call(id, asked).await,
            ["accounts", id, "events"] if post => self.emit(id, asked).await,
            ["accounts", id, "endpoints"] if get => self.endpoints(id).await,
            ["accounts", id, "endpoints"] if post => self.create_endpoint(id, asked).await,
            ["accounts", id, "deliveries"] if get => self.deliveries(id, asked).await,
            ["accounts", id, "recoveries"] if get => self.recoveries(id).await,
            ["accounts", id, "recover"] if post => self.recover_all(Some(id), asked).await,
            ["accounts", id, "alerts"] if get => self.alerts(id).await,
            ["keys", id, "revoke"] if post => self.revoke(id, asked).await,
            ["endpoints", id] if get => self.endpoint(id).await,
            ["endpoints", id] if patch => self.move_endpoint(id, asked).await,
            ["endpoints", id] if *method == Method::DELETE => self.delete_endpoint(id).await,
            ["endpoints", id, "enable"] if post => self.enable(id, asked).await,
            ["endpoints", id, "pause"] if post => self.pause(id, asked).await,
            ["endpoints", id, "ping"] if post => self.ping(id, asked).await,
            ["endpoints", id, "rotate"] if post => self.rotate_secret(id, asked).await,
            ["endpoints", id, "recover"] if post => self.recover(id, asked).await,
            ["deliveries", id] if get => self.delivery(id).await,
            ["deliveries", id, "redeliver"] if post => self.redeliver(id, asked).await,
            ["deliveries", id, "send"] if post => self.send_now(id, asked).await,
            ["recoveries"] if post => self.recover_all(None, asked).await,
            ["recoveries", id] if get => self.recovery(id).await,
            ["recoveries", id, "pause"] if post => self.pause_recovery(id, true, asked).await,
            ["recoveries", id, "continue"] if post => self.pause_recovery(id, false, asked).await,
            ["recoveries", id, "cancel"] if post => self.cancel_recovery(id, asked).await,
            path => Err(methods(path).map_or(Error::NoSuchPath, Error::Method)),
        }
    }
}

impl<S, X> Dashboard<S, X> {
    fn log_in(&self, asked: &Asked<'_>, peer: SocketAddr) -> Result<Answer, Error> {
        let Asked { method, headers, body, .. } = asked;
        match (*method, &self.access) {
            (&Method::GET | &Method::HEAD, access) => {
                Ok(answer::ok(&json!({ "required": matches!(access, Access::Token(_)) })))
            }
            (&Method::POST, Access::Token(token)) => self.logins.begin(token, headers, body, peer),
            (&Method::DELETE, Access::Token(token)) => self.logins.end(token, headers),
            (&Method::POST | &Method::DELETE, Access::ThisMachine) => {
                Err(Refused::Conflict("this dashboard requires no token".to_owned()).into())
            }
            _ => Err(methods(&asked.path).map_or(Error::NoSuchPath, Error::Method)),
        }
    }
}

fn nothing_asked(asked: &Asked<'_>) -> Result<(), Error> {
    Fields::of("", &asked.body, "").map(drop).map_err(Error::Bad)
}

/// The methods of a path, if there is such a path.
fn methods(path: &[&str]) -> Option<&'static str> {
    match path {
        [path] if monitor::PATHS.contains(path) => Some("GET, HEAD"),
        [""] | ["accounts" | "explain"] | ["deliveries" | "recoveries", _] => Some("GET, HEAD"),
        ["login"] => Some("GET, HEAD, POST, DELETE"),
        ["accounts", _] => Some("GET, HEAD, PATCH"),
        ["endpoints", _] => Some("GET, HEAD, PATCH, DELETE"),
        ["accounts", _, "overview" | "deliveries" | "recoveries" | "alerts"] => Some("GET, HEAD"),
        ["accounts", _, "keys" | "calls" | "endpoints"] => Some("GET, HEAD, POST"),
        ["recoveries"]
        | ["accounts", _, "events" | "recover"]
        | ["keys", _, "revoke"]
        | ["endpoints", _, "enable" | "pause" | "ping" | "rotate" | "recover"]
        | ["deliveries", _, "redeliver" | "send"]
        | ["recoveries", _, "pause" | "continue" | "cancel"] => Some("POST"),
        _ => None,
    }
}

/// A path for the log: what stands where an id belongs may be anything, a secret included.
fn template<X: Extension>(path: &[&str]) -> String {
    if let Some(first) = path.first().filter(|first| X::PATHS.contains(first)) {
        return format!("/{first}");
    }
    if methods(path).is_none() {
        return "(unknown path)".to_owned();
    }
    let shown = path.iter().enumerate().map(|(at, part)| if at == 1 { "{id}" } else { part });
    shown.fold(String::new(), |path, part| path + "/" + part)
}

/// Percent-decodes a segment of a path. What is broken stays as it is: no id is like that.
fn decode(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8().unwrap_or(Cow::Borrowed(segment))
}
