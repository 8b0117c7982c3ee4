//! What came back: an answer, or an error by who must act.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use http::StatusCode;
use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::response::Parts;

use super::retry::{Failure, RetryAfter};
use crate::id::RequestId;
use crate::json::{ParseError, ParseErrorKind};
use crate::redact::excerpt;
use crate::rest::{ApiError, ErrorCode};
use crate::rest::{ApiResponse, REQUEST_ID_HEADER};

/// How much of an answer that is no success is looked at, in bytes. No error of the service's is
/// nearly as long.
pub const MAX_ERROR_LEN: usize = 64 * 1024;

/// Reads an answer: an [`Account`](crate::model::Account), a [`Call`](crate::model::Call) or a
/// [`CallList`](crate::model::CallList).
///
/// ```
/// use call_assistant::rest::client::{ClientError, Fault, Remedy, read};
/// use call_assistant::model::Account;
/// # fn answered(status: u16, id: &str, body: &'static str) -> (http::response::Parts, &'static [u8]) {
/// #     let response = http::Response::builder().status(status).header("x-request-id", id);
/// #     (response.body(()).unwrap().into_parts().0, body.as_bytes())
/// # }
///
/// let body = r#"{"error":{"code":"plan_upgrade_required","message":"...","request_id":"req_1"}}"#;
/// let (head, body) = answered(403, "req_1", body);
/// let error: ClientError = read::<Account>(&head, body).unwrap_err();
/// assert_eq!(error.remedy(), Remedy::UpgradePlan);
/// assert_eq!(error.request_id.as_ref().unwrap().as_str(), "req_1");
///
/// let (head, body) = answered(502, "", "<h1>Bad gateway</h1>");
/// let error = read::<Account>(&head, body).unwrap_err();
/// assert!(matches!(error.fault, Fault::Foreign(_)));
/// assert_eq!(error.remedy(), Remedy::TryAgain);
/// ```
///
/// # Errors
/// The service refused, or what came is not its answer.
pub fn read<A: ApiResponse>(head: &Parts, body: &[u8]) -> Result<A, ClientError> {
    // Which of two is meant cannot be told.
    let only = |name: HeaderName| {
        let mut values = head.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    };
    let head = ResponseHead {
        status: head.status,
        request_id: only(REQUEST_ID_HEADER),
        retry_after: only(RETRY_AFTER),
        date: only(DATE),
    };
    head.read(body)
}

/// What counts in an answer's head, as text: for frameworks on another version of the `http` crate.
///
/// ```
/// use call_assistant::rest::client::{ResponseHead, RetryAfter};
/// use call_assistant::model::Account;
/// use http::StatusCode;
///
/// let mut head = ResponseHead::new(StatusCode::from_u16(429)?);
/// head.retry_after = Some("17");
/// let error = head.read::<Account>(br#"{"error":{"code":"rate_limit_exceeded"}}"#).unwrap_err();
/// assert_eq!(error.retry_after, Some(RetryAfter::Seconds(17)));
/// # Ok::<(), http::status::InvalidStatusCode>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: StatusCode,
    /// `X-Request-Id`; none where it is missing or there twice, as with the others.
    pub request_id: Option<&'a str>,
    /// `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// `Date`: from when a `Retry-After` that names an instant is counted.
    pub date: Option<&'a str>,
}

impl ResponseHead<'_> {
    /// A head without headers.
    #[must_use]
    pub const fn new(status: StatusCode) -> Self {
        Self { status, request_id: None, retry_after: None, date: None }
    }

    /// Reads the body that belongs to this head. Success is 200 and nothing else: the API has no
    /// other.
    ///
    /// # Errors
    /// See [`read`].
    pub fn read<A: ApiResponse>(&self, body: &[u8]) -> Result<A, ClientError> {
        let fault = match self.status {
            StatusCode::OK => match A::read(body) {
                Ok(answer) => return Ok(answer),
                Err(error) => Fault::of_success(body, error),
            },
            _ => Fault::of_failure(body),
        };
        let own_id = match &fault {
            Fault::Refused(error) => error.request_id.clone(),
            _ => None,
        };
        let after = self.retry_after.and_then(RetryAfter::parse);
        Err(ClientError {
            status: self.status,
            request_id: self.request_id.and_then(|id| RequestId::parse(id).ok()).or(own_id),
            retry_after: after.map(|after| match self.date {
                Some(date) => after.relative_to(date),
                None => after,
            }),
            fault,
        })
    }
}

/// An answer that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientError {
    /// The status. 200 is possible too: a success that cannot be read.
    pub status: StatusCode,
    /// What to quote to support: of the header, or else of the body. `None` where the service did
    /// not answer.
    pub request_id: Option<RequestId>,
    /// What `Retry-After` says.
    pub retry_after: Option<RetryAfter>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The service says no, in its own words. Branch on the code, or on
    /// [`remedy`](ClientError::remedy).
    Refused(Box<ApiError>),
    /// Somebody else answered: a proxy, a login page, a redirect.
    Foreign(UnexpectedBody),
    /// A success that broke off before its end. Nothing of it is kept, for it may be about people.
    BrokenOff,
    /// A success in JSON that is not what was asked for.
    Unreadable(ParseError),
}

