//! Rejections: complete error responses, and their reasons.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::call_row::RowsReason;
use super::cursor::CursorError;
use super::rate::RateLimitError;
use crate::TextError;
use crate::id::{CredentialId, RequestId};
use crate::rest::response::response;
use crate::rest::{ApiError, ErrorCode, Operation, ParameterError, Scope};

/// A rejected request: a complete error response, and the reason for the operator's log.
///
/// ```
/// use call_assistant::id::RequestId;
/// use call_assistant::rest::server::Rejection;
///
/// let rejection = Rejection::internal_error(RequestId::from_random([1; 16]));
/// assert_eq!(rejection.reason().to_string(), "the host failed");
/// assert_eq!(rejection.into_response().status(), 500);
/// ```
///
/// If the `Host` header or a parameter is not valid, or a scope is missing, the message of the response
/// contains the reason. Other rejections have the error code's default message. All unusable keys get the
/// same response, except for the request id. No response reveals a fault inside the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{request_id}: {}: {reason}", .reason.code())]
pub struct Rejection {
    pub(super) reason: RejectionReason,
    pub(super) request_id: RequestId,
    pub(super) operation: Option<Operation>,
    pub(super) credential_id: Option<CredentialId>,
    pub(super) head_only: bool,
}

impl Rejection {
    /// Creates the rejection with 500, for a host that fails before [`Received::new`](super::Received::new).
    /// After `Received::new`, use the `internal_error` of the current state, which records more about the
    /// request.
    #[must_use]
    pub fn internal_error(request_id: RequestId) -> Self {
        let reason = RejectionReason::Internal;
        Self { reason, request_id, operation: None, credential_id: None, head_only: false }
    }

    /// Returns the reason, which is for the operator's log, not for the customer.
    #[must_use]
    pub fn reason(&self) -> &RejectionReason {
        &self.reason
    }

    /// Returns the error code of the response.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.reason.code()
    }

    /// Returns the status of the response.
    #[must_use]
    #[expect(clippy::expect_used, reason = "`RejectionReason::code` returns known codes only")]
    pub fn status(&self) -> StatusCode {
        self.code().status().expect("every known code has a status")
    }

    /// Returns the id of the request.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Returns the operation, if the path was recognised.
    #[must_use]
    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// Returns the id of the credential, if the request has a valid credential.
    #[must_use]
    pub fn credential_id(&self) -> Option<&CredentialId> {
        self.credential_id.as_ref()
    }

    /// Writes the complete response. Send the response unchanged.
    #[must_use]
    pub fn into_response(self) -> Response<Vec<u8>> {
        let mut error = ApiError::new(self.code(), self.request_id.clone());
        if let Some(message) = self.reason.message() {
            error.message = message;
        }
        let mut response = response(self.status(), &self.request_id, error.to_json());
        let header = match &self.reason {
            RejectionReason::RateLimited(error) => {
                Some((RETRY_AFTER, HeaderValue::from(error.retry_after())))
            }
            RejectionReason::Method => Some((ALLOW, HeaderValue::from_static(Operation::ALLOW))),
            // Nothing more: what is wrong with a credential is for its owner to find out.
            _ if error.code == ErrorCode::InvalidCredentials => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
            _ => None,
        };
        response.headers_mut().extend(header);
        headless(response, self.head_only)
    }
}

/// Turns the response to a `GET` into the response to a `HEAD`: keeps `Content-Length`, and removes
/// the body.
pub(super) fn headless(mut response: Response<Vec<u8>>, head_only: bool) -> Response<Vec<u8>> {
    if head_only {
        response.body_mut().clear();
    }
    response
}

