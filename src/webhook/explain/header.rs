//! The signature header, read as leniently as possible.

use alloc::string::String;
use alloc::vec::Vec;

use super::base64;
use super::explanation::Cause;
use crate::webhook::grammar::Signature;

/// The minimum number of digits that identify a digest: 16.
const MIN_DIGITS: usize = 16;

/// The number of digits of a whole digest: 64.
const DIGITS: usize = 64;

/// The maximum number of digests that are read from a header: 16.
const MAX_DIGESTS: usize = 16;

const LABEL: Cause =
    Cause::new("signature_label", "the header's value begins with the header's name");
const QUOTED: Cause =
    Cause::new("signature_quoted", "quotes or brackets surround the header's value");
const SURROUNDED: Cause = Cause::new("digest_surrounded", "something surrounds the digest");
const BASE64: Cause = Cause::new("digest_base64", "the digest is in base64, not in lowercase hex");
const UPPERCASE: Cause = Cause::new("digest_uppercase", "the digest is in uppercase hex");

/// The content of a signature header of any form.
pub(super) struct Reading<'a> {
    /// The text of `t`.
    pub(super) timestamp: &'a str,
    digests: Vec<ReceivedDigest>,
    /// The causes for text around the header's value. The field `value` does not contain this text.
    pub(super) around: Vec<Cause>,
    pub(super) value: &'a [u8],
}

/// The first digits of a digest, in lowercase, and the causes that were undone to read them.
struct ReceivedDigest {
    digits: String,
    causes: Vec<Cause>,
}

impl<'a> Reading<'a> {
    /// Reads as much of the header as possible, perhaps nothing.
    pub(super) fn new(header: &'a [u8]) -> Self {
        // There is only one way to take a well-formed header apart.
        let strict = Signature::parse(header).ok().map(|signature| signature.timestamp);
        let separators = if strict.is_some() { "," } else { ",; &" };
        let text = core::str::from_utf8(header).unwrap_or_default();
        let (around, text) = match strict {
            Some(_) => (Vec::new(), text),
            None => without_surroundings(text),
        };
        let mut timestamp = strict.and_then(|digits| core::str::from_utf8(digits).ok());
        let mut digests = Vec::new();
        for part in text.split(|c| separators.contains(c)) {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name.trim() {
                "t" => timestamp = timestamp.or(Some(value.trim())),
                "v1" if digests.len() < MAX_DIGESTS => {
                    digests.extend(ReceivedDigest::new(value.trim()));
                }
                _ => {}
            }
        }
        let value = if around.is_empty() { header } else { text.as_bytes() };
        Self { timestamp: timestamp.unwrap_or_default(), digests, around, value }
    }

    /// Returns whether the header has no `t` or no possible digest.
    pub(super) fn is_empty(&self) -> bool {
        self.timestamp.is_empty() || self.digests.is_empty()
    }

    /// Returns the number of digits with which each computed digest is compared.
    pub(super) fn digits(&self) -> usize {
        self.digests.len().saturating_mul(DIGITS)
    }

    /// If the header contains this digest, returns the causes that were undone to read the digest.
    pub(super) fn find(&self, digest: &[u8; 32]) -> Option<&[Cause]> {
        let digits = hex::encode(digest);
        let same = |received: &&ReceivedDigest| digits.starts_with(&received.digits);
        // One that is written correctly suffices, however many others there are of it.
        let causes = self.digests.iter().filter(same).map(|received| received.causes.as_slice());
        causes.min_by_key(|causes| causes.len())
    }
}

/// Removes the header's name if the name was pasted with the value. Also removes the quotes and
/// brackets of a printed list or map.
fn without_surroundings(header: &str) -> (Vec<Cause>, &str) {
    let is_mark = |c: char| " \t\r\n'\"`[](){}<>\\".contains(c);
    let (before, value) = header.split_at(header.find("t=").unwrap_or(0));
    // In Python, a `b` in front of the quotes.
    let label = before.trim_matches(is_mark).trim_end_matches('b').trim_matches(is_mark);
    if before.is_empty() || !(label.is_empty() || label.ends_with([':', '='])) {
        return (Vec::new(), header);
    }
    let mut causes = Vec::new();
    if !label.is_empty() {
        causes.push(LABEL);
    }
    if before.trim_start().starts_with(is_mark) || before.trim_end().ends_with(['"', '\'', '[']) {
        causes.push(QUOTED);
    }
    (causes, value.trim_end_matches(|c| is_mark(c) || c == ',' || c == ';'))
}

impl ReceivedDigest {
    fn new(text: &str) -> Option<Self> {
        let inner = text.trim_matches(['"', '\'', '<', '>', ' ', '\t']);
        let bare = inner.strip_prefix("0x").or_else(|| inner.strip_prefix("sha256="));
        let bare = bare.unwrap_or(inner);
        let is_hex = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (read, digits) = if is_hex {
            (bare, bare.to_ascii_lowercase())
        } else {
            // Base64 may happen to begin with `0x`.
            [bare, inner].into_iter().find_map(|read| {
                let bytes = base64::decode(read.as_bytes()).filter(|bytes| bytes.len() == 32)?;
                Some((read, hex::encode(bytes)))
            })?
        };
        if !(MIN_DIGITS..=DIGITS).contains(&digits.len()) {
            return None;
        }
        let mut causes = Vec::new();
        if read.len() < text.len() {
            causes.push(SURROUNDED);
        }
        if !is_hex {
            causes.push(BASE64);
        } else if read.bytes().any(|byte| byte.is_ascii_uppercase()) {
            causes.push(UPPERCASE);
        }
        if digits.len() < DIGITS {
            let sentence = alloc::format!("the digest was cut to {} digits", digits.len());
            causes.push(Cause::with_details("digest_cut", sentence));
        }
        Some(Self { digits, causes })
    }
}
