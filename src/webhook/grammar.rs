//! The grammar of the signature header, read strictly: what two readers could read differently is
//! refused.

use super::digest::{Case, Digest};
use super::verify_error::{SignatureFault, VerifyError};

/// The longest header that is read, in bytes.
pub(super) const MAX_LEN: usize = 1024;

/// As many parts as a header may have.
pub(super) const MAX_PARTS: usize = 16;

/// A signature header, read.
pub(super) struct Signature<'a> {
    /// The digits as received: they are what was signed.
    pub(super) timestamp: &'a [u8],
    /// Their value.
    pub(super) seconds: u64,
    digests: [Received; MAX_PARTS],
    len: usize,
}

/// A well-formed `v1`. In uppercase it is not accepted, but it may prove to be the cause.
#[derive(Clone, Copy)]
pub(super) struct Received {
    pub(super) digest: Digest,
    pub(super) case: Case,
    pub(super) part: usize,
}

impl<'a> Signature<'a> {
    /// Reads a header from left to right; the first fault met is the one reported.
    pub(super) fn parse(header: &'a [u8]) -> Result<Self, VerifyError> {
        if header.len() > MAX_LEN {
            return Err(SignatureFault::TooLong { len: header.len() }.into());
        }
        let none = Received { digest: Digest::ZERO, case: Case::Lower, part: 0 };
        let mut digests = [none; MAX_PARTS];
        let mut len = 0_usize;
        let mut timestamp = None;
        let mut ill_formed = None;

        for (index, text) in header.split(|byte| *byte == b',').enumerate() {
            let part = index.saturating_add(1);
            if part > MAX_PARTS {
                return Err(SignatureFault::TooManyParts.into());
            }
            match pair(text, part)? {
                (b"t", value) => {
                    if timestamp.is_some() {
                        return Err(SignatureFault::TwoTimestamps { part }.into());
                    }
                    let seconds = seconds(value).ok_or(SignatureFault::Timestamp { part })?;
                    timestamp = Some((value, seconds));
                }
                (b"v1", value) => match Digest::from_hex(value) {
                    Ok((digest, case)) => {
                        if let Some(received) = digests.get_mut(len) {
                            *received = Received { digest, case, part };
                            len = len.saturating_add(1);
                        }
                    }
                    Err(fault) => ill_formed = ill_formed.or(Some((part, fault))),
                },
                _ => {}
            }
        }

        let (timestamp, seconds) = timestamp.ok_or(SignatureFault::NoTimestamp)?;
        match (len, ill_formed) {
            (0, Some((part, fault))) => Err(VerifyError::IllFormedDigest { part, fault }),
            (0, None) => Err(SignatureFault::NoDigest.into()),
            _ => Ok(Self { timestamp, seconds, digests, len }),
        }
    }

    /// The well-formed `v1`, in the order received. There is at least one.
    pub(super) fn digests(&self) -> &[Received] {
        self.digests.get(..self.len).unwrap_or_default()
    }
}

/// `name=value`, with blanks and tabs around it but none within.
fn pair(text: &[u8], part: usize) -> Result<(&[u8], &[u8]), SignatureFault> {
    let text = trim(text);
    if !text.iter().fold(true, |graphic, byte| graphic & byte.is_ascii_graphic()) {
        // Only a text that is refused is read a second time.
        let blank = text.iter().find(|byte| !byte.is_ascii_graphic()).is_some_and(is_blank);
        return Err(if blank {
            SignatureFault::Blank { part }
        } else {
            SignatureFault::NotPrintable { part }
        });
    }
    match text.iter().position(|byte| *byte == b'=').and_then(|at| text.split_at_checked(at)) {
        Some((name, [_, value @ ..])) if !name.is_empty() => Ok((name, value)),
        _ => Err(SignatureFault::NotPair { part }),
    }
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(last)
    {
        text = rest;
    }
    text
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// 1 to 19 digits, which a `u64` holds, without a sign or a leading zero.
fn seconds(digits: &[u8]) -> Option<u64> {
    match digits {
        [] | [b'0', _, ..] => return None,
        digits if digits.len() > 19 => return None,
        _ => {}
    }
    digits.iter().try_fold(0_u64, |seconds, digit| {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        seconds.checked_mul(10)?.checked_add(u64::from(value))
    })
}
