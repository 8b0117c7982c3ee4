//! The verifier, and the proof that the verifier returns.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use http::HeaderMap;
use subtle::{Choice, ConditionallySelectable};

use super::grammar::Signature;
use super::headers::{DeliveryHeader, DeliveryHeaders};
use super::setup_error::SetupError;
use super::signing_secret::SigningSecret;
use super::verify_error::VerifyError;
use crate::secret::mac::{self, MacKey};
use crate::text::Occurs;
use crate::{Product, Timestamp};

/// The check that a delivery is genuine.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
///
/// let old = SigningSecret::parse("whsec_old")?;
/// let new = SigningSecret::parse("whsec_new")?;
/// let verifier = Verifier::new(new).with_secret(old.clone());
///
/// let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// let request = testing::signed_request(&Signer::new(old), "ping", "evt_1", b"{}", now)?;
/// let (headers, body) = (request.headers(), request.body());
///
/// let verified = verifier.verify(headers, body, now)?;
/// assert_eq!(verified.secret_index(), 1); // the old secret is still in use
///
/// let late = now.saturating_add(Duration::from_secs(301));
/// let error = verifier.verify(headers, body, late).unwrap_err();
/// assert_eq!(error.to_string(), "signature is 301s old, more than the tolerance of 300s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Create a verifier only once, because creating a verifier computes HMAC's key schedule for each
/// secret. Verification copies nothing and allocates nothing. For each secret that is tried, it
/// computes one HMAC, regardless of the number of `v1` in the header. Digests are compared in
/// constant time. The time `t` is checked last. Therefore only a sender with the secret learns that
/// a signature is stale.
#[derive(Clone, Debug)]
pub struct Verifier {
    first: MacKey,
    others: Vec<MacKey>,
    product: Product,
    tolerance: Duration,
}

impl Verifier {
    /// The tolerance unless another one is set: 300 seconds.
    pub const TOLERANCE: Duration = Duration::from_secs(300);

    /// The longest tolerance that can be set: one hour.
    pub const MAX_TOLERANCE: Duration = Duration::from_secs(3600);

    /// Creates a verifier that accepts deliveries signed with this secret.
    #[must_use]
    pub fn new(secret: SigningSecret) -> Self {
        Self {
            first: MacKey::new(secret.as_bytes()),
            others: Vec::new(),
            product: Product::default(),
            tolerance: Self::TOLERANCE,
        }
    }

    /// Adds a secret that the verifier also accepts. The verifier tries secrets in the order in
    /// which they were added.
    #[must_use]
    pub fn with_secret(mut self, secret: SigningSecret) -> Self {
        self.others.push(MacKey::new(secret.as_bytes()));
        self
    }

    /// Sets the product that the headers are named after.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// Sets the tolerance: the greatest accepted difference between `t` and `now`, in both
    /// directions. A difference equal to the tolerance is accepted.
    ///
    /// # Errors
    /// Returns an error if the tolerance is zero, or is more than
    /// [`MAX_TOLERANCE`](Self::MAX_TOLERANCE). The check of the time cannot be switched off.
    /// Therefore verify a body when it arrives, and not again when you take it from a queue.
    pub fn with_tolerance(mut self, tolerance: Duration) -> Result<Self, SetupError> {
        if tolerance.is_zero() {
            return Err(SetupError::NoTolerance);
        }
        if tolerance > Self::MAX_TOLERANCE {
            return Err(SetupError::LongTolerance);
        }
        self.tolerance = tolerance;
        Ok(self)
    }

    /// Verifies a delivery from its headers and the exact received bytes of its body.
    ///
    /// # Errors
    /// Returns a [`VerifyError`] that reports the fault. Log the error, and answer with its
    /// [`response`](VerifyError::response).
    pub fn verify<'a>(
        &'a self,
        headers: &'a HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        // The verdict needs one header; the others are looked for when they are asked for.
        let ours = headers.iter().filter(|(name, _)| *name == self.product.signature_header());
        let values = ours.map(|(_, value)| value.as_bytes());
        let signature = values.fold(Occurs::Absent, Occurs::and);
        self.prove(signature, Headers::Map(headers, &self.product), body, now)
    }

    /// Verifies a delivery whose headers are not an `http` 1.x `HeaderMap`.
    ///
    /// ```
    /// # use call_assistant::{Product, Timestamp};
    /// # use call_assistant::webhook::*;
    /// # let secret = SigningSecret::parse("whsec_test")?;
    /// # let now = Timestamp::UNIX_EPOCH;
    /// # let signature = Signer::new(secret.clone()).sign(b"{}", now);
    /// # let verifier = Verifier::new(secret);
    /// let pairs = [("X-Service-Signature", signature.as_str()), ("X-Service-Event", "ping")];
    /// let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
    /// let verified = verifier.verify_parts(headers, b"{}", now)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`VerifyError`] for the same reasons as [`verify`](Self::verify).
    pub fn verify_parts<'a>(
        &self,
        headers: DeliveryHeaders<'a>,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        let signature = headers.field(DeliveryHeader::Signature);
        self.prove(signature, Headers::Parts(headers), body, now)
    }

    fn prove<'a>(
        &self,
        signature: Occurs<&[u8]>,
        headers: Headers<'a>,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        let signature = match signature {
            Occurs::Absent => return Err(VerifyError::Missing),
            Occurs::Repeated => return Err(VerifyError::Repeated),
            Occurs::Once(text) => Signature::parse(text)?,
        };
        let secret_index = self.find(&signature, body)?;
        let age_seconds = age(signature.seconds, now, self.tolerance)?;
        Ok(Verified { body, headers, secret_index, age_seconds })
    }

    /// Returns the position of the first secret that created one of the header's digests.
    fn find(&self, signature: &Signature<'_>, body: &[u8]) -> Result<usize, VerifyError> {
        let mut uppercase = None;
        for (index, key) in core::iter::once(&self.first).chain(&self.others).enumerate() {
            let digest = key.digest(&[signature.timestamp, b".", body]);
            match compare(&digest, signature) {
                Match::Lowercase => return Ok(index),
                Match::Uppercase { part } => uppercase = uppercase.or(Some(part)),
                Match::None => {}
            }
        }
        Err(uppercase.map_or(VerifyError::Mismatch, |part| VerifyError::UppercaseDigest { part }))
    }
}

