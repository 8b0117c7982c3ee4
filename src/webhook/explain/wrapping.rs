//! Takes a body out of what a gateway, a form, a log or a debugger puts around or makes of it.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Deserializer;
use serde_json::value::RawValue;

/// How many texts inside a body are tried, of strings and of objects each.
const MAX_INSIDE: usize = 4;

/// How many numbers of a body are tried in each combination, and how many a body has at most.
const MAX_COMBINED: u32 = 4;
const MAX_NUMBERS: u32 = 64;

/// The strings inside a body that begin like JSON, as text or in base64, and the objects.
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

/// What follows the first such separator.
pub(super) fn after(body: &[u8], separator: &[u8]) -> Option<Vec<u8>> {
    let at = body.windows(separator.len()).position(|bytes| bytes == separator)?;
    Some(body.split_at_checked(at)?.1.strip_prefix(separator)?.into())
}

/// The first field of a form that holds an object, or JSON that was taken for a field's name.
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

/// The chunks of a body with HTTP's frames around them.
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

/// `[123,34]`, also inside an object, also with Java's signs.
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

/// Digits, also as a database, a debugger or Node's console shows them.
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

/// The body with its numbers in another form: all of them, which comes with `true`, or any of the
/// first few.
pub(super) fn numbers(body: &[u8]) -> impl Iterator<Item = (bool, Vec<u8>)> {
    let parts = number_parts(body);
    let found = u32::try_from(parts.len() / 2).ok().filter(|found| *found <= MAX_NUMBERS);
    let found = found.unwrap_or(0);
    let some = 1_u32..1 << found.min(MAX_COMBINED);
    let masks = (found > 0).then_some(u32::MAX).into_iter().chain(some);
    masks.map(move |mask| {
        let mut written = Vec::with_capacity(body.len());
        for (at, part) in (0_u32..).zip(&parts) {
            let is_chosen = at % 2 == 1 && (mask == u32::MAX || mask >> (at / 2).min(31) & 1 == 1);
            let whole = part.strip_suffix(b".0").filter(|_| is_chosen);
            written.extend(whole.unwrap_or(part));
            if is_chosen && whole.is_none() {
                let is_whole = !part.iter().any(|byte| b".eE".contains(byte));
                let more: &[u8] = if is_whole { b".0" } else { b"0" };
                // Of all numbers, only the whole ones.
                written.extend(Some(more).filter(|_| is_whole || mask < u32::MAX).unwrap_or(b""));
            }
        }
        (mask == u32::MAX, written)
    })
}

/// The body in parts: every second one is a number.
fn number_parts(body: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let (mut begin, mut in_string, mut is_escaped, mut in_number) = (0, false, false, false);
    for (at, byte) in body.iter().enumerate() {
        // `true` and `null` have letters of numbers, and no digit before them.
        let more: &[u8] = if in_number { b"+-.eE" } else { b"-" };
        let is_number = !in_string && (byte.is_ascii_digit() || more.contains(byte));
        if is_number != in_number {
            parts.extend(body.get(begin..at));
            (begin, in_number) = (at, is_number);
        }
        in_string ^= *byte == b'"' && !is_escaped;
        is_escaped = in_string && *byte == b'\\' && !is_escaped;
    }
    parts.extend(body.get(begin..));
    parts
}
