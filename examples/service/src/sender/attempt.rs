//! Step 3: one attempt, and what a sandbox may make of it.

use std::borrow::Cow;
use std::time::Duration;

use call_assistant::Product;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::Outcome;
use call_assistant::webhook::{Signer, SigningSecret};
use http_body_util::Full;
use serde_json::Value;

use crate::faults::{DeliveryFault, Faults};
use crate::store::Begun;
use host::post;
use host::scale::Scale;
use host::sending::Slot;
use host::{clock, log, random};

/// Twice the tolerance of a receiver.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// Step 3, with the fault that is ordered for it, if one is.
pub(super) async fn send(
    begun: &Begun,
    endpoint: u32,
    client: &post::Client,
    scale: Scale,
    slot: &Slot,
    faults: &Faults,
) -> post::Sent {
    let fault = faults.delivery();
    if let Some(fault) = fault {
        log::line(&format!("sandbox fault {} {begun}", fault.as_str()));
    }
    // Receivers go by the machine's clock, wherever the service's has been moved to.
    let mut now = clock::machine();
    let mut body = Cow::Borrowed(&begun.body);
    match fault {
        Some(DeliveryFault::OutOfOrder) => faults.overtaken(endpoint).await,
        Some(DeliveryFault::OldTimestamp) => now = now.saturating_sub(TEN_MINUTES),
        Some(DeliveryFault::UnknownType) => body = altered(&begun.body, "/type", "sandbox.unknown"),
        Some(DeliveryFault::ChangedObject) => {
            body = altered(&begun.body, "/data/object", "changed");
        }
        Some(DeliveryFault::Twice | DeliveryFault::WrongSignature) | None => {}
    }
    let Ok(mut request) = begun.attempt.request(&begun.destination, &body, now) else {
        return post::Sent::without_answer(Outcome::Unsent, clock::machine());
    };
    if fault == Some(DeliveryFault::WrongSignature) {
        let signer = Signer::new(SigningSecret::from_random(random::bytes()));
        let signature = signer.sign(body.as_bytes(), now).to_header_value();
        request.headers_mut().insert(Product::default().signature_header(), signature);
    }
    let post = || {
        let patience = begun.attempt.deadline().since(begun.attempt.began_at());
        let request = request.clone().map(Full::from);
        client.send(begun.destination.target(), request, scale.timeout(patience), slot)
    };
    if fault == Some(DeliveryFault::Twice) {
        let _ = post().await;
    }
    let sent = post().await;
    if fault != Some(DeliveryFault::OutOfOrder) {
        faults.sent(endpoint);
    }
    sent
}

/// An event with another value at one place.
fn altered<'a>(body: &'a EventBody, at: &str, value: &str) -> Cow<'a, EventBody> {
    let altered = serde_json::from_slice::<Value>(body.as_bytes()).ok().and_then(|mut json| {
        *json.pointer_mut(at)? = value.into();
        EventBody::from_stored(json.to_string()).ok()
    });
    altered.map_or(Cow::Borrowed(body), Cow::Owned)
}
