//! The facts about a delivery that was rejected.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::webhook::headers::DeliveryHeaders;
use crate::webhook::verifier::Verifier;

/// The facts that a receiver has about a delivery that was rejected.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::DeliveryHeaders;
/// use call_assistant::webhook::explain::Evidence;
///
/// let headers = DeliveryHeaders::new().signature(b"t=1767225600");
/// let evidence = Evidence::new(headers, b"{}", "whsec_test").with_known_secret("whsec_staging");
/// let explanation = evidence.explain(Timestamp::UNIX_EPOCH);
/// assert_eq!(explanation.to_string(), "proven: the signature header has no v1");
/// ```
#[derive(Clone)]
pub struct Evidence<'a> {
    pub(super) headers: DeliveryHeaders<'a>,
    pub(super) body: &'a [u8],
    /// The secrets that the verifier accepts, followed by the other known secrets.
    pub(super) secrets: Vec<&'a str>,
    pub(super) accepted: usize,
    pub(super) deliveries: Vec<(DeliveryHeaders<'a>, &'a [u8])>,
    pub(super) tolerance: Duration,
}

impl<'a> Evidence<'a> {
    /// The longest body that is searched for changes: 256 KiB.
    ///
    /// For longer bodies, the search tries only changes of the secret and the header. The search
    /// also omits JSON styles whose texts are longer than four times this length. For bodies near
    /// this length, the search tries only some combinations of several changes, because its
    /// [work](super::Explanation::work) is limited.
    pub const MAX_SEARCHED: usize = 256 * 1024;

    /// Creates the evidence from the headers and the body, as your handler received them. `secret`
    /// is the text in the configuration, before any parsing or trimming.
    #[must_use]
    pub fn new(headers: DeliveryHeaders<'a>, body: &'a [u8], secret: &'a str) -> Self {
        Self {
            headers,
            body,
            secrets: alloc::vec![secret],
            accepted: 1,
            deliveries: Vec::new(),
            tolerance: Verifier::TOLERANCE,
        }
    }

    /// Adds another secret that the verifier accepts, for example during a rotation: see
    /// [`Verifier::with_secret`].
    #[must_use]
    pub fn with_accepted_secret(mut self, secret: &'a str) -> Self {
        self.secrets.insert(self.accepted, secret);
        self.accepted = self.accepted.saturating_add(1);
        self
    }

    /// Adds a secret that you know, but that the verifier does not accept: a previous secret, or a
    /// secret of another endpoint or environment. The first call of this method has number 1: see
    /// [`Cause::number`](super::Cause::number).
    #[must_use]
    pub fn with_known_secret(mut self, secret: &'a str) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Adds another delivery that was received at about the same time. The search then also checks
    /// whether the headers or the bodies of the two deliveries were swapped. The first call of this
    /// method has number 1: see [`Cause::number`](super::Cause::number).
    ///
    /// Each added delivery costs at most two digests for each secret. Therefore add only deliveries
    /// of the same few minutes.
    #[must_use]
    pub fn with_known_delivery(mut self, headers: DeliveryHeaders<'a>, body: &'a [u8]) -> Self {
        self.deliveries.push((headers, body));
        self
    }

    /// Sets the tolerance of the time, for a verifier whose tolerance [is not the
    /// default](Verifier::with_tolerance).
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// Shows no secrets and no bodies.
impl fmt::Debug for Evidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence")
            .field("headers", &self.headers)
            .field("body_len", &self.body.len())
            .field("secrets", &self.secrets.len())
            .field("deliveries", &self.deliveries.len())
            .finish()
    }
}
