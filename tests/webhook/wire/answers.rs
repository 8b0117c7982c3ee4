//! What a receiver answers (D-46).

use core::marker::PhantomData;
use core::time::Duration;

use call_assistant::webhook::{MalformedReason, Verified, VerifyError, WebhookResponse};
use http::StatusCode;

#[cfg(feature = "client")]
use super::{NOW, at, signed, verifier};

#[test]
fn receipts_have_their_status() {
    let cases = [
        #[cfg(feature = "client")]
        (accepted(), 204),
        (WebhookResponse::Rejected, 400),
        (WebhookResponse::Unavailable, 503),
        (WebhookResponse::DisableEndpoint, 410),
    ];
    for (receipt, status) in cases {
        let shown = format!("{receipt:?}");
        assert_eq!(receipt.status(), status, "{shown}");
        let response = receipt.into_response::<Vec<u8>>();
        assert_eq!(response.status(), status, "{shown}");
        assert!(response.body().is_empty() && response.headers().is_empty(), "{shown}");
    }
}

#[cfg(feature = "client")]
fn accepted() -> WebhookResponse {
    let request = signed("ping", "evt_1", b"{}");
    verifier().receive(request.headers(), request.body(), at(NOW)).unwrap().stored()
}

/// Asks a type itself: the first method is there only where the type can be cloned.
struct Probe<T>(PhantomData<T>);

impl<T: Clone> Probe<T> {
    fn is_clone(&self) -> bool {
        true
    }
}

trait NotClone {
    fn is_clone(&self) -> bool {
        false
    }
}

impl<T> NotClone for Probe<T> {}

/// D-93: one acknowledgement answers one delivery, and so does what creates it.
#[test]
fn an_acknowledgement_cannot_be_copied() {
    assert!(Probe::<StatusCode>(PhantomData).is_clone(), "the probe tells what can be copied");
    assert!(!Probe::<WebhookResponse>(PhantomData).is_clone());
    assert!(!Probe::<Verified<'_>>(PhantomData).is_clone());
    #[cfg(feature = "client")]
    {
        use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Receipt};
        assert!(!Probe::<Receipt>(PhantomData).is_clone());
        assert!(!Probe::<ClaimOutcome>(PhantomData).is_clone());
        assert!(!Probe::<ActiveClaim>(PhantomData).is_clone());
    }
}

#[test]
fn every_refusal_is_an_empty_400_and_says_what_was_wrong() {
    let tolerance = Duration::from_secs(300);
    use MalformedReason as M;
    let malformed = [
        (M::TooLong { len: 1025 }, "has 1025 bytes, more than 1024"),
        (M::TooManyParts, "has more than 16 parts"),
        (M::NotPair { part: 2 }, "part 2 is not name=value"),
        (M::Space { part: 1 }, "part 1 has a space or tab inside"),
        (M::NotPrintable { part: 1 }, "part 1 has a byte that is not printable ASCII"),
        (M::NoTimestamp, "has no t"),
        (M::TwoTimestamps { part: 3 }, "part 3 is a second t"),
        (
            M::Timestamp { part: 1 },
            "part 1: t is not 1 to 19 digits without a sign or a leading zero",
        ),
        (M::NoDigest, "has no v1"),
        (M::DigestLength { part: 2, len: 63 }, "part 2: v1 has 63 bytes instead of 64 hex digits"),
        (
            M::DigestCharacter { part: 2, at: 9 },
            "part 2: v1 has a byte at 9 that is not a hex digit",
        ),
    ]
    .map(|(reason, words)| (reason.into(), format!("signature header {words}")));
    let old = |age| VerifyError::TooOld { age, tolerance };
    let new = |ahead| VerifyError::TooNew { ahead, tolerance };
    let off = [
        (old(Duration::from_millis(300_500)), "300.5s old"),
        (new(Duration::from_secs(301)), "301s in the future"),
        (old(Duration::from_nanos(4_000_169_679_692)), "4000s (66 minutes) old"),
        (old(Duration::from_micros(599_999_999)), "599.999s old"),
        (new(Duration::from_secs(7200)), "7200s (2 hours) in the future"),
        (old(Duration::from_secs(3 * 86_400 + 5)), "259205s (3 days) old"),
    ]
    .map(|(error, words)| {
        (error, format!("signature is {words}, more than the tolerance of 300s"))
    });
    let others = [
        (VerifyError::Missing, "signature header is missing"),
        (VerifyError::Repeated, "signature header is present more than once"),
        (
            VerifyError::UppercaseDigest { part: 2 },
            "signature header part 2: v1 is uppercase hex, not lowercase",
        ),
        (VerifyError::Mismatch, "no v1 of the signature header matches the body"),
    ]
    .map(|(error, words)| (error, words.to_owned()));
    for (error, words) in malformed.into_iter().chain(off).chain(others) {
        assert_eq!(error.to_string(), words, "{words}");
        let response = error.into_response::<Vec<u8>>();
        assert_eq!(response.status(), 400, "{words}");
        assert_eq!(error.response(), WebhookResponse::Rejected, "{words}");
        assert!(response.body().is_empty() && response.headers().is_empty());
    }
}
