use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use core::error::Error;
use core::fmt;

use http::StatusCode;

use super::{ResponseHead, RetryAfter};
use crate::id::{MAX_ID_LEN, RequestId};
use crate::json::{ParseError, ParseErrorKind};
use crate::rest::{ApiError, ApiResponse, ErrorCode};
use crate::secret::{excerpt, one_line};

pub(super) type Cause = Box<dyn Error + Send + Sync>;

/// The error of a request without a successful answer: the reason, and who must act.
///
/// ```
/// use call_assistant::rest::GetAccount;
/// use call_assistant::rest::client::{Action, Client, ResponseHead};
///
/// let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
/// let mut head = ResponseHead::new(403);
/// head.request_id = Some("req_1");
/// let body = br#"{"error":{"code":"plan_upgrade_required","message":"..."}}"#;
/// let error = client.read(&GetAccount, head, body).unwrap_err();
/// assert_eq!(error.action(), Action::UpgradePlan);
/// assert_eq!(error.to_string(), "service refused with 403: plan_upgrade_required (req_1)");
///
/// let error = client.read(&GetAccount, ResponseHead::new(502), b"<h1>Bad gateway</h1>");
/// assert_eq!(error.unwrap_err().action(), Action::Retry);
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// `Display` writes one line for a log, without the body of the answer. If a program has lost a part of
/// the answer before reporting the answer, the line ends with the remedy: see
/// [`Flow::report`](super::Flow::report).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientError {
    /// The status; `None` if there was no response, or if the number is not a status of HTTP. If a
    /// successful response cannot be read, the status is 200.
    pub status: Option<StatusCode>,
    /// The id to pass to support, from the header or else from the body. `None` if the service did not
    /// answer.
    pub request_id: Option<RequestId>,
    /// The value of `Retry-After`.
    pub retry_after: Option<RetryAfter>,
    /// The fault.
    pub reason: ClientErrorReason,
    excerpt: Box<str>,
    /// Whether the response came without any header.
    is_bare: bool,
}

/// The fault of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientErrorReason {
    /// A refusal of the service, with the service's own error.
    Refused(Box<ApiError>),
    /// A response that is not the service's, for example a proxy's error, a login page or a redirect.
    /// The [`excerpt`](ClientError::excerpt) is the beginning of the response. If the response is
    /// another call than the requested call, the fault is also `NotFromService`, but no part of the
    /// response is kept.
    NotFromService,
    /// A successful response that ended too early. No part of the response is kept, because the response
    /// may contain personal data.
    Truncated,
    /// A successful response in JSON that cannot be read as the requested answer.
    Unreadable(ParseError),
    /// No response, caused by a missing connection, a timeout or a broken connection. The text is
    /// the HTTP client's error: one line of at most 500 bytes. Texts that look like an API key or a
    /// signing secret are replaced.
    NoResponse(String),
}

/// Who must act on a [`ClientError`], and how.
///
/// To check a key that a customer has just entered, request
/// [`GetAccount`](crate::rest::GetAccount):
///
/// - If the request succeeds, or if the action is [`GrantScope`](Self::GrantScope),
///   [`UpgradePlan`](Self::UpgradePlan), [`ResumeSubscription`](Self::ResumeSubscription) or
///   [`AccountClosed`](Self::AccountClosed), the key is valid.
/// - If the action is [`ReplaceKey`](Self::ReplaceKey), the key is not valid.
/// - If the action is none of these actions, the request does not show whether the key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Nobody: repeat the same request after a wait, see [`Retry`](super::Retry).
    Retry,
    /// The programmer: the request is not valid. The [message](crate::rest::ApiError::message) contains
    /// the reason.
    FixRequest,
    /// The program: the cursor is no longer accepted. Restart the list with
    /// [`CallPages::restarted`](super::CallPages::restarted) or
    /// [`CallSync::restarted`](super::CallSync::restarted).
    RestartList,
    /// Nobody: there is no such call in this account.
    NotFound,
    /// The key's administrator: the key is wrong, expired or revoked.
    ReplaceKey,
    /// The key's creator: the key lacks the scope. The account and its plan are fine.
    GrantScope,
    /// The account's owner: the key is valid, but the plan does not include the API.
    UpgradePlan,
    /// The account's owner: the subscription is not active.
    ResumeSubscription,
    /// The account's owner: the account will be deleted.
    AccountClosed,
    /// The network's operator: a proxy answered, or the base URL is wrong.
    CheckRoute,
    /// The support of the service or of this program: the service and the program have incompatible
    /// versions.
    ContactSupport,
}

