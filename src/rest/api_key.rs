//! API keys: the secret a customer holds, and what the service keeps of it.
//!
//! ```text
//! created ──> [valid] ──────────────> expired   from `expires_at` on
//!                └──────────────────> revoked   from the moment it is recorded
//! ```
//!
//! The service draws 32 random bytes, makes an [`ApiKey`] of them, shows it once, and stores a
//! [`StoredKey`]: the key's digest, by which a request's key is found again, and its life. Several
//! keys of an account live side by side, so a key is rotated by making the next before revoking
//! the last.
//!
//! ```
//! use call_assistant::Product;
//! use call_assistant::rest::{ApiKey, Mode, Scope, StoredKey};
//! use call_assistant::id::{AccountId, CredentialId};
//! # let now = call_assistant::Timestamp::UNIX_EPOCH;
//! # let random = [7; 32];
//!
//! let key = ApiKey::from_random(&Product::default(), Mode::Test, random);
//! assert!(key.reveal().starts_with("service_test_"));
//! assert_eq!(format!("{key:?}"), r#"ApiKey("service_test_...0707")"#);
//!
//! let account = AccountId::parse("acct_1").unwrap();
//! let stored = StoredKey::new(CredentialId::from_random([1; 16]), account, &key, now)
//!     .named("Nightly sync")
//!     .with_scopes([Scope::CallsRead]);
//! assert_eq!(stored.digest, key.digest());
//! ```

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::Product;
use crate::Timestamp;
use crate::id::{AccountId, CredentialId};
use crate::json::open_enum;
use crate::mac;
use crate::secret::Secret;

/// The secret text of an API key. Never shown but by [`reveal`](Self::reveal); wiped when dropped.
#[derive(Clone)]
pub struct ApiKey {
    text: Secret,
    mode: Mode,
    prefix_len: usize,
}

/// Whether a key reaches production data or test data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Production data.
    Live,
    /// Test data.
    Test,
}

impl Mode {
    /// True for [`Mode::Live`]: what the account and everything else calls `livemode`.
    #[must_use]
    pub fn is_live(self) -> bool {
        self == Self::Live
    }
}

impl ApiKey {
    /// The longest key, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses a key of any product: a prefix that ends in `_live_` or `_test_`, and the secret.
    ///
    /// # Errors
    /// The text has no such prefix, nothing after it, more than [`MAX_LEN`](Self::MAX_LEN) bytes,
    /// or a byte that is not visible ASCII. The error never shows the text.
    pub fn parse(text: &str) -> Result<Self, ApiKeyError> {
        check(text)?;
        let marks = [(Mode::Live, "_live_"), (Mode::Test, "_test_")];
        let found = marks.into_iter().filter_map(|(mode, mark)| {
            let at = text.find(mark).filter(|at| is_slug(text.get(..*at).unwrap_or_default()))?;
            Some((at.saturating_add(mark.len()), mode))
        });
        let (prefix_len, mode) = found.min_by_key(|(len, _)| *len).ok_or(ApiKeyError::Prefix)?;
        Self::with_prefix(text, prefix_len, mode)
    }

    /// Parses a key of this product and of no other.
    ///
    /// # Errors
    /// See [`parse`](Self::parse).
    pub fn parse_for(product: &Product, text: &str) -> Result<Self, ApiKeyError> {
        check(text)?;
        let mode = [Mode::Live, Mode::Test]
            .into_iter()
            .find(|mode| text.starts_with(prefix(product, *mode)))
            .ok_or(ApiKeyError::Prefix)?;
        Self::with_prefix(text, prefix(product, mode).len(), mode)
    }

    fn with_prefix(text: &str, prefix_len: usize, mode: Mode) -> Result<Self, ApiKeyError> {
        if text.len() == prefix_len {
            return Err(ApiKeyError::PrefixOnly);
        }
        Ok(Self { text: Secret::new(text), mode, prefix_len })
    }

    /// Makes a new key from 32 random bytes of the caller's, which must be fit for secrets.
    #[must_use]
    pub fn from_random(product: &Product, mode: Mode, bytes: [u8; 32]) -> Self {
        let prefix = prefix(product, mode);
        Self { text: Secret::from_random(prefix, bytes), mode, prefix_len: prefix.len() }
    }

    /// The text itself: to show once at creation, or to send in `Authorization`.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.text.as_str()
    }

    /// What the key's prefix says. The service trusts what it stored instead (D-12).
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What to store, and by which to find the key again.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(self.text.as_bytes())
    }

    /// What may be shown of the key, so that its owner recognises it: the prefix and the last
    /// four characters. Of a key so short that those would give it away, the prefix only.
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
    type Err = ApiKeyError;

    fn from_str(text: &str) -> Result<Self, ApiKeyError> {
        Self::parse(text)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiKey").field(&self.hint()).finish()
    }
}

/// Compares in constant time.
impl PartialEq for ApiKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for ApiKey {}

/// Why a text is not an API key of this product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiKeyError {
    /// It begins with neither prefix of the product's keys.
    #[error("API key begins with neither a live nor a test prefix")]
    Prefix,
    /// There is nothing behind the prefix.
    #[error("API key ends after its prefix")]
    PrefixOnly,
    /// It is longer than [`ApiKey::MAX_LEN`] bytes.
    #[error("API key has {len} bytes, more than {}", ApiKey::MAX_LEN)]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// A byte is not visible ASCII: often a line end or a blank that was copied along.
    #[error("API key has a byte at {at} that is not visible ASCII")]
    Character {
        /// The byte's position, from 0.
        at: usize,
    },
}

