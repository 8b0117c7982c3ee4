//! Sends an event: creates it, delivers it, and tries again after a failure.
//!
//! `cargo run --example send_event --features service`

use std::error::Error;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    BeginError, Delivery, EndpointHealth, EndpointUrl, Outcome, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use http::{Request, StatusCode};

/// Makes one attempt. Store the delivery and the endpoint at the places that the comments mark.
pub(crate) fn attempt(
    (delivery, endpoint): (&mut Delivery, &mut EndpointHealth),
    (event, destination): (&EventBody, &SignedDestination),
    send: impl FnOnce(Request<Vec<u8>>) -> Outcome,
    now: impl Fn() -> Timestamp,
) -> Result<(), BeginError> {
    let attempt = delivery.begin(endpoint, now())?; // store the delivery, then send
    let request = attempt.request(destination, event, now()).map_err(BeginError::Mismatch)?;
    let outcome = send(request);
    let report = delivery.finish(&attempt, outcome, now()).map_err(BeginError::Mismatch)?;
    let change = endpoint.record(report, now()).map_err(BeginError::Mismatch)?; // store both at once
    println!("attempt {}: {outcome}, {change:?}", attempt.number());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut now = now();
    let (id, account) = (EventId::from_random(random()), AccountId::parse("acct_1")?);
    let version = ApiVersion::parse("2026-01-15")?;
    let event = NewEvent::new(id, account, version, Origin::voice(), now).ping("hello")?;
    let target = EndpointUrl::parse("https://hooks.example.com/calls")?;
    let signer = Signer::new(SigningSecret::from_random(random()));
    let mut endpoint = EndpointHealth::new(1, now);
    let destination = SignedDestination::new(&endpoint, target, signer);
    let mut delivery = Delivery::accept(&event, &endpoint, now); // store it with the event
    let mut outcomes = [Outcome::Refused, Outcome::Answered(StatusCode::NO_CONTENT)].into_iter();
    while let Some(due) = delivery.due(now) {
        now = due; // in virtual time; otherwise wait until it is due
        let send = |request: Request<Vec<u8>>| {
            println!("{now}: POST {}", request.uri());
            outcomes.next().unwrap_or(Outcome::Unsent)
        };
        attempt((&mut delivery, &mut endpoint), (&event, &destination), send, || now)?;
    }
    println!("{:?}", delivery.status());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a host has a clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

#[expect(clippy::expect_used, reason = "nothing can be kept secret without them")]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
