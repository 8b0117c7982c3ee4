//! The error of an invalid parameter, with a message for the author of the request.

use alloc::string::String;

use super::ListCalls;
use super::list_calls::PARAMETERS;
use super::percent::Undecodable;
use crate::ParseTimestampError;
use crate::id;

/// The reason why a parameter of a request is not valid.
///
/// ```
/// use call_assistant::rest::ListCalls;
///
/// let error = ListCalls::from_query("limit=0").unwrap_err();
/// assert_eq!(error.parameter(), Some("limit"));
/// assert_eq!(error.to_string(), "limit is not from 1 to 100");
/// ```
///
/// `Display` writes the message of the `invalid_parameter` response. The message names the parameter and its
/// bounds, and never repeats the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A parameter that the operation does not have. If the service ignored a misspelled `created_after`, it
    /// would return too many calls without an error.
    #[error(
        "unknown parameter {}: expected {}",
        describe(name.as_deref(), *position),
        expected()
    )]
    #[non_exhaustive]
    Unknown {
        /// The name, if it consists of at most 32 letters, digits, `_`, `-`, `[` and `]`. Any other text is
        /// not shown, because it may be an API key.
        name: Option<String>,
        /// The position of the parameter in the query, beginning with 1.
        position: usize,
    },
    /// A repeated parameter.
    #[error("{parameter} is given more than once")]
    #[non_exhaustive]
    Repeated {
        /// The parameter.
        parameter: &'static str,
    },
    /// A parameter without a value.
    #[error("{parameter} is empty")]
    #[non_exhaustive]
    Empty {
        /// The parameter.
        parameter: &'static str,
    },
    /// A `%` that is not followed by two hex digits.
    #[error("{parameter} has broken percent-encoding: write % as %25")]
    #[non_exhaustive]
    Encoding {
        /// The parameter.
        parameter: &'static str,
    },
    /// A decoded value that is not UTF-8.
    #[error("{parameter} is not UTF-8 when percent-decoded")]
    #[non_exhaustive]
    NotUtf8 {
        /// The parameter.
        parameter: &'static str,
    },
    /// A limit that contains anything but digits, or has a leading zero.
    #[error(
        "limit is not a whole number from 1 to {} in digits, without sign, spaces or leading zeros",
        ListCalls::MAX_LIMIT
    )]
    LimitForm,
    /// A limit that is a number, but not one from 1 to 100.
    #[error("limit is not from 1 to {}", ListCalls::MAX_LIMIT)]
    LimitRange,
    /// An instant that is not RFC 3339.
    #[error("{parameter} is not an RFC 3339 instant like 2026-07-24T10:00:00Z: {error}")]
    #[non_exhaustive]
    Timestamp {
        /// The parameter.
        parameter: &'static str,
        /// The error.
        error: ParseTimestampError,
    },
    /// A `created_before` that is earlier than `created_after`.
    #[error("created_before is earlier than created_after")]
    CreatedRange,
    /// A period of `client::CallPages::from_period` that ends before it begins.
    #[error("until is earlier than from")]
    Period,
    /// A call id that is too long.
    #[error("call_id has more than {} bytes", id::MAX_ID_LEN)]
    CallIdLength,
    /// A call id of `.` or `..` in a request that a client writes. URL parsers resolve the segments `.` and
    /// `..`, even if they are percent-encoded. Therefore the request would ask for another resource.
    #[error("call_id consists of dots, which no URL can carry")]
    CallIdDots,
    /// A cursor that is too long for a URL, in a request that a client writes.
    #[error("cursor has more than {} bytes", ListCalls::MAX_CURSOR_LEN)]
    CursorLength,
}

impl ParameterError {
    /// Creates the error of an unknown parameter. The name may be any text, even an API key.
    pub(super) fn unknown(name: &str, position: usize) -> Self {
        let may_show = name.len() <= 32
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-[]".contains(&byte));
        let name = (may_show && !name.is_empty()).then(|| name.into());
        Self::Unknown { name, position }
    }

    pub(super) fn undecodable(parameter: &'static str, error: Undecodable) -> Self {
        match error {
            Undecodable::Broken => Self::Encoding { parameter },
            Undecodable::NotUtf8 => Self::NotUtf8 { parameter },
        }
    }

    /// Returns the name of the invalid parameter. Returns `None` if the parameter is unknown.
    #[must_use]
    pub fn parameter(&self) -> Option<&'static str> {
        match *self {
            Self::Unknown { .. } => None,
            Self::Repeated { parameter }
            | Self::Empty { parameter }
            | Self::Encoding { parameter }
            | Self::NotUtf8 { parameter }
            | Self::Timestamp { parameter, .. } => Some(parameter),
            Self::LimitForm | Self::LimitRange => Some("limit"),
            Self::CreatedRange => Some("created_before"),
            Self::Period => Some("until"),
            Self::CallIdLength | Self::CallIdDots => Some("call_id"),
            Self::CursorLength => Some("cursor"),
        }
    }
}

fn expected() -> String {
    match PARAMETERS {
        [others @ .., last] => alloc::format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}

fn describe(name: Option<&str>, position: usize) -> String {
    name.map_or_else(|| alloc::format!("number {position} of the query"), String::from)
}
