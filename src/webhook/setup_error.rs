//! The error of setting up a signer or a verifier.

use core::fmt;

use super::{Signer, Verifier};

/// The reason why a [`Signer`] or a [`Verifier`] was not set up.
///
/// Open: a new setting may have a new error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// More secrets than [`Signer::MAX_SECRETS`].
    TooManySecrets,
    /// A tolerance of zero.
    NoTolerance,
    /// A tolerance of more than [`Verifier::MAX_TOLERANCE`].
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
