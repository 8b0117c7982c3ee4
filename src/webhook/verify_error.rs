//! The reasons why a delivery is rejected.

use core::fmt;
use core::time::Duration;

use http::Response;

use super::grammar::MalformedReason;
use super::response::WebhookResponse;

/// The reason why a delivery was not verified, for a log or a `match`.
///
/// Open: a later version may distinguish more reasons.
///
/// ```
/// use call_assistant::webhook::{VerifyError, WebhookResponse};
///
/// let error = VerifyError::Mismatch;
/// assert_eq!(error.to_string(), "no v1 of the signature header matches the body");
/// assert_eq!(error.response(), WebhookResponse::Rejected);
/// assert_eq!(error.into_response::<Vec<u8>>().status(), 400);
/// ```
///
/// Errors count the parts of the signature header from 1. An error contains no bytes of the secret,
/// the digests or the body. [`TooOld`](Self::TooOld), [`TooNew`](Self::TooNew) and
/// [`UppercaseDigest`](Self::UppercaseDigest) occur only if the digest is right. Therefore a sender
/// without the secret learns only whether the header is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// No signature header.
    Missing,
    /// More than one signature header.
    Repeated,
    /// A signature header that does not have the form `t=UNIX_SECONDS,v1=HEX`.
    Malformed(MalformedReason),
    /// The right digest in uppercase hex. The protocol requires lowercase hex.
    #[non_exhaustive]
    UppercaseDigest {
        /// The part's number.
        part: usize,
    },
    /// No digest matches the body with any of the verifier's secrets. The sender has another
    /// secret, or the body was changed in transit. With the feature `explain`,
    /// [`webhook::explain`](explain/index.html) finds and proves the cause.
    Mismatch,
    /// A correct signature that is too old, or a local clock that is ahead.
    #[non_exhaustive]
    TooOld {
        /// The age of the signature.
        age: Duration,
        /// The greatest age that is accepted.
        tolerance: Duration,
    },
    /// A correct signature that is too far in the future, or a local clock that is behind.
    #[non_exhaustive]
    TooNew {
        /// The time from `now` to the signature's time.
        ahead: Duration,
        /// The longest accepted time from `now` to the signature's time.
        tolerance: Duration,
    },
}

impl VerifyError {
    /// Returns the answer, which is always [`WebhookResponse::Rejected`].
    #[must_use]
    pub const fn response(&self) -> WebhookResponse {
        WebhookResponse::Rejected
    }

    /// Creates the HTTP response, which is always 400 with an empty body.
    ///
    /// The response does not contain the cause, because the cause belongs in the receiver's log.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        self.response().into_response()
    }
}

impl From<MalformedReason> for VerifyError {
    fn from(reason: MalformedReason) -> Self {
        Self::Malformed(reason)
    }
}

// Written out: thiserror would bring six packages into the bare crate.
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("signature header is missing"),
            Self::Repeated => f.write_str("signature header is present more than once"),
            Self::Malformed(reason) => write!(f, "signature header {reason}"),
            Self::UppercaseDigest { part } => {
                write!(f, "signature header part {part}: v1 is uppercase hex, not lowercase")
            }
            Self::Mismatch => f.write_str("no v1 of the signature header matches the body"),
            Self::TooOld { age, tolerance } => {
                let age = Words(*age);
                write!(f, "signature is {age} old, more than the tolerance of {tolerance:?}")
            }
            Self::TooNew { ahead, tolerance } => {
                let ahead = Words(*ahead);
                write!(
                    f,
                    "signature is {ahead} in the future, more than the tolerance of {tolerance:?}"
                )
            }
        }
    }
}

/// A duration, written for people: below ten minutes with milliseconds, otherwise also in minutes,
/// hours or days.
struct Words(Duration);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (count, unit) = match seconds {
            0..600 => {
                let nanos = self.0.subsec_millis().saturating_mul(1_000_000);
                return write!(f, "{:?}", Duration::new(seconds, nanos));
            }
            600..7200 => (seconds / 60, "minutes"),
            7200..172_800 => (seconds / 3600, "hours"),
            _ => (seconds / 86_400, "days"),
        };
        write!(f, "{seconds}s ({count} {unit})")
    }
}

impl core::error::Error for VerifyError {}
