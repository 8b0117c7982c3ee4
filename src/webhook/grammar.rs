//! The strict grammar of the signature header. An ambiguous header is refused.

use core::fmt;

/// The longest header that is read: 1024 bytes.
const MAX_LEN: usize = 1024;

/// The most parts of a header: 16.
const MAX_PARTS: u8 = 16;

/// The length of a digest in hex: 64 digits.
const DIGITS: usize = 64;

pub(super) struct Signature<'a> {
    /// The signed digits of `t`, as received.
    pub(super) timestamp: &'a [u8],
    /// The value of `timestamp`, in seconds.
    pub(super) seconds: u64,
    /// The first well-formed `v1`, which is nearly always the only `v1`.
    first: Candidate,
    others: Parts<'a>,
}

/// A well-formed `v1`. A `v1` in uppercase hex is not accepted. If its digest is right, the error
/// reports the uppercase letters.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) digest: [u8; 32],
    pub(super) is_lowercase: bool,
    pub(super) part: u8,
}

impl<'a> Signature<'a> {
    /// Reads a header from left to right, and reports the first fault. If no `v1` is well formed
    /// and the header has no other fault, the first malformed `v1` is reported.
    pub(super) fn parse(header: &'a [u8]) -> Result<Self, MalformedReason> {
        if header.len() > MAX_LEN {
            return Err(MalformedReason::TooLong { len: header.len() });
        }
        let mut timestamp = None;
        let mut first = None;
        let mut malformed = None;

        let mut parts = Parts { rest: Some(header), read: 0 };
        while let Some(part) = parts.next() {
            let part = part?;
            match part.name {
                b"t" => {
                    let read = (part.value, part.seconds()?);
                    if timestamp.replace(read).is_some() {
                        return Err(MalformedReason::TwoTimestamps { part: part.number.into() });
                    }
                }
                // After the first well-formed digest, a malformed one is ignored.
                b"v1" if first.is_none() => match part.candidate() {
                    Ok(candidate) => first = Some((candidate, parts)),
                    Err(reason) => malformed = malformed.or(Some(reason)),
                },
                _ => {}
            }
        }

        let (timestamp, seconds) = timestamp.ok_or(MalformedReason::NoTimestamp)?;
        match first {
            Some((first, others)) => Ok(Self { timestamp, seconds, first, others }),
            None => Err(malformed.unwrap_or(MalformedReason::NoDigest)),
        }
    }

    /// Returns each well-formed `v1` (at least one), in the order received.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let others = self.others.flatten().filter(|part| part.name == b"v1");
        core::iter::once(self.first).chain(others.filter_map(|part| part.candidate().ok()))
    }
}

#[derive(Clone, Copy)]
struct Parts<'a> {
    rest: Option<&'a [u8]>,
    /// The number of parts that were read.
    read: u8,
}

struct Part<'a> {
    name: &'a [u8],
    value: &'a [u8],
    /// The number of the part. The first part has number 1.
    number: u8,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, MalformedReason>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        self.read = self.read.saturating_add(1);
        if self.read > MAX_PARTS {
            return Some(Err(MalformedReason::TooManyParts));
        }
        // `contains` looks at many bytes at once, and the last part is a long one.
        let is_last = rest.len() > DIGITS && !rest.contains(&b',');
        let comma = if is_last { None } else { rest.iter().position(|byte| *byte == b',') };
        let (text, after) = match comma.and_then(|comma| rest.split_at_checked(comma)) {
            Some((text, after)) => (text, after.split_first().map(|(_, after)| after)),
            None => (rest, None),
        };
        self.rest = after;
        let pair = pair(text, self.read.into());
        Some(pair.map(|(name, value)| Part { name, value, number: self.read }))
    }
}

impl Part<'_> {
    /// Reads the value of a `t`: 1 to 19 digits, without a sign or a leading zero. A number of 19
    /// digits fits into a `u64`.
    fn seconds(&self) -> Result<u64, MalformedReason> {
        let plain = match self.value {
            [b'0'] | [b'1'..=b'9', ..] => self.value.len() <= 19,
            _ => false,
        };
        let seconds = self.value.iter().try_fold(0_u64, |seconds, digit| {
            let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
            seconds.checked_mul(10)?.checked_add(value.into())
        });
        seconds.filter(|_| plain).ok_or(MalformedReason::Timestamp { part: self.number.into() })
    }

    fn candidate(&self) -> Result<Candidate, MalformedReason> {
        let part = self.number.into();
        let Ok(digits) = self.value.try_into() else {
            return Err(MalformedReason::DigestLength { part, len: self.value.len() });
        };
        match read_hex(digits) {
            Some((digest, is_lowercase)) => {
                Ok(Candidate { digest, is_lowercase, part: self.number })
            }
            None => {
                let at = digits.iter().position(|digit| !digit.is_ascii_hexdigit());
                Err(MalformedReason::DigestCharacter { part, at: at.unwrap_or(0) })
            }
        }
    }
}

