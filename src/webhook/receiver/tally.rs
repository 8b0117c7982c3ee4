//! What a receiver counts.

use core::fmt;

use super::{Claim, ReceiptError};
use crate::metrics::{Counters, OpenMetrics};
use crate::webhook::{VerifyError, WebhookResponse};

/// Counts verifications by result and events by what became of them.
///
/// ```
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::webhook::receiver::{CLAIM_LEASE, Inbox, ReceiverTally};
/// use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
/// # let now = call_assistant::Timestamp::from_unix(1_767_225_600).unwrap();
///
/// let (mut tally, mut inbox) = (ReceiverTally::default(), Inbox::new(10_000));
/// let secret = SigningSecret::parse("whsec_shown-once")?;
/// let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", b"{}", now)?;
/// let received = Verifier::new(secret).receive(request.headers(), request.body(), now);
/// tally.received(&received);
/// let claim = inbox.claim(received?, CLAIM_LEASE, now);
/// tally.claimed(&claim);
///
/// let mut text = OpenMetrics::new(String::new());
/// tally.write(&mut text)?;
/// assert!(text.end()?.contains("call_assistant_receiver_verifications_total{result=\"ok\"} 1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [No label](crate::metrics#labels) holds an account or an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverTally {
    verifications: Counters<9>,
    claims: Counters<3>,
}

const RESULTS: [&str; 9] = [
    "ok",
    "missing",
    "repeated",
    "malformed",
    "uppercase_digest",
    "mismatch",
    "too_old",
    "too_new",
    "contradiction",
];

impl ReceiverTally {
    /// Counts a delivery: the result of [`Verifier::receive`](crate::webhook::Verifier::receive).
    pub fn received<T>(&mut self, result: &Result<T, ReceiptError>) {
        self.verifications.count(match result {
            Ok(_) => 0,
            Err(ReceiptError::Verify(error)) => match error {
                VerifyError::Missing => 1,
                VerifyError::Repeated => 2,
                VerifyError::Malformed(_) => 3,
                VerifyError::UppercaseDigest { .. } => 4,
                VerifyError::Mismatch => 5,
                VerifyError::TooOld { .. } => 6,
                VerifyError::TooNew { .. } => 7,
            },
            Err(ReceiptError::Event(_)) => 8,
        });
    }

    /// Counts what an inbox decided about an event.
    pub fn claimed(&mut self, claim: &Claim) {
        self.claims.count(match claim {
            Claim::Process(_) => 0,
            Claim::Answer(WebhookResponse::Duplicate) => 1,
            Claim::Answer(_) => 2,
        });
    }

    /// Adds what another tally has counted.
    pub fn merge(&mut self, other: &Self) {
        self.verifications.merge(&other.verifications);
        self.claims.merge(&other.claims);
    }

    /// Writes the counters.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        text.counter(
            "call_assistant_receiver_verifications",
            "Signatures that were checked.",
            self.verifications.by("result", RESULTS),
        )?;
        text.counter(
            "call_assistant_receiver_claims",
            "Verified events, by what the inbox decided.",
            self.claims.by("decision", ["process", "duplicate", "busy"]),
        )
    }
}
