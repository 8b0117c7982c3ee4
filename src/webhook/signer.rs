//! The signer, and the text it writes. `grammar.rs` reads it.

use alloc::vec::Vec;
use core::fmt;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};

use super::digest::{Digest, Key};
use super::headers::{self, HeaderTextError};
use super::secret::SigningSecret;
use crate::Product;
use crate::Timestamp;

/// Signs deliveries, as the service does.
///
/// Every attempt is signed afresh, with its own time and the secrets of that moment, over the same
/// stored bytes. Make a signer once per endpoint: it keeps the key schedules, which a short
/// message spends half its time on.
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
#[derive(Clone, Debug)]
pub struct Signer {
    newest: Key,
    older: Vec<Key>,
    product: Product,
}

impl Signer {
    /// As many `v1` as a header gets at most. Receivers take 16 parts and 1 KiB.
    pub const MAX_SECRETS: usize = 4;

    /// Signs with one secret.
    #[must_use]
    pub fn new(secret: SigningSecret) -> Self {
        Self { newest: Key::new(&secret), older: Vec::new(), product: Product::default() }
    }

    /// Signs with several secrets, while one replaces another: a header carries one `v1` for each,
    /// in this order.
    ///
    /// # Errors
    /// There is no secret, or there are more than [`MAX_SECRETS`](Self::MAX_SECRETS).
    pub fn newest_first(
        secrets: impl IntoIterator<Item = SigningSecret>,
    ) -> Result<Self, SignerError> {
        let mut secrets = secrets.into_iter();
        let mut signer = Self::new(secrets.next().ok_or(SignerError::NoSecret)?);
        for secret in secrets {
            if signer.secrets() == Self::MAX_SECRETS {
                return Err(SignerError::TooManySecrets);
            }
            signer.older.push(Key::new(&secret));
        }
        Ok(signer)
    }

    /// Names the headers after this product.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// How many `v1` a header gets.
    #[must_use]
    pub fn secrets(&self) -> usize {
        self.older.len().saturating_add(1)
    }

    /// Signs these bytes, exactly, with `now` as their time in whole seconds. A clock that stands
    /// before 1970 signs as 1970, which no receiver accepts.
    #[must_use]
    pub fn sign(&self, body: &[u8], now: Timestamp) -> SignatureHeader {
        let mut header = SignatureHeader::new();
        header.push(b"t=");
        let seconds = u64::try_from(now.unix_seconds()).unwrap_or_default();
        let (digits, len) = decimal(seconds);
        let timestamp = digits.get(..len).unwrap_or_default();
        header.push(timestamp);
        for key in core::iter::once(&self.newest).chain(&self.older) {
            header.push(b",v1=");
            header.push_digest(&key.digest(timestamp, body));
        }
        header
    }

    /// The five headers of one attempt: what the body is, who sends it, the signature, and the
    /// event's type and id.
    ///
    /// # Errors
    /// The type or the id is empty or not visible ASCII.
    pub fn headers(
        &self,
        event_type: &str,
        event_id: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<HeaderMap, HeaderTextError> {
        let [event, delivery] = headers::claims(event_type, event_id)?;
        Ok(self.headers_of(event, delivery, body, now))
    }

    pub(super) fn headers_of(
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

/// Why a [`Signer`] cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignerError {
    /// There is no secret.
    NoSecret,
    /// There are more than [`Signer::MAX_SECRETS`].
    TooManySecrets,
}

impl fmt::Display for SignerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => f.write_str("signer has no secret"),
            Self::TooManySecrets => {
                write!(f, "signer has more than {} secrets", Signer::MAX_SECRETS)
            }
        }
    }
}

impl core::error::Error for SignerError {}

/// The text of a signature header, in place: `t=1767225600,v1=...`.
#[derive(Clone, Copy)]
pub struct SignatureHeader {
    text: [u8; Self::CAPACITY],
    len: usize,
}

impl SignatureHeader {
    /// `t=` and the twelve digits of the year 9999, then `,v1=` and a digest for each secret.
    const CAPACITY: usize = 2 + 12 + (4 + Digest::HEX_LEN) * Signer::MAX_SECRETS;

    fn new() -> Self {
        Self { text: [0; Self::CAPACITY], len: 0 }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever pushed.
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The value to send. It is marked sensitive: no log and no compression table should keep it.
    #[must_use]
    pub fn to_header_value(&self) -> HeaderValue {
        let mut value = HeaderValue::from_bytes(self.as_bytes())
            .unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    fn push_digest(&mut self, digest: &Digest) {
        if let Some(room) = self.room(Digest::HEX_LEN).and_then(<[u8]>::first_chunk_mut) {
            digest.write_hex(room);
        }
    }

    /// The next bytes of the text. There are always enough: see `CAPACITY`.
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let start = self.len;
        let end = start.checked_add(len)?;
        let room = self.text.get_mut(start..end)?;
        self.len = end;
        Some(room)
    }
}

/// Without the digests: a log of signatures is a log of what can be replayed.
impl fmt::Debug for SignatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = self.as_str().split(',').next().unwrap_or_default();
        write!(f, "SignatureHeader({timestamp}, [redacted])")
    }
}

/// A number's decimal digits, and how many there are.
fn decimal(number: u64) -> ([u8; 20], usize) {
    let mut digits = [0; 20];
    let mut len = 0_usize;
    let mut rest = number;
    loop {
        if let (Some(digit), Ok(value)) = (digits.get_mut(len), u8::try_from(rest % 10)) {
            *digit = b'0'.wrapping_add(value);
        }
        len = len.saturating_add(1);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(written) = digits.get_mut(..len) {
        written.reverse();
    }
    (digits, len)
}
