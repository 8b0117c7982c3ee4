//! The verifier, and what it proves.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use http::HeaderMap;
use subtle::{Choice, ConditionallySelectable};

use super::digest::{Case, Digest, Key};
use super::grammar::{Received, Signature};
use super::headers::{DeliveryHeader, DeliveryHeaders};
use super::secret::SigningSecret;
use super::verify_error::VerifyError;
use crate::Product;
use crate::Timestamp;

/// Proves that a delivery is genuine. Make it once: it keeps each secret's key schedule.
///
/// Verifying copies nothing and allocates nothing. It computes one HMAC for each secret it tries,
/// however many `v1` the header has, compares in constant time, and looks at the time last: only
/// who holds the secret learns that a signature is stale.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret, Verifier, VerifyError};
///
/// let old = SigningSecret::parse("whsec_old")?;
/// let new = SigningSecret::parse("whsec_new")?;
/// let verifier = Verifier::new(new).and(old.clone());
///
/// let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// let headers = Signer::new(old).headers("ping", "evt_1", b"{}", now)?;
///
/// let verified = verifier.verify(&headers, b"{}", now)?;
/// assert_eq!(verified.secret(), 1); // the old one is still in use
///
/// let late = now.saturating_add(Duration::from_secs(301));
/// let refused = verifier.verify(&headers, b"{}", late).unwrap_err();
/// assert_eq!(
///     refused.to_string(),
///     "signature was made 301s ago, more than the tolerance of 300s"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Verifier {
    first: Key,
    others: Vec<Key>,
    product: Product,
    tolerance: Duration,
}

impl Verifier {
    /// How far `t` may be from now, either way, unless set otherwise: 300 seconds.
    pub const TOLERANCE: Duration = Duration::from_secs(300);

    /// The widest tolerance that can be set: an hour.
    pub const MAX_TOLERANCE: Duration = Duration::from_secs(3600);

    /// Accepts deliveries signed with this secret.
    #[must_use]
    pub fn new(secret: SigningSecret) -> Self {
        Self {
            first: Key::new(&secret),
            others: Vec::new(),
            product: Product::default(),
            tolerance: Self::TOLERANCE,
        }
    }

    /// Accepts deliveries signed with this secret, too. Secrets are tried in the order given.
    #[must_use]
    pub fn and(mut self, secret: SigningSecret) -> Self {
        self.others.push(Key::new(&secret));
        self
    }

    /// Finds the headers under this product's names.
    #[must_use]
    pub fn with_product(mut self, product: Product) -> Self {
        self.product = product;
        self
    }

    /// Sets how far `t` may be from now, either way; exactly so far still passes.
    ///
    /// # Errors
    /// The tolerance is zero, which elsewhere means "never mind the time", or more than
    /// [`MAX_TOLERANCE`](Self::MAX_TOLERANCE). The check cannot be switched off: a body that was
    /// verified before and waited in a queue is not verified again.
    pub fn with_tolerance(mut self, tolerance: Duration) -> Result<Self, ToleranceError> {
        if tolerance.is_zero() {
            return Err(ToleranceError::Zero);
        }
        if tolerance > Self::MAX_TOLERANCE {
            return Err(ToleranceError::TooLong);
        }
        self.tolerance = tolerance;
        Ok(self)
    }

    /// Verifies a delivery, given its headers and its body byte for byte as received.
    ///
    /// # Errors
    /// One [`VerifyError`] for each way in which it can be wrong. Answer with its
    /// [`into_response`](VerifyError::into_response).
    pub fn verify<'a>(
        &self,
        headers: &'a HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<Verified<'a>, VerifyError> {
        self.verify_parts(DeliveryHeaders::from_map(&self.product, headers), body, now)
    }

    /// [`verify`](Self::verify) for a host whose headers are not an `http` 1.x `HeaderMap`.
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
    /// As for [`verify`](Self::verify).
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
        let age_seconds = window(signature.seconds, now, self.tolerance)?;
        Ok(Verified { body, headers, secret, age_seconds })
    }

    /// The position of the first secret that made one of the digests.
    fn find(&self, signature: &Signature<'_>, body: &[u8]) -> Result<usize, VerifyError> {
        let mut uppercase = None;
        for (index, key) in core::iter::once(&self.first).chain(&self.others).enumerate() {
            let ours = key.digest(signature.timestamp, body);
            match judge(&ours, signature.digests()) {
                Match::Lower => return Ok(index),
                Match::Upper { part } => uppercase = uppercase.or(Some(part)),
                Match::None => {}
            }
        }
        Err(match uppercase {
            Some(part) => VerifyError::UppercaseDigest { part },
            None => VerifyError::Mismatch,
        })
    }
}

