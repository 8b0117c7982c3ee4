//! Strict percent-encoding. Every URL parser decodes an encoded text to the original text. Ambiguous text is
//! rejected.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// The reason why a text cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// A `%` that is not followed by two hex digits.
    Broken,
    /// Bytes that are not UTF-8 when decoded.
    NotUtf8,
}

/// Appends a text, and encodes all characters that RFC 3986 does not call unreserved.
pub(super) fn encode_into(target: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(target, "%{byte:02X}");
        }
    }
}

/// Decodes a segment of a path exactly once.
pub(super) fn decode_segment(text: &str) -> Result<Cow<'_, str>, Undecodable> {
    decode(text, false)
}

/// Decodes a name or a value of a query, where `+` is a space.
pub(super) fn decode_query(text: &str) -> Result<Cow<'_, str>, Undecodable> {
    decode(text, true)
}

fn decode(text: &str, plus: bool) -> Result<Cow<'_, str>, Undecodable> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => break,
            [b'%', high, low, after @ ..] => {
                let (high, low) = (value(*high)?, value(*low)?);
                decoded.push(high << 4 | low);
                rest = after;
            }
            [b'%', ..] => return Err(Undecodable::Broken),
            [byte, after @ ..] => {
                decoded.push(if plus && *byte == b'+' { b' ' } else { *byte });
                rest = after;
            }
        }
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| Undecodable::NotUtf8)
}

fn value(digit: u8) -> Result<u8, Undecodable> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(Undecodable::Broken)
}
