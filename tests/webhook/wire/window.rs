//! How far the signature's time may be from now (SIG-4).

use core::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, SetupError, Verifier};

use super::{NOW, at, signer, verifier};

/// The age, or the error with all fields.
fn age(verifier: &Verifier, signed: Timestamp, now: Timestamp) -> Result<i64, String> {
    let signature = signer().sign(b"{}", signed);
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verified = verifier.verify_parts(headers, b"{}", now);
    verified.map(|verified| verified.age_seconds()).map_err(|error| format!("{error:?}"))
}

#[test]
fn is_300_seconds_either_way() {
    let old = |age: Duration| format!("TooOld {{ age: {age:?}, tolerance: 300s }}");
    let new = |ahead: Duration| format!("TooNew {{ ahead: {ahead:?}, tolerance: 300s }}");
    let cases = [
        (0, 0, Ok(0)),
        (300, 0, Ok(300)),
        (300, 1, Err(old(Duration::new(300, 1)))),
        (301, 0, Err(old(Duration::from_secs(301)))),
        (-300, 0, Ok(-300)),
        (-301, 999_999_999, Err(new(Duration::new(300, 1)))),
        (-301, 0, Err(new(Duration::from_secs(301)))),
    ];
    for (after, nanos, expected) in cases {
        let now = Timestamp::from_parts(NOW + after, nanos).unwrap();
        // `-301 + 0.999999999` is 300.000000001 seconds ahead.
        assert_eq!(age(&verifier(), at(NOW), now), expected, "{after} s, {nanos} ns");
    }
}

#[test]
fn can_be_set_but_not_switched_off() {
    let with = |tolerance| verifier().with_tolerance(tolerance);
    assert_eq!(with(Duration::ZERO).unwrap_err(), SetupError::NoTolerance);
    let too_long = Verifier::MAX_TOLERANCE + Duration::from_nanos(1);
    assert_eq!(with(too_long).unwrap_err(), SetupError::LongTolerance);
    assert_eq!(with(Duration::MAX).unwrap_err(), SetupError::LongTolerance);
    assert_eq!(SetupError::NoTolerance.to_string(), "signature tolerance is zero");
    assert_eq!(SetupError::LongTolerance.to_string(), "signature tolerance is more than 3600s");

    let tolerance = Duration::from_secs(10);
    let narrow = with(tolerance).unwrap();
    assert_eq!(age(&narrow, at(NOW), at(NOW + 10)), Ok(10));
    let too_old = Err("TooOld { age: 11s, tolerance: 10s }".to_owned());
    assert_eq!(age(&narrow, at(NOW), at(NOW + 11)), too_old);
    let wide = with(Verifier::MAX_TOLERANCE).unwrap();
    assert_eq!(age(&wide, at(NOW), at(NOW - 3600)), Ok(-3600));
}
