use core::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;

use super::{NOW, at, secret, signer};

// From CPython: hmac.new(b"whsec_test", b"1767225600.{}", hashlib.sha256).hexdigest()
const DIGEST: &str = "4a942ef9477fb7b15b98664cf7ff2c2543984c1fa6bdf3520b48dcb25bcd1fe4";

// SIG-1, SIG-2
#[test]
fn the_text_is_the_time_and_the_digest() {
    let header = signer().sign(b"{}", at(NOW));
    assert_eq!(header.as_str(), format!("t=1767225600,v1={DIGEST}"));
    assert_eq!(header.to_header_value().to_str().unwrap(), header.as_str());
}

// D-50: every attempt has its own time.
#[test]
fn the_time_is_that_of_the_attempt() {
    let text = |seconds| signer().sign(b"{}", at(seconds)).as_str().to_owned();
    assert!(text(0).starts_with("t=0,v1="));
    assert!(text(9).starts_with("t=9,v1="));
    assert!(text(10).starts_with("t=10,v1="));
    assert_ne!(text(9)[4..], text(10)[5..]);
    let last = signer().sign(b"", Timestamp::MAX);
    assert!(last.as_str().starts_with("t=253402300799,v1="));
    assert_eq!(last.as_str().len(), 2 + 12 + 4 + 64);
    // Fractions of a second are cut, as everybody's are.
    let late_in_the_second = Timestamp::from_parts(NOW, 999_999_999).unwrap();
    assert_eq!(signer().sign(b"{}", late_in_the_second).as_str(), text(NOW));
    // A clock before 1970 has no digits: it signs as 1970.
    assert_eq!(text(-1), text(0));
    assert_eq!(signer().sign(b"{}", Timestamp::MIN).as_str(), text(0));
}

// D-43: one v1 per secret, newest first.
#[test]
fn each_secret_adds_a_digest_in_order() {
    let secrets = ["whsec_test", "whsec_b", "whsec_c", "whsec_d"].map(secret);
    let [newest, older @ ..] = secrets.clone();
    let (now, end) = (Timestamp::MAX.saturating_sub(Duration::from_nanos(1)), Timestamp::MAX);
    let signer = older
        .into_iter()
        .try_fold(Signer::new(newest), |signer, secret| signer.with_previous(secret, end, now))
        .unwrap();
    let header = signer.sign(b"{}", now);
    let alone = secrets.map(|secret| {
        let header = Signer::new(secret).sign(b"{}", Timestamp::MAX);
        header.as_str().split_once(",v1=").unwrap().1.to_owned()
    });
    assert_eq!(header.as_str(), format!("t=253402300799,v1={}", alone.join(",v1=")));
}

#[test]
fn debug_shows_no_digest() {
    let header = signer().sign(b"{}", at(NOW));
    assert_eq!(format!("{header:?}"), "SignatureHeader(t=1767225600, [redacted])");
    assert!(header.to_header_value().is_sensitive());
}
