//! The signer, and the text it writes. `grammar.rs` reads it.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};

use super::secret::SigningSecret;
use super::setup_error::SetupError;
use crate::secret::mac::MacKey;
use crate::text::FixedText;
use crate::{Product, Timestamp};

/// The service's side of a signature: it signs deliveries.
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
/// Sign every attempt again, with its own time and the current secrets, over the same stored bytes.
/// Create a signer once per endpoint: it keeps the key schedules, which take half the time of
/// signing a short message.
#[derive(Clone, Debug)]
pub struct Signer {
    newest: MacKey,
    older: Vec<MacKey>,
    product: Product,
}

impl Signer {
    /// The most secrets of a signer: 4. Receivers read 16 parts and 1 KiB.
    pub const MAX_SECRETS: usize = 4;

    /// Creates a signer with one secret.
    #[must_use]
    pub fn new(newest: SigningSecret) -> Self {
        Self {
            newest: MacKey::new(newest.as_bytes()),
            older: Vec::new(),
            product: Product::default(),
        }
    }

    /// Adds an older secret, while the newer ones replace it: the header gets one `v1` for each
    /// secret, in the order in which they were added.
    ///
    /// ```
    /// # use call_assistant::webhook::{Signer, SigningSecret};
    /// # let (new, old) = (SigningSecret::parse("whsec_new")?, SigningSecret::parse("whsec_old")?);
    /// let signer = Signer::new(new).and(old)?;
    /// assert_eq!(signer.secret_count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`SetupError::TooManySecrets`] if there are [`MAX_SECRETS`](Self::MAX_SECRETS)
    /// already.
    pub fn and(mut self, older: SigningSecret) -> Result<Self, SetupError> {
        if self.secret_count() == Self::MAX_SECRETS {
            return Err(SetupError::TooManySecrets);
        }
        self.older.push(MacKey::new(older.as_bytes()));
        Ok(self)
    }

    /// Sets the product that the headers are named after.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// Returns the number of secrets, which is the number of `v1` in a header.
    #[must_use]
    pub fn secret_count(&self) -> usize {
        self.keys().count()
    }

    fn keys(&self) -> impl Iterator<Item = &MacKey> {
        core::iter::once(&self.newest).chain(&self.older)
    }

    /// Signs exactly these bytes, at the time `now` in whole seconds.
    ///
    /// A clock before 1970 signs as 1970, which no receiver accepts.
    #[must_use]
    #[expect(clippy::expect_used, reason = "there is room for all")]
    pub fn sign(&self, body: &[u8], now: Timestamp) -> SignatureHeader {
        let seconds = u64::try_from(now.unix_seconds()).unwrap_or(0);
        let mut timestamp = FixedText::<MAX_DIGITS>::new();
        write!(timestamp, "{seconds}").expect("writing into memory");
        let mut header = FixedText::new();
        header.push(b"t=");
        header.push(timestamp.as_bytes());
        for key in self.keys() {
            let digest = key.digest(&[timestamp.as_bytes(), b".", body]);
            header.push(b",v1=");
            hex::encode_to_slice(digest, header.room(64)).expect("two digits a byte");
        }
        SignatureHeader(header)
    }

    /// Creates the five headers of one attempt, given the values of the two unsigned ones.
    pub(super) fn headers(
        &self,
        event: HeaderValue,
        delivery: HeaderValue,
        body: &[u8],
        now: Timestamp,
    ) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(5);
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

/// The most digits of a time: 12, those of the year 9999.
const MAX_DIGITS: usize = 12;

/// The longest header: `t=` and the time, then `,v1=` and a digest for each secret, 286 bytes.
const CAPACITY: usize = 2 + MAX_DIGITS + (4 + 64) * Signer::MAX_SECRETS;

impl SignatureHeader {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Creates the header value. It is marked sensitive, to keep it out of logs and of compression
    /// tables.
    #[must_use]
    #[expect(clippy::expect_used, reason = "nothing but ASCII is pushed")]
    pub fn to_header_value(&self) -> HeaderValue {
        let value = HeaderValue::from_bytes(self.0.as_bytes());
        let mut value = value.expect("nothing but ASCII is pushed");
        value.set_sensitive(true);
        value
    }
}

/// Without the digests: whoever has a log of signatures can replay them.
impl fmt::Debug for SignatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = self.as_str().split(',').next().unwrap_or_default();
        write!(f, "SignatureHeader({timestamp}, [redacted])")
    }
}
