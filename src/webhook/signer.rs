//! The signer, and the signature header that the signer writes. `grammar.rs` reads this header.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::iter;
use core::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};

use super::setup_error::SetupError;
use super::signing_secret::SigningSecret;
use crate::secret::mac::MacKey;
use crate::text::FixedText;
use crate::{Product, Timestamp};

/// A signer of deliveries, for the service.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret};
///
/// let signer = Signer::new(SigningSecret::parse("whsec_test")?);
/// let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// let signature = signer.sign(b"{}", now);
/// assert_eq!(
///     signature.as_str(),
///     "t=1767225600,v1=4a942ef9477fb7b15b98664cf7ff2c2543984c1fa6bdf3520b48dcb25bcd1fe4",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// For every attempt, sign the same stored bytes again, with the attempt's time. Keep a signer for
/// each endpoint until the endpoint's secrets change. With a new signer, half of the time for
/// signing a short message goes into HMAC's key schedules. If another process rotates the secret, a
/// kept signer signs without the new secret.
///
/// # Rotation
/// After a rotation, the replaced secret continues to sign until this secret expires. Therefore the
/// receiver has time to switch to the new secret. The signature header has one `v1` for each secret
/// that signs.
///
/// ```
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::{Signer, SigningSecret};
/// # let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// let mut signer = Signer::new(SigningSecret::parse("whsec_first")?);
/// signer.rotate(SigningSecret::parse("whsec_second")?, Signer::OVERLAP, now)?;
/// assert_eq!(signer.sign(b"{}", now).as_str().matches("v1=").count(), 2);
///
/// let tomorrow = now.saturating_add(Signer::OVERLAP);
/// let signature = signer.sign(b"{}", tomorrow); // only `whsec_second`
/// assert_eq!(signature.as_str().matches("v1=").count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Store the [`newest`](Self::newest) secret and each of the [`previous`](Self::previous) secrets
/// in encrypted form. Restore the signer with [`new`](Self::new) and
/// [`with_previous`](Self::with_previous).
#[derive(Clone, Debug)]
pub struct Signer {
    newest: Key,
    /// The replaced secrets with their expiry times, from the newest to the oldest.
    previous: Vec<(Key, Timestamp)>,
    product: Product,
}

#[derive(Clone, Debug)]
struct Key {
    secret: SigningSecret,
    mac: MacKey,
}

impl Key {
    fn new(secret: SigningSecret) -> Self {
        Self { mac: MacKey::new(secret.as_bytes()), secret }
    }
}

impl Signer {
    /// The most secrets that sign at once: 4.
    pub const MAX_SECRETS: usize = 4;

    /// The default time for which a replaced secret continues to sign: 24 hours.
    pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates a signer with one secret.
    #[must_use]
    pub fn new(newest: SigningSecret) -> Self {
        Self { newest: Key::new(newest), previous: Vec::new(), product: Product::default() }
    }

