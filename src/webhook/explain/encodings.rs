//! Decodes a body from the form that a gateway, an HTML form, a log or a debugger gave it.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Deserializer;
use serde_json::value::RawValue;

/// At most 4 strings and 4 objects inside a body are tried.
const MAX_INSIDE: usize = 4;

/// The search tries every combination of the first 4 numbers of a body.
const MAX_COMBINED: usize = 4;
/// If a body has more than 64 numbers, its numbers are not tried in another form.
const MAX_NUMBERS: usize = 64;

/// Returns the objects in a body, and the strings that begin like JSON, plain or in base64.
pub(super) fn inside(body: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let starts = (0..body.len()).filter_map(|at| body.get(at..));
    let is_string = |rest: &&[u8]| rest.starts_with(b"\"{") || rest.starts_with(b"\"eyJ");
    let strings = starts.clone().filter(is_string).take(MAX_INSIDE).filter_map(|rest| {
        let mut values = Deserializer::from_slice(rest).into_iter::<String>();
        values.next()?.ok().map(String::into_bytes)
    });
    // A byte order mark, a space or a quote around an object are no envelope.
    let first = body.iter().position(|byte| b":[".contains(byte)).unwrap_or(body.len());
    let objects = starts.skip(first).filter(|rest| rest.starts_with(b"{")).take(MAX_INSIDE);
    strings.chain(objects.filter_map(|rest| {
        let mut values = Deserializer::from_slice(rest).into_iter::<&RawValue>();
        values.next()?.ok().map(|value| value.get().as_bytes().into())
    }))
}

pub(super) fn after(body: &[u8], separator: &[u8]) -> Option<Vec<u8>> {
    let at = body.windows(separator.len()).position(|bytes| bytes == separator)?;
    Some(body.split_at_checked(at)?.1.strip_prefix(separator)?.into())
}

/// Returns the first JSON object of an HTML form, from the value or the name of a field.
pub(super) fn from_form(body: &[u8]) -> Option<Vec<u8>> {
    let is_open = |text: &&[u8]| text.starts_with(b"{") || text.starts_with(b"%7");
    let mut values = body.split(|byte| *byte == b'&').flat_map(|field| {
        core::iter::once(field).chain(field.splitn(2, |byte| *byte == b'=').skip(1))
    });
    let field = values.find(is_open)?;
    let mut bytes = field.strip_suffix(b"=").unwrap_or(field).iter();
    let mut decoded = Vec::with_capacity(field.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex_byte(*bytes.next()?, *bytes.next()?)?,
            other => *other,
        });
    }
    Some(decoded)
}

pub(super) fn from_html(text: &str) -> Vec<u8> {
    // Each with its character; the ampersand last, for the others begin with one.
    const ENTITIES: &str = "&quot;\" &#34;\" &#x22;\" &#39;' &#x27;' &apos;' &lt;< &gt;> &amp;&";
    let pairs =
        ENTITIES.split(' ').filter_map(|pair| pair.split_at_checked(pair.len().checked_sub(1)?));
    pairs.fold(text.into(), |text: String, (entity, c)| text.replace(entity, c)).into_bytes()
}

/// Joins the chunks of a body in HTTP's chunked encoding.
pub(super) fn from_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (size, after) = rest.split_at_checked(end)?;
        let size = core::str::from_utf8(size).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let (chunk, after) = after.strip_prefix(b"\n")?.split_at_checked(size)?;
        body.extend(chunk);
        rest = after.strip_prefix(b"\r").unwrap_or(after).strip_prefix(b"\n")?;
    }
}

/// Reads a list of bytes such as `[123,34]`. The list may be inside an object, and the numbers may
/// be negative, as for bytes in Java.
pub(super) fn from_list(text: &str) -> Option<Vec<u8>> {
    let (_, list) = text.split_once('[')?;
    let (list, _) = list.rsplit_once(']')?;
    let byte = |text: &str| {
        let number: i16 = text.trim().parse().ok()?;
        let [_, byte] = number.to_be_bytes();
        (-128..256).contains(&number).then_some(byte)
    };
    list.split(',').map(byte).collect()
}