enum Match {
    Lower,
    Upper { part: usize },
    None,
}

/// Compares with every digest received, the well-spelt and the others, and stops at none: which
/// one was right, or how nearly, does not show in the time taken.
fn judge(ours: &Digest, received: impl Iterator<Item = Received>) -> Match {
    let mut lower = Choice::from(0);
    let mut upper = Choice::from(0);
    let mut upper_part = 0_u64;
    for theirs in received {
        let same = ours.ct_eq(&theirs.digest);
        match theirs.case {
            Case::Lower => lower |= same,
            Case::Upper => {
                let part = u64::try_from(theirs.part).unwrap_or_default();
                upper_part.conditional_assign(&part, same & !upper);
                upper |= same;
            }
        }
    }
    verdict(lower, upper, upper_part)
}

/// The one branch on what comparing has found.
fn verdict(lower: Choice, upper: Choice, upper_part: u64) -> Match {
    if lower.into() {
        Match::Lower
    } else if upper.into() {
        Match::Upper { part: usize::try_from(upper_part).unwrap_or_default() }
    } else {
        Match::None
    }
}

/// The age of a signature in seconds, if it is within the tolerance.
pub(super) fn window(
    signed_at: u64,
    now: Timestamp,
    tolerance: Duration,
) -> Result<i64, VerifyError> {
    let second = Duration::from_nanos(u64::from(now.subsec_nanos()));
    match u64::try_from(now.unix_seconds()) {
        Ok(seconds) if seconds >= signed_at => {
            let age = Duration::from_secs(seconds.saturating_sub(signed_at)).saturating_add(second);
            if age > tolerance {
                return Err(VerifyError::TooOld { age, tolerance });
            }
            Ok(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
        }
        seconds => {
            // `now` may lie before 1970, and `t` has up to 19 digits: both fit, and so does the
            // distance between them.
            let distance = match seconds {
                Ok(seconds) => signed_at.saturating_sub(seconds),
                Err(_) => signed_at.saturating_add(now.unix_seconds().unsigned_abs()),
            };
            let ahead = Duration::from_secs(distance).saturating_sub(second);
            if ahead > tolerance {
                return Err(VerifyError::TooNew { ahead, tolerance });
            }
            Ok(i64::try_from(ahead.as_secs()).map_or(i64::MIN, i64::saturating_neg))
        }
    }
}

/// A body proven to come, byte for byte, from who holds the secret.
///
/// Only [`Verifier`] makes one. The signature covers the body and the time, not the headers: what
/// kind of event it is and which one, its body says.
#[derive(Clone, Copy)]
#[must_use]
pub struct Verified<'a> {
    body: &'a [u8],
    headers: DeliveryHeaders<'a>,
    secret: usize,
    age_seconds: i64,
}

impl<'a> Verified<'a> {
    /// The body, exactly as received. Queue these bytes if the event is to be handled later.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Which secret matched: 0 for that of [`Verifier::new`], then in the order of
    /// [`Verifier::and`].
    #[must_use]
    pub const fn secret(&self) -> usize {
        self.secret
    }

    /// Whole seconds since the attempt was signed; negative if the sender's clock is ahead.
    #[must_use]
    pub const fn age_seconds(&self) -> i64 {
        self.age_seconds
    }

    /// The headers that stood beside the body. **Only the signature proves anything**; the event
    /// and delivery headers are claims, to be checked against the body and then forgotten.
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

/// Why a tolerance cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToleranceError {
    /// It is zero.
    Zero,
    /// It is more than [`Verifier::MAX_TOLERANCE`].
    TooLong,
}

impl fmt::Display for ToleranceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("signature tolerance is zero"),
            Self::TooLong => {
                write!(f, "signature tolerance is more than {:?}", Verifier::MAX_TOLERANCE)
            }
        }
    }
}

impl core::error::Error for ToleranceError {}
