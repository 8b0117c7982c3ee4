//! The secret that both sides share.

use core::fmt;

use crate::secret::Secret;
use crate::text::{TextError, TextReason, check_len, check_visible};

/// The secret that signs the deliveries to one webhook endpoint.
///
/// ```
/// use call_assistant::TextReason;
/// use call_assistant::webhook::SigningSecret;
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
/// let error = SigningSecret::parse("whsec_abc\n").unwrap_err();
/// assert!(matches!(error.reason(), TextReason::Character { at: 9, .. }));
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// When the secret is dropped, its bytes are wiped. Only [`reveal`](Self::reveal) shows the secret.
#[derive(Clone)]
pub struct SigningSecret(Secret);

const WHAT: &str = "signing secret";

impl SigningSecret {
    /// The prefix of every signing secret: `whsec_`. The prefix is a part of the key.
    pub const PREFIX: &'static str = "whsec_";

    /// The longest secret: 255 bytes, including the prefix.
    pub const MAX_LEN: usize = 255;

    /// Reads a secret exactly as shown when the endpoint was created.
    ///
    /// # Errors
    /// Returns an error if the text does not begin with `whsec_` or has nothing after this prefix.
    /// Also returns an error if the text is longer than [`MAX_LEN`](Self::MAX_LEN) bytes, or has a
    /// byte that is not visible ASCII. Nothing is trimmed, because a text that needs trimming is
    /// not the secret.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let refused = |reason| TextError::new(WHAT, reason, Self::PREFIX);
        check_len(WHAT, text, Self::MAX_LEN)?;
        match text.strip_prefix(Self::PREFIX) {
            None => return Err(refused(TextReason::Prefix)),
            Some("") => return Err(refused(TextReason::PrefixOnly)),
            Some(_) => check_visible(WHAT, text)?,
        }
        Ok(Self(Secret::new(text)))
    }

    /// Creates a new secret from the caller's 32 random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(Secret::from_random(Self::PREFIX, bytes))
    }

    /// Returns the complete secret. Show the secret once, when the endpoint is created. Store the
    /// secret encrypted.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl core::str::FromStr for SigningSecret {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningSecret").field(&self.0).finish()
    }
}
