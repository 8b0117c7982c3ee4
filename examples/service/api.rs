//! The public API: an exchange of the library's, with this host's look-ups between its steps.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::rest::server::CursorKeys;
use call_assistant::rest::server::RateWindows;
use call_assistant::rest::server::Rejection;
use call_assistant::rest::server::{Authorized, Received, RequestHead};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::store::Store;
use crate::support::{clock, log, random, serve};

/// More credentials than this are not active in one minute.
const WINDOWS: usize = 100_000;

/// The public API. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Api(Arc<Host>);

#[derive(Debug)]
struct Host {
    store: Arc<Store>,
    rates: Mutex<RateWindows>,
    cursors: CursorKeys,
}

impl Api {
    /// The API over a store. Its cursors live as long as the process, whose key they have.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let rates = Mutex::new(RateWindows::new(WINDOWS));
        let cursors = CursorKeys::new(1, random::bytes());
        Self(Arc::new(Host { store, rates, cursors }))
    }

    /// Answers a request. Its body, if there is one, is not looked at.
    pub(crate) async fn answer(
        self,
        request: Request<Incoming>,
        _peer: SocketAddr,
    ) -> Response<Full<Bytes>> {
        let began = clock::now();
        let (parts, _body) = request.into_parts();
        let request_id = RequestId::from_random(random::bytes());
        let id = request_id.clone();
        let answered = self.0.serve(&RequestHead::from_parts(&parts), request_id, began);
        let (answer, reason) = match answered {
            Ok(answer) => (answer, String::new()),
            // The reason is for this log, and nothing that the caller sees.
            Err(rejection) => {
                let reason = format!(" {}", rejection.reason());
                (rejection.into_response(), reason)
            }
        };
        let took = clock::now().since(began).as_micros();
        let status = answer.status().as_u16();
        let route = route(parts.uri.path());
        let method = serve::method(&parts.method);
        log::line(&format!("api {method} {route} {status} {took} us {id}{reason}"));
        answer.map(|body| Full::new(Bytes::from(body)))
    }
}

impl Host {
    fn serve(
        &self,
        head: &RequestHead<'_>,
        request_id: RequestId,
        now: Timestamp,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        let received = Received::new(head, request_id)?;

        let identified = self.store.identify(received, now)?;

        let admitted = {
            let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
            identified.admit_in(&mut rates, now)?
        };

        let Some((account, status)) = self.store.status(admitted.account_id()) else {
            return Err(admitted.internal_error());
        };
        match admitted.authorize(&status, &self.cursors)? {
            Authorized::Account(granted) => granted.answer(account),
            Authorized::Calls(granted) => {
                let rows = self.store.page(granted.query());
                granted.answer(rows)
            }
            Authorized::Call(granted) => {
                let row = self.store.call(granted.query());
                granted.answer(row)
            }
            other => Err(other.internal_error()),
        }
    }
}

/// A path for the log: what stands where an id belongs may be anything, a secret included.
fn route(path: &str) -> &'static str {
    match path {
        "/v1/account" => "/v1/account",
        "/v1/calls" => "/v1/calls",
        path if path.starts_with("/v1/calls/") => "/v1/calls/{call_id}",
        _ => "(unknown path)",
    }
}
