//! What is wrong with a parameter, in words for whoever wrote the request.

use core::fmt;

use super::Parameter;
use crate::ParseTimestampError;
use crate::id;
use crate::rest::Limit;

/// Why a parameter is refused. Its text is the message of the `invalid_parameter` that answers it:
/// it names the parameter and what it should be, and never repeats what stood there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The operation takes no such parameter. A misspelt `created_after` that were passed over
    /// would quietly widen the result.
    #[error("unknown parameter {name}: expected limit, cursor, created_after or created_before")]
    Unknown {
        /// The name, as far as it looks like one.
        name: UnknownName,
    },
    /// The parameter is there twice.
    #[error("{parameter} is given more than once")]
    Repeated {
        /// Which.
        parameter: Parameter,
    },
    /// The parameter is there without a value.
    #[error("{parameter} is empty")]
    Empty {
        /// Which.
        parameter: Parameter,
    },
    /// A `%` in it is not followed by two hex digits.
    #[error("{parameter} has broken percent-encoding: write % as %25")]
    Encoding {
        /// Which.
        parameter: Parameter,
    },
    /// What it decodes to is not UTF-8.
    #[error("{parameter} is not UTF-8 when percent-decoded")]
    NotUtf8 {
        /// Which.
        parameter: Parameter,
    },
    /// The limit is not a number as numbers are written here (D-6).
    #[error(
        "limit is not a whole number from {} to {} in digits, without sign, blanks or leading zeros",
        Limit::MIN,
        Limit::MAX
    )]
    LimitForm,
    /// The limit is a number, but not one from 1 to 100.
    #[error("limit is not from {} to {}", Limit::MIN, Limit::MAX)]
    LimitRange,
    /// An instant is not RFC 3339.
    #[error("{parameter} is not an RFC 3339 instant like 2026-07-24T10:00:00Z: {error}")]
    Timestamp {
        /// Which.
        parameter: Parameter,
        /// What is wrong with it.
        error: ParseTimestampError,
    },
    /// `created_before` is earlier than `created_after` (D-9).
    #[error("created_before is earlier than created_after")]
    CreatedRange,
    /// The id of the call is too long to be one.
    #[error("call_id has more than {} bytes", id::MAX_ID_LEN)]
    CallIdLength,
}

impl ParameterError {
    /// Which parameter is wrong; `None` for one that does not exist.
    #[must_use]
    pub fn parameter(&self) -> Option<Parameter> {
        match *self {
            Self::Unknown { .. } => None,
            Self::Repeated { parameter }
            | Self::Empty { parameter }
            | Self::Encoding { parameter }
            | Self::NotUtf8 { parameter }
            | Self::Timestamp { parameter, .. } => Some(parameter),
            Self::LimitForm | Self::LimitRange => Some(Parameter::Limit),
            Self::CreatedRange => Some(Parameter::CreatedBefore),
            Self::CallIdLength => Some(Parameter::CallId),
        }
    }
}

/// The name of an unknown parameter, if it looks like a name.
///
/// Anything may stand where a name should, an API key included, and this ends up in answers and
/// logs. So it is shown if it has at most 32 letters, digits, `_`, `-`, `[` and `]`, and otherwise
/// it is named by its place in the query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UnknownName {
    text: [u8; Self::MAX_LEN],
    len: usize,
    place: usize,
}

impl UnknownName {
    const MAX_LEN: usize = 32;

    pub(super) fn new(name: &str, place: usize) -> Self {
        let ours = |byte: u8| byte.is_ascii_alphanumeric() || b"_-[]".contains(&byte);
        let mut text = [0; Self::MAX_LEN];
        let len = match text.get_mut(..name.len()) {
            Some(room) if name.bytes().all(ours) => {
                room.copy_from_slice(name.as_bytes());
                name.len()
            }
            _ => 0,
        };
        Self { text, len, place }
    }

    /// The name, or nothing if it does not look like one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..self.len).unwrap_or_default();
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// Where in the query it stands, from 1.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            "" => write!(f, "number {} of the query", self.place),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
