//! Creates the service's answers, for the tests of your program.
//!
//! ```
//! use call_assistant::Timestamp;
//! use call_assistant::id::CallId;
//! use call_assistant::model::Call;
//! use call_assistant::rest::client::{CallSync, Client, Step, testing};
//!
//! let mut now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let call = |id| Call::new(CallId::parse(id).unwrap(), now, now);
//! let mut answers = testing::pages([call("call_1"), call("call_2"), call("call_3")], 2);
//! answers.insert(1, testing::rate_limited(30));
//! let mut answers = answers.into_iter();
//!
//! let client = Client::new("https://api.example.com", "service_test_kept-where-secrets-are")?;
//! let mut flow = client.sync(CallSync::new());
//! let mut copied = 0;
//! loop {
//!     match flow.next([0; 8], now) {
//!         Step::Send { ticket, .. } => flow.report(ticket, answers.next().ok_or("none left"), now),
//!         Step::Wait(until) => now = until,
//!         Step::Store(batch) => {
//!             copied += batch.calls.len(); // or your own function
//!             flow.stored();
//!         }
//!         Step::Done(result) => break result?,
//!     }
//! }
//! assert_eq!((copied, flow.progress().failures), (3, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | answer | function |
//! |---|---|
//! | an account, a call, a page | [`answer`] |
//! | the pages of a list | [`pages`] |
//! | a documented error, a refused cursor | [`error`] |
//! | 429 with `Retry-After` | [`rate_limited`] |
//! | a proxy's page in HTML | [`bad_gateway`] |
//! | a body that is cut short | [`cut_short`] |
//!
//! After a refused cursor, the flow restarts the list at the first page.
//! [`rest::testing::Service`](crate::rest::testing::Service) is the whole service in memory. A test with
//! `Service` can replace a single answer before the test passes the answer to the flow.
//!
//! To simulate a missing answer, pass `Err(..)` to [`Flow::report`](super::Flow::report).

use alloc::format;
use alloc::vec::Vec;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::id::RequestId;
use crate::model::{Call, CallList};
use crate::rest::response::response;
use crate::rest::{ApiError, ApiResponse, ErrorCode};

/// Returns the response 200 with an [`Account`](crate::model::Account), a [`Call`] or a
/// [`CallList`].
#[must_use]
pub fn answer(answer: &impl ApiResponse) -> Response<Vec<u8>> {
    answer.to_response(&request_id())
}

/// Returns the pages of a list of calls. Each page except the last contains the cursor of the next page.
/// The function sorts the calls from the newest to the oldest. A page size of 0 is treated as 1.
#[must_use]
pub fn pages(calls: impl IntoIterator<Item = Call>, page_size: usize) -> Vec<Response<Vec<u8>>> {
    let mut calls: Vec<Call> = calls.into_iter().collect();
    calls.sort_by(|a, b| b.list_order().cmp(&a.list_order()));
    let mut chunks = calls.chunks(page_size.max(1)).enumerate().peekable();
    let mut pages = Vec::new();
    while let Some((number, chunk)) = chunks.next() {
        let cursor = chunks.peek().map(|_| format!("after-page-{number}"));
        pages.push(answer(&CallList::new(chunk.to_vec(), cursor)));
    }
    if pages.is_empty() {
        pages.push(answer(&CallList::new(Vec::new(), None)));
    }
    pages
}

/// Returns the response of an error, with the documented status of its code. If the code is not
/// documented, the status is 400.
#[must_use]
pub fn error(code: ErrorCode) -> Response<Vec<u8>> {
    let status = code.status().unwrap_or(StatusCode::BAD_REQUEST);
    response(status, &request_id(), ApiError::new(code, request_id()).to_json())
}

/// Returns the response 429 with a `Retry-After` of this number of seconds. A flow waits longer than
/// `Retry-After`, because the flow adds the backoff of its [`Retry`](super::Retry). After the first try,
/// the backoff of the default policy is at most a second.
#[must_use]
pub fn rate_limited(retry_after: u32) -> Response<Vec<u8>> {
    let mut response = error(ErrorCode::RateLimitExceeded);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
    response
}

/// Returns a response 502 in HTML, like a proxy in front of the service.
#[must_use]
pub fn bad_gateway() -> Response<Vec<u8>> {
    let mut response = Response::new(b"<html><h1>502 Bad Gateway</h1></html>\n".to_vec());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

/// Returns the response with only the first half of its body. An HTTP client that does not detect a
/// broken connection returns such a response.
#[must_use]
pub fn cut_short(mut response: Response<Vec<u8>>) -> Response<Vec<u8>> {
    let half = response.body().len() / 2;
    response.body_mut().truncate(half);
    response
}

fn request_id() -> RequestId {
    RequestId::from_random([0x7e; 16])
}