impl ClientError {
    /// The longest body that is read as the service's error: 64 KiB. A longer body does not come
    /// from the service.
    pub const MAX_BODY_LEN: usize = 64 * 1024;

    /// The longest [`excerpt`](Self::excerpt): 2,048 bytes of the received body.
    pub const MAX_EXCERPT_LEN: usize = 2048;

    /// Creates the error for a request without a complete response. The reason is a missing connection,
    /// a timeout or a truncated body. `cause` is the HTTP client's error, or a text.
    #[must_use]
    pub fn no_response(cause: impl Into<Cause>) -> Self {
        let cause = in_one_line(&*cause.into());
        Self {
            status: None,
            request_id: None,
            retry_after: None,
            reason: ClientErrorReason::NoResponse(cause),
            excerpt: Box::default(),
            is_bare: false,
        }
    }

    /// Returns the beginning of a body that is not the service's, for people to read. If the
    /// [`reason`](Self::reason) is not `NotFromService`, the text is empty.
    ///
    /// A body may repeat the request, so any text that looks like an API key or a signing secret is
    /// replaced. Bytes that are not UTF-8 are replaced, too. `Debug` shows the length only.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        &self.excerpt
    }

    /// Returns who must act, and how. If the service returned an error, the code of this error
    /// determines the action. If this version does not know the code, the status determines the action.
    /// The action is [`Action::Retry`] only if both the code and the status allow a retry, because a
    /// proxy may have changed the status. If the response contains no error of the service, the
    /// [`reason`](Self::reason) and the status determine the action.
    #[must_use]
    pub fn action(&self) -> Action {
        let by_status = self.status.map_or(Action::Retry, action_of_status);
        match &self.reason {
            ClientErrorReason::NoResponse(_) | ClientErrorReason::Truncated => Action::Retry,
            ClientErrorReason::Unreadable(_) => Action::ContactSupport,
            ClientErrorReason::NotFromService if by_status == Action::Retry => Action::Retry,
            ClientErrorReason::NotFromService => Action::CheckRoute,
            // Where a proxy has changed the status, both must allow another try.
            ClientErrorReason::Refused(error) => match action_of_code(&error.code) {
                Some(Action::Retry) | None => by_status,
                Some(action) => action,
            },
        }
    }

    /// Returns the remedy for a program that lost a part of the answer before reporting the answer.
    fn advice(&self) -> Option<&'static str> {
        match &self.reason {
            ClientErrorReason::NoResponse(cause) if tells_a_status(cause) => Some(
                "the HTTP client made an error of a status: report every status as an answer \
                 (ureq: http_status_as_error(false), reqwest: no error_for_status)",
            ),
            ClientErrorReason::Unreadable(error) if error.kind() == ParseErrorKind::TooLong => {
                Some("read no more than that of any answer")
            }
            _ if self.is_bare => {
                Some("the answer was reported without headers: keep them, for Retry-After and Date")
            }
            _ => None,
        }
    }

    /// Returns the code of the service's error, if the service refused the request.
    #[must_use]
    pub fn code(&self) -> Option<&ErrorCode> {
        match &self.reason {
            ClientErrorReason::Refused(error) => Some(&error.code),
            _ => None,
        }
    }
}

