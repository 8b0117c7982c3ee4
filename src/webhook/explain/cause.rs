//! The causes, and their words.

use core::fmt;

use super::body::BodyChange;
use super::secret::SecretChange;
use crate::webhook::secret::SecretError;
use crate::webhook::verify_error::VerifyError;

/// Something that is wrong, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// What the verifier said of the header or of its time. Seen, not guessed.
    Refused(VerifyError),
    /// The body is not what was signed.
    Body(BodyChange),
    /// The secret is not what signed.
    Secret(SecretChange),
    /// Another of the known secrets signed.
    OtherSecret {
        /// Which [`known_secret`](super::Evidence::known_secret), from 1.
        index: usize,
    },
    /// The text given signed, and yet it is no secret: no
    /// [`SigningSecret`](crate::webhook::SigningSecret) can be made of it. Both ends have it wrong
    /// in the same way.
    NoSecret(SecretError),
    /// The header's text is not what the specification says, though the right digest is in it.
    Text(TextChange),
    /// The header belongs to another delivery's body, or this body to another's header.
    OtherDelivery {
        /// Which [`known_delivery`](super::Evidence::known_delivery), from 1.
        index: usize,
    },
    /// The delivery header and the body's id differ. A guess always: neither says which is right.
    ContradictsDeliveryHeader,
    /// The body is empty: something has read it before.
    EmptyBody,
    /// The body is JSON that ends too soon.
    CutOff,
    /// The body has replacement characters: it was read as text in the wrong encoding, and what
    /// stood there is lost.
    ReplacementCharacters,
    /// The body is not JSON.
    NotJson,
}

/// How a signature header's text departs from what was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextChange {
    /// The digest is in uppercase hex.
    Uppercase,
    /// The digest is in base64.
    Base64,
    /// There is something around the digest: quotes, `0x`.
    Surrounded,
    /// The digest was cut off.
    Cut {
        /// How many digits are left.
        digits: usize,
    },
    /// `t` is in milliseconds.
    Milliseconds,
    /// `t` is in seconds, but milliseconds were signed.
    SignedMilliseconds,
    /// The body alone was signed, without the time.
    SignedWithoutTime,
    /// The time and the body were signed without the period between them.
    SignedWithoutPeriod,
    /// The event's id, the time and the body were signed, as Standard Webhooks does.
    SignedWithId,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "the {error}"),
            Self::Body(change) => write!(f, "{change}"),
            Self::Secret(change) => write!(f, "{change}"),
            Self::OtherSecret { index } => {
                write!(f, "another of the known secrets signed it, number {index}")
            }
            Self::NoSecret(error) => {
                write!(f, "both ends share a text that is no secret, for the {error}")
            }
            Self::Text(change) => write!(f, "{change}"),
            Self::OtherDelivery { index } => {
                write!(
                    f,
                    "header and body belong to two deliveries, the other being number {index}"
                )
            }
            Self::ContradictsDeliveryHeader => f.write_str(
                "header and body belong to two deliveries, for the delivery header is not the \
                 body's id",
            ),
            Self::EmptyBody => f.write_str("the body is empty, since something has read it before"),
            Self::CutOff => f.write_str("the body is cut off"),
            Self::ReplacementCharacters => f.write_str(
                "the body was read as text in the wrong encoding, for it has replacement \
                 characters",
            ),
            Self::NotJson => f.write_str("the body is not what was sent, for it is not JSON"),
        }
    }
}

impl fmt::Display for TextChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uppercase => f.write_str("the digest is in uppercase hex"),
            Self::Base64 => f.write_str("the digest is in base64, not in lowercase hex"),
            Self::Surrounded => f.write_str("there is something around the digest"),
            Self::Cut { digits } => write!(f, "the digest was cut to {digits} digits"),
            Self::Milliseconds => f.write_str("t is in milliseconds, not in seconds"),
            Self::SignedMilliseconds => {
                f.write_str("the time was signed in milliseconds and sent in seconds")
            }
            Self::SignedWithoutTime => f.write_str("the body was signed without the time"),
            Self::SignedWithoutPeriod => {
                f.write_str("time and body were signed without the period between them")
            }
            Self::SignedWithId => f.write_str(
                "the delivery's id was signed too, as libraries for Standard Webhooks do",
            ),
        }
    }
}
