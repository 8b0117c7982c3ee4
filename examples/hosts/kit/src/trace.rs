//! The trace of a caller, as W3C Trace Context writes it in `traceparent`.

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
/// assert_eq!(TraceParent::parse(text).unwrap().as_str(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent(String);

impl TraceParent {
    /// Reads a text. One that is malformed is ignored, as its specification asks.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(LEN)?;
        let is_formed = known.bytes().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
        let is_zero = |id: Option<&str>| id.is_some_and(|id| id.bytes().all(|it| it == b'0'));
        let has_zeros = is_zero(known.get(3..35)) || is_zero(known.get(36..52));
        // Version 00 has no more, and a later one may have.
        let is_whole = more.is_empty() || (!known.starts_with("00") && more.starts_with('-'));
        (is_formed && !has_zeros && is_whole && !known.starts_with("ff"))
            .then(|| Self(known.to_owned()))
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the trace of a request.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(FIELD).iter();
        match (all.next(), all.next()) {
            (Some(only), None) => Self::parse(only.to_str().ok()?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

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
            assert_eq!(TraceParent::parse(&text).map(|read| read.0), expected, "{text}");
        }
    }
}
