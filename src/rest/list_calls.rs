//! The query of a list of calls, written and read.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write;

use super::call_filter::FILTERS;
use super::percent::{decode_query, encode_into};
use super::{CallFilter, ParameterError};

/// A request for a page of the account's calls, newest first: `GET /v1/calls`.
///
/// ```
/// use call_assistant::rest::{CallFilter, ListCalls};
///
/// let since = CallFilter::new().with_created_after("2026-07-24T12:00:00+02:00".parse()?);
/// let list = ListCalls::new().with_limit(100).with_filter(since);
/// assert_eq!(list.query()?, "limit=100&created_after=2026-07-24T10:00:00Z");
/// assert_eq!(ListCalls::from_query(&list.query()?), Ok(list));
///
/// // Values are checked where the request is written.
/// let error = ListCalls::new().with_limit(1_000).query().unwrap_err();
/// assert_eq!(error.to_string(), "limit is not from 1 to 100");
///
/// // `+` is a space in a query. It must be escaped, and the message says so.
/// let error = ListCalls::from_query("created_after=2026-07-24T12:00:00+02:00").unwrap_err();
/// assert!(error.to_string().contains("%2B"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ListCalls {
    /// The maximum number of calls in the response: 1 to 100. The limit may differ between the pages of a
    /// list.
    pub limit: usize,
    /// The `next_cursor` of the previous page; `None` for the first page. Only the service that
    /// made a cursor can check it.
    pub cursor: Option<String>,
    /// The filter that selects the calls. If the request has a cursor, omit each bound of the filter, or
    /// repeat the bound from the request for the first page.
    pub filter: CallFilter,
}

impl Default for ListCalls {
    /// Returns [`ListCalls::new`].
    fn default() -> Self {
        Self::new()
    }
}

impl ListCalls {
    /// The largest limit: 100.
    pub const MAX_LIMIT: usize = 100;

    /// The limit of a request without the parameter `limit`: 50.
    pub const DEFAULT_LIMIT: usize = 50;

    /// The longest cursor in a request: 8,192 bytes. A longer cursor may not fit into a URL.
    pub const MAX_CURSOR_LEN: usize = 8192;

    /// Creates a request for the first page of all calls, with at most 50 calls.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: Self::DEFAULT_LIMIT, cursor: None, filter: CallFilter::new() }
    }

    /// Sets the maximum number of calls on a page: 1 to 100.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Requests the page that begins at this cursor.
    #[must_use]
    pub fn with_cursor(self, cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..self }
    }

    /// Requests only the calls that the filter selects.
    #[must_use]
    pub fn with_filter(self, filter: CallFilter) -> Self {
        Self { filter, ..self }
    }

    /// Writes the query, without the leading `?`.
    ///
    /// The query always contains the limit. Therefore the size of a page does not depend on the server's
    /// default. Instants end in `Z`, because the `+` of an offset would be read as a space.
    ///
    /// # Errors
    /// Returns an error if the limit, the cursor or the filter is not valid.
    pub fn query(&self) -> Result<String, ParameterError> {
        if !(1..=Self::MAX_LIMIT).contains(&self.limit) {
            return Err(ParameterError::LimitRange);
        }
        self.filter.check()?;
        if self.cursor.as_ref().is_some_and(|cursor| cursor.len() > Self::MAX_CURSOR_LEN) {
            return Err(ParameterError::CursorLength);
        }
        Ok(self.unchecked_query())
    }

    pub(super) fn unchecked_query(&self) -> String {
        let Self { limit, cursor, filter } = self;
        let mut query = alloc::format!("limit={limit}");
        if let Some(cursor) = cursor {
            query.push_str("&cursor=");
            encode_into(&mut query, cursor);
        }
        for (name, value) in filter.pairs() {
            // Writing to a String does not fail.
            let _ = write!(query, "&{name}={value}");
        }
        query
    }

    /// Reads a query, without the leading `?`. If the request has no query, pass an empty text.
    ///
    /// Parameters may be in any order. Any text is accepted as a cursor, even an empty text, because the
    /// service checks the cursor later.
    ///
    /// # Errors
    /// Returns the first fault: an unknown or repeated parameter, an empty parameter other than the
    /// cursor, a malformed value, a value out of its bounds, or a `created_before` that is earlier than
    /// `created_after`.
    pub fn from_query(query: &str) -> Result<Self, ParameterError> {
        let (mut list, mut seen) = (Self::new(), [false; PARAMETERS.len()]);
        let pieces = query.split('&').filter(|piece| !piece.is_empty());
        for (position, piece) in (1..).zip(pieces) {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let decoded = decode_query(name);
            let filters = FILTERS.iter().map(|(name, read, _)| (*name, *read));
            let mut known = READERS.into_iter().chain(filters).zip(&mut seen);
            let known = known.find(|((known, _), _)| decoded.as_deref() == Ok(*known));
            let Some(((parameter, read), seen)) = known else {
                return Err(ParameterError::unknown(name, position));
            };
            if core::mem::replace(seen, true) {
                return Err(ParameterError::Repeated { parameter });
            }
            read(&mut list, parameter, value)?;
        }
        list.filter.check()?;
        Ok(list)
    }
}

pub(super) type Reader = fn(&mut ListCalls, &'static str, &str) -> Result<(), ParameterError>;

/// The parameters that are not filters, each with the reader of its value, in the protocol's order.
const READERS: [(&str, Reader); 2] = [
    ("limit", |list, name, value| limit(name, value).map(|limit| list.limit = limit)),
    ("cursor", |list, _, value| {
        // No cursor contains a `%`, so text that cannot be decoded is kept: it will not be valid.
        list.cursor = Some(decode_query(value).map_or_else(|_| value.into(), Into::into));
        Ok(())
    }),
];

#[expect(clippy::indexing_slicing, reason = "both tables together have as many entries")]
pub(super) const PARAMETERS: &[&str] = &{
    let [(limit, _), (cursor, _)] = READERS;
    let (mut names, mut at) = ([limit; READERS.len() + FILTERS.len()], 0);
    names[1] = cursor;
    while at < FILTERS.len() {
        names[READERS.len() + at] = FILTERS[at].0;
        at += 1;
    }
    names
};

fn limit(parameter: &'static str, value: &str) -> Result<usize, ParameterError> {
    let text = decoded(parameter, value)?;
    match text.as_bytes() {
        [b'0', _, ..] => Err(ParameterError::LimitForm),
        digits if digits.iter().all(u8::is_ascii_digit) => {
            // Digits that no integer holds are a number out of range too.
            let limit =
                text.parse().ok().filter(|limit| (1..=ListCalls::MAX_LIMIT).contains(limit));
            limit.ok_or(ParameterError::LimitRange)
        }
        _ => Err(ParameterError::LimitForm),
    }
}

/// Decodes a value that must not be empty.
pub(super) fn decoded<'v>(
    parameter: &'static str,
    value: &'v str,
) -> Result<Cow<'v, str>, ParameterError> {
    match decode_query(value) {
        Ok(text) if text.is_empty() => Err(ParameterError::Empty { parameter }),
        Ok(text) => Ok(text),
        Err(error) => Err(ParameterError::undecodable(parameter, error)),
    }
}
