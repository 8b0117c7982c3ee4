//! The digests received, read as kindly as can be.

use alloc::vec::Vec;

use super::cause::TextChange;
use crate::webhook::digest::{Digest, write_hex};
use crate::webhook::grammar::Signature;

/// The least digits of a digest that identify it beyond doubt.
const MIN_DIGITS: usize = 16;

/// What a signature header says, whatever its form.
pub(super) struct Reading<'a> {
    /// The text of `t`.
    pub(super) timestamp: &'a str,
    digests: Vec<Received>,
}

/// The first digits of a digest, in lowercase, and what had to be done to read them.
struct Received {
    digits: Vec<u8>,
    changes: Vec<TextChange>,
}

impl<'a> Reading<'a> {
    /// Reads what can be read. `None` if there is no `t` or nothing that could be a digest.
    pub(super) fn of(header: &'a [u8]) -> Option<Self> {
        // Where the header is well-formed, there is but one way to take it apart.
        let strict = Signature::parse(header).ok().map(|signature| signature.timestamp);
        let separators = if strict.is_some() { "," } else { ",; &" };
        let mut timestamp = strict.and_then(|digits| core::str::from_utf8(digits).ok());
        let header = core::str::from_utf8(header).ok()?;
        let mut digests = Vec::new();
        for part in header.split(|c| separators.contains(c)) {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name.trim() {
                "t" => timestamp = timestamp.or(Some(value.trim())),
                "v1" => digests.extend(received(value.trim())),
                _ => {}
            }
        }
        let timestamp = timestamp?;
        (!digests.is_empty()).then_some(Self { timestamp, digests })
    }

    /// Whether this digest is among those received, and what had to be done to see it.
    pub(super) fn find(&self, digest: &Digest) -> Option<&[TextChange]> {
        let mut digits = [0; Digest::HEX_LEN];
        digest.write_hex(&mut digits);
        let same = |received: &&Received| digits.starts_with(&received.digits);
        // One that is as it should be suffices, however many others there are of it.
        let changes = self.digests.iter().filter(same).map(|received| received.changes.as_slice());
        changes.min_by_key(|changes| changes.len())
    }
}

fn received(text: &str) -> Option<Received> {
    let inner = text.trim_matches(['"', '\'', '<', '>', ' ', '\t']);
    let bare = inner.strip_prefix("0x").or_else(|| inner.strip_prefix("sha256=")).unwrap_or(inner);
    let hex = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (read, digits) = if hex {
        (bare, bare.to_ascii_lowercase().into_bytes())
    } else {
        // Base64 may begin with `0x` of its own accord.
        [bare, inner].into_iter().find_map(|read| {
            let bytes = decode_base64(read.as_bytes()).filter(|bytes| bytes.len() == 32)?;
            let mut digits = alloc::vec![0; Digest::HEX_LEN];
            write_hex(&bytes, &mut digits);
            Some((read, digits))
        })?
    };
    if digits.len() > Digest::HEX_LEN || digits.len() < MIN_DIGITS {
        return None;
    }
    let changes = [
        (read.len() < text.len()).then_some(TextChange::Surrounded),
        (!hex).then_some(TextChange::Base64),
        (hex && read.bytes().any(|byte| byte.is_ascii_uppercase()))
            .then_some(TextChange::Uppercase),
        (digits.len() < Digest::HEX_LEN).then_some(TextChange::Cut { digits: digits.len() }),
    ];
    Some(Received { digits, changes: changes.into_iter().flatten().collect() })
}

/// Base64 of either alphabet, padded or not, as decoders are that take whatever comes. (A crate
/// for it would be one more for everybody who only reads events.)
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if text.is_empty() || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut bits = 0_u32;
    let mut held = 0_u32;
    for symbol in text {
        let value = match symbol {
            b'A'..=b'Z' => symbol.wrapping_sub(b'A'),
            b'a'..=b'z' => symbol.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => symbol.wrapping_sub(b'0').wrapping_add(52),
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6).wrapping_add(value.into());
        held = held.wrapping_add(6);
        if held >= 8 {
            held = held.wrapping_sub(8);
            let [_, _, _, byte] = (bits >> held).to_be_bytes();
            bytes.push(byte);
        }
    }
    Some(bytes)
}
