//! Why a signer or a verifier is not set up as asked.

use core::fmt;
use core::time::Duration;

/// The most secrets of a signer.
pub(super) const MAX_SECRETS: usize = 4;

/// The longest tolerance of a verifier.
pub(super) const MAX_TOLERANCE: Duration = Duration::from_secs(3600);

/// Says why a [`Signer`](super::Signer) or a [`Verifier`](super::Verifier) cannot be set up so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The signer has [`Signer::MAX_SECRETS`](super::Signer::MAX_SECRETS) already.
    TooManySecrets,
    /// The verifier's tolerance is zero.
    NoTolerance,
    /// The verifier's tolerance is more than
    /// [`Verifier::MAX_TOLERANCE`](super::Verifier::MAX_TOLERANCE).
    LongTolerance,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManySecrets => {
                write!(f, "signer has more than {MAX_SECRETS} secrets")
            }
            Self::NoTolerance => f.write_str("signature tolerance is zero"),
            Self::LongTolerance => {
                write!(f, "signature tolerance is more than {MAX_TOLERANCE:?}")
            }
        }
    }
}

impl core::error::Error for SetupError {}
