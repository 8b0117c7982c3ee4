//! Answers, successes and errors, as a service writes them.

use alloc::string::String;
use alloc::vec::Vec;

use http::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::Operation;
use crate::id::RequestId;
use crate::json::ParseError;
use crate::model::{Account, Call, CallList};
use crate::rest::{ApiError, ErrorCode};

/// The header that names a request, in every answer. In errors the body repeats it.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The body of a successful answer: [`Account`], [`CallList`] or [`Call`].
pub trait ApiResponse: Clone + sealed::Body {
    /// The whole answer, 200.
    #[must_use]
    fn to_response(&self, request_id: &RequestId) -> Response<Vec<u8>> {
        response(StatusCode::OK, request_id, self.write())
    }
}

macro_rules! answers {
    ($($name:ident),+) => {
        $(impl ApiResponse for $name {}

        impl sealed::Body for $name {
            fn read(body: &[u8]) -> Result<Self, ParseError> {
                Self::from_json(body)
            }

            fn write(&self) -> Vec<u8> {
                self.to_json()
            }
        })+
    };
}

answers!(Account, CallList, Call);

/// An error as a whole answer: envelope, status, and the headers that belong to the code.
///
/// There is none without a request id, so every answer can be traced.
///
/// ```
/// use call_assistant::rest::ErrorReply;
/// use call_assistant::rest::ErrorCode;
/// use call_assistant::id::RequestId;
///
/// let id = RequestId::parse("req_1")?;
/// let answer = ErrorReply::new(ErrorCode::InvalidCredentials, id).into_response();
/// assert_eq!(answer.status(), 401);
/// assert_eq!(answer.headers()["www-authenticate"], "Bearer");
/// assert_eq!(answer.headers()["x-request-id"], "req_1");
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    error: ApiError,
    request_id: RequestId,
    retry_after: u64,
}

impl ErrorReply {
    /// The answer of a code, with its default message.
    #[must_use]
    pub fn new(code: ErrorCode, request_id: RequestId) -> Self {
        Self { error: ApiError::new(code, request_id.clone()), request_id, retry_after: 1 }
    }

    /// The same answer with a message that says more.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { error: self.error.with_message(message), ..self }
    }

    /// The same answer asking for a wait of so many seconds, at least one. It is sent with
    /// `rate_limit_exceeded` only, and always (D-31).
    #[must_use]
    pub fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after: seconds.max(1), ..self }
    }

    /// What the body will say.
    #[must_use]
    pub fn error(&self) -> &ApiError {
        &self.error
    }

    /// The request it answers.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// The status. A code this version does not know is the service's own fault: 500.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.error.code.status().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The answer. There is no CORS header on it or on any other: keys do not belong in browsers.
    #[must_use]
    pub fn into_response(self) -> Response<Vec<u8>> {
        let mut response = response(self.status(), &self.request_id, self.error.to_json());
        let headers = response.headers_mut();
        match self.error.code {
            // Nothing more: what is wrong with a credential is for its owner to find out.
            ErrorCode::InvalidCredentials => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorCode::MethodNotAllowed => {
                headers.insert(ALLOW, HeaderValue::from_static(Operation::ALLOW));
            }
            ErrorCode::RateLimitExceeded => {
                headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
            }
            _ => {}
        }
        response
    }
}

/// What every answer is made of. A request id is visible ASCII, so it always fits a header.
fn response(status: StatusCode, request_id: &RequestId, body: Vec<u8>) -> Response<Vec<u8>> {
    let id = HeaderValue::from_str(request_id.as_str());
    debug_assert!(id.is_ok(), "ids fit headers");
    let mut headers = HeaderMap::with_capacity(5);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(REQUEST_ID_HEADER, id.unwrap_or(HeaderValue::from_static("req_")));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

mod sealed {
    use super::{ParseError, Vec};

    /// A body, read and written. [`ApiResponse`](super::ApiResponse)'s types have both as methods of theirs.
    pub trait Body: Sized {
        fn read(body: &[u8]) -> Result<Self, ParseError>;
        fn write(&self) -> Vec<u8>;
    }
}
