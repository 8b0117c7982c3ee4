//! What a receiver answers (D-46).

use core::marker::PhantomData;
use core::time::Duration;

use call_assistant::webhook::{DeliveryHeaders, Verified, VerifyError, WebhookResponse};
use http::StatusCode;

#[cfg(feature = "client")]
use super::signed;
use super::{NOW, at, signer, verifier};

// D-93
#[test]
fn receipts_have_their_status() {
    type Case = (fn() -> WebhookResponse, u16);
    let cases: &[Case] = &[
        #[cfg(feature = "client")]
        (accepted, 204),
        (|| WebhookResponse::Rejected, 400),
        (|| WebhookResponse::Unavailable, 503),
        (|| WebhookResponse::DisableEndpoint, 410),
    ];
    for &(receipt, status) in cases {
        let shown = format!("{:?}", receipt());
        assert_eq!(receipt().into_status(), status, "{shown}");
        let response = receipt().into_response::<Vec<u8>>();
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
    let refused = |text: &str, now| {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        verifier().verify_parts(headers, b"{}", now).unwrap_err()
    };
    let zeros = "0".repeat(64);
    let malformed = [
        ("a".repeat(1025), "has 1025 bytes, more than 1024"),
        (["x=y"; 17].join(","), "has more than 16 parts"),
        ("t=1,x".into(), "part 2 is not name=value"),
        ("t =1".into(), "part 1 has a space or tab inside"),
        ("t=1\0".into(), "part 1 has a byte that is not printable ASCII"),
        (format!("v1={zeros}"), "has no t"),
        (format!("t=1,v1={zeros},t=1"), "part 3 is a second t"),
        (
            format!("t=1:,v1={zeros}"),
            "part 1: t is not 1 to 19 digits without a sign or a leading zero",
        ),
        (
            format!("t=1,v1={}g{}", &zeros[..9], &zeros[10..]),
            "part 2: v1 has a byte at 9 that is not a hex digit",
        ),
    ]
    .map(|(text, words)| (refused(&text, at(NOW)), format!("signature header {words}")));
    let signed = signer().sign(b"{}", at(NOW)).as_str().to_owned();
    let upper = signed.to_uppercase().replace("T=", "t=").replace("V1=", "v1=");
    let (_, again) = upper.split_once(',').unwrap();
    let old = |age| refused(&signed, at(NOW).saturating_add(age));
    let new = |ahead| refused(&signed, at(NOW).saturating_sub(ahead));
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
            refused(&format!("{upper},{again}"), at(NOW)),
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
