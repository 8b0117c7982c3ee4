//! The text that both sides share.

use core::fmt;

use crate::secret::Secret;

/// Holds the secret that signs the deliveries to one webhook endpoint.
///
/// ```
/// use call_assistant::webhook::{SecretError, SigningSecret};
///
/// // The service, when an endpoint is created: 32 bytes from its random source.
/// let secret = SigningSecret::from_random([7; 32]);
/// let shown_once = secret.reveal();
/// assert!(shown_once.starts_with("whsec_"));
///
/// // The customer, from a configuration.
/// let same = SigningSecret::parse(shown_once)?;
/// assert_eq!(format!("{same:?}"), "SigningSecret([redacted])");
///
/// // Spaces, quotes and line ends around it are refused: they would sign differently.
/// assert_eq!(SigningSecret::parse("whsec_abc\n").unwrap_err(), SecretError::Character { at: 9 });
/// # Ok::<(), SecretError>(())
/// ```
///
/// It is wiped when dropped. Only [`reveal`](Self::reveal) shows it.
#[derive(Clone)]
pub struct SigningSecret(Secret);

impl SigningSecret {
    /// The first characters of every signing secret. They are part of the key.
    pub const PREFIX: &'static str = "whsec_";

    /// The length of the longest secret, in bytes, including the prefix.
    pub const MAX_LEN: usize = 255;

    /// Reads a secret exactly as it was shown when the endpoint was created.
    ///
    /// # Errors
    /// Returns an error if the text does not begin with `whsec_`, has nothing after it, is longer
    /// than [`MAX_LEN`](Self::MAX_LEN) bytes, or has a byte that is not visible ASCII. Nothing is
    /// trimmed: a text that needs trimming is not the secret.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        if text.len() > Self::MAX_LEN {
            return Err(SecretError::TooLong { len: text.len() });
        }
        let Some(rest) = text.strip_prefix(Self::PREFIX) else {
            return Err(SecretError::Prefix);
        };
        if rest.is_empty() {
            return Err(SecretError::Empty);
        }
        match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
            Some(at) => Err(SecretError::Character { at }),
            None => Ok(Self(Secret::new(text))),
        }
    }

    /// Creates a new secret from 32 random bytes of the caller.
    #[must_use]
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(Secret::from_random(Self::PREFIX, bytes))
    }

    /// Returns the complete text. Show it once, when the endpoint is created, and store it encrypted.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl core::str::FromStr for SigningSecret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::parse(text)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningSecret").field(&self.0).finish()
    }
}

/// Says why a text is not a [`SigningSecret`]. It never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// The text does not begin with `whsec_`.
    Prefix,
    /// Nothing follows the prefix.
    Empty,
    /// The text is longer than [`SigningSecret::MAX_LEN`] bytes.
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// A byte is not visible ASCII: a space, a typographic quote, a line end.
    Character {
        /// The byte's position, from 0.
        at: usize,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => {
                write!(f, "signing secret does not begin with {}", SigningSecret::PREFIX)
            }
            Self::Empty => write!(f, "signing secret has nothing after {}", SigningSecret::PREFIX),
            Self::TooLong { len } => {
                write!(f, "signing secret has {len} bytes, more than {}", SigningSecret::MAX_LEN)
            }
            Self::Character { at } => {
                write!(f, "signing secret has a byte at {at} that is not visible ASCII")
            }
        }
    }
}

impl core::error::Error for SecretError {}
