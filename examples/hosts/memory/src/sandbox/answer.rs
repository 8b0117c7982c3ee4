//! Answers of the public API with the faults that were ordered.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::rest::ErrorCode;
use call_assistant::rest::client::testing;
use call_assistant::rest::server::KeyDigest;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::channel::Channel;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Bytes, Incoming};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::Sandbox;
use crate::faults::RequestFault;
use crate::store::Store;
use host::http::api::{Api, route};
use host::http::serve;
use host::store::ApiStore;
use host::{log, random};

/// A body, whole or not.
pub type Body = Either<Full<Bytes>, Channel<Bytes, io::Error>>;

/// Answers a request of the public API, with a fault if one is ordered.
pub async fn answer<S: ApiStore>(
    api: Api<S>,
    sandbox: Sandbox,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let has_cursor = url::form_urlencoded::parse(query).any(|(name, _)| name == "cursor");
    let account = account(&sandbox.store, request.headers());
    let fault = sandbox.faults.request(request.uri().path(), has_cursor, account.as_deref());
    if let Some(fault) = &fault {
        let (method, route) = (serve::method(request.method()), route(request.uri().path()));
        log::info!("sandbox fault {} {method} {route}", fault.as_str());
    }
    let mut answer = match fault {
        None => api.answer(request, peer).await.map(Either::Left),
        Some(RequestFault::Slow(late)) => {
            tokio::time::sleep(late).await;
            api.answer(request, peer).await.map(Either::Left)
        }
        Some(RequestFault::Cut) => cut(api.answer(request, peer).await).await,
        Some(RequestFault::LookupFails) => error(testing::error(ErrorCode::InternalError)),
        Some(RequestFault::RateLimited(seconds)) => error(testing::rate_limited(seconds)),
        Some(RequestFault::Error(code)) => error(testing::error(code)),
    };
    // A client that copies calls goes by this clock. The HTTP library's is the machine's.
    if !sandbox.store.clock.ahead().is_zero()
        && let Ok(date) = HeaderValue::try_from(http_date(sandbox.store.now()))
    {
        answer.headers_mut().insert(DATE, date);
    }
    answer
}

/// Returns the account whose key a request has.
fn account(store: &Store, headers: &HeaderMap) -> Option<String> {
    let (_, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let digest = KeyDigest::compute(key.trim().as_bytes());
    Some(store.lock().key_of(digest.as_bytes())?.account_id.as_str().to_owned())
}

/// Returns an instant in the form of HTTP's `Date`.
fn http_date(instant: Timestamp) -> String {
    let date = OffsetDateTime::from_unix_timestamp(instant.unix_seconds()).ok();
    let date = date.and_then(|date| date.format(&Rfc2822).ok()).unwrap_or_default();
    date.replace("+0000", "GMT")
}

/// Returns a canned error under an id of its own.
fn error(canned: Response<Vec<u8>>) -> Response<Body> {
    const CANNED: &str = "req_7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e";
    let id = RequestId::from_random(random::bytes());
    let (mut head, body) = canned.into_parts();
    for value in head.headers.values_mut().filter(|value| *value == CANNED) {
        if let Ok(id) = HeaderValue::from_str(id.as_str()) {
            *value = id;
        }
    }
    let body = String::from_utf8_lossy(&body).replace(CANNED, id.as_str());
    Response::from_parts(head, Either::Left(Full::from(body)))
}

/// Sends the first half of a body whose length is promised. Then the connection ends.
async fn cut(whole: Response<Full<Bytes>>) -> Response<Body> {
    let (mut head, body) = whole.into_parts();
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    head.headers.entry(CONTENT_LENGTH).or_insert(body.len().into());
    let (mut sender, sent) = Channel::new(1);
    tokio::spawn(async move {
        let _ = sender.send_data(body.slice(..body.len() / 2)).await;
        // Long enough for the half to be on its way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        sender.abort(io::ErrorKind::ConnectionAborted.into());
    });
    Response::from_parts(head, Either::Right(sent))
}
