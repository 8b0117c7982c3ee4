//! The trace of a caller, as W3C Trace Context writes it in `traceparent`.

use std::fmt;
use std::str::FromStr;

use http::HeaderMap;

/// The field of a request's head.
const FIELD: &str = "traceparent";

/// The length of version 00, with which each later version begins: 55 bytes.
const LEN: usize = 55;

/// A `traceparent`: a version, the trace, the caller's span in it, and flags.
///
/// ```
/// use host::trace::TraceParent;
///
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// assert_eq!(text.parse::<TraceParent>()?.to_string(), text);
/// # Ok::<(), host::trace::NotATraceParent>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent(String);

/// The error for a text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "traceparent: expected 00-{{32 hexadecimal digits}}-{{16}}-{{2}} in lower case, not all zeros"
)]
pub struct NotATraceParent;

impl FromStr for TraceParent {
    type Err = NotATraceParent;

    fn from_str(text: &str) -> Result<Self, NotATraceParent> {
        let (known, more) = text.split_at_checked(LEN).ok_or(NotATraceParent)?;
        let mut parts = known.split('-');
        let version = digits(parts.next(), 2)?;
        for len in [32, 16] {
            let id = digits(parts.next(), len)?;
            if id.bytes().all(|digit| digit == b'0') {
                return Err(NotATraceParent);
            }
        }
        digits(parts.next(), 2)?;
        // Version 00 has no more, and a later one may have.
        let is_whole = more.is_empty() || (version != "00" && more.starts_with('-'));
        match version != "ff" && is_whole && parts.next().is_none() {
            true => Ok(Self(known.to_owned())),
            false => Err(NotATraceParent),
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TraceParent {
    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the trace of a request. One that is malformed is ignored, as its specification asks.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(FIELD).iter();
        match (all.next(), all.next()) {
            (Some(only), None) => only.to_str().ok()?.parse().ok(),
            _ => None,
        }
    }
}

fn digits(part: Option<&str>, len: usize) -> Result<&str, NotATraceParent> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    part.filter(|part| part.len() == len && part.bytes().all(is_digit)).ok_or(NotATraceParent)
}

#[cfg(test)]
mod tests {
    use super::{NotATraceParent, TraceParent};

    #[test]
    fn what_is_a_traceparent() {
        const SPAN: &str = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (text, expected) in [
            (format!("00-{SPAN}"), Some(format!("00-{SPAN}"))),
            (format!("cc-{SPAN}-more"), Some(format!("cc-{SPAN}"))),
            (format!("cc-{SPAN}more"), None),
            (format!("00-{SPAN}-more"), None),
            (format!("ff-{SPAN}"), None),
            (format!("00-{}", SPAN.to_uppercase()), None),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
            (format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16)), None),
            (format!("00-{}", SPAN.replace('-', "_")), None),
            (format!("00{SPAN}-"), None),
            ("\u{e9}".repeat(40), None),
            (String::new(), None),
        ] {
            let read = text.parse::<TraceParent>().map(|read| read.to_string());
            assert_eq!(read, expected.ok_or(NotATraceParent), "{text}");
        }
    }
}
