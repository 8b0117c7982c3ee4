//! What a receiver answers (D-46).

use core::time::Duration;

use call_assistant::webhook::{DigestReason, SignatureReason, VerifyError, WebhookResponse};

#[test]
fn receipts_have_their_status() {
    let cases = [
        (WebhookResponse::Accepted, 204),
        (WebhookResponse::Duplicate, 204),
        (WebhookResponse::Ignored, 204),
        (WebhookResponse::Rejected, 400),
        (WebhookResponse::Unavailable, 503),
        (WebhookResponse::DisableEndpoint, 410),
    ];
    for (receipt, status) in cases {
        let response = receipt.into_response::<Vec<u8>>();
        assert_eq!(response.status(), status, "{receipt:?}");
        assert_eq!(response.status(), receipt.status());
        assert!(response.body().is_empty() && response.headers().is_empty());
    }
}

#[test]
fn every_refusal_is_an_empty_400_and_says_what_was_wrong() {
    let tolerance = Duration::from_secs(300);
    let cases = [
        (VerifyError::Missing, "signature header is missing"),
        (VerifyError::Repeated, "signature header is present more than once"),
        (
            SignatureReason::TooLong { len: 1025 }.into(),
            "signature header has 1025 bytes, more than 1024",
        ),
        (SignatureReason::TooManyParts.into(), "signature header has more than 16 parts"),
        (SignatureReason::NotPair { part: 2 }.into(), "signature header part 2 is not name=value"),
        (SignatureReason::Blank { part: 1 }.into(), "signature header part 1 has a blank within"),
        (
            SignatureReason::NotPrintable { part: 1 }.into(),
            "signature header part 1 has a byte that is not printable ASCII",
        ),
        (SignatureReason::NoTimestamp.into(), "signature header has no t"),
        (
            SignatureReason::TwoTimestamps { part: 3 }.into(),
            "signature header part 3 is a second t",
        ),
        (
            SignatureReason::Timestamp { part: 1 }.into(),
            "signature header part 1: t is not 1 to 19 digits without a sign or a leading zero",
        ),
        (SignatureReason::NoDigest.into(), "signature header has no v1"),
        (
            VerifyError::IllFormedDigest { part: 2, fault: DigestReason::Length { len: 63 } },
            "signature header part 2: v1 has 63 bytes instead of 64 hex digits",
        ),
        (
            VerifyError::IllFormedDigest { part: 2, fault: DigestReason::Character { at: 9 } },
            "signature header part 2: v1 has a byte at 9 that is not a hex digit",
        ),
        (
            VerifyError::UppercaseDigest { part: 2 },
            "signature header part 2: v1 is uppercase hex, not lowercase",
        ),
        (VerifyError::Mismatch, "no v1 of the signature header matches the body"),
        (
            VerifyError::TooOld { age: Duration::from_millis(300_500), tolerance },
            "signature was made 300.5s ago, more than the tolerance of 300s",
        ),
        (
            VerifyError::TooNew { ahead: Duration::from_secs(301), tolerance },
            "signature was made 301s in the future, more than the tolerance of 300s",
        ),
    ];
    for (error, words) in cases {
        assert_eq!(error.to_string(), words);
        let response = error.into_response::<Vec<u8>>();
        assert_eq!(response.status(), 400);
        assert_eq!((error.response(), error.status().as_u16()), (WebhookResponse::Rejected, 400));
        assert!(response.body().is_empty() && response.headers().is_empty());
    }
}
