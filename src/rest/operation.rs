//! The table of operations, and the way from a path to one of them.

use alloc::borrow::Cow;
use core::fmt;

use http::Method;

use super::percent::decode_segment;
use crate::rest::ErrorCode;
use crate::rest::Quota;
use crate::rest::Scope;

/// One of the operations there are. The API has no others, and none that writes.
///
/// Everything that is fixed about an operation stands here: routing, authorisation, rate limits,
/// the client and the OpenAPI document all read this table.
///
/// ```
/// use call_assistant::rest::Operation;
///
/// let operation = Operation::of_path("/v1/calls/call_8fK2").unwrap();
/// assert_eq!(operation.path(), "/v1/calls/{call_id}");
/// assert_eq!(operation.scope().as_str(), "calls:read");
/// assert_eq!(operation.quota().per_minute(), 600);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Validate a key and read its account.
    GetAccount,
    /// List the account's calls, newest first.
    ListCalls,
    /// Retrieve one call.
    GetCall,
}

impl Operation {
    /// All operations, in the specification's order.
    pub const ALL: [Self; 3] = [Self::GetAccount, Self::ListCalls, Self::GetCall];

    /// The methods that every path takes, as the `Allow` header writes them. `HEAD` is answered as
    /// `GET` without the body (D-3).
    pub const ALLOW: &'static str = "GET, HEAD";

    /// A name for logs and metrics, which is also the `operationId` of the OpenAPI document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetAccount => "get_account",
            Self::ListCalls => "list_calls",
            Self::GetCall => "get_call",
        }
    }

    /// The method to ask with.
    #[must_use]
    pub const fn method(self) -> Method {
        Method::GET
    }

    /// The path below the base address, with its parameter in braces.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::GetAccount => "/v1/account",
            Self::ListCalls => "/v1/calls",
            Self::GetCall => "/v1/calls/{call_id}",
        }
    }

    /// The parameters it takes.
    #[must_use]
    pub const fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::GetAccount => &[],
            Self::ListCalls => &[
                Parameter::Limit,
                Parameter::Cursor,
                Parameter::CreatedAfter,
                Parameter::CreatedBefore,
            ],
            Self::GetCall => &[Parameter::CallId],
        }
    }

    /// The scope a credential must have.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::GetAccount => Scope::AccountRead,
            Self::ListCalls | Self::GetCall => Scope::CallsRead,
        }
    }

    /// The quota that its requests count against.
    #[must_use]
    pub const fn quota(self) -> Quota {
        match self {
            Self::GetAccount => Quota::ACCOUNT,
            Self::ListCalls | Self::GetCall => Quota::READS,
        }
    }

    /// The codes it may be refused with, in the order in which they are looked for.
    /// `method_not_allowed` is not among them: it refuses a path, not an operation.
    #[must_use]
    pub const fn errors(self) -> &'static [ErrorCode] {
        use ErrorCode as C;
        match self {
            Self::GetAccount => &[
                C::InvalidCredentials,
                C::RateLimitExceeded,
                C::AccountClosed,
                C::SubscriptionInactive,
                C::PlanUpgradeRequired,
                C::InsufficientScope,
                C::InternalError,
            ],
            Self::ListCalls => &[
                C::InvalidCredentials,
                C::RateLimitExceeded,
                C::AccountClosed,
                C::SubscriptionInactive,
                C::PlanUpgradeRequired,
                C::InsufficientScope,
                C::InvalidParameter,
                C::InvalidCursor,
                C::InternalError,
            ],
            Self::GetCall => &[
                C::InvalidCredentials,
                C::RateLimitExceeded,
                C::AccountClosed,
                C::SubscriptionInactive,
                C::PlanUpgradeRequired,
                C::InsufficientScope,
                C::InvalidParameter,
                C::ResourceNotFound,
                C::InternalError,
            ],
        }
    }

    /// The operation behind a path below the base address, as it came: still percent-encoded, and
    /// without the query. `None` for every other path, one with a slash at its end included.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        Route::find(path).map(|route| route.operation)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A parameter of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// The most calls a page may hold.
    Limit,
    /// Where to go on with a list.
    Cursor,
    /// Only calls written at this instant or later.
    CreatedAfter,
    /// Only calls written before this instant.
    CreatedBefore,
    /// Which call: the one parameter that stands in a path.
    CallId,
}

impl Parameter {
    /// The name as it travels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Cursor => "cursor",
            Self::CreatedAfter => "created_after",
            Self::CreatedBefore => "created_before",
            Self::CallId => "call_id",
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a path leads: the operation, and what stands in the place of `{call_id}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route<'p> {
    pub(super) operation: Operation,
    /// Still percent-encoded; empty where the path has no parameter.
    pub(super) segment: &'p str,
}

impl<'p> Route<'p> {
    /// The raw path is split first and each segment decoded once (D-7), so a `%2F` within an id is
    /// part of the id.
    pub(super) fn find(path: &'p str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        if !is(segments.next()?, "v1") {
            return None;
        }
        let collection = segments.next()?;
        let (operation, segment) = match segments.next() {
            None if is(collection, "account") => (Operation::GetAccount, ""),
            None if is(collection, "calls") => (Operation::ListCalls, ""),
            Some(segment) if !segment.is_empty() && is(collection, "calls") => {
                (Operation::GetCall, segment)
            }
            _ => return None,
        };
        segments.next().is_none().then_some(Self { operation, segment })
    }
}

fn is(segment: &str, name: &str) -> bool {
    segment == name || decode_segment(segment) == Ok(Cow::Borrowed(name))
}
