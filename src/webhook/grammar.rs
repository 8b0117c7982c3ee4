//! The grammar of the signature header, read strictly: what two readers could read differently is
//! refused.

use super::digest::{Case, Digest};
use super::verify_error::{DigestReason, SignatureReason, VerifyError};

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
    /// The first well-formed `v1`. Nearly always it is the only one.
    first: Received,
    /// The parts after it, if one of them is another.
    others: Parts<'a>,
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
            return Err(SignatureReason::TooLong { len: header.len() }.into());
        }
        let mut timestamp = None;
        let mut first = None;
        let mut others = Parts::none();
        let mut ill_formed = None;

        let mut parts = Parts::of(header);
        while let Some(read) = parts.next() {
            let part = parts.part;
            match read? {
                Part::Timestamp(digits, seconds) => {
                    if timestamp.is_some() {
                        return Err(SignatureReason::TwoTimestamps { part }.into());
                    }
                    timestamp = Some((digits, seconds));
                }
                Part::Digest(digest, case) => match first {
                    None => {
                        first = Some((Received { digest, case, part }, parts));
                    }
                    Some((_, after)) => others = after,
                },
                Part::IllFormedDigest(fault) => {
                    ill_formed = ill_formed.or(Some(VerifyError::IllFormedDigest { part, fault }));
                }
                Part::Unknown => {}
            }
        }

        let (timestamp, seconds) = timestamp.ok_or(SignatureReason::NoTimestamp)?;
        match first {
            Some((first, _)) => Ok(Self { timestamp, seconds, first, others }),
            None => Err(ill_formed.unwrap_or(SignatureReason::NoDigest.into())),
        }
    }

    /// The well-formed `v1`, in the order received. There is at least one.
    pub(super) fn digests(&self) -> impl Iterator<Item = Received> {
        let mut others = self.others;
        let others = core::iter::from_fn(move || {
            loop {
                if let Ok(Part::Digest(digest, case)) = others.next()? {
                    return Some(Received { digest, case, part: others.part });
                }
            }
        });
        core::iter::once(self.first).chain(others)
    }
}

/// The parts that are left of a header.
#[derive(Clone, Copy)]
struct Parts<'a> {
    rest: Option<&'a [u8]>,
    /// The number of the part read last, from 1.
    part: usize,
}

enum Part<'a> {
    Timestamp(&'a [u8], u64),
    Digest(Digest, Case),
    IllFormedDigest(DigestReason),
    Unknown,
}

impl<'a> Parts<'a> {
    fn of(header: &'a [u8]) -> Self {
        Self { rest: Some(header), part: 0 }
    }

    fn none() -> Self {
        Self { rest: None, part: 0 }
    }

    fn next(&mut self) -> Option<Result<Part<'a>, SignatureReason>> {
        let rest = self.rest?;
        self.part = self.part.saturating_add(1);
        let part = self.part;
        if part > MAX_PARTS {
            return Some(Err(SignatureReason::TooManyParts));
        }
        // The two parts as everybody sends them are read while they are looked at.
        if let Some((part, after)) = plain(rest) {
            self.rest = after.split_first().map(|(_, after)| after);
            return Some(Ok(part));
        }
        let text = match rest.iter().position(|byte| *byte == b',') {
            Some(comma) => {
                let (text, after) = rest.split_at(comma);
                self.rest = after.split_first().map(|(_, after)| after);
                text
            }
            None => {
                self.rest = None;
                rest
            }
        };
        Some(pair(text, part).and_then(|(name, value)| match name {
            b"t" => match seconds(value) {
                Some(seconds) => Ok(Part::Timestamp(value, seconds)),
                None => Err(SignatureReason::Timestamp { part }),
            },
            b"v1" => Ok(match value.try_into().ok().and_then(Digest::decode) {
                Some((digest, case)) => Part::Digest(digest, case),
                None => Part::IllFormedDigest(Digest::fault(value)),
            }),
            _ => Ok(Part::Unknown),
        }))
    }
}

/// A well-formed `t` or `v1` without blanks around it, and what follows: nothing, or a comma.
fn plain(rest: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (part, after) = match rest {
        [b't', b'=', rest @ ..] => {
            let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, after) = rest.split_at(len);
            (Part::Timestamp(digits, seconds(digits)?), after)
        }
        [b'v', b'1', b'=', rest @ ..] => {
            let (digits, after) = rest.split_first_chunk()?;
            let (digest, case) = Digest::decode(digits)?;
            (Part::Digest(digest, case), after)
        }
        _ => return None,
    };
    matches!(after, [] | [b',', ..]).then_some((part, after))
}

/// `name=value`, with blanks and tabs around it but none within.
fn pair(text: &[u8], part: usize) -> Result<(&[u8], &[u8]), SignatureReason> {
    let text = trim(text);
    if !text.iter().fold(true, |graphic, byte| graphic & byte.is_ascii_graphic()) {
        // Only a text that is refused is read a second time.
        let blank = text.iter().find(|byte| !byte.is_ascii_graphic()).is_some_and(is_blank);
        return Err(if blank {
            SignatureReason::Blank { part }
        } else {
            SignatureReason::NotPrintable { part }
        });
    }
    match text.iter().position(|byte| *byte == b'=').and_then(|at| text.split_at_checked(at)) {
        Some((name, [_, value @ ..])) if !name.is_empty() => Ok((name, value)),
        _ => Err(SignatureReason::NotPair { part }),
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