/// The reason why a request was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectionReason {
    /// No `Host` header.
    #[error("the Host header is missing")]
    NoHost,
    /// More than one `Host` header.
    #[error("there is more than one Host header")]
    SeveralHosts,
    /// A `Host` header that is not a host with an optional port.
    #[error("the Host header is malformed")]
    MalformedHost,
    /// A path that no operation has.
    #[error("no operation has this path")]
    UnknownPath,
    /// A method other than `GET` and `HEAD`.
    #[error("the method is neither GET nor HEAD")]
    Method,
    /// No `Authorization` header.
    #[error("there is no Authorization header")]
    NoCredential,
    /// More than one `Authorization` header.
    #[error("there is more than one Authorization header")]
    SeveralCredentials,
    /// A scheme other than `Bearer`.
    #[error("the authorization scheme is not Bearer")]
    OtherScheme,
    /// A credential after `Bearer` that is empty, or has a byte that no key has.
    #[error("the text after Bearer cannot be a credential")]
    MalformedCredential,
    /// A credential that the store does not have.
    #[error("the credential is not known")]
    UnknownCredential,
    /// An expired credential.
    #[error("the credential is expired")]
    ExpiredCredential,
    /// A revoked credential.
    #[error("the credential is revoked")]
    RevokedCredential,
    /// A credential that has used up its quota, or that found no free slot in the table of windows.
    #[error("{0}")]
    RateLimited(RateLimitError),
    /// An account that is scheduled for deletion.
    #[error("the account is scheduled for deletion")]
    AccountClosing,
    /// An account without an active subscription.
    #[error("the account has no active subscription")]
    NoSubscription,
    /// A plan that does not include the API.
    #[error("the plan does not include the public API")]
    PlanLacksApi,
    /// The scope of the operation, which the credential lacks. The response names the scope.
    #[error("the credential lacks {0}")]
    ScopeMissing(Scope),
    /// A parameter that is not valid. The message of the response has the text of this reason.
    #[error("{0}")]
    Parameter(ParameterError),
    /// A cursor that is not valid.
    #[error("{0}")]
    Cursor(CursorError),
    /// A text in the path that cannot be the id of a call.
    #[error("no call has such an id: {0}")]
    NotAnId(TextError),
    /// A call that the store does not have.
    #[error("there is no such call")]
    NoSuchCall,
    /// A call of another account or mode. The response is the same as for an unknown call.
    #[error("the call is another account's or mode's")]
    NotTheirCall,
    /// A failure of the host, such as a look-up that failed.
    #[error("the host failed")]
    Internal,
    /// A status or a record from the host that belongs to another account.
    #[error("the host gave another account's record")]
    WrongAccount,
    /// A call from the host, with another id than the requested id.
    #[error("the host gave another call than the one asked for")]
    WrongCall,
    /// Rows from the host that do not match the query.
    #[error("{0}")]
    Rows(RowsReason),
}

impl RejectionReason {
    /// Returns the error code of the response.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoHost | Self::SeveralHosts | Self::MalformedHost | Self::Parameter(_) => {
                ErrorCode::InvalidParameter
            }
            Self::Method => ErrorCode::MethodNotAllowed,
            Self::NoCredential
            | Self::SeveralCredentials
            | Self::OtherScheme
            | Self::MalformedCredential
            | Self::UnknownCredential
            | Self::ExpiredCredential
            | Self::RevokedCredential => ErrorCode::InvalidCredentials,
            Self::RateLimited(_) => ErrorCode::RateLimitExceeded,
            Self::AccountClosing => ErrorCode::AccountClosed,
            Self::NoSubscription => ErrorCode::SubscriptionInactive,
            Self::PlanLacksApi => ErrorCode::PlanUpgradeRequired,
            Self::ScopeMissing(_) => ErrorCode::InsufficientScope,
            Self::Cursor(_) => ErrorCode::InvalidCursor,
            Self::UnknownPath | Self::NotAnId(_) | Self::NoSuchCall | Self::NotTheirCall => {
                ErrorCode::ResourceNotFound
            }
            Self::Internal | Self::WrongAccount | Self::WrongCall | Self::Rows(_) => {
                ErrorCode::InternalError
            }
        }
    }

    /// Returns the message of the response, if the code's default message is too general.
    fn message(&self) -> Option<String> {
        match self {
            Self::NoHost => Some("Host is missing".into()),
            Self::SeveralHosts => Some("Host is given more than once".into()),
            Self::MalformedHost => Some("Host is not a host with an optional port".into()),
            Self::Parameter(error) => Some(error.to_string()),
            Self::ScopeMissing(scope) => {
                Some(alloc::format!("The API key lacks the scope {scope}."))
            }
            _ => None,
        }
    }
}
