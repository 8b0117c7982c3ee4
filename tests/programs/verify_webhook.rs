use core::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};

use crate::program::verify_webhook::{Store, handle};
use crate::service::ping;

#[test]
fn the_event_is_kept_once_and_a_forgery_never() {
    let now = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
    let secret = SigningSecret::parse("whsec_test").unwrap();
    let (verifier, signer) = (Verifier::new(secret.clone()), Signer::new(secret));
    let event = ping(now);
    let genuine = event.signed_request(&signer, now);
    let mut altered = genuine.clone();
    altered.body_mut().push(b'\n');
    let stranger = Signer::new(SigningSecret::parse("whsec_other").unwrap());
    let stale = now.saturating_sub(Duration::from_secs(301));
    let no_event = testing::signed_request(&signer, "ping", "evt_1", b"{}", now).unwrap();
    let mut store = Store::default();
    for (case, request, status, kept) in [
        ("altered", altered, 400, 0),
        ("a stranger's", event.signed_request(&stranger, now), 400, 0),
        ("stale", event.signed_request(&signer, stale), 400, 0),
        ("genuine", genuine.clone(), 204, 1),
        ("again", genuine, 204, 1),
        // Stored and acknowledged: no further attempt would bring an event.
        ("no event", no_event, 204, 2),
    ] {
        let response = handle(&verifier, &mut store, &request, now);
        assert_eq!((response.status().as_u16(), store.len()), (status, kept), "{case}");
        assert_eq!(response.body(), "", "{case}");
    }
    assert!(store.values().any(|body| body == b"{}"));
}
