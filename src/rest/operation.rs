//! The table of operations, and the routing of a path to its operation.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use http::Method;

use super::list_calls;
use super::percent::decode_segment;
use crate::rest::{ErrorCode, Quota, Scope};

/// An operation of the API, with its path, scope, quota and errors.
///
/// ```
/// use call_assistant::rest::Operation;
///
/// let operation = Operation::from_path("/v1/calls/call_8fK2").unwrap();
/// assert_eq!(operation.path(), "/v1/calls/{call_id}");
/// assert_eq!(operation.scope().as_str(), "calls:read");
/// assert_eq!(operation.quota().per_minute(), 600);
/// ```
///
/// Routing, authorisation, rate limits and the client all use this enum. No operation writes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// The account of a key. The response also shows whether the key is valid.
    GetAccount,
    /// The account's calls, newest first.
    ListCalls,
    /// One call.
    GetCall,
}

impl Operation {
    /// All operations.
    pub const ALL: &'static [Self] = &[Self::GetAccount, Self::ListCalls, Self::GetCall];

    /// The methods that every path allows, in the form of the `Allow` header. The response to `HEAD` is the
    /// response to `GET` without the body.
    pub const ALLOW: &'static str = "GET, HEAD";

    /// Returns a name for logs and metrics: the `operationId` of the OpenAPI document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetAccount => "get_account",
            Self::ListCalls => "list_calls",
            Self::GetCall => "get_call",
        }
    }

    /// Returns the method of the operation's requests.
    #[must_use]
    pub const fn method(self) -> Method {
        Method::GET
    }

    /// Returns the path below the base URL, with its parameter in braces.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::GetAccount => "/v1/account",
            Self::ListCalls => "/v1/calls",
            Self::GetCall => "/v1/calls/{call_id}",
        }
    }

    /// Returns the names of the parameters. `call_id` is in the path. All other parameters are in the query.
    ///
    /// ```
    /// use call_assistant::rest::Operation;
    ///
    /// assert_eq!(Operation::GetCall.parameters(), ["call_id"]);
    /// ```
    #[must_use]
    pub const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::GetAccount => &[],
            Self::ListCalls => list_calls::PARAMETERS,
            Self::GetCall => &["call_id"],
        }
    }

    /// Returns the scope that a credential needs.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::GetAccount => Scope::AccountRead,
            Self::ListCalls | Self::GetCall => Scope::CallsRead,
        }
    }

    /// Returns the quota that requests of this operation count against.
    #[must_use]
    pub const fn quota(self) -> Quota {
        match self {
            Self::GetAccount => Quota::ACCOUNT,
            Self::ListCalls | Self::GetCall => Quota::READS,
        }
    }

    /// Returns the possible error codes, in the order of the checks.
    ///
    /// The list omits two errors that do not depend on the operation: `method_not_allowed`, and the
    /// `invalid_parameter` of a bad `Host` header.
    #[must_use]
    pub fn errors(self) -> Vec<ErrorCode> {
        let is_possible = |code: &ErrorCode| match code {
            ErrorCode::InvalidParameter => self != Self::GetAccount,
            ErrorCode::InvalidCursor => self == Self::ListCalls,
            ErrorCode::ResourceNotFound => self == Self::GetCall,
            _ => true,
        };
        CHECKED.into_iter().filter(is_possible).collect()
    }

    /// Finds the operation of a path. Pass the path below the base URL, still percent-encoded and without
    /// the query. Returns `None` if no operation has the path, for example because the path ends in a slash.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        route(path).map(|(operation, _)| operation)
    }
}

/// The codes of all operations, in the order of the checks.
const CHECKED: [ErrorCode; 10] = [
    ErrorCode::InvalidCredentials,
    ErrorCode::RateLimitExceeded,
    ErrorCode::AccountClosed,
    ErrorCode::SubscriptionInactive,
    ErrorCode::PlanUpgradeRequired,
    ErrorCode::InsufficientScope,
    ErrorCode::InvalidParameter,
    ErrorCode::InvalidCursor,
    ErrorCode::ResourceNotFound,
    ErrorCode::InternalError,
];

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Finds the operation of a path, and the segment in place of `{call_id}`. The segment is still
/// percent-encoded. If the path has no parameter, the segment is empty.
///
/// The function splits the raw path into segments before each segment is decoded. Therefore a `%2F` within
/// an id is part of the id.
pub(super) fn route(path: &str) -> Option<(Operation, &str)> {
    let mut segments = path.strip_prefix('/')?.split('/');
    if !is(segments.next()?, "v1") {
        return None;
    }
    let collection = segments.next()?;
    let route = match segments.next() {
        None if is(collection, "account") => (Operation::GetAccount, ""),
        None if is(collection, "calls") => (Operation::ListCalls, ""),
        Some(id) if !id.is_empty() && is(collection, "calls") => (Operation::GetCall, id),
        _ => return None,
    };
    segments.next().is_none().then_some(route)
}

fn is(segment: &str, name: &str) -> bool {
    segment == name || decode_segment(segment) == Ok(Cow::Borrowed(name))
}