/// Splits `name=value`. Spaces and tabs are allowed around the pair, but not inside the pair.
fn pair(text: &[u8], part: usize) -> Result<(&[u8], &[u8]), MalformedReason> {
    let text = trim(text);
    if !text.iter().fold(true, |graphic, byte| graphic & byte.is_ascii_graphic()) {
        // Only a text that is refused is read a second time.
        let first = text.iter().find(|byte| !byte.is_ascii_graphic());
        return Err(if first.is_some_and(is_space) {
            MalformedReason::Space { part }
        } else {
            MalformedReason::NotPrintable { part }
        });
    }
    match text.iter().position(|byte| *byte == b'=').and_then(|at| text.split_at_checked(at)) {
        Some((name, [_, value @ ..])) if !name.is_empty() => Ok((name, value)),
        _ => Err(MalformedReason::NotPair { part }),
    }
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_space(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_space(last)
    {
        text = rest;
    }
    text
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Reads the hex digits of a digest, and returns whether all letters are lowercase.
///
/// The code has no branch and no table. Therefore the compiled code can read sixteen digits at a
/// time.
fn read_hex(digits: &[u8; DIGITS]) -> Option<([u8; 32], bool)> {
    let mut is_hex = true;
    let mut is_lowercase = true;
    let nibbles = digits.map(|digit| {
        let number = digit.wrapping_sub(b'0');
        let letter = (digit | 0x20).wrapping_sub(b'a');
        is_hex &= (number <= 9) | (letter <= 5);
        is_lowercase &= !digit.is_ascii_uppercase();
        if number <= 9 { number } else { letter.wrapping_add(10) }
    });
    let mut bytes = [0; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(nibbles.as_chunks().0) {
        *byte = (high << 4) | low;
    }
    is_hex.then_some((bytes, is_lowercase))
}

/// The reason why a signature header is malformed. The first part of a header has number 1.
///
/// Open: a stricter grammar may have more reasons.
///
/// ```
/// use call_assistant::webhook::{MalformedReason, VerifyError};
///
/// let error = VerifyError::from(MalformedReason::NoDigest);
/// assert_eq!(error.to_string(), "signature header has no v1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedReason {
    /// The header is longer than 1024 bytes.
    #[non_exhaustive]
    TooLong {
        /// The length of the header, in bytes.
        len: usize,
    },
    /// The header has more than 16 parts.
    TooManyParts,
    /// A part is empty, or does not have the form `name=value`.
    #[non_exhaustive]
    NotPair {
        /// The part's number.
        part: usize,
    },
    /// A part has a space or a tab inside. Spaces and tabs are allowed around a part.
    #[non_exhaustive]
    Space {
        /// The part's number.
        part: usize,
    },
    /// A part has a byte that is not printable ASCII.
    #[non_exhaustive]
    NotPrintable {
        /// The part's number.
        part: usize,
    },
    /// No `t` is present.
    NoTimestamp,
    /// A second `t` is present.
    #[non_exhaustive]
    TwoTimestamps {
        /// The number of the part with the second `t`.
        part: usize,
    },
    /// The value of `t` has a sign or a leading zero, or is not 1 to 19 digits.
    #[non_exhaustive]
    Timestamp {
        /// The part's number.
        part: usize,
    },
    /// No `v1` is present.
    NoDigest,
    /// No `v1` is well formed, and the first `v1` does not have 64 digits.
    #[non_exhaustive]
    DigestLength {
        /// The part's number.
        part: usize,
        /// The length of the value, in bytes.
        len: usize,
    },
    /// No `v1` is well formed, and the first `v1` has a byte that is not a hex digit.
    #[non_exhaustive]
    DigestCharacter {
        /// The part's number.
        part: usize,
        /// The byte's position in the value. The first position is 0.
        at: usize,
    },
}

impl fmt::Display for MalformedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len } => write!(f, "has {len} bytes, more than {MAX_LEN}"),
            Self::TooManyParts => write!(f, "has more than {MAX_PARTS} parts"),
            Self::NotPair { part } => write!(f, "part {part} is not name=value"),
            Self::Space { part } => write!(f, "part {part} has a space or tab inside"),
            Self::NotPrintable { part } => {
                write!(f, "part {part} has a byte that is not printable ASCII")
            }
            Self::NoTimestamp => f.write_str("has no t"),
            Self::TwoTimestamps { part } => write!(f, "part {part} is a second t"),
            Self::Timestamp { part } => {
                write!(f, "part {part}: t is not 1 to 19 digits without a sign or a leading zero")
            }
            Self::NoDigest => f.write_str("has no v1"),
            Self::DigestLength { part, len } => {
                write!(f, "part {part}: v1 has {len} bytes instead of 64 hex digits")
            }
            Self::DigestCharacter { part, at } => {
                write!(f, "part {part}: v1 has a byte at {at} that is not a hex digit")
            }
        }
    }
}
