//! How far the signature's time may be from now (SIG-4, D-42).

use core::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, SetupError, Verifier, VerifyError};

use super::{NOW, at, secret, signer, verifier};

const TOLERANCE: Duration = Duration::from_secs(300);

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
        (1, 0, Ok(1)),
        (-1, 0, Ok(-1)),
        (299, 0, Ok(299)),
        (300, 0, Ok(300)),
        (300, 1, Err(old(Duration::new(300, 1)))),
        (301, 0, Err(old(Duration::from_secs(301)))),
        (-299, 0, Ok(-299)),
        (-300, 0, Ok(-300)),
        (-301, 999_999_999, Err(new(Duration::new(300, 1)))),
        (-301, 0, Err(new(Duration::from_secs(301)))),
        (86_400, 0, Err(old(Duration::from_secs(86_400)))),
        (-86_400, 0, Err(new(Duration::from_secs(86_400)))),
    ];
    for (after, nanos, expected) in cases {
        let now = Timestamp::from_parts(NOW + after, nanos).unwrap();
        // `-301 + 0.999999999` is 300.000000001 seconds ahead.
        assert_eq!(age(&verifier(), at(NOW), now), expected, "{after} s, {nanos} ns");
    }
}

#[test]
fn no_distance_overflows() {
    let far = |t: &str, now| {
        let seconds = t.parse::<u64>().unwrap();
        let digest = digest(t);
        let text = format!("t={seconds},v1={digest}");
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        verifier().verify_parts(headers, b"{}", now).map(drop).unwrap_err()
    };
    for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, at(NOW), Timestamp::MAX] {
        for t in ["9223372036854775807", "9223372036854775808", "9999999999999999999"] {
            let distance = i128::from(t.parse::<u64>().unwrap()) - i128::from(now.unix_seconds());
            let ahead = Duration::from_secs(distance.try_into().unwrap())
                - Duration::from_nanos(now.subsec_nanos().into());
            let seen = far(t, now);
            assert!(
                matches!(seen, VerifyError::TooNew { ahead: by, tolerance: TOLERANCE, .. } if by == ahead),
                "{t} {now}"
            );
        }
    }
    let age = Timestamp::MAX.since(Timestamp::UNIX_EPOCH);
    let seen = far("0", Timestamp::MAX);
    assert!(matches!(seen, VerifyError::TooOld { age: of, tolerance: TOLERANCE, .. } if of == age));
}

// The signer writes no such timestamps, so the digests come from CPython:
// hmac.new(b"whsec_test", t + b".{}", hashlib.sha256).hexdigest()
fn digest(t: &str) -> &'static str {
    match t {
        "0" => "ea037ef534f0e609a940b43f6372057d5b1c70d2683ceca24ebe4cf752b19807",
        "9223372036854775807" => "2091589fd1c7d461962086a5c6108ea0ff8e9e0c2bc2afb5c22a706c11ba8ac0",
        "9223372036854775808" => "265a571cd5b759e77b5a86b1ae9b5ae79eda7045e9bcce06e0d0519593c1b9f2",
        "9999999999999999999" => "4789100f705e94aeb84157c624cf4d5e3af267bede7570f8efc2b3999164533c",
        _ => panic!("no digest for {t}"),
    }
}

// D-42: without the secret, nobody is told that the time is off as well.
#[test]
fn is_judged_after_the_digest() {
    let verifier = Verifier::new(secret("whsec_another"));
    assert_eq!(age(&verifier, at(0), at(NOW)), Err("Mismatch".to_owned()));
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
