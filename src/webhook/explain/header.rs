//! The signature header, read as leniently as possible.

use alloc::string::String;
use alloc::vec::Vec;

use super::base64;
use super::explanation::{Cause, causes};
use crate::webhook::grammar::Signature;

/// The fewest digits of a digest that identify it beyond doubt.
const MIN_DIGITS: usize = 16;

/// The digits of a whole digest.
const DIGITS: usize = 64;

causes! {
    SURROUNDED "digest_surrounded": "something surrounds the digest";
    BASE64 "digest_base64": "the digest is in base64, not in lowercase hex";
    UPPERCASE "digest_uppercase": "the digest is in uppercase hex";
}

/// What a signature header says, whatever its form.
pub(super) struct Reading<'a> {
    /// The text of `t`.
    pub(super) timestamp: &'a str,
    digests: Vec<ReceivedDigest>,
}

/// The first digits of a digest, in lowercase, and what had to be undone to read them.
struct ReceivedDigest {
    digits: String,
    causes: Vec<Cause>,
}

impl<'a> Reading<'a> {
    /// Reads what can be read. `None` if there is no `t` or nothing that could be a digest.
    pub(super) fn new(header: &'a [u8]) -> Option<Self> {
        // There is only one way to take a well-formed header apart.
        let strict = Signature::parse(header).ok().map(|signature| signature.timestamp);
        let separators = if strict.is_some() { "," } else { ",; &" };
        let mut timestamp = strict.and_then(|digits| core::str::from_utf8(digits).ok());
        let header = core::str::from_utf8(header).ok()?;
        let mut digests = Vec::new();
        for part in header.split(|c| separators.contains(c)) {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name.trim() {
                "t" => timestamp = timestamp.or(Some(value.trim())),
                "v1" => digests.extend(ReceivedDigest::new(value.trim())),
                _ => {}
            }
        }
        let timestamp = timestamp?;
        (!digests.is_empty()).then_some(Self { timestamp, digests })
    }

    /// Returns what had to be undone to find this digest among those received, if it is there.
    pub(super) fn find(&self, digest: &[u8; 32]) -> Option<&[Cause]> {
        let digits = hex::encode(digest);
        let same = |received: &&ReceivedDigest| digits.starts_with(&received.digits);
        // One that is written correctly suffices, however many others there are of it.
        let causes = self.digests.iter().filter(same).map(|received| received.causes.as_slice());
        causes.min_by_key(|causes| causes.len())
    }
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