/// Who must act on an error, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// Nobody: make the same request again after a while, as [`Retry`](super::Retry) says.
    TryAgain,
    /// The program: what it asked is not a valid question. The
    /// [message](crate::rest::ApiError::message) says what.
    MendRequest,
    /// The program: the cursor is not taken any more. Begin the list again; for a sync that is
    /// [`CallSync::restarted`](super::sync::CallSync::restarted).
    BeginListAgain,
    /// Nobody: there is no such call in this account.
    Absent,
    /// Whoever looks after the key: it is wrong, expired or revoked.
    ReplaceKey,
    /// Whoever made the key: it lacks the scope. The account and its plan are fine.
    GrantScope,
    /// The account's owner: the key is fine, but the plan has no access to the API.
    UpgradePlan,
    /// The account's owner: the subscription is not active.
    ResumeSubscription,
    /// The account's owner: the account is going to be deleted.
    AccountClosed,
    /// Whoever runs what stands between here and the service, for that is what answered: a proxy,
    /// or the wrong address.
    CheckRoute,
    /// Whoever supports the service or this program: they do not understand each other.
    AskSupport,
}

impl ClientError {
    /// Who must act, and how.
    ///
    /// It goes by the code. A code that this version does not know goes by its status.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match &self.fault {
            _ if Failure::from(self).is_transient() => Remedy::TryAgain,
            Fault::Refused(error) => match error.code {
                ErrorCode::InvalidParameter | ErrorCode::MethodNotAllowed => Remedy::MendRequest,
                ErrorCode::InvalidCursor => Remedy::BeginListAgain,
                ErrorCode::InvalidCredentials => Remedy::ReplaceKey,
                ErrorCode::SubscriptionInactive => Remedy::ResumeSubscription,
                ErrorCode::InsufficientScope => Remedy::GrantScope,
                ErrorCode::PlanUpgradeRequired => Remedy::UpgradePlan,
                ErrorCode::AccountClosed => Remedy::AccountClosed,
                ErrorCode::ResourceNotFound => Remedy::Absent,
                _ => match self.status {
                    StatusCode::BAD_REQUEST => Remedy::MendRequest,
                    StatusCode::UNAUTHORIZED => Remedy::ReplaceKey,
                    StatusCode::NOT_FOUND => Remedy::Absent,
                    _ => Remedy::AskSupport,
                },
            },
            Fault::Foreign(_) => Remedy::CheckRoute,
            Fault::BrokenOff | Fault::Unreadable(_) => Remedy::AskSupport,
        }
    }

    /// The code, if the service refused.
    #[must_use]
    pub fn code(&self) -> Option<&ErrorCode> {
        match &self.fault {
            Fault::Refused(error) => Some(&error.code),
            _ => None,
        }
    }
}

/// One line for a log: never a body, which is in [`Fault::Foreign`] for those who want it.
impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_u16();
        match &self.fault {
            Fault::Refused(error) => write!(f, "service refused with {status}: {}", error.code)?,
            Fault::Foreign(_) => write!(f, "answer {status} is not the service's")?,
            Fault::BrokenOff => f.write_str("answer broke off")?,
            Fault::Unreadable(error) => write!(f, "answer cannot be read: {error}")?,
        }
        match &self.request_id {
            Some(id) => write!(f, " ({id})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ClientError {}

/// What a [`Retry`](super::Retry) needs to know of an error.
impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        let failure = match &error.fault {
            // As good as none.
            Fault::BrokenOff => return Self::NO_ANSWER.with_retry_after(error.retry_after),
            Fault::Refused(refused) => {
                Self::answered(error.status.as_u16()).with_code(refused.code.clone())
            }
            Fault::Foreign(_) | Fault::Unreadable(_) => Self::answered(error.status.as_u16()),
        };
        failure.with_retry_after(error.retry_after)
    }
}

impl Fault {
    /// Of a 200 that cannot be read.
    fn of_success(body: &[u8], error: ParseError) -> Self {
        let object = body.trim_ascii_start().first() == Some(&b'{');
        // Within a character, too.
        let cut = core::str::from_utf8(body).is_err_and(|error| error.error_len().is_none());
        match error.kind() {
            ParseErrorKind::Truncated => Self::BrokenOff,
            ParseErrorKind::NotUtf8 if cut => Self::BrokenOff,
            // Whatever it is, it may hold callers' data, so it is not shown.
            _ if object => Self::Unreadable(error),
            _ => Self::Foreign(UnexpectedBody::of(body)),
        }
    }

    /// Of any other status. What is longer than [`MAX_ERROR_LEN`] is not the service's.
    fn of_failure(body: &[u8]) -> Self {
        if body.len() <= MAX_ERROR_LEN
            && let Ok(error) = ApiError::from_json(body)
        {
            return Self::Refused(Box::new(error));
        }
        Self::Foreign(UnexpectedBody::of(body))
    }
}

/// The beginning of what somebody else answered, for people to look at.
///
/// It may repeat what it was sent: whatever looks like an API key or a signing secret is replaced,
/// and `Debug` shows the length only.
#[derive(Clone, PartialEq, Eq)]
pub struct UnexpectedBody(String);

impl UnexpectedBody {
    /// How much is kept, in bytes as they came.
    pub const MAX_LEN: usize = 2048;

    fn of(body: &[u8]) -> Self {
        Self(excerpt(body, Self::MAX_LEN))
    }

    /// The text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for UnexpectedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnexpectedBody({} bytes)", self.0.len())
    }
}