/// Reads hex digits, with or without the marks of a database, a debugger or Node's console.
pub(super) fn from_hex(body: &[u8]) -> Option<Vec<u8>> {
    let body = body.trim_ascii();
    let marks: [&[u8]; 3] = [b"\\x", b"0x", b"<Buffer "];
    let digits = marks.iter().find_map(|mark| body.strip_prefix(*mark)).unwrap_or(body);
    hex::decode(without_space(digits.strip_suffix(b">").unwrap_or(digits))).ok()
}

pub(super) fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let mut byte = [0];
    hex::decode_to_slice([high, low], &mut byte).ok()?;
    let [byte] = byte;
    Some(byte)
}

pub(super) fn without_space(body: &[u8]) -> Vec<u8> {
    body.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// Returns bodies in which numbers have another form, such as `750.0` for `750`. The flag shows
/// whether all numbers were changed.
pub(super) fn numbers(body: &[u8]) -> impl Iterator<Item = (bool, Vec<u8>)> {
    let parts = parts(body);
    let count = parts.iter().filter(|part| matches!(part, Part::Number(_))).count();
    let count = if count <= MAX_NUMBERS { count } else { 0 };
    let all = (count > 0).then_some(Chosen::All);
    let some = (1..1 << count.min(MAX_COMBINED)).map(Chosen::These);
    all.into_iter().chain(some).map(move |chosen| {
        let mut written = Vec::with_capacity(body.len());
        let mut numbers = 0..;
        for part in &parts {
            match *part {
                Part::Number(number) if numbers.next().is_some_and(|at| chosen.has(at)) => {
                    let (digits, more) = chosen.other_form(number);
                    written.extend([digits, more].concat());
                }
                Part::Number(bytes) | Part::Text(bytes) => written.extend(bytes),
            }
        }
        (matches!(chosen, Chosen::All), written)
    })
}

/// The numbers that are written in another form.
#[derive(Clone, Copy)]
enum Chosen {
    All,
    /// One bit for each of the first numbers, set if the number is changed.
    These(u32),
}

impl Chosen {
    fn has(self, number: u32) -> bool {
        match self {
            Self::All => true,
            Self::These(bits) => bits.checked_shr(number).is_some_and(|bits| bits & 1 == 1),
        }
    }

    /// Returns the digits of a number that are kept, and the digits that are written after them.
    fn other_form(self, number: &[u8]) -> (&[u8], &'static [u8]) {
        let is_whole = !number.iter().any(|byte| b".eE".contains(byte));
        match (number.strip_suffix(b".0"), self) {
            (Some(whole), _) => (whole, b""),
            (None, _) if is_whole => (number, b".0"),
            (None, Self::These(_)) => (number, b"0"),
            // Of all numbers, only the whole ones.
            (None, Self::All) => (number, b""),
        }
    }
}

enum Part<'a> {
    Text(&'a [u8]),
    Number(&'a [u8]),
}

fn parts(body: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut in_string, mut is_escaped, mut in_number) = (0, false, false, false);
    for (at, byte) in body.iter().enumerate() {
        // `true` and `null` have letters of numbers, and no digit before them.
        let more: &[u8] = if in_number { b"+-.eE" } else { b"-" };
        let is_number = !in_string && (byte.is_ascii_digit() || more.contains(byte));
        if is_number != in_number {
            let kind = if in_number { Part::Number } else { Part::Text };
            parts.extend(body.get(begin..at).map(kind));
            (begin, in_number) = (at, is_number);
        }
        in_string ^= *byte == b'"' && !is_escaped;
        is_escaped = in_string && *byte == b'\\' && !is_escaped;
    }
    let kind = if in_number { Part::Number } else { Part::Text };
    parts.extend(body.get(begin..).map(kind));
    parts
}
