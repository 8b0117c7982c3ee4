//! The fault of a JSON text and the fault's place, without quoting the text.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use core::fmt;

use serde::de::IgnoredAny;
use serde_json::error::Category;

use super::{MAX_JSON_LEN, Tracker};

/// The fault of a JSON text, with its field, line and column.
///
/// The error never contains a value of the text.
///
/// ```
/// use call_assistant::json::ParseErrorKind;
/// use call_assistant::model::Call;
///
/// let error = Call::from_json(br#"{"id":"call_1","caller":{"phone_number":47}}"#).unwrap_err();
/// assert_eq!(error.kind(), ParseErrorKind::Value);
/// assert_eq!(error.field(), Some("caller.phone_number"));
/// assert_eq!(
///     error.to_string(),
///     "caller.phone_number: expected a string at line 1 column 42",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    field: Option<Box<str>>,
    /// The fault in words, with the position.
    message: Box<str>,
    line: usize,
    column: usize,
}

/// The kind of fault in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// A text that is longer than [`MAX_JSON_LEN`] bytes.
    TooLong,
    /// A text that is not UTF-8.
    NotUtf8,
    /// A text that is not JSON, or a value that cannot be represented, such as `1e400` or
    /// `"\ud800"`.
    Syntax,
    /// A text that ends too early.
    Truncated,
    /// A missing field that is required.
    Missing,
    /// A field that is given twice.
    Duplicate,
    /// A value of the wrong type or form for its field.
    Value,
}

impl ParseError {
    /// Returns the kind of fault.
    #[must_use]
    pub fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// Returns the path of the faulty field, such as `caller.phone_number` or `data[3].started_at`.
    /// `None` means a fault of the whole text.
    ///
    /// If the fault is inside a value that this crate does not read, such as an unknown field,
    /// returns the path of the whole value. The path shows a name if the name begins with a
    /// lowercase letter, consists of at most 40 lowercase letters, digits and underscores, and is
    /// written without escapes. Any other name is shown as `?`, because it may be personal data.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Returns the line. The first line is 1. If the text is too long, returns 0.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in bytes. The first column is 1. If the text is too long, returns 0. For
    /// any other fault, 0 means the end of the previous line.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    pub(super) fn too_long(len: usize) -> Self {
        Self {
            kind: ParseErrorKind::TooLong,
            field: None,
            message: format!("text of {len} bytes, more than {MAX_JSON_LEN}").into(),
            line: 0,
            column: 0,
        }
    }

    pub(super) fn not_utf8(valid: &[u8]) -> Self {
        let (line, last) = end(valid);
        let column = last.saturating_add(1);
        let message = format!("not UTF-8 at line {line} column {column}").into();
        Self { kind: ParseErrorKind::NotUtf8, field: None, message, line, column }
    }

    pub(super) fn new(text: &str, tracker: &Tracker<'_>, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let (kind, message) = match error.classify() {
            Category::Data => {
                let (kind, reason) = tracker.fault();
                (kind, format!("{reason} at line {line} column {column}"))
            }
            // What is not JSON is described by `serde_json`, which then quotes nothing.
            Category::Eof => (ParseErrorKind::Truncated, error.to_string()),
            _ if (line, column) == end(text.as_bytes()) && ends_in_number(text) => {
                (ParseErrorKind::Truncated, error.to_string())
            }
            Category::Syntax | Category::Io => (ParseErrorKind::Syntax, error.to_string()),
        };
        Self { kind, field: tracker.path().map(Into::into), message: message.into(), line, column }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl core::error::Error for ParseError {}

/// Returns the number of a text's lines, and the length of the last line.
fn end(text: &[u8]) -> (usize, usize) {
    let mut lines = text.rsplit(|&byte| byte == b'\n');
    let last = lines.next().map_or(0, <[u8]>::len);
    (lines.count().saturating_add(1), last)
}

/// Returns whether the text ends inside a number, before a digit. If `serde_json` skips a number
/// without its last digit, it reports a malformed number.
fn ends_in_number(text: &str) -> bool {
    text.ends_with(['.', 'e', 'E', '+', '-'])
        && serde_json::from_str::<IgnoredAny>(&format!("{text}0"))
            .map_or_else(|error| error.is_eof(), |_| true)
}
