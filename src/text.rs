//! Short texts: why one is refused, the same for all that is parsed from one, and a place to write
//! one without allocating.

use core::fmt;

/// Says why a text is not an id, an API key, a signing secret, a base URL, a version or a name. It
/// never holds the text, which may be a secret.
///
/// ```
/// use call_assistant::TextReason;
/// use call_assistant::webhook::SigningSecret;
///
/// let error = SigningSecret::parse("whsec_abc\n").unwrap_err();
/// assert_eq!(error.to_string(), "signing secret has a byte at 9 that is not visible ASCII");
/// assert_eq!(error.reason(), TextReason::Character { at: 9 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError {
    what: &'static str,
    reason: TextReason,
    expected: &'static str,
}

/// Classifies what is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextReason {
    /// The text is empty.
    Empty,
    /// The text is too long.
    TooLong {
        /// The length, in bytes.
        len: usize,
        /// The longest length that is accepted, in bytes.
        max: usize,
    },
    /// The text does not begin with its prefix.
    Prefix,
    /// Nothing follows the prefix.
    PrefixOnly,
    /// A byte is not allowed: often a space, a line end or a typographic quote.
    Character {
        /// The byte's position, from 0.
        at: usize,
    },
    /// The text does not have the form of its kind: the message says why.
    Form,
}

impl TextError {
    /// Returns what is wrong.
    #[must_use]
    pub const fn reason(&self) -> TextReason {
        self.reason
    }

    /// What is parsed, what is wrong with it, and what would be right.
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

/// Text, or other bytes, of a known greatest length, in place.
#[derive(Clone, Copy)]
pub(crate) struct FixedText<const MAX: usize> {
    bytes: [u8; MAX],
    len: usize,
}

#[expect(clippy::expect_used, reason = "`MAX` is the length of the longest text")]
impl<const MAX: usize> FixedText<MAX> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; MAX], len: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Makes room for bytes to be written.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let (_, free) = self.bytes.split_at_mut(self.len);
        self.len = self.len.wrapping_add(len);
        free.get_mut(..len).expect("no text is longer than `MAX`")
    }

    /// Drops as many bytes from the end.
    pub(crate) fn shorten(&mut self, by: usize) {
        self.len = self.len.saturating_sub(by);
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        let (written, _) = self.bytes.split_at(self.len);
        written
    }

    /// For those that push text only.
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("nothing but text was pushed")
    }
}

impl<const MAX: usize> fmt::Write for FixedText<MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
