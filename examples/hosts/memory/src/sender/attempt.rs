//! Step 3: one attempt, and what a sandbox may make of it.

use std::borrow::Cow;
use std::time::Duration;

use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::Outcome;
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant::{Product, Timestamp};
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use serde_json::Value;
use tokio::task::JoinSet;

use super::clock::HostClock;
use crate::faults::{DeliveryFault, Faults};
use host::post::signed::Signed;
use host::post::{Sent, host};
use host::sender::{Begun, Clock as _, Post, Poster, Slot};
use host::{log, random};

/// Twice the tolerance of a receiver.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// The length of a large body: 1 MiB.
const LARGE: usize = 1024 * 1024;

/// How many come in a burst.
const BURST: usize = 100;

/// What makes attempts, with the faults that are ordered.
#[derive(Clone, Debug)]
pub(super) struct FaultyPoster {
    pub(super) poster: Poster<HostClock>,
    pub(super) faults: Faults,
}

impl Post for FaultyPoster {
    async fn post(&self, begun: &Begun, slot: &Slot) -> Sent {
        let names = &begun.opened.names;
        let Some(fault) = self.faults.delivery(&names.account, &names.endpoint) else {
            let sent = self.poster.post(begun, slot).await;
            self.faults.sent(begun.key.endpoint);
            return sent;
        };
        let host = begun.opened.destination.as_ref().map_or("", |it| host(it.target()));
        let (event, delivery) = (&begun.body, &begun.name);
        let whose = format!("{} {} {delivery}", event.event_type(), event.id());
        let fault_name = fault.as_str();
        log::info!("sandbox fault {fault_name} {whose} to {} at {host}", names.endpoint);
        send(begun, fault, &self.poster, slot, &self.faults).await
    }
}

/// Makes an attempt with a fault.
async fn send(
    begun: &Begun,
    fault: DeliveryFault,
    poster: &Poster<HostClock>,
    slot: &Slot,
    faults: &Faults,
) -> Sent {
    // Receivers go by the machine's clock, wherever the service's has been moved to.
    let mut now = poster.clock.machine();
    let endpoint = begun.key.endpoint;
    let mut body = Cow::Borrowed(&begun.body);
    let mut client = Cow::Borrowed(&poster.client);
    let mut at_once = 1;
    match fault {
        DeliveryFault::OutOfOrder => faults.overtaken(endpoint).await,
        DeliveryFault::OldTimestamp => now = now.saturating_sub(TEN_MINUTES),
        DeliveryFault::UnknownType => body = altered(&begun.body, "/type", "sandbox.unknown"),
        DeliveryFault::ChangedObject => {
            body = altered(&begun.body, "/data/object", "changed");
        }
        DeliveryFault::FutureTimestamp => now = now.saturating_add(TEN_MINUTES),
        DeliveryFault::LargeBody => {
            let room = LARGE.saturating_sub(extended(&begun.body, "").as_bytes().len());
            body = extended(&begun.body, &"x".repeat(room));
        }
        DeliveryFault::NonAscii => {
            body = extended(&begun.body, "Åse Ødegård \u{4e88}\u{7d04} \u{1f9b7}");
        }
        DeliveryFault::HeaderCase => client = Cow::Owned(client.titled()),
        DeliveryFault::TwiceAtOnce => at_once = 2,
        DeliveryFault::Burst => at_once = BURST,
        DeliveryFault::Twice
        | DeliveryFault::WrongSignature
        | DeliveryFault::NoSignature
        | DeliveryFault::OldSecret
        | DeliveryFault::TwoDigests
        | DeliveryFault::Chunked => {}
    }
    let signed = signed(begun, fault, now);
    let request = begun.opened.destination.as_ref().and_then(|destination| {
        Some((destination.target(), begun.attempt.request(destination, &body, now).ok()?))
    });
    let Some((target, mut request)) = request else {
        return Sent::without_answer(Outcome::Unsent, begun.at.now);
    };
    change_headers(fault, request.headers_mut(), body.as_bytes(), now);
    let (patience, at) = (poster.patience(begun), poster.clock.at().now);
    let post = || client.send(target, request.clone().map(Full::from), patience, at, slot);
    if fault == DeliveryFault::Twice {
        let _ = post().await;
    }
    let mut others = JoinSet::new();
    for _ in 1..at_once {
        let (client, target, slot) = (client.clone().into_owned(), target.clone(), slot.clone());
        let request = request.clone().map(Full::from);
        others.spawn(async move { client.send(&target, request, patience, at, &slot).await });
    }
    let sent = Sent { signed: Some(signed), ..post().await };
    others.join_all().await;
    if fault != DeliveryFault::OutOfOrder {
        faults.sent(endpoint);
    }
    sent
}

/// Notes what signs the request, and what it cannot be shown with.
fn signed(begun: &Begun, fault: DeliveryFault, now: Timestamp) -> Signed {
    let mut signed = Signed::new(&begun.opened.signer, now);
    match fault {
        DeliveryFault::Twice
        | DeliveryFault::TwiceAtOnce
        | DeliveryFault::Burst
        | DeliveryFault::OutOfOrder
        | DeliveryFault::OldTimestamp
        | DeliveryFault::FutureTimestamp => {}
        DeliveryFault::OldSecret => {
            signed.secrets = signed.secrets.last().copied().into_iter().collect();
        }
        fault => signed.fault = Some(fault.as_str()),
    }
    signed
}

/// Makes of the header fields what a fault makes of them.
fn change_headers(fault: DeliveryFault, headers: &mut HeaderMap, body: &[u8], now: Timestamp) {
    let name = Product::default().signature_header().clone();
    let signature = headers.get(&name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (time, digests) = signature.split_once(',').unwrap_or_default();
    let foreign = || Signer::new(SigningSecret::from_random(random::bytes())).sign(body, now);
    let changed = match fault {
        DeliveryFault::WrongSignature => foreign().as_str().to_owned(),
        DeliveryFault::NoSignature => {
            headers.remove(&name);
            return;
        }
        DeliveryFault::Chunked => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            return;
        }
        DeliveryFault::OldSecret => {
            let oldest = digests.rsplit(',').next().unwrap_or(digests);
            format!("{time},{oldest}")
        }
        DeliveryFault::TwoDigests => {
            let foreign = foreign();
            let (_, foreign) = foreign.as_str().split_once(',').unwrap_or_default();
            format!("{time},{foreign},{digests}")
        }
        _ => return,
    };
    if let Ok(changed) = HeaderValue::try_from(changed) {
        headers.insert(name, changed);
    }
}

/// Returns an event with a field that no version has.
fn extended<'a>(body: &'a EventBody, text: &str) -> Cow<'a, EventBody> {
    let extended = serde_json::from_slice::<Value>(body.as_bytes()).ok().and_then(|mut json| {
        json.as_object_mut()?.insert("sandbox".to_owned(), text.into());
        EventBody::from_stored(json.to_string()).ok()
    });
    extended.map_or(Cow::Borrowed(body), Cow::Owned)
}

/// Returns an event with another value at one place.
fn altered<'a>(body: &'a EventBody, at: &str, value: &str) -> Cow<'a, EventBody> {
    let altered = serde_json::from_slice::<Value>(body.as_bytes()).ok().and_then(|mut json| {
        *json.pointer_mut(at)? = value.into();
        EventBody::from_stored(json.to_string()).ok()
    });
    altered.map_or(Cow::Borrowed(body), Cow::Owned)
}
