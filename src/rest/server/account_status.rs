//! What stands between a request and its answer, in the one order in which it is looked for.

use crate::id::AccountId;
use crate::rest::ErrorCode;
use crate::rest::server::Entitlements;

/// How an account stands: what of it decides whether the API answers.
///
/// Every field has to be filled in: there is nothing here that could safely be taken for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatus {
    /// Whose standing this is. That of another account is refused as a fault of the store's.
    pub account_id: AccountId,
    /// Whether the account is scheduled for deletion.
    pub closing: bool,
    /// Whether it has an active subscription.
    pub subscribed: bool,
    /// What its plan includes.
    pub plan: Entitlements,
}

/// Something a request must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The path is an operation's.
    Path,
    /// The method is `GET` or `HEAD`.
    Method,
    /// There is a credential, and it is valid.
    Credential,
    /// Its quota is not used up.
    Rate,
    /// The account is not scheduled for deletion.
    Closing,
    /// The account has an active subscription.
    Subscription,
    /// Its plan includes the API.
    Plan,
    /// The credential has the operation's scope.
    Scope,
    /// The parameters are valid.
    Parameters,
    /// The cursor is one of this service's, for this account and list.
    Cursor,
    /// The account has such a resource.
    Resource,
}

impl Check {
    /// Every check, in the order in which they are made (D-1). The first that fails is the answer.
    ///
    /// What is known without a look-up comes first; who is not known learns nothing further; and
    /// of the account's own obstacles the most final comes first, so that nobody mends the scopes
    /// of a key for an account that is being closed.
    pub const ORDER: [Self; 11] = [
        Self::Path,
        Self::Method,
        Self::Credential,
        Self::Rate,
        Self::Closing,
        Self::Subscription,
        Self::Plan,
        Self::Scope,
        Self::Parameters,
        Self::Cursor,
        Self::Resource,
    ];

    /// The code that answers a request which fails it.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Path | Self::Resource => ErrorCode::ResourceNotFound,
            Self::Method => ErrorCode::MethodNotAllowed,
            Self::Credential => ErrorCode::InvalidCredentials,
            Self::Rate => ErrorCode::RateLimitExceeded,
            Self::Closing => ErrorCode::AccountClosed,
            Self::Subscription => ErrorCode::SubscriptionInactive,
            Self::Plan => ErrorCode::PlanUpgradeRequired,
            Self::Scope => ErrorCode::InsufficientScope,
            Self::Parameters => ErrorCode::InvalidParameter,
            Self::Cursor => ErrorCode::InvalidCursor,
        }
    }
}
