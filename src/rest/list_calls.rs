//! The query of a list of calls, written and read.

use alloc::string::String;
use core::fmt::Write;

use super::parameter_error::UnknownName;
use super::percent::{Undecodable, decode_query, encode_into};
use super::{Operation, Parameter, ParameterError};
use crate::Timestamp;
use crate::rest::{CreatedRange, Limit};

/// `GET /v1/calls`: a page of the account's calls, newest first.
///
/// ```
/// use call_assistant::rest::ListCalls;
/// use call_assistant::rest::{Limit, CreatedRange};
///
/// let since = "2026-07-24T12:00:00+02:00".parse()?;
/// let list = ListCalls::new().with_limit(Limit::MAX).with_created(CreatedRange::new(Some(since), None)?);
/// assert_eq!(list.query(), "limit=100&created_after=2026-07-24T10:00:00Z");
/// assert_eq!(ListCalls::from_query(&list.query()), Ok(list));
///
/// let error = ListCalls::from_query("limit=1000").unwrap_err();
/// assert_eq!(error.to_string(), "limit is not from 1 to 100");
///
/// // `+` is a blank in a query: it must be escaped, and the message says so.
/// let error = ListCalls::from_query("created_after=2026-07-24T12:00:00+02:00").unwrap_err();
/// assert!(error.to_string().contains("%2B"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ListCalls {
    /// The most calls to answer with. It may change from page to page.
    pub limit: Limit,
    /// The `next_cursor` of the page before; `None` for the first page. Opaque, and unchecked here:
    /// only the service that made it can say whether it is good.
    pub cursor: Option<String>,
    /// Which calls, by `created_at`. A request with a cursor may repeat the window of the list it
    /// goes on with, or leave it out.
    pub window: CreatedRange,
}

impl ListCalls {
    /// The longest cursor that a client hands back, in bytes: it has to fit into an address.
    pub const MAX_CURSOR_LEN: usize = 8192;

    /// The first page of all calls, 50 of them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same list with at most so many calls on a page.
    #[must_use]
    pub fn with_limit(self, limit: Limit) -> Self {
        Self { limit, ..self }
    }

    /// The page that this cursor leads to.
    #[must_use]
    pub fn with_cursor(self, cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..self }
    }

    /// The same list, of the calls within these bounds.
    #[must_use]
    pub fn with_created(self, window: CreatedRange) -> Self {
        Self { window, ..self }
    }

    /// The query, without its `?`. The limit is always in it, so that the size of a page does not
    /// hang on what the service takes for granted. Instants end in `Z`: there is no `+` that
    /// could be lost on the way.
    #[must_use]
    pub fn query(&self) -> String {
        let mut query = String::new();
        // Writing to a String does not fail.
        let _ = write!(query, "{}={}", Parameter::Limit, self.limit);
        if let Some(cursor) = &self.cursor {
            let _ = write!(query, "&{}=", Parameter::Cursor);
            encode_into(&mut query, cursor);
        }
        for (parameter, bound) in [
            (Parameter::CreatedAfter, self.window.created_after()),
            (Parameter::CreatedBefore, self.window.created_before()),
        ] {
            if let Some(instant) = bound {
                let _ = write!(query, "&{parameter}={instant}");
            }
        }
        query
    }

    /// Reads a query, without its `?`; empty for a request that has none.
    ///
    /// Parameters come in any order. A cursor is taken as it is, an empty one and one that cannot
    /// be decoded included: what it is worth is decided, and answered, where cursors are.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated, empty or out of its bounds (D-5, D-6, D-8),
    /// or bounds of `created_at` in the wrong order (D-9).
    pub fn from_query(query: &str) -> Result<Self, ParameterError> {
        let mut read = Read::default();
        let pieces = query.split('&').filter(|piece| !piece.is_empty());
        for (index, piece) in pieces.enumerate() {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            read.parameter(name, value, index.saturating_add(1))?;
        }
        let window = CreatedRange::new(read.created_after, read.created_before)
            .map_err(|_| ParameterError::CreatedRange)?;
        Ok(Self { limit: read.limit.unwrap_or_default(), cursor: read.cursor, window })
    }
}

#[derive(Default)]
struct Read {
    limit: Option<Limit>,
    cursor: Option<String>,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl Read {
    fn parameter(&mut self, name: &str, value: &str, place: usize) -> Result<(), ParameterError> {
        let known = decode_query(name).ok().and_then(|name| {
            Operation::ListCalls.parameters().iter().find(|known| known.as_str() == name)
        });
        match known {
            Some(&parameter @ Parameter::Limit) => set(&mut self.limit, parameter, || limit(value)),
            Some(&parameter @ Parameter::Cursor) => {
                set(&mut self.cursor, parameter, || Ok(cursor(value)))
            }
            Some(&parameter @ Parameter::CreatedAfter) => {
                set(&mut self.created_after, parameter, || instant(parameter, value))
            }
            Some(&parameter @ Parameter::CreatedBefore) => {
                set(&mut self.created_before, parameter, || instant(parameter, value))
            }
            Some(Parameter::CallId) | None => {
                Err(ParameterError::Unknown { name: UnknownName::new(name, place) })
            }
        }
    }
}

fn set<T>(
    slot: &mut Option<T>,
    parameter: Parameter,
    read: impl FnOnce() -> Result<T, ParameterError>,
) -> Result<(), ParameterError> {
    if slot.is_some() {
        return Err(ParameterError::Repeated { parameter });
    }
    *slot = Some(read()?);
    Ok(())
}

fn limit(value: &str) -> Result<Limit, ParameterError> {
    let parameter = Parameter::Limit;
    let text = decode_query(value).map_err(|error| undecodable(parameter, error))?;
    match text.as_bytes() {
        [] => Err(ParameterError::Empty { parameter }),
        [b'0', _, ..] => Err(ParameterError::LimitForm),
        digits if digits.iter().all(u8::is_ascii_digit) => {
            // Digits that no integer holds are a number out of range too.
            let number = text.parse().map_err(|_| ParameterError::LimitRange)?;
            Limit::new(number).map_err(|_| ParameterError::LimitRange)
        }
        _ => Err(ParameterError::LimitForm),
    }
}

/// A cursor never has a `%`, so text that cannot be decoded stays as it is and cannot be good.
fn cursor(value: &str) -> String {
    decode_query(value).map_or_else(|_| value.into(), Into::into)
}

fn instant(parameter: Parameter, value: &str) -> Result<Timestamp, ParameterError> {
    let text = decode_query(value).map_err(|error| undecodable(parameter, error))?;
    if text.is_empty() {
        return Err(ParameterError::Empty { parameter });
    }
    Timestamp::parse(&text).map_err(|error| ParameterError::Timestamp { parameter, error })
}

pub(super) fn undecodable(parameter: Parameter, error: Undecodable) -> ParameterError {
    match error {
        Undecodable::Broken => ParameterError::Encoding { parameter },
        Undecodable::NotUtf8 => ParameterError::NotUtf8 { parameter },
    }
}
