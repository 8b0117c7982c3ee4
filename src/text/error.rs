//! The error of all types that are parsed from a text.

use core::fmt;

/// The reason why a text is not a valid id, API key, signing secret, base URL, version or name. The
/// error never contains the text, which may be a secret.
///
/// ```
/// use call_assistant::TextReason;
/// use call_assistant::webhook::SigningSecret;
///
/// let error = SigningSecret::parse("whsec_abc\n").unwrap_err();
/// assert_eq!(error.to_string(), "signing secret has a byte at 9 that is not visible ASCII");
/// assert!(matches!(error.reason(), TextReason::Character { at: 9, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError {
    what: &'static str,
    reason: TextReason,
    expected: &'static str,
}

/// The kind of fault in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextReason {
    /// An empty text.
    Empty,
    /// A text that is too long.
    #[non_exhaustive]
    TooLong {
        /// The length, in bytes.
        len: usize,
        /// The maximum length, in bytes.
        max: usize,
    },
    /// A text without the required prefix.
    Prefix,
    /// A prefix that nothing follows.
    PrefixOnly,
    /// A byte that is not allowed: often a space, a line end or a typographic quote.
    #[non_exhaustive]
    Character {
        /// The byte's position. The first byte has position 0.
        at: usize,
    },
    /// A text that does not have the form of its kind. The error message gives the reason.
    Form,
}

impl TextError {
    /// Returns the kind of fault.
    #[must_use]
    pub const fn reason(&self) -> TextReason {
        self.reason
    }

    /// Creates an error from the kind of text, its fault, and the right form.
    pub(crate) const fn new(
        what: &'static str,
        reason: TextReason,
        expected: &'static str,
    ) -> Self {
        Self { what, reason, expected }
    }
}

// Written out: thiserror would bring six packages into the bare crate.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reason, expected } = self;
        match reason {
            TextReason::Empty => write!(f, "{what} is empty"),
            TextReason::TooLong { len, max } => {
                write!(f, "{what} has {len} bytes, more than {max}")
            }
            TextReason::Prefix => write!(f, "{what} does not begin with {expected}"),
            TextReason::PrefixOnly => write!(f, "{what} has nothing after {expected}"),
            TextReason::Character { at } => {
                write!(f, "{what} has a byte at {at} that is not {expected}")
            }
            TextReason::Form => write!(f, "{what} {expected}"),
        }
    }
}

impl core::error::Error for TextError {}

/// Checks that a text has at most this many bytes.
pub(crate) fn check_len(what: &'static str, text: &str, max: usize) -> Result<(), TextError> {
    match text.len() {
        len if len > max => Err(TextError::new(what, TextReason::TooLong { len, max }, "")),
        _ => Ok(()),
    }
}

/// Checks that a text is not empty.
pub(crate) fn check_present(what: &'static str, text: &str) -> Result<(), TextError> {
    if text.is_empty() { Err(TextError::new(what, TextReason::Empty, "")) } else { Ok(()) }
}

/// Checks that all characters are visible ASCII, which headers, paths and logs carry unchanged.
pub(crate) fn check_visible(what: &'static str, text: &str) -> Result<(), TextError> {
    match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
        Some(at) => Err(TextError::new(what, TextReason::Character { at }, "visible ASCII")),
        None => Ok(()),
    }
}
