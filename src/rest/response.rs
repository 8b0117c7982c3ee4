//! Responses, as a service writes them.

use alloc::vec::Vec;

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use serde::Serialize;

use crate::id::RequestId;
use crate::json::{self, ParseError};
use crate::model::{Account, Call, CallList};

/// The header with the request id. Every response has this header. The body of an error repeats the id.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The body of a successful response: an [`Account`], a [`CallList`] or a [`Call`].
///
/// ```
/// use call_assistant::id::RequestId;
/// use call_assistant::model::CallList;
/// use call_assistant::rest::ApiResponse;
///
/// let response = CallList::new(vec![], None).to_response(&RequestId::from_random([1; 16]));
/// assert_eq!(response.headers()["cache-control"], "no-store");
/// assert_eq!(response.body(), br#"{"data":[],"next_cursor":null,"has_more":false}"#);
/// ```
///
/// The trait is sealed. [`ApiRequest::Response`](super::ApiRequest::Response) is the response type of each
/// request.
pub trait ApiResponse: Clone + sealed::Body {
    /// Writes the complete response, with status 200.
    #[must_use]
    fn to_response(&self, request_id: &RequestId) -> Response<Vec<u8>> {
        response(StatusCode::OK, request_id, json::write(self))
    }
}

impl ApiResponse for Account {}
impl ApiResponse for CallList {}
impl ApiResponse for Call {}

impl sealed::Body for Account {
    const READ: sealed::Read<Self> = Self::from_json;
}

impl sealed::Body for CallList {
    const READ: sealed::Read<Self> = Self::from_json;
}

impl sealed::Body for Call {
    const READ: sealed::Read<Self> = Self::from_json;
}

/// Writes a response with the headers that all responses have. There is no CORS header, because keys must not
/// be used in browsers.
#[expect(clippy::expect_used, reason = "ids are visible ASCII, which every header takes")]
pub(super) fn response(
    status: StatusCode,
    request_id: &RequestId,
    body: Vec<u8>,
) -> Response<Vec<u8>> {
    let id = HeaderValue::from_str(request_id.as_str()).expect("ids are visible ASCII");
    // As many as any response has.
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REQUEST_ID_HEADER, id);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

mod sealed {
    use super::{ParseError, Serialize};

    /// A function that reads a body.
    pub(super) type Read<T> = fn(&[u8]) -> Result<T, ParseError>;

    /// A body that is written as it is serialised.
    pub trait Body: Serialize + Sized {
        const READ: Read<Self>;
    }
}
