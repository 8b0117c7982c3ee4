//! What a receiver answers (D-46).

use core::marker::PhantomData;
use core::time::Duration;

use call_assistant::webhook::{MalformedReason, Verified, VerifyError, WebhookResponse, testing};
use http::StatusCode;

use super::{NOW, at, signer, verifier};

#[test]
fn receipts_have_their_status() {
    let request = testing::signed_request(&signer(), "ping", "evt_1", b"{}", at(NOW)).unwrap();
    let verifier = verifier();
    let verified = verifier.verify(request.headers(), request.body(), at(NOW)).unwrap();
    let cases = [
        (verified.stored(), 204),
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
        use call_assistant::webhook::receiver::{Claim, Claimed, Receipt};
        assert!(!Probe::<Receipt>(PhantomData).is_clone());
        assert!(!Probe::<Claim>(PhantomData).is_clone());
        assert!(!Probe::<Claimed>(PhantomData).is_clone());
    }
}

#[test]
fn every_refusal_is_an_empty_400_and_says_what_was_wrong() {
    let tolerance = Duration::from_secs(300);
    let cases = [
        (VerifyError::Missing, "signature header is missing"),
        (VerifyError::Repeated, "signature header is present more than once"),
        (
            MalformedReason::TooLong { len: 1025 }.into(),
            "signature header has 1025 bytes, more than 1024",
        ),
        (MalformedReason::TooManyParts.into(), "signature header has more than 16 parts"),
        (MalformedReason::NotPair { part: 2 }.into(), "signature header part 2 is not name=value"),
        (
            MalformedReason::Space { part: 1 }.into(),
            "signature header part 1 has a space or tab inside",
        ),
        (
            MalformedReason::NotPrintable { part: 1 }.into(),
            "signature header part 1 has a byte that is not printable ASCII",
        ),
        (MalformedReason::NoTimestamp.into(), "signature header has no t"),
        (
            MalformedReason::TwoTimestamps { part: 3 }.into(),
            "signature header part 3 is a second t",
        ),
        (
            MalformedReason::Timestamp { part: 1 }.into(),
            "signature header part 1: t is not 1 to 19 digits without a sign or a leading zero",
        ),
        (MalformedReason::NoDigest.into(), "signature header has no v1"),
        (
            MalformedReason::DigestLength { part: 2, len: 63 }.into(),
            "signature header part 2: v1 has 63 bytes instead of 64 hex digits",
        ),
        (
            MalformedReason::DigestCharacter { part: 2, at: 9 }.into(),
            "signature header part 2: v1 has a byte at 9 that is not a hex digit",
        ),
        (
            VerifyError::UppercaseDigest { part: 2 },
            "signature header part 2: v1 is uppercase hex, not lowercase",
        ),
        (VerifyError::Mismatch, "no v1 of the signature header matches the body"),
        (
            VerifyError::TooOld { age: Duration::from_millis(300_500), tolerance },
            "signature is 300.5s old, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooNew { ahead: Duration::from_secs(301), tolerance },
            "signature is 301s in the future, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooOld { age: Duration::from_nanos(4_000_169_679_692), tolerance },
            "signature is 4000s (66 minutes) old, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooOld { age: Duration::from_micros(599_999_999), tolerance },
            "signature is 599.999s old, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooNew { ahead: Duration::from_secs(7200), tolerance },
            "signature is 7200s (2 hours) in the future, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooOld { age: Duration::from_secs(3 * 86_400 + 5), tolerance },
            "signature is 259205s (3 days) old, more than the tolerance of 300s",
        ),
    ];
    for (error, words) in cases {
        assert_eq!(error.to_string(), words, "{words}");
        let response = error.into_response::<Vec<u8>>();
        assert_eq!(response.status(), 400, "{words}");
        assert_eq!(error.response(), WebhookResponse::Rejected, "{words}");
        assert!(response.body().is_empty() && response.headers().is_empty());
    }
}