/// The headers of a delivery, as the caller passed them.
enum Headers<'a> {
    Map(&'a HeaderMap, &'a Product),
    Parts(DeliveryHeaders<'a>),
}

/// The result of comparing a digest with a header's digests.
enum Match {
    Lowercase,
    Uppercase { part: usize },
    None,
}

/// Compares all digests without early exit. Therefore the duration does not show which digest is
/// right, or how many bytes of a digest are right.
fn compare(digest: &[u8; 32], signature: &Signature<'_>) -> Match {
    let mut lowercase = Choice::from(0);
    let mut uppercase = Choice::from(0);
    let mut uppercase_part = 0_u64;
    for theirs in signature.candidates() {
        let same = mac::same(digest, &theirs.digest);
        if theirs.is_lowercase {
            lowercase |= same;
        } else {
            uppercase_part.conditional_assign(&theirs.part.into(), same & !uppercase);
            uppercase |= same;
        }
    }
    verdict(lowercase, uppercase, uppercase_part)
}

/// Returns the result of the comparison. Only this function branches on secret data.
#[expect(clippy::expect_used, reason = "a header has 16 parts at most")]
fn verdict(lowercase: Choice, uppercase: Choice, uppercase_part: u64) -> Match {
    if lowercase.into() {
        Match::Lowercase
    } else if uppercase.into() {
        Match::Uppercase { part: usize::try_from(uppercase_part).expect("at most 16") }
    } else {
        Match::None
    }
}

/// Returns the age of a signature in whole seconds, if this age is within the tolerance.
pub(super) fn age(signed_at: u64, now: Timestamp, tolerance: Duration) -> Result<i64, VerifyError> {
    // Both since the first of all instants, so that neither is negative.
    let epoch = Timestamp::UNIX_EPOCH.since(Timestamp::MIN);
    let signed = epoch.saturating_add(Duration::from_secs(signed_at));
    let now = now.since(Timestamp::MIN);
    let distance = now.abs_diff(signed);
    match (now >= signed, distance <= tolerance) {
        (true, true) => Ok(0_i64.saturating_add_unsigned(distance.as_secs())),
        (false, true) => Ok(0_i64.saturating_sub_unsigned(distance.as_secs())),
        (true, false) => Err(VerifyError::TooOld { age: distance, tolerance }),
        (false, false) => Err(VerifyError::TooNew { ahead: distance, tolerance }),
    }
}

/// A body with the proof that a sender with the secret signed exactly these bytes.
///
/// ```
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
/// # let secret = SigningSecret::parse("whsec_test")?;
/// # let now = Timestamp::UNIX_EPOCH;
/// # let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", b"{}", now)?;
/// # let verifier = Verifier::new(secret);
/// let verified = verifier.verify(request.headers(), request.body(), now)?;
/// assert_eq!(verified.bytes(), b"{}");
/// assert_eq!((verified.secret_index(), verified.age_seconds()), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only [`Verifier`] creates this value. The signature covers the body and the time `t`, but no
/// other header. Therefore read the type and the id of an event from the body. Store the bytes
/// before you answer 2xx, because the service does not send an acknowledged event again. With the
/// feature `client`, `Verifier::receive` returns a receipt, and the receipt creates the response.
#[must_use]
pub struct Verified<'a> {
    body: &'a [u8],
    headers: Headers<'a>,
    secret_index: usize,
    age_seconds: i64,
}

impl<'a> Verified<'a> {
    /// Returns the body, exactly as received. If you handle the event later, queue these bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the index of the secret that matched. The secret of [`Verifier::new`] has index 0.
    /// The secrets of [`Verifier::with_secret`] follow in order.
    #[must_use]
    pub const fn secret_index(&self) -> usize {
        self.secret_index
    }

    /// Returns the number of whole seconds since the attempt was signed. If the sender's clock is
    /// ahead, this number is negative.
    #[must_use]
    pub const fn age_seconds(&self) -> i64 {
        self.age_seconds
    }

    /// Returns the three headers of the delivery. **Only the signature header proves that the
    /// delivery is genuine.** The event header and the delivery header are not signed, and must
    /// agree with the body.
    #[must_use]
    pub fn headers(&self) -> DeliveryHeaders<'a> {
        match self.headers {
            Headers::Map(map, product) => DeliveryHeaders::from_map(product, map),
            Headers::Parts(headers) => headers,
        }
    }
}

/// Shows no body, because a body may contain callers' words.
impl fmt::Debug for Verified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("len", &self.body.len())
            .field("headers", &self.headers())
            .field("secret_index", &self.secret_index)
            .field("age_seconds", &self.age_seconds)
            .finish()
    }
}