    /// Adds a previous secret from the store. Add previous secrets from the newest to the oldest.
    /// An expired secret is ignored.
    ///
    /// # Errors
    /// Returns [`SetupError::TooManySecrets`] if more than [`MAX_SECRETS`](Self::MAX_SECRETS)
    /// secrets would sign.
    pub fn with_previous(
        mut self,
        secret: SigningSecret,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<Self, SetupError> {
        if now < expires_at {
            self.check_room(now)?;
            self.previous.push((Key::new(secret), expires_at));
        }
        Ok(self)
    }

    /// Replaces the newest secret. The replaced secret continues to sign for `overlap`. If
    /// `overlap` is zero, for example after a leak, the replaced secret stops signing at once.
    ///
    /// # Errors
    /// Returns [`SetupError::TooManySecrets`] if more than [`MAX_SECRETS`](Self::MAX_SECRETS)
    /// secrets would sign. After this error, the signer is unchanged.
    pub fn rotate(
        &mut self,
        secret: SigningSecret,
        overlap: Duration,
        now: Timestamp,
    ) -> Result<(), SetupError> {
        let expires_at = now.saturating_add(overlap);
        if now < expires_at {
            self.check_room(now)?;
            self.previous.insert(0, (self.newest.clone(), expires_at));
        }
        self.newest = Key::new(secret);
        Ok(())
    }

    /// Sets the product that the headers are named after.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// Returns the newest secret.
    #[must_use]
    pub fn newest(&self) -> &SigningSecret {
        &self.newest.secret
    }

    /// Returns each previous secret that still signs, with the instant at which this secret
    /// expires.
    pub fn previous(&self, now: Timestamp) -> impl Iterator<Item = (&SigningSecret, Timestamp)> {
        self.previous_keys(now).map(|(key, end)| (&key.secret, *end))
    }

    fn previous_keys(&self, now: Timestamp) -> impl Iterator<Item = &(Key, Timestamp)> {
        self.previous.iter().filter(move |(_, end)| now < *end)
    }

    fn check_room(&mut self, now: Timestamp) -> Result<(), SetupError> {
        self.previous.retain(|(_, end)| now < *end);
        match self.previous.len().saturating_add(1) < Self::MAX_SECRETS {
            true => Ok(()),
            false => Err(SetupError::TooManySecrets),
        }
    }

    /// Signs exactly these bytes with the time `now`, in whole seconds.
    ///
    /// If `now` is before 1970, the signature has the time 0, and no receiver accepts this
    /// signature.
    #[must_use]
    #[expect(clippy::expect_used, reason = "there is room for all")]
    pub fn sign(&self, body: &[u8], now: Timestamp) -> SignatureHeader {
        let seconds = u64::try_from(now.unix_seconds()).unwrap_or(0);
        let mut timestamp = FixedText::<MAX_DIGITS>::new();
        write!(timestamp, "{seconds}").expect("writing into memory");
        let mut header = FixedText::new();
        header.push(b"t=");
        header.push(timestamp.as_bytes());
        for key in iter::once(&self.newest).chain(self.previous_keys(now).map(|(key, _)| key)) {
            let digest = key.mac.digest(&[timestamp.as_bytes(), b".", body]);
            header.push(b",v1=");
            hex::encode_to_slice(digest, header.room(64)).expect("two digits a byte");
        }
        SignatureHeader(header)
    }

    /// Creates the five headers of one attempt, given the values of the two unsigned headers.
    pub(super) fn headers(
        &self,
        event: HeaderValue,
        delivery: HeaderValue,
        body: &[u8],
        now: Timestamp,
    ) -> HeaderMap {
        // With room for `Host` and `Content-Length`, which a client adds.
        let mut headers = HeaderMap::with_capacity(7);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.product.user_agent().clone());
        headers.insert(self.product.signature_header(), self.sign(body, now).to_header_value());
        headers.insert(self.product.event_header(), event);
        headers.insert(self.product.delivery_header(), delivery);
        headers
    }
}

/// The text of a signature header: `t=1767225600,v1=...`. See [`Signer::sign`].
#[derive(Clone, Copy)]
pub struct SignatureHeader(FixedText<CAPACITY>);

/// The most digits of a time: 12, in the year 9999.
const MAX_DIGITS: usize = 12;

/// The longest header: 286 bytes. A header consists of `t=` and the time, followed by `,v1=` and a
/// digest for each secret.
const CAPACITY: usize = 2 + MAX_DIGITS + (4 + 64) * Signer::MAX_SECRETS;

impl SignatureHeader {
    /// Returns the header's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Creates the header value. The value is marked sensitive, because a signature must not enter
    /// logs or compression tables.
    #[must_use]
    #[expect(clippy::expect_used, reason = "nothing but ASCII is pushed")]
    pub fn to_header_value(&self) -> HeaderValue {
        let value = HeaderValue::from_bytes(self.0.as_bytes());
        let mut value = value.expect("nothing but ASCII is pushed");
        value.set_sensitive(true);
        value
    }
}

/// Shows no digests, because signatures in a log could be replayed.
impl fmt::Debug for SignatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = self.as_str().split(',').next().unwrap_or_default();
        write!(f, "SignatureHeader({timestamp}, [redacted])")
    }
}
