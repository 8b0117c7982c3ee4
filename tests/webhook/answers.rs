//! What a receiver answers (D-46).

use core::time::Duration;

use call_assistant::webhook::{DeliveryHeader, DigestFault, Receipt, SignatureFault, VerifyError};

#[test]
fn receipts_have_their_status() {
    let cases = [
        (Receipt::Accepted, 204),
        (Receipt::Duplicate, 204),
        (Receipt::Ignored, 204),
        (Receipt::Refused, 400),
        (Receipt::NotNow, 503),
        (Receipt::DisableThisEndpoint, 410),
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
        (
            VerifyError::Repeated { header: DeliveryHeader::Delivery },
            "delivery header is there more than once",
        ),
        (
            SignatureFault::TooLong { len: 1025 }.into(),
            "signature header has 1025 bytes, more than 1024",
        ),
        (SignatureFault::TooManyParts.into(), "signature header has more than 16 parts"),
        (SignatureFault::NotPair { part: 2 }.into(), "signature header part 2 is not name=value"),
        (SignatureFault::Blank { part: 1 }.into(), "signature header part 1 has a blank within"),
        (
            SignatureFault::NotPrintable { part: 1 }.into(),
            "signature header part 1 has a byte that is not printable ASCII",
        ),
        (SignatureFault::NoTimestamp.into(), "signature header has no t"),
        (SignatureFault::TwoTimestamps { part: 3 }.into(), "signature header part 3 is a second t"),
        (
            SignatureFault::Timestamp { part: 1 }.into(),
            "signature header part 1: t is not 1 to 19 digits without a sign or a leading zero",
        ),
        (SignatureFault::NoDigest.into(), "signature header has no v1"),
        (
            VerifyError::IllFormedDigest { part: 2, fault: DigestFault::Length { len: 63 } },
            "signature header part 2: v1 has 63 bytes instead of 64 hex digits",
        ),
        (
            VerifyError::IllFormedDigest { part: 2, fault: DigestFault::Character { at: 9 } },
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
        assert_eq!((error.receipt(), error.status().as_u16()), (Receipt::Refused, 400));
        assert!(response.body().is_empty() && response.headers().is_empty());
    }
}
