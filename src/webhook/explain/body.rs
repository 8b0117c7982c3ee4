//! The changes that may have happened to the body on its way to the handler.

use alloc::string::String;
use alloc::vec::Vec;

use super::explanation::Cause;
use super::{base64, encodings};

const LINE_END_ADDED: Cause =
    Cause::new("body_line_end_added", "a line end was added to the end of the body");
const LINE_END_REMOVED: Cause =
    Cause::new("body_line_end_removed", "the line end at the end of the body was removed");
const SPACE_ADDED: Cause =
    Cause::new("body_space_added", "spaces or line ends were added around the body");
const LINE_ENDS_TO_CRLF: Cause =
    Cause::new("body_line_ends_to_crlf", "the body's line ends were changed from LF to CR LF");
const LINE_ENDS_TO_LF: Cause =
    Cause::new("body_line_ends_to_lf", "the body's line ends were changed from CR LF to LF");
const BYTE_ORDER_MARK_ADDED: Cause =
    Cause::new("body_byte_order_mark_added", "a byte order mark was added to the body");
const BYTE_ORDER_MARK_REMOVED: Cause =
    Cause::new("body_byte_order_mark_removed", "the body's byte order mark was removed");
const READ_AS_LATIN1: Cause =
    Cause::new("body_read_as_latin1", "the body was read as Latin-1 and written as UTF-8 again");
const READ_AS_WINDOWS1252: Cause = Cause::new(
    "body_read_as_windows1252",
    "the body was read as Windows-1252 and written as UTF-8 again",
);
const WRITTEN_AS_LATIN1: Cause =
    Cause::new("body_written_as_latin1", "the body was written in Latin-1 instead of UTF-8");
const WRITTEN_AS_WINDOWS1252: Cause = Cause::new(
    "body_written_as_windows1252",
    "the body was written in Windows-1252 instead of UTF-8",
);
const WRITTEN_AS_UTF16: Cause =
    Cause::new("body_written_as_utf16", "the body was written in UTF-16 instead of UTF-8");
const QUOTED: Cause = Cause::new("body_quoted", "the body was put into a JSON string");
const BASE64: Cause = Cause::new("body_base64", "the body was encoded in base64");
const BYTES_LITERAL: Cause =
    Cause::new("body_bytes_literal", "the body was printed as a Python bytes literal");
const BYTE_LIST: Cause = Cause::new(
    "body_byte_list",
    "the body was written as a list of its bytes, as a Buffer in JSON",
);
const HEX: Cause = Cause::new("body_hex", "the body was written in hex");
const FORM_ENCODED: Cause =
    Cause::new("body_form_encoded", "the body was encoded as a form, or is a field of one");
const HTML_ESCAPED: Cause = Cause::new("body_html_escaped", "the body was escaped for HTML");
const CHUNKED: Cause =
    Cause::new("body_chunked", "the chunk sizes of the HTTP connection are in the body");
const REQUEST: Cause = Cause::new("body_request", "the head of the request is in the body");
const WRAPPED: Cause = Cause::new(
    "body_wrapped",
    "the body is inside something larger: an envelope, as of API Gateway or SNS, or a log line",
);
const NUMBERS: Cause = Cause::new(
    "body_numbers_rewritten",
    "numbers in the body were written again, as 750 for 750.0",
);

/// A body that may have been signed instead of the received body.
pub(super) struct BodyCandidate {
    pub(super) cause: Cause,
    pub(super) signed: Vec<u8>,
    /// Whether the cause concerns the encoding. If so, the JSON inside may have changed, too.
    pub(super) is_encoding: bool,
}

/// Undoes each possible change of this body. Returns the resulting bodies.
pub(super) fn candidates(body: &[u8]) -> impl Iterator<Item = BodyCandidate> {
    let changes = CHANGES.into_iter().map(|change| (false, change));
    let encodings = ENCODINGS.into_iter().map(|change| (true, change));
    let undone = changes.chain(encodings);
    let undone = undone.filter_map(|(is, (cause, undo))| Some((is, cause, undo(body)?)));
    let inside = encodings::inside(body).map(|signed| (true, WRAPPED, signed));
    let numbers = encodings::numbers(body).map(|(all, signed)| (all, NUMBERS, signed));
    let found = undone.chain(inside).chain(numbers).filter(move |(.., signed)| signed != body);
    found.map(|(is_encoding, cause, signed)| BodyCandidate { cause, signed, is_encoding })
}

/// A change, and the function that undoes it.
type Change = (Cause, fn(&[u8]) -> Option<Vec<u8>>);

