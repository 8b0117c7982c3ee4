use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Product;
use crate::json::open_enum;
use crate::secret::Secret;
use crate::secret::mac;
use crate::text::{TextError, TextReason, check_len, check_visible};

/// The secret text of an API key. Only [`reveal`](Self::reveal) shows the whole text. When the key is
/// dropped, its memory is wiped.
///
/// ```
/// use call_assistant::Product;
/// use call_assistant::rest::{ApiKey, Mode};
///
/// let key: ApiKey = "service_test_kept-where-secrets-are".parse()?; // a customer's
/// assert_eq!(key.mode(), Mode::Test);
///
/// let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]); // a service makes one
/// assert!(key.reveal().starts_with("service_live_"));
/// assert_eq!(format!("{key:?}"), r#"ApiKey("service_live_...0707")"#);
/// assert!(ApiKey::parse_for(&Product::new("Acme")?, key.reveal()).is_err()); // another product's
/// # Ok::<(), call_assistant::TextError>(())
/// ```
#[derive(Clone)]
pub struct ApiKey {
    text: Secret,
    mode: Mode,
    prefix_len: usize,
}

/// The kind of data that a key reads: production or test.
///
/// Closed: there is no third kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Production data.
    Live,
    /// Test data.
    Test,
}

impl Mode {
    /// Returns the value of the field `livemode`: true for [`Mode::Live`].
    #[must_use]
    pub fn is_live(self) -> bool {
        self == Self::Live
    }
}

const WHAT: &str = "API key";

impl ApiKey {
    /// The longest key: 255 bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses a key of any product. The key consists of a prefix that ends in `_live_` or `_test_`, followed
    /// by the secret.
    ///
    /// # Errors
    /// Returns an error if the text does not have this form, is longer than [`MAX_LEN`](Self::MAX_LEN) bytes,
    /// or contains a byte that is not visible ASCII. The error never shows the text.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check(text)?;
        let marks = [(Mode::Live, "_live_"), (Mode::Test, "_test_")];
        let found = marks.into_iter().filter_map(|(mode, mark)| {
            let at = text.find(mark).filter(|at| is_slug(text.get(..*at).unwrap_or_default()))?;
            Some((at.saturating_add(mark.len()), mode))
        });
        let (prefix_len, mode) =
            found.min_by_key(|(len, _)| *len).ok_or(refused(TextReason::Prefix))?;
        Self::with_prefix(text, prefix_len, mode)
    }

    /// Parses a key of this product only.
    ///
    /// # Errors
    /// See [`parse`](Self::parse).
    pub fn parse_for(product: &Product, text: &str) -> Result<Self, TextError> {
        check(text)?;
        let mode = [Mode::Live, Mode::Test]
            .into_iter()
            .find(|mode| text.starts_with(prefix(product, *mode)))
            .ok_or(refused(TextReason::Prefix))?;
        Self::with_prefix(text, prefix(product, mode).len(), mode)
    }

    fn with_prefix(text: &str, prefix_len: usize, mode: Mode) -> Result<Self, TextError> {
        if text.len() == prefix_len {
            return Err(refused(TextReason::PrefixOnly));
        }
        Ok(Self { text: Secret::new(text), mode, prefix_len })
    }

    /// Creates a new key from 32 random bytes, which must come from a cryptographic generator.
    #[must_use]
    pub fn from_random(product: &Product, mode: Mode, bytes: [u8; 32]) -> Self {
        let prefix = prefix(product, mode);
        Self { text: Secret::from_random(prefix, bytes), mode, prefix_len: prefix.len() }
    }

    /// Returns the whole text of the key. Show the text once, when you create the key, or send the text in
    /// the header `Authorization`.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the bytes of the text. The function does not check the encoding, because this check would
    /// branch on the secret.
    #[cfg(feature = "service")]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns the mode that the prefix shows. A service must instead use the mode in its record of the key.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns a hint by which the owner recognises the key: the prefix and the last four characters. If the
    /// secret has fewer than 20 characters, the hint is only the prefix.
    #[must_use]
    pub fn hint(&self) -> String {
        let text = self.text.as_str();
        let prefix = text.get(..self.prefix_len).unwrap_or_default();
        let rest = text.get(self.prefix_len..).unwrap_or_default();
        let shown = rest.len().checked_sub(4).filter(|hidden| *hidden >= 16);
        format!("{prefix}...{}", shown.and_then(|from| rest.get(from..)).unwrap_or_default())
    }
}

impl FromStr for ApiKey {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiKey").field(&self.hint()).finish()
    }
}

/// Compares two keys in constant time.
impl PartialEq for ApiKey {
    fn eq(&self, other: &Self) -> bool {
        let [one, other] = [self, other].map(|key| Sha256::digest(key.text.as_bytes()).into());
        mac::same(&one, &other).into()
    }
}

impl Eq for ApiKey {}

fn check(text: &str) -> Result<(), TextError> {
    check_len(WHAT, text, ApiKey::MAX_LEN)?;
    check_visible(WHAT, text)
}

fn refused(reason: TextReason) -> TextError {
    TextError::new(WHAT, reason, "a prefix such as service_live_ or service_test_")
}

/// Returns whether a text has the form of a product's name in a key's prefix.
fn is_slug(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.bytes().all(word) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

fn prefix(product: &Product, mode: Mode) -> &str {
    match mode {
        Mode::Live => product.live_key_prefix(),
        Mode::Test => product.test_key_prefix(),
    }
}

open_enum! {
    /// A permission of a credential. A scope that this version does not know grants no permission.
    pub enum Scope {
        /// Access to `GET /v1/account`.
        AccountRead = "account:read",
        /// Access to the list of calls and to single calls.
        CallsRead = "calls:read",
    }
}
