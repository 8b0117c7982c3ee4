use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::Timestamp;
use crate::id::{AccountId, CredentialId};
use crate::json::stored_object;
use crate::rest::{ApiKey, Mode, Scope};
use crate::secret::mac;

stored_object! {
    /// The record of an API key that the service stores. The key cannot be recovered from the record.
    ///
    /// ```
    /// use call_assistant::id::{AccountId, CredentialId};
    /// use call_assistant::rest::server::{KeyDigest, KeyState, StoredKey};
    /// use call_assistant::rest::{Mode, Scope};
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
    /// [`new`](Self::new) creates the stored form of a new key. For a key that is read from a table, fill in
    /// all fields, because a missing `revoked_at` would re-enable a revoked key. The serialised form also
    /// requires all fields, and ignores unknown fields.
    ///
    /// Closed: a store compiles only if it fills in every field.
    ///
    /// ```text
    /// created ──> [valid] ──────────────> expired   from `expires_at` on
    ///                └──────────────────> revoked   from the moment it is recorded
    /// ```
    ///
    /// # Rotation
    ///
    /// An account can have several valid keys. Therefore no request fails during these steps, which replace
    /// an old key:
    ///
    /// 1. The service stores the [`new`](Self::new) key, with the scopes of the old key, and shows the new
    ///    key. The service may set [`expires_at`](Self::expires_at) of the old key.
    /// 2. The customer switches to the new key with `Client::with_key`.
    /// 3. When `last_used_at` of the old key no longer changes, the service [revokes](Self::revoke) the old
    ///    key. The host must call [`note_use`](Self::note_use) for each identified request. Otherwise,
    ///    `last_used_at` never changes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StoredKey {
        /// The id of the key in logs and rate limits. The id is not a secret.
        pub id: CredentialId,
        /// The account that the key belongs to.
        pub account_id: AccountId,
        /// The digest by which a presented key is looked up.
        pub digest: KeyDigest,
        /// The mode of the key.
        // Requests use this, not the text of the prefix (D-12).
        pub mode: Mode,
        /// The name that the owner gave the key.
        pub name: String,
        /// The part of the key that may be shown.
        pub hint: String,
        /// The permissions of the key.
        pub scopes: BTreeSet<Scope>,
        /// The instant of the key's creation.
        pub created_at: Timestamp,
        /// The instant at which the key last authenticated a request: see [`note_use`](Self::note_use).
        // An explicit reader, so that a value without the field is refused.
        #[serde(deserialize_with = "Option::deserialize")]
        pub last_used_at: Option<Timestamp>,
        /// The instant from which on the key cannot be used.
        #[serde(deserialize_with = "Option::deserialize")]
        pub expires_at: Option<Timestamp>,
        /// The instant of the key's revocation.
        #[serde(deserialize_with = "Option::deserialize")]
        pub revoked_at: Option<Timestamp>,
    }
}

/// The state of a stored key.
///
/// Closed: a program compiles only if it handles every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// A key that can be used.
    Valid,
    /// A key whose `expires_at` has been reached.
    // From that instant on (D-11).
    Expired,
    /// A key that was revoked.
    Revoked,
}

impl StoredKey {
    /// Creates the stored form of a new key, without a name, scopes or expiry.
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

    /// Returns the same key with a display name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns the same key with these scopes and no others.
    #[must_use]
    pub fn with_scopes(self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self { scopes: scopes.into_iter().collect(), ..self }
    }

    /// Revokes the key at once. A recorded revocation stays in effect even if a clock is set back to a time
    /// before the revocation. A second revocation keeps the first instant.
    pub fn revoke(&mut self, now: Timestamp) {
        self.revoked_at.get_or_insert(now);
    }

    /// Notes in `last_used_at` that the key was used, and returns whether to store the use. A use is noted
    /// only if the last noted use is at least `every` before `used_at`, so that most requests write nothing.
    /// If the last noted use is more than `every` after `used_at`, it comes from a wrong clock and is
    /// replaced.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use call_assistant::id::{AccountId, CredentialId};
    /// # use call_assistant::rest::server::StoredKey;
    /// # use call_assistant::rest::{ApiKey, Mode};
    /// # use call_assistant::{Product, Timestamp};
    /// # let (id, account) = (CredentialId::parse("cred_1")?, AccountId::parse("acct_1")?);
    /// # let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    /// # let now = Timestamp::UNIX_EPOCH;
    /// # let mut key = StoredKey::new(id, account, &key, now);
    /// let minute = Duration::from_secs(60);
    /// assert!(key.note_use(minute, now));
    /// assert!(!key.note_use(minute, now.saturating_add(minute / 2)));
    /// assert!(key.note_use(minute, now.saturating_add(minute)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If several processes read the key at the same time, each process may store one use. `last_used_at` may
    /// be up to `every` earlier than the last use.
    ///
    /// ```sql
    #[doc = include_str!("../../guide/sql/server/note_use.sql")]
    /// ```
    pub fn note_use(&mut self, every: Duration, used_at: Timestamp) -> bool {
        // An instant far ahead was stored by a clock that was wrong.
        let due = self
            .last_used_at
            .is_none_or(|last| used_at.since(last) >= every || last.since(used_at) > every);
        if due {
            self.last_used_at = Some(used_at);
        }
        due
    }

    /// Returns the state of the key at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(expires_at)) if now >= expires_at => KeyState::Expired,
            _ => KeyState::Valid,
        }
    }
}

/// The SHA-256 of a key's text, which is stored instead of the key.
///
/// ```
/// use call_assistant::rest::ApiKey;
/// use call_assistant::rest::server::KeyDigest;
///
/// let key = ApiKey::parse("service_live_kept-where-secrets-are")?;
/// assert_eq!(KeyDigest::compute(key.reveal().as_bytes()), key.digest());
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// A hash without salt is enough, because nobody can guess a key of 256 random bits. `==` compares digests in
/// constant time. `Ord` and `Hash` are for maps of digests, and do not take constant time. A digest
/// serialises as 64 lowercase hex digits.
#[derive(Clone, Copy, PartialOrd, Ord, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal digests have equal bytes")]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// Computes the digest of the text that a request presents as its key, even if the text is
    /// malformed.
    #[must_use]
    pub fn compute(presented: &[u8]) -> Self {
        Self(Sha256::digest(presented).into())
    }

    /// Returns the bytes of the digest, for a look-up.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Creates a digest from stored bytes.
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

/// Shows enough of the digest to distinguish two digests. A digest is not a secret.
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

impl ApiKey {
    /// Returns the digest of the key, which the service stores instead of the key.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::compute(self.as_bytes())
    }
}
