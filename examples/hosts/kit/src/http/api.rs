//! The public API: an exchange of the library's, with this host's look-ups between its steps.

use std::net::SocketAddr;
use std::sync::Arc;

use call_assistant::id::RequestId;
use call_assistant::rest::Operation;
use call_assistant::rest::server::{Authorized, CursorKeys, Received, RequestHead};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

use super::monitor::ApiTally;
use super::serve;
use crate::program::shutdown::Shutdown;
use crate::store::{ApiStore, CallPage, Rejected};
use crate::trace::TraceParent;
use crate::{log, random};

/// The public API over a store. Clones share it.
#[derive(Clone, Debug)]
pub struct Api<S> {
    store: S,
    cursors: Arc<CursorKeys>,
    stop: Option<Shutdown>,
    tally: ApiTally,
}

impl<S: ApiStore> Api<S> {
    /// Creates the API over a store. Cursors are read by every process that has the same keys.
    pub fn new(store: S, cursors: CursorKeys) -> Self {
        Self { store, cursors: Arc::new(cursors), stop: None, tally: ApiTally::default() }
    }

    /// Returns the counters, for a monitor.
    pub fn tally(&self) -> ApiTally {
        self.tally.clone()
    }

    /// Refuses what comes after shutdown is requested.
    pub fn until(self, stop: Shutdown) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Answers a request. Its body, if there is one, is not looked at.
    pub async fn answer(
        self,
        request: Request<Incoming>,
        _peer: SocketAddr,
    ) -> Response<Full<Bytes>> {
        let timer = Instant::now();
        let (parts, _body) = request.into_parts();
        let request_id = RequestId::from_random(random::bytes());
        let (id, trace) = (request_id.clone(), TraceParent::of(&parts.headers));
        let (request, traceparent) = (id.as_str(), trace.as_ref().map(TraceParent::as_str));
        let span = debug_span!("api", request, account = Empty, traceparent);
        let (head, mut account) = (RequestHead::from_parts(&parts), None);
        // Its head was not complete when stopping began. Whoever asks again finds another process.
        let stopping = self.stop.as_ref().is_some_and(Shutdown::is_requested);
        let answered = match Received::new(&head, request_id) {
            Ok(received) if stopping => {
                let why = Some("shutdown was requested".to_owned());
                Err(Rejected { rejection: received.internal_error(), why })
            }
            Ok(received) => self.serve(received, &mut account).instrument(span.clone()).await,
            Err(rejection) => Err(rejection.into()),
        };
        let (answered, why) = match answered {
            Ok(answer) => (Ok(answer), None),
            Err(Rejected { rejection, why }) => (Err(rejection), why),
        };
        let (took, operation) = (timer.elapsed(), Operation::from_path(parts.uri.path()));
        self.tally.count(|tally| tally.answered(operation, &answered, took));
        let (answer, reason) = match answered {
            Ok(answer) => (answer, None),
            // The reason is for this log, and nothing that the caller sees.
            Err(rejection) => {
                let reason = why.unwrap_or_else(|| rejection.reason().to_string());
                (rejection.into_response(), Some(reason))
            }
        };
        let (method, route) = (serve::method(&parts.method), route(parts.uri.path()));
        let (status, took_us) = (answer.status().as_u16(), log::micros(took));
        let stranger = account.is_none();
        match answer.status().is_server_error() {
            true => log::warn!(
                parent: &span,
                stranger, request, account, method, route, status, took_us, reason, traceparent,
                "api"
            ),
            false => log::info!(
                parent: &span,
                stranger, request, account, method, route, status, took_us, reason, traceparent,
                "api"
            ),
        }
        answer.map(|body| Full::new(Bytes::from(body)))
    }

    async fn serve(
        &self,
        received: Received,
        account_id: &mut Option<String>,
    ) -> Result<Response<Vec<u8>>, Rejected> {
        let (identified, standing) = self.store.identify(received).await?;
        let id = identified.account_id().as_str();
        Span::current().record("account", id);
        *account_id = Some(id.to_owned());
        let admitted = self.store.admit(identified).await?;
        let (account, status) = standing.ok_or_else(|| admitted.internal_error())?;
        match admitted.authorize(&status, &self.cursors)? {
            Authorized::Account(query) => Ok(query.answer(account)?),
            Authorized::Calls(query) => match self.store.page(&query).await {
                Ok(CallPage { rows, walked_to: None }) => Ok(query.answer(rows)?),
                Ok(CallPage { rows, walked_to: Some(to) }) => Ok(query.answer_part(rows, to)?),
                Err(refused) => Err(refused.rejecting(query.internal_error())),
            },
            Authorized::Call(query) => match self.store.call(&query).await {
                Ok(row) => Ok(query.answer(row)?),
                Err(refused) => Err(refused.rejecting(query.internal_error())),
            },
            other => Err(other.internal_error().into()),
        }
    }
}

/// Returns a path for the log: what stands where an id belongs may be anything, a secret included.
pub fn route(path: &str) -> &'static str {
    match path {
        "/v1/account" => "/v1/account",
        "/v1/calls" => "/v1/calls",
        path if path.starts_with("/v1/calls/") => "/v1/calls/{call_id}",
        _ => "(unknown path)",
    }
}
