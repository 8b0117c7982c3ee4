//! What a receiver counts.

use core::fmt;

use super::Claim;
use crate::metrics::{Counters, OpenMetrics};
use crate::webhook::VerifyError;

/// Counts verifications by result and events by what became of them.
///
/// ```
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::webhook::receiver::{CLAIM_LEASE, Inbox, InboxEntry, Tally};
/// use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
/// # let now = call_assistant::Timestamp::from_unix(1_767_225_600).unwrap();
///
/// let mut tally = Tally::default();
/// let secret = SigningSecret::parse("whsec_shown-once")?;
/// let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", b"{}", now)?;
/// let verified = Verifier::new(secret).verify(request.headers(), request.body(), now);
/// tally.verified(&verified);
/// tally.claimed(&InboxEntry::claim(None, CLAIM_LEASE, now));
///
/// let mut text = OpenMetrics::new(String::new());
/// tally.write(&mut text)?;
/// assert!(text.end()?.contains("call_assistant_receiver_verifications_total{result=\"ok\"} 1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [No label](crate::metrics#labels) holds an account or an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    verifications: Counters<8>,
    claims: Counters<3>,
}

const RESULTS: [&str; 8] = [
    "ok",
    "missing",
    "repeated",
    "malformed",
    "uppercase_digest",
    "mismatch",
    "too_old",
    "too_new",
];

impl Tally {
    /// Counts a verification: the result of [`Verifier::verify`](crate::webhook::Verifier::verify).
    pub fn verified<T>(&mut self, result: &Result<T, VerifyError>) {
        self.verifications.count(match result {
            Ok(_) => 0,
            Err(VerifyError::Missing) => 1,
            Err(VerifyError::Repeated) => 2,
            Err(VerifyError::Malformed(_)) => 3,
            Err(VerifyError::UppercaseDigest { .. }) => 4,
            Err(VerifyError::Mismatch) => 5,
            Err(VerifyError::TooOld { .. }) => 6,
            Err(VerifyError::TooNew { .. }) => 7,
        });
    }

    /// Counts what an inbox decided about an event.
    pub fn claimed(&mut self, claim: &Claim) {
        self.claims.count(match claim {
            Claim::Process(_) => 0,
            Claim::Duplicate => 1,
            Claim::Busy => 2,
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
