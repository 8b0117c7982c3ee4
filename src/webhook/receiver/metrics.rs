//! The counters of a receiver.

use super::{ClaimOutcome, ReceiptError};
use crate::metrics::{Counters, label, side_metrics};
use crate::webhook::{VerifyError, WebhookResponse};

side_metrics! {
    /// Counters of verifications by result, and of events by what became of them.
    ///
    /// ```
    /// use call_assistant::metrics::OpenMetrics;
    /// use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox, ReceiverMetrics};
    /// use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
    /// # let now = call_assistant::Timestamp::from_unix(1_767_225_600).unwrap();
    ///
    /// let (mut metrics, mut inbox) = (ReceiverMetrics::default(), Inbox::new(10_000));
    /// let secret = SigningSecret::parse("whsec_shown-once")?;
    /// let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", b"{}", now)?;
    /// let received = Verifier::new(secret).receive(request.headers(), request.body(), now);
    /// metrics.received(&received);
    /// let claim = inbox.claim(received?, ActiveClaim::LEASE, now);
    /// metrics.claimed(&claim);
    ///
    /// let mut text = OpenMetrics::new(String::new());
    /// metrics.write(&mut text)?;
    /// assert!(text.end()?.contains("call_assistant_receiver_verifications_total{result=\"ok\"} 1\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [No label](crate::metrics#labels) holds an account or an event.
    pub struct ReceiverMetrics {
        verifications: Counters<Verification> = "call_assistant_receiver_verifications",
            "Signatures that were checked.";
        claims: Counters<Decision> = "call_assistant_receiver_claims",
            "Verified events, by what the inbox decided.";
    }
}

impl ReceiverMetrics {
    /// Counts a delivery: the result of [`Verifier::receive`](crate::webhook::Verifier::receive).
    pub fn received<T>(&mut self, result: &Result<T, ReceiptError>) {
        self.verifications.count(result.as_ref().err());
    }

    /// Counts what an inbox decided about an event.
    pub fn claimed(&mut self, claim: &ClaimOutcome) {
        self.claims.count(claim);
    }
}

label! {
    Verification = "result", Option<&ReceiptError> {
        None => "ok",
        Some(ReceiptError::Verify(VerifyError::Missing)) => "missing",
        Some(ReceiptError::Verify(VerifyError::Repeated)) => "repeated",
        Some(ReceiptError::Verify(VerifyError::Malformed(_))) => "malformed",
        Some(ReceiptError::Verify(VerifyError::UppercaseDigest { .. })) => "uppercase_digest",
        Some(ReceiptError::Verify(VerifyError::Mismatch)) => "mismatch",
        Some(ReceiptError::Verify(VerifyError::TooOld { .. })) => "too_old",
        Some(ReceiptError::Verify(VerifyError::TooNew { .. })) => "too_new",
        Some(ReceiptError::Event(_)) => "contradiction",
    }
}

label! {
    Decision = "decision", &ClaimOutcome {
        ClaimOutcome::Process(_) => "process",
        ClaimOutcome::Answer(WebhookResponse::Duplicate) => "duplicate",
        ClaimOutcome::Answer(_) => "busy",
    }
}
