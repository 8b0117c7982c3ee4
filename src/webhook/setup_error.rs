//! Why a signer or a verifier is not set up as asked.

use core::fmt;

use super::{Signer, Verifier};

/// Says why a [`Signer`] or a [`Verifier`] cannot be set up so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The signer has [`Signer::MAX_SECRETS`] already.
    TooManySecrets,
    /// The verifier's tolerance is zero.
    NoTolerance,
    /// The verifier's tolerance is more than [`Verifier::MAX_TOLERANCE`].
    LongTolerance,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManySecrets => {
                write!(f, "signer has more than {} secrets", Signer::MAX_SECRETS)
            }
            Self::NoTolerance => f.write_str("signature tolerance is zero"),
            Self::LongTolerance => {
                write!(f, "signature tolerance is more than {:?}", Verifier::MAX_TOLERANCE)
            }
        }
    }
}

impl core::error::Error for SetupError {}
