//! What may have happened to the body on its way to the handler.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::rewrite::JsonForm;
use super::target::decode_base64;

/// How the body at hand differs from what was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyChange {
    /// A line end was added at its end.
    LineEndAdded,
    /// A line end was lost at its end.
    LineEndLost,
    /// Blanks or line ends were added around it.
    BlanksAdded,
    /// Line ends were turned from LF into CR LF.
    LineEndsToCrLf,
    /// Line ends were turned from CR LF into LF.
    LineEndsToLf,
    /// A byte order mark was added.
    ByteOrderMarkAdded,
    /// A byte order mark was lost.
    ByteOrderMarkLost,
    /// UTF-8 was taken for Latin-1 and written as UTF-8 again.
    ReadAsLatin1,
    /// UTF-8 was taken for Windows-1252 and written as UTF-8 again.
    ReadAsWindows1252,
    /// It was written in Latin-1 instead of UTF-8.
    WrittenAsLatin1,
    /// It was written in UTF-16 instead of UTF-8.
    WrittenAsUtf16,
    /// It was put into a JSON string.
    Quoted,
    /// It was put into base64, as some gateways do.
    Base64,
    /// It was printed as a Python bytes literal, `b'...'`.
    BytesLiteral,
    /// The time and a period were put in front of it, as they are when it is signed.
    TimePrepended,
    /// It was read as JSON and written again in another form than this one.
    Rewritten(JsonForm),
}

impl fmt::Display for BodyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::LineEndAdded => "the body got a line end at its end",
            Self::LineEndLost => "the body lost the line end at its end",
            Self::BlanksAdded => "the body got blanks or line ends around it",
            Self::LineEndsToCrLf => "the body's line ends were turned from LF into CR LF",
            Self::LineEndsToLf => "the body's line ends were turned from CR LF into LF",
            Self::ByteOrderMarkAdded => "the body got a byte order mark",
            Self::ByteOrderMarkLost => "the body lost its byte order mark",
            Self::ReadAsLatin1 => "the body was taken for Latin-1 and written as UTF-8 again",
            Self::ReadAsWindows1252 => {
                "the body was taken for Windows-1252 and written as UTF-8 again"
            }
            Self::WrittenAsLatin1 => "the body was written in Latin-1 instead of UTF-8",
            Self::WrittenAsUtf16 => "the body was written in UTF-16 instead of UTF-8",
            Self::Quoted => "the body was put into a JSON string",
            Self::Base64 => "the body was put into base64",
            Self::BytesLiteral => "the body was printed as a Python bytes literal",
            Self::TimePrepended => "the body got the time and a period in front of it",
            Self::Rewritten(form) => {
                return write!(
                    f,
                    "the body was read as JSON and written again; signed was the same JSON {form}"
                );
            }
        };
        f.write_str(words)
    }
}

/// What may have been signed, other than another form of the same JSON: one change undone.
pub(super) fn candidates(body: &[u8]) -> Vec<(BodyChange, Vec<u8>)> {
    let mut found: Vec<(BodyChange, Vec<u8>)> = Vec::new();
    let mut add = |change, signed: Option<Vec<u8>>| {
        found.extend(signed.filter(|signed| signed != body).map(|signed| (change, signed)));
    };

    add(BodyChange::LineEndAdded, body.strip_suffix(b"\n").map(Vec::from));
    add(BodyChange::LineEndAdded, body.strip_suffix(b"\r\n").map(Vec::from));
    add(BodyChange::LineEndLost, Some([body, b"\n"].concat()));
    add(BodyChange::LineEndLost, Some([body, b"\r\n"].concat()));
    add(BodyChange::BlanksAdded, Some(body.trim_ascii().into()));
    add(BodyChange::LineEndsToLf, Some(to_crlf(body)));
    add(BodyChange::LineEndsToCrLf, Some(to_lf(body)));
    add(BodyChange::ByteOrderMarkAdded, body.strip_prefix(BOM).map(Vec::from));
    add(BodyChange::ByteOrderMarkLost, Some([BOM, body].concat()));
    add(BodyChange::WrittenAsUtf16, from_utf16(body));
    add(BodyChange::Base64, decode_base64(body.trim_ascii()));
    match core::str::from_utf8(body) {
        Ok(text) => {
            add(BodyChange::ReadAsLatin1, text.chars().map(latin1).collect());
            add(BodyChange::ReadAsWindows1252, text.chars().map(windows1252).collect());
            let inner = serde_json::from_str::<String>(text).ok();
            add(BodyChange::Quoted, inner.map(String::into_bytes));
            add(BodyChange::BytesLiteral, from_bytes_literal(text));
        }
        Err(_) => {
            let text: String = body.iter().copied().map(char::from).collect();
            add(BodyChange::WrittenAsLatin1, Some(text.into_bytes()));
        }
    }
    found
}

const BOM: &[u8] = b"\xef\xbb\xbf";

fn to_lf(body: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(body.len());
    for byte in body {
        if *byte == b'\n' && lines.last() == Some(&b'\r') {
            lines.pop();
        }
        lines.push(*byte);
    }
    lines
}

fn to_crlf(body: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(body.len());
    let mut before = 0;
    for byte in body {
        if *byte == b'\n' && before != b'\r' {
            lines.push(b'\r');
        }
        lines.push(*byte);
        before = *byte;
    }
    lines
}

fn from_utf16(body: &[u8]) -> Option<Vec<u8>> {
    let (units, rest) = body.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let decode = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = units.iter().copied().map(unit).collect();
        let text = String::from_utf16(&units).ok()?;
        Some(text.trim_start_matches('\u{feff}').to_string())
    };
    // JSON begins with ASCII, so the zero tells the order of the bytes.
    let little = match units {
        [[0xff, 0xfe], ..] => true,
        [[0xfe, 0xff], ..] | [[0, _], ..] => false,
        [[_, 0], ..] => true,
        _ => return None,
    };
    decode(if little { u16::from_le_bytes } else { u16::from_be_bytes }).map(String::into_bytes)
}

fn latin1(c: char) -> Option<u8> {
    u8::try_from(c).ok()
}

fn windows1252(c: char) -> Option<u8> {
    match WINDOWS_1252.chars().position(|theirs| theirs == c) {
        Some(at) => u8::try_from(at).ok()?.checked_add(0x80),
        None => latin1(c),
    }
}

/// The characters of 0x80 to 0x9f. Five of them are not given; decoders keep those as they are.
const WINDOWS_1252: &str = "\u{20ac}\u{81}\u{201a}\u{192}\u{201e}\u{2026}\u{2020}\u{2021}\u{2c6}\
    \u{2030}\u{160}\u{2039}\u{152}\u{8d}\u{17d}\u{8f}\u{90}\u{2018}\u{2019}\u{201c}\u{201d}\
    \u{2022}\u{2013}\u{2014}\u{2dc}\u{2122}\u{161}\u{203a}\u{153}\u{9d}\u{17e}\u{178}";

fn from_bytes_literal(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix('b')?;
    let text =
        ["'", "\""].iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let mut byte = [0];
                hex::decode_to_slice([rest.next()?, rest.next()?], &mut byte).ok()?;
                let [byte] = byte;
                byte
            }
            other => other,
        });
    }
    Some(bytes)
}
