//! The verifier, and what it proves.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use http::HeaderMap;
use subtle::{Choice, ConditionallySelectable};

use super::grammar::Signature;
use super::headers::{DeliveryHeader, DeliveryHeaders};
use super::response::WebhookResponse;
use super::secret::SigningSecret;
use super::setup_error::SetupError;
use super::verify_error::VerifyError;
use crate::secret::mac::{self, MacKey};
use crate::{Product, Timestamp};

/// Proves that deliveries are genuine.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
///
/// let old = SigningSecret::parse("whsec_old")?;
/// let new = SigningSecret::parse("whsec_new")?;
/// let verifier = Verifier::new(new).and(old.clone());
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
/// Create a verifier once: it keeps the key schedule of each secret. Verifying copies nothing and
/// allocates nothing. It computes one HMAC for each secret it tries, however many `v1` the header
/// has, compares in constant time, and checks the time last: only a sender with the secret learns
/// that a signature is stale.
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

    /// The longest tolerance that can be set: an hour.
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

    /// Adds a secret. Secrets are tried in the order in which they were added.
    #[must_use]
    pub fn and(mut self, secret: SigningSecret) -> Self {
        self.others.push(MacKey::new(secret.as_bytes()));
        self
    }

    /// Sets the product that the headers are named after.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// Sets the greatest difference between `t` and now, in both directions. A difference of
    /// exactly the tolerance is accepted.
    ///
    /// # Errors
    /// Returns an error if the tolerance is zero, which elsewhere switches the check off, or more
    /// than [`MAX_TOLERANCE`](Self::MAX_TOLERANCE). The check cannot be switched off: a body that
    /// was verified before it waited in a queue is not verified again.
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

    /// Verifies a delivery, given its headers and its body byte for byte as received.
    ///
    /// # Errors
    /// Returns a [`VerifyError`] that says what is wrong. Answer with its
    /// [`into_response`](VerifyError::into_response).
    pub fn verify<'a>(
        &self,
        headers: &'a HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        self.verify_parts(DeliveryHeaders::from_map(&self.product, headers), body, now)
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
    /// Returns a [`VerifyError`], as [`verify`](Self::verify) does.
    #[expect(clippy::expect_used, reason = "a tolerance is an hour at most")]
    pub fn verify_parts<'a>(
        &self,
        headers: DeliveryHeaders<'a>,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        if headers.repeated() == Some(DeliveryHeader::Signature) {
            return Err(VerifyError::Repeated);
        }
        let text = headers.value(DeliveryHeader::Signature).ok_or(VerifyError::Missing)?;
        let signature = Signature::parse(text)?;
        let secret = self.find(&signature, body)?;
        let age = age(signature.seconds, now, self.tolerance)?;
        let age = i64::try_from(age).expect("at most the tolerance, which is an hour at most");
        Ok(Verified { body, headers, secret, age_seconds: age / 1_000_000_000 })
    }

    /// The position of the first secret that made one of the digests.
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

enum Match {
    Lowercase,
    Uppercase { part: usize },
    None,
}

/// Compares all digests, without early exit: neither which one was right nor how nearly shows in
/// the time taken.
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

/// Holds the one branch that depends on a secret.
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

/// The time from the signature to now in nanoseconds, if it is within the tolerance.
#[expect(clippy::arithmetic_side_effects, reason = "i128 holds 64-bit seconds in nanoseconds")]
pub(super) fn age(
    signed_at: u64,
    now: Timestamp,
    tolerance: Duration,
) -> Result<i128, VerifyError> {
    let seconds = i128::from(now.unix_seconds()) - i128::from(signed_at);
    let age = seconds * 1_000_000_000 + i128::from(now.subsec_nanos());
    if age.unsigned_abs() <= tolerance.as_nanos() {
        return Ok(age);
    }
    let distance = nanoseconds(age.unsigned_abs());
    Err(if age > 0 {
        VerifyError::TooOld { age: distance, tolerance }
    } else {
        VerifyError::TooNew { ahead: distance, tolerance }
    })
}

#[expect(clippy::expect_used, reason = "a difference of 64-bit seconds is one")]
fn nanoseconds(count: u128) -> Duration {
    let seconds = u64::try_from(count / 1_000_000_000).expect("t has at most 19 digits");
    let nanos = u32::try_from(count % 1_000_000_000).expect("less than a second");
    Duration::new(seconds, nanos)
}

/// Holds a body that is proven to come, byte for byte, from a sender with the secret.
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
/// Only [`Verifier`] creates one. The signature covers the body and the time, not the other headers:
/// the type and the id of an event are those in its body. It acknowledges one delivery, so it cannot
/// be copied.
#[must_use]
pub struct Verified<'a> {
    body: &'a [u8],
    headers: DeliveryHeaders<'a>,
    secret: usize,
    age_seconds: i64,
}

impl<'a> Verified<'a> {
    /// Returns the body, exactly as received. If the event is to be handled later, queue these
    /// bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Returns which secret matched: 0 for the one of [`Verifier::new`], then in the order of
    /// [`Verifier::and`].
    #[must_use]
    pub const fn secret_index(&self) -> usize {
        self.secret
    }

    /// Returns the whole seconds since the attempt was signed; negative if the sender's clock is
    /// ahead.
    #[must_use]
    pub const fn age_seconds(&self) -> i64 {
        self.age_seconds
    }

    /// Acknowledges the delivery. Call it once [the bytes](Self::bytes) are stored. With the feature
    /// `client`, `webhook::receiver` also recognises an event that arrives again.
    #[must_use]
    pub const fn stored(self) -> WebhookResponse {
        WebhookResponse::Accepted
    }

    /// Returns the headers of the delivery. **Only the signature proves anything**: the two other
    /// headers are claims, which have to agree with the body.
    #[must_use]
    pub const fn headers(&self) -> DeliveryHeaders<'a> {
        self.headers
    }
}

/// Without the body, which may hold what callers said.
impl fmt::Debug for Verified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("len", &self.body.len())
            .field("headers", &self.headers)
            .field("secret", &self.secret)
            .field("age_seconds", &self.age_seconds)
            .finish()
    }
}
