//! Why a delivery was refused.

use core::fmt;
use core::time::Duration;

use http::{Response, StatusCode};

use super::grammar::{MAX_LEN, MAX_PARTS};
use super::response::WebhookResponse;

/// Why a delivery was not verified, precisely enough for a log and for a branch.
///
/// Positions of parts count from 1. Nothing of the secret, the digests or the body is in it. Who
/// does not hold the secret learns nothing from it but what is wrong with the header's form:
/// [`TooOld`](Self::TooOld), [`TooNew`](Self::TooNew) and
/// [`UppercaseDigest`](Self::UppercaseDigest) come only after the digest was found to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The signature header is missing.
    Missing,
    /// The signature header is present more than once.
    Repeated,
    /// The signature header is not of the form `t=UNIX_SECONDS,v1=HEX`.
    Malformed(SignatureReason),
    /// No `v1` is 64 lowercase hex digits. Where one is, those that are not are passed over.
    IllFormedDigest {
        /// The first `v1` part.
        part: usize,
        /// What is wrong with it.
        fault: DigestReason,
    },
    /// A `v1` is the right digest in uppercase hex. The specification says lowercase.
    UppercaseDigest {
        /// Which part.
        part: usize,
    },
    /// No `v1` is the digest of these bytes under any of the secrets.
    Mismatch,
    /// The signature is right, but was made too long ago, or the clock here is ahead.
    TooOld {
        /// How long ago.
        age: Duration,
        /// How long ago would do.
        tolerance: Duration,
    },
    /// The signature is right, but claims to be made too far in the future, or the clock here is
    /// behind.
    TooNew {
        /// How far ahead of `now`.
        ahead: Duration,
        /// How far ahead would do.
        tolerance: Duration,
    },
}

impl VerifyError {
    /// What to answer: [`WebhookResponse::Rejected`], whatever was wrong.
    #[must_use]
    pub const fn response(&self) -> WebhookResponse {
        WebhookResponse::Rejected
    }

    /// The status to answer with: 400.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.response().status()
    }

    /// The answer: 400 with an empty body, whatever was wrong. The cause belongs in the receiver's
    /// log, not in the hands of whoever sent this.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        self.response().into_response()
    }
}

impl From<SignatureReason> for VerifyError {
    fn from(fault: SignatureReason) -> Self {
        Self::Malformed(fault)
    }
}

/// How a signature header departs from its form. Positions of parts count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureReason {
    /// The header has more than 1024 bytes.
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// The header has more than 16 parts.
    TooManyParts,
    /// A part is not `name=value`; an empty part is not.
    NotPair {
        /// Which part.
        part: usize,
    },
    /// A part has a blank or a tab within. Around it they are allowed.
    Blank {
        /// Which part.
        part: usize,
    },
    /// A part has a byte that is not printable ASCII.
    NotPrintable {
        /// Which part.
        part: usize,
    },
    /// There is no `t`.
    NoTimestamp,
    /// There is a second `t`.
    TwoTimestamps {
        /// The second one.
        part: usize,
    },
    /// The value of `t` is not 1 to 19 digits without a sign or a leading zero.
    Timestamp {
        /// Which part.
        part: usize,
    },
    /// There is no `v1`.
    NoDigest,
}

/// Why the value of a `v1` cannot be a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DigestReason {
    /// It does not have 64 digits.
    Length {
        /// How many bytes it has.
        len: usize,
    },
    /// A byte is not a hex digit.
    Character {
        /// The byte's position within the digest, from 0.
        at: usize,
    },
}

// Written out: thiserror would bring six packages into the bare crate.
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("signature header is missing"),
            Self::Repeated => f.write_str("signature header is present more than once"),
            Self::Malformed(fault) => write!(f, "signature header {fault}"),
            Self::IllFormedDigest { part, fault } => {
                write!(f, "signature header part {part}: v1 {fault}")
            }
            Self::UppercaseDigest { part } => {
                write!(f, "signature header part {part}: v1 is uppercase hex, not lowercase")
            }
            Self::Mismatch => f.write_str("no v1 of the signature header matches the body"),
            Self::TooOld { age, tolerance } => write!(
                f,
                "signature was made {age:?} ago, more than the tolerance of {tolerance:?}"
            ),
            Self::TooNew { ahead, tolerance } => write!(
                f,
                "signature was made {ahead:?} in the future, more than the tolerance of \
                 {tolerance:?}"
            ),
        }
    }
}

impl fmt::Display for SignatureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len } => write!(f, "has {len} bytes, more than {MAX_LEN}"),
            Self::TooManyParts => write!(f, "has more than {MAX_PARTS} parts"),
            Self::NotPair { part } => write!(f, "part {part} is not name=value"),
            Self::Blank { part } => write!(f, "part {part} has a blank within"),
            Self::NotPrintable { part } => {
                write!(f, "part {part} has a byte that is not printable ASCII")
            }
            Self::NoTimestamp => f.write_str("has no t"),
            Self::TwoTimestamps { part } => write!(f, "part {part} is a second t"),
            Self::Timestamp { part } => {
                write!(f, "part {part}: t is not 1 to 19 digits without a sign or a leading zero")
            }
            Self::NoDigest => f.write_str("has no v1"),
        }
    }
}

impl fmt::Display for DigestReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len } => write!(f, "has {len} bytes instead of 64 hex digits"),
            Self::Character { at } => write!(f, "has a byte at {at} that is not a hex digit"),
        }
    }
}

impl core::error::Error for VerifyError {}
