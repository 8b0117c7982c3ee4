//! Refusals: finished answers, and why they were given.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Response, StatusCode};

use super::account_status::Check;
use super::cursor::CursorError;
use super::page::RowsError;
use super::rate::RateLimitError;
use crate::id::{CredentialId, IdError, RequestId};
use crate::rest::ErrorCode;
use crate::rest::Scope;
use crate::rest::{ErrorReply, Operation, ParameterError};

/// A request that is not answered with what it asked for. It is an answer already.
///
/// What the caller is told is [`into_response`](Self::into_response); what the operator should know
/// is [`cause`](Self::cause). The cause never travels: five kinds of bad key give the same bytes,
/// and nothing of a fault of the host's is shown.
///
/// ```
/// use call_assistant::id::RequestId;
/// use call_assistant::rest::server::Rejection;
///
/// // The host could not even begin.
/// let refusal = Rejection::internal_error(RequestId::from_random([1; 16]));
/// assert_eq!(refusal.cause().to_string(), "the host gave up");
/// assert_eq!(refusal.into_response().status(), 500);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{request_id}: {}: {cause}", .cause.code())]
pub struct Rejection {
    pub(super) cause: RejectionReason,
    pub(super) request_id: RequestId,
    pub(super) operation: Option<Operation>,
    pub(super) credential_id: Option<CredentialId>,
    pub(super) head_only: bool,
}

impl Rejection {
    /// The 500 of a host that fails before there is anything to hang it on. Every state of an
    /// exchange has an `internal_error` of its own, which knows more of the request.
    #[must_use]
    pub fn internal_error(request_id: RequestId) -> Self {
        let cause = RejectionReason::HostGaveUp;
        Self { cause, request_id, operation: None, credential_id: None, head_only: false }
    }

    /// Why: for the operator's log, not for the caller.
    #[must_use]
    pub fn cause(&self) -> &RejectionReason {
        &self.cause
    }

    /// What the caller is told.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.cause.code()
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.code().status().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The request it answers.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// What was asked for, where the path said so.
    #[must_use]
    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// Whose request it was, as far as that is certain.
    #[must_use]
    pub fn credential_id(&self) -> Option<&CredentialId> {
        self.credential_id.as_ref()
    }

    /// The answer, complete: to be sent as it is. Making it cannot fail.
    #[must_use]
    pub fn into_response(self) -> Response<Vec<u8>> {
        let mut reply = ErrorReply::new(self.cause.code(), self.request_id);
        if let Some(message) = self.cause.message() {
            reply = reply.with_message(message);
        }
        if let RejectionReason::RateLimited(exceeded) = self.cause {
            reply = reply.with_retry_after(exceeded.retry_after());
        }
        headless(reply.into_response(), self.head_only)
    }
}

/// The answer to a `HEAD`: that to a `GET`, `Content-Length` included, without the body.
pub(super) fn headless(mut response: Response<Vec<u8>>, head_only: bool) -> Response<Vec<u8>> {
    if head_only {
        response.body_mut().clear();
    }
    response
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectionReason {
    /// No operation has this path.
    #[error("no operation has this path")]
    UnknownPath,
    /// The path exists, the method is neither `GET` nor `HEAD`.
    #[error("the method is neither GET nor HEAD")]
    Method,
    /// There is no `Authorization` header.
    #[error("there is no Authorization header")]
    NoCredential,
    /// There is more than one `Authorization` header.
    #[error("there is more than one Authorization header")]
    SeveralCredentials,
    /// The scheme is another than `Bearer`.
    #[error("the authorization scheme is not Bearer")]
    OtherScheme,
    /// The scheme is `Bearer`, and what follows is nothing, or has a byte that no key has.
    #[error("what follows Bearer cannot be a credential")]
    MalformedCredential,
    /// No credential is stored for what was presented.
    #[error("the credential is not known")]
    UnknownCredential,
    /// The credential's time is over.
    #[error("the credential is expired")]
    ExpiredCredential,
    /// The credential was revoked.
    #[error("the credential is revoked")]
    RevokedCredential,
    /// The credential has made too many requests.
    #[error("{0}")]
    RateLimited(RateLimitError),
    /// The account is scheduled for deletion.
    #[error("the account is scheduled for deletion")]
    AccountClosing,
    /// The account has no active subscription.
    #[error("the account has no active subscription")]
    NoSubscription,
    /// The plan does not include the API.
    #[error("the plan does not include the public API")]
    PlanLacksApi,
    /// The credential lacks the scope of the operation.
    #[error("the credential lacks {0}")]
    ScopeMissing(Scope),
    /// A parameter is wrong. This one the caller is told in the same words.
    #[error("{0}")]
    Parameter(ParameterError),
    /// The cursor is not good.
    #[error("{0}")]
    Cursor(CursorError),
    /// No call can have such an id.
    #[error("no call has such an id: {0}")]
    NotAnId(IdError),
    /// The store has no such call.
    #[error("there is no such call")]
    NoSuchCall,
    /// The store has such a call, of another account or in the other mode. The caller is told that
    /// there is none (HTTP-7).
    #[error("the call is another account's or mode's")]
    NotTheirCall,
    /// The host could not do its part.
    #[error("the host gave up")]
    HostGaveUp,
    /// The host's standing, or the account it wants to answer with, is another account's.
    #[error("the host gave another account's record")]
    WrongAccount,
    /// The host's call has another id than the one asked for.
    #[error("the host gave another call than the one asked for")]
    WrongCall,
    /// A row of the host's list is another account's or of the other mode.
    #[error("row {row} of the host's list is another account's or mode's")]
    WrongOwner {
        /// The row's place among those given, from 0.
        row: usize,
    },
    /// The rows of the host's list are not those that were asked for.
    #[error("{0}")]
    Rows(RowsError),
}

impl RejectionReason {
    /// The check that failed; `None` for a fault of the host's.
    #[must_use]
    pub fn check(&self) -> Option<Check> {
        Some(match self {
            Self::UnknownPath => Check::Path,
            Self::Method => Check::Method,
            Self::NoCredential
            | Self::SeveralCredentials
            | Self::OtherScheme
            | Self::MalformedCredential
            | Self::UnknownCredential
            | Self::ExpiredCredential
            | Self::RevokedCredential => Check::Credential,
            Self::RateLimited(_) => Check::Rate,
            Self::AccountClosing => Check::Closing,
            Self::NoSubscription => Check::Subscription,
            Self::PlanLacksApi => Check::Plan,
            Self::ScopeMissing(_) => Check::Scope,
            Self::Parameter(_) => Check::Parameters,
            Self::Cursor(_) => Check::Cursor,
            Self::NotAnId(_) | Self::NoSuchCall | Self::NotTheirCall => Check::Resource,
            Self::HostGaveUp
            | Self::WrongAccount
            | Self::WrongCall
            | Self::WrongOwner { .. }
            | Self::Rows(_) => return None,
        })
    }

    /// The code that the caller is told.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.check().map_or(ErrorCode::InternalError, Check::code)
    }

    /// What is said instead of the code's own message.
    fn message(&self) -> Option<String> {
        match self {
            Self::Parameter(error) => Some(error.to_string()),
            _ => None,
        }
    }
}
