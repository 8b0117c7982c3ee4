use core::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    BeginError, Delivery, DeliveryStatus, EndpointHealth, EndpointUrl, Outcome, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret, Verifier};

use crate::program::send_event::attempt;
use crate::program::verify_webhook::{Store, handle};
use crate::service::ping;

#[test]
fn a_receiver_that_verifies_gets_the_event_at_the_second_attempt() {
    let mut now = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
    let secret = SigningSecret::parse("whsec_test").unwrap();
    let (verifier, mut store) = (Verifier::new(secret.clone()), Store::default());
    let event = ping(now);
    let target = EndpointUrl::parse("https://hooks.example.com/calls").unwrap();
    let signer = Signer::new(secret);
    let mut endpoint = EndpointHealth::new(1, now);
    let destination = SignedDestination::new(&endpoint, target, signer);
    let mut delivery = Delivery::accept(&event, &endpoint, now);

    let what = (&event, &destination);
    let timeout = |_| Outcome::TimedOut;
    assert_eq!(attempt((&mut delivery, &mut endpoint), what, timeout, || now), Ok(()));
    let at = now.saturating_add(Duration::from_secs(10));
    let early = attempt((&mut delivery, &mut endpoint), what, timeout, || now);
    assert!(matches!(early, Err(BeginError::Early { at: due, .. }) if due == at), "{early:?}");

    now = at;
    let receive = |request| {
        let response = handle(&verifier, &mut store, &request, now);
        Outcome::Answered(response.status())
    };
    assert_eq!(attempt((&mut delivery, &mut endpoint), what, receive, || now), Ok(()));
    assert_eq!((delivery.status(), delivery.attempts()), (DeliveryStatus::Delivered, 2));
    assert_eq!(store.into_values().collect::<Vec<_>>(), [event.as_bytes()]);
}