const CHANGES: [Change; 9] = [
    (LINE_END_ADDED, |body| body.strip_suffix(b"\n").map(Vec::from)),
    (LINE_END_ADDED, |body| body.strip_suffix(b"\r\n").map(Vec::from)),
    (LINE_END_REMOVED, |body| Some([body, b"\n"].concat())),
    (LINE_END_REMOVED, |body| Some([body, b"\r\n"].concat())),
    (SPACE_ADDED, |body| Some(body.trim_ascii().into())),
    (LINE_ENDS_TO_LF, |body| Some(to_crlf(body))),
    (LINE_ENDS_TO_CRLF, |body| Some(to_lf(body))),
    (BYTE_ORDER_MARK_REMOVED, |body| Some([BOM, body].concat())),
    (BYTES_LITERAL, from_bytes_literal),
];

const ENCODINGS: [Change; 16] = [
    (BYTE_ORDER_MARK_ADDED, |body| body.strip_prefix(BOM).map(Vec::from)),
    (WRITTEN_AS_UTF16, |body| from_utf16(body, u16::from_le_bytes)),
    (WRITTEN_AS_UTF16, |body| from_utf16(body, u16::from_be_bytes)),
    (BASE64, |body| base64::decode(&encodings::without_space(body))),
    (READ_AS_LATIN1, |body| text(body)?.chars().map(|c| u8::try_from(c).ok()).collect()),
    (READ_AS_WINDOWS1252, |body| text(body)?.chars().map(windows1252).collect()),
    (WRITTEN_AS_LATIN1, |body| decoded(body, char::from)),
    (WRITTEN_AS_WINDOWS1252, |body| decoded(body, from_windows1252)),
    (QUOTED, |body| Some(serde_json::from_slice::<String>(body).ok()?.into_bytes())),
    (FORM_ENCODED, encodings::from_form),
    (HTML_ESCAPED, |body| Some(encodings::from_html(text(body)?))),
    (CHUNKED, encodings::from_chunks),
    (REQUEST, |body| encodings::after(body, b"\r\n\r\n")),
    (REQUEST, |body| encodings::after(body, b"\n\n")),
    (BYTE_LIST, |body| encodings::from_list(text(body)?)),
    (HEX, encodings::from_hex),
];

fn text(body: &[u8]) -> Option<&str> {
    core::str::from_utf8(body).ok()
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
    to_lf(body).split(|byte| *byte == b'\n').collect::<Vec<_>>().join(b"\r\n".as_slice())
}

fn from_utf16(body: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Vec<u8>> {
    let (units, []) = body.as_chunks::<2>() else { return None };
    let units: Vec<u16> = units.iter().copied().map(unit).collect();
    // JSON begins with ASCII, which tells the order of the bytes.
    let text = matches!(units.first(), Some(0..0x80 | 0xfeff)).then(|| String::from_utf16(&units));
    Some(text?.ok()?.trim_start_matches('\u{feff}').into())
}

/// Decodes a body that is not UTF-8, with a charset of one byte for each character.
fn decoded(body: &[u8], decode: fn(u8) -> char) -> Option<Vec<u8>> {
    let decode = || body.iter().copied().map(decode).collect::<String>().into_bytes();
    text(body).is_none().then(decode)
}

fn windows1252(c: char) -> Option<u8> {
    match WINDOWS_1252.chars().position(|decoded| decoded == c) {
        Some(at) => u8::try_from(at).ok()?.checked_add(0x80),
        None => u8::try_from(c).ok(),
    }
}

fn from_windows1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|at| WINDOWS_1252.chars().nth(at.into()));
    special.unwrap_or(char::from(byte))
}

/// The characters of the bytes 0x80 to 0x9f in Windows-1252. Five of these bytes have no character,
/// and decoders keep these five bytes unchanged.
const WINDOWS_1252: &str = "\u{20ac}\u{81}\u{201a}\u{192}\u{201e}\u{2026}\u{2020}\u{2021}\u{2c6}\
    \u{2030}\u{160}\u{2039}\u{152}\u{8d}\u{17d}\u{8f}\u{90}\u{2018}\u{2019}\u{201c}\u{201d}\
    \u{2022}\u{2013}\u{2014}\u{2dc}\u{2122}\u{161}\u{203a}\u{153}\u{9d}\u{17e}\u{178}";

fn from_bytes_literal(body: &[u8]) -> Option<Vec<u8>> {
    let text = text(body)?.strip_prefix('b')?;
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
            b'x' => encodings::hex_byte(rest.next()?, rest.next()?)?,
            other => other,
        });
    }
    Some(bytes)
}