fn check(text: &str) -> Result<(), ApiKeyError> {
    if text.len() > ApiKey::MAX_LEN {
        return Err(ApiKeyError::TooLong { len: text.len() });
    }
    match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
        Some(at) => Err(ApiKeyError::Character { at }),
        None => Ok(()),
    }
}

/// What a product's name becomes in its prefixes.
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

/// The SHA-256 of a key's text: what is stored instead of the key.
///
/// A plain hash suffices where the key holds 256 random bits: there is no dictionary to try.
/// Comparing takes the same time wherever two digests differ. It serialises as 64 lowercase hex
/// digits.
#[derive(Clone, Copy)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest of whatever a request presents as its key, well-formed or not.
    #[must_use]
    pub fn of(presented: &[u8]) -> Self {
        Self(Sha256::digest(presented).into())
    }

    /// The digest's bytes, to look it up by.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest out of storage.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        mac::same(&self.0, &other.0).into()
    }
}

impl Eq for KeyDigest {}

/// Of the digest, which is no secret by itself, enough to tell two apart.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "KeyDigest({}...)", hex::encode([a, b, c, d]))
    }
}

impl Serialize for KeyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for KeyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        match hex::decode_to_slice(&text, &mut bytes) {
            Ok(()) => Ok(Self(bytes)),
            Err(_) => Err(serde::de::Error::custom("expected 64 hex digits")),
        }
    }
}

open_enum! {
    /// What a credential may do. A scope this version does not know grants nothing.
    pub enum Scope {
        /// `GET /v1/account`.
        AccountRead = "account:read",
        /// List and retrieve calls.
        CallsRead = "calls:read",
    }
}

/// What the service keeps of a key. The key itself is not in it and cannot be had from it.
///
/// A new key's comes from [`new`](Self::new). One that is read out of a table has all of its fields
/// filled in, and none of them is taken for granted: a revocation that was left out would let in
/// who is locked out.
///
/// ```
/// use call_assistant::rest::{KeyDigest, KeyState, Mode, Scope, StoredKey};
/// use call_assistant::id::{AccountId, CredentialId};
/// # use call_assistant::Timestamp;
/// # struct Row { digest: [u8; 32], live: bool, scopes: &'static str, created: i64, revoked: i64 }
/// # let row = Row { digest: [1; 32], live: true, scopes: "calls:read", created: 0, revoked: 60 };
///
/// let key = StoredKey {
///     id: CredentialId::parse("cred_1")?,
///     account_id: AccountId::parse("acct_1")?,
///     digest: KeyDigest::from_bytes(row.digest),
///     mode: if row.live { Mode::Live } else { Mode::Test },
///     name: "Nightly sync".into(),
///     hint: "service_live_...eeff".into(),
///     scopes: row.scopes.split(' ').map(Scope::from).collect(),
///     created_at: Timestamp::from_unix(row.created).ok_or("out of range")?,
///     last_used_at: None,
///     expires_at: None,
///     revoked_at: Timestamp::from_unix(row.revoked),
/// };
/// assert_eq!(key.state(Timestamp::UNIX_EPOCH), KeyState::Revoked);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It also serialises as a whole. In that form a field it does not know is passed over, and each
/// of its own must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKey {
    /// Which key: it names the key in logs and rate limits, and is no secret.
    pub id: CredentialId,
    /// The one account it belongs to.
    pub account_id: AccountId,
    /// By which a presented key is found.
    pub digest: KeyDigest,
    /// Production or test data. Requests go by this, not by the text of the prefix (D-12).
    pub mode: Mode,
    /// What its owner calls it.
    pub name: String,
    /// What may be shown of the secret.
    pub hint: String,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last authenticated a request.
    // Said to be read by its own reader, so that a value without it is refused.
    #[serde(deserialize_with = "Option::deserialize")]
    pub last_used_at: Option<Timestamp>,
    /// The instant from which on it is expired.
    #[serde(deserialize_with = "Option::deserialize")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(deserialize_with = "Option::deserialize")]
    pub revoked_at: Option<Timestamp>,
}

/// Whether a stored key can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It can.
    Valid,
    /// Its `expires_at` has come (D-11).
    Expired,
    /// It was revoked.
    Revoked,
}

impl StoredKey {
    /// What to store of a new key: without a name, scopes or expiry.
    #[must_use]
    pub fn new(id: CredentialId, account_id: AccountId, key: &ApiKey, now: Timestamp) -> Self {
        Self {
            id,
            account_id,
            digest: key.digest(),
            mode: key.mode(),
            name: String::new(),
            hint: key.hint(),
            scopes: BTreeSet::new(),
            created_at: now,
            last_used_at: None,
            expires_at: None,
            revoked_at: None,
        }
    }

    /// The same key with a display name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The same key with these scopes and no others.
    #[must_use]
    pub fn with_scopes(self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self { scopes: scopes.into_iter().collect(), ..self }
    }

    /// The same key, expired from this instant on.
    #[must_use]
    pub fn expiring(self, at: Timestamp) -> Self {
        Self { expires_at: Some(at), ..self }
    }

    /// Revokes the key, at once: a recorded revocation counts whatever the clock says, so a clock
    /// that steps back revives nothing. Revoking again keeps the first instant.
    pub fn revoke(&mut self, now: Timestamp) {
        self.revoked_at.get_or_insert(now);
    }

    /// Whether the key can be used.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(expires_at)) if now >= expires_at => KeyState::Expired,
            _ => KeyState::Valid,
        }
    }
}