/// Returns the text of an error, and the texts of its sources that are not yet included.
fn in_one_line(error: &(dyn Error + 'static)) -> String {
    const MAX_LEN: usize = 500;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source
        && text.len() <= MAX_LEN
    {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    one_line(&text, MAX_LEN)
}

fn action_of_code(code: &ErrorCode) -> Option<Action> {
    Some(match code {
        ErrorCode::InvalidParameter | ErrorCode::MethodNotAllowed => Action::FixRequest,
        ErrorCode::InvalidCursor => Action::RestartList,
        ErrorCode::InvalidCredentials => Action::ReplaceKey,
        ErrorCode::SubscriptionInactive => Action::ResumeSubscription,
        ErrorCode::InsufficientScope => Action::GrantScope,
        ErrorCode::PlanUpgradeRequired => Action::UpgradePlan,
        ErrorCode::AccountClosed => Action::AccountClosed,
        ErrorCode::ResourceNotFound => Action::NotFound,
        ErrorCode::RateLimitExceeded | ErrorCode::InternalError => Action::Retry,
        ErrorCode::Other(_) => return None,
    })
}

fn action_of_status(status: StatusCode) -> Action {
    match status {
        StatusCode::BAD_REQUEST => Action::FixRequest,
        StatusCode::UNAUTHORIZED => Action::ReplaceKey,
        StatusCode::NOT_FOUND => Action::NotFound,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
            Action::Retry
        }
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => {
            Action::ContactSupport
        }
        _ if status.is_server_error() => Action::Retry,
        _ => Action::ContactSupport,
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_ref().map_or("without a status", StatusCode::as_str);
        match &self.reason {
            ClientErrorReason::Refused(error) => {
                write!(f, "service refused with {status}: {}", error.code)?;
            }
            ClientErrorReason::NotFromService => {
                write!(f, "response {status} is not the service's")?;
            }
            ClientErrorReason::Truncated => f.write_str("response is truncated")?,
            ClientErrorReason::Unreadable(error) => {
                write!(f, "response cannot be read: {error}")?;
            }
            ClientErrorReason::NoResponse(cause) if cause.is_empty() => {
                f.write_str("no response")?;
            }
            ClientErrorReason::NoResponse(cause) => write!(f, "no response: {cause}")?,
        }
        if let Some(id) = &self.request_id {
            write!(f, " ({id})")?;
        }
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientError")
            .field("status", &self.status)
            .field("request_id", &self.request_id)
            .field("retry_after", &self.retry_after)
            .field("reason", &self.reason)
            .field("excerpt", &format_args!("{} bytes", self.excerpt.len()))
            .finish_non_exhaustive()
    }
}

impl Error for ClientError {}

/// Returns whether the HTTP client's error contains a status, such as `http status: 401`.
fn tells_a_status(cause: &str) -> bool {
    let cause = cause.to_ascii_lowercase();
    let is_status = |word: &str| {
        word.len() == 3 && word.parse::<u16>().is_ok_and(|number| (300..600).contains(&number))
    };
    // A proxy's refusal of a tunnel is no answer.
    !cause.contains("proxy")
        && !cause.contains("tunnel")
        && cause.split_once("status").is_some_and(|(_, after)| {
            after.split(|c: char| !c.is_ascii_alphanumeric()).any(is_status)
        })
}

/// Reads a whole response. Only 200 is a success, because the API has no other 2xx.
pub(super) fn read<A: ApiResponse>(
    head: ResponseHead<'_>,
    body: &[u8],
    is_awaited: impl Fn(&A) -> bool,
) -> Result<A, ClientError> {
    let status = head.status_code();
    let (reason, shown) = match status {
        Some(StatusCode::OK) => match (A::READ)(body) {
            Ok(answer) if is_awaited(&answer) => return Ok(answer),
            Ok(_) => (ClientErrorReason::NotFromService, &b""[..]),
            Err(error) => (ClientErrorReason::of_success(body, error), body),
        },
        _ => (ClientErrorReason::of_refusal(body), body),
    };
    let excerpt = match reason {
        ClientErrorReason::NotFromService => excerpt(shown, ClientError::MAX_EXCERPT_LEN).into(),
        _ => Box::default(),
    };
    let own_id = match &reason {
        ClientErrorReason::Refused(error) => error.request_id.clone(),
        _ => None,
    };
    let after = head.retry_after.and_then(RetryAfter::parse);
    Err(ClientError {
        status,
        // It is shown everywhere, so it must not be a secret that somebody sent back.
        request_id: head
            .request_id
            .filter(|id| one_line(id, MAX_ID_LEN) == *id)
            .and_then(|id| RequestId::parse(id).ok())
            .or(own_id),
        retry_after: after.map(|after| match head.date {
            Some(date) => after.relative_to(date),
            None => after,
        }),
        reason,
        excerpt,
        is_bare: head.is_bare(),
    })
}

impl ClientErrorReason {
    /// Returns the fault of a response 200 that cannot be read.
    fn of_success(body: &[u8], error: ParseError) -> Self {
        let object = body.trim_ascii_start().first() == Some(&b'{');
        // The body may also end within a character.
        let cut = core::str::from_utf8(body).is_err_and(|error| error.error_len().is_none());
        match error.kind() {
            ParseErrorKind::Truncated => Self::Truncated,
            ParseErrorKind::NotUtf8 if cut => Self::Truncated,
            // Whatever it is, it may hold callers' data, so it is not shown.
            _ if object => Self::Unreadable(error),
            _ => Self::NotFromService,
        }
    }

    /// Returns the fault of a response with any other status than 200.
    fn of_refusal(body: &[u8]) -> Self {
        if body.len() <= ClientError::MAX_BODY_LEN
            && let Ok(error) = ApiError::from_json(body)
        {
            return Self::Refused(Box::new(error));
        }
        Self::NotFromService
    }
}
