//! The counters of a receiver.

use core::convert::identity;

use super::{ClaimOutcome, Receipt, ReceiptError};
use crate::metrics::{Counters, label, side_metrics};
use crate::webhook::{VerifyError, WebhookResponse};

side_metrics! {
    /// Counters of verifications, by result and by secret, and counters of events, by outcome.
    ///
    /// ```
    /// use call_assistant::metrics::OpenMetrics;
    /// use call_assistant::webhook::receiver::ReceiverMetrics;
    /// # use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
    /// # let now = call_assistant::Timestamp::from_unix(1_767_225_600).unwrap();
    /// # let secret = SigningSecret::parse("whsec_test")?;
    /// # let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", b"{}", now)?;
    /// # let verifier = Verifier::new(secret);
    /// # let insert = |_key, _body| Ok::<usize, std::io::Error>(1);
    ///
    /// let mut metrics = ReceiverMetrics::default(); // one for the process, behind a lock
    /// let result = verifier.receive(request.headers(), request.body(), now);
    /// metrics.received(&result);
    /// let receipt = result?;
    /// let rows = insert(receipt.key(), request.body())?; // INSERT OR IGNORE: no row for a copy
    /// metrics.stored(rows == 1);
    /// let response = receipt.stored();
    ///
    /// let mut text = OpenMetrics::new(String::new());
    /// metrics.write(&mut text)?;
    /// let text = text.end()?;
    /// assert!(text.contains("call_assistant_receiver_secrets_total{secret=\"first\"} 1\n"));
    /// assert!(text.contains("call_assistant_receiver_events_total{result=\"stored\"} 1\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A program that claims events calls [`claimed`](Self::claimed) instead of [`stored`](Self::stored).
    /// [No label](crate::metrics#labels) holds an account or an event.
    pub struct ReceiverMetrics {
        verifications: Counters<Verification> = "call_assistant_receiver_verifications",
            "Signatures that were checked.";
        secrets: Counters<Secret> = "call_assistant_receiver_secrets",
            "Verified deliveries, by the secret that matched.";
        events: Counters<Fate> = "call_assistant_receiver_events",
            "Verified events, by what became of them.";
    }
}

impl ReceiverMetrics {
    /// Counts a delivery, by the result of [`Verifier::receive`](crate::webhook::Verifier::receive)
    /// and by [the secret](Receipt::secret_index) that matched.
    pub fn received(&mut self, result: &Result<Receipt, ReceiptError>) {
        self.verifications.count(result.as_ref().err());
        if let Ok(receipt) = result {
            self.secrets.count(receipt.secret_index());
        }
    }

    /// Counts a stored event, for a program with the order [store, answer, handle
    /// later](super#store-answer-handle-later). If the insert affected no row, the event is a copy,
    /// and `is_new` is false.
    pub fn stored(&mut self, is_new: bool) {
        self.events.count(Fate(if is_new { "stored" } else { "duplicate" }));
    }

    /// Counts the decision about an event, for a program with the order [claim, handle, done,
    /// answer](super#claim-handle-done-answer).
    pub fn claimed(&mut self, claim: &ClaimOutcome) {
        self.events.count(Fate(match claim {
            ClaimOutcome::Process(_) => "claimed",
            ClaimOutcome::Answer(WebhookResponse::Duplicate) => "duplicate",
            ClaimOutcome::Answer(_) => "busy",
        }));
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
    Secret = "secret", usize {
        0 => "first",
        1 => "second",
        _ => "later",
    }
}

label!(Fate = "result", &'static str, ["stored", "claimed", "duplicate", "busy"], identity);
