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

use crate::faults::{DeliveryFault, Faults};
use crate::store::Begun;
use host::post;
use host::scale::Scale;
use host::sending::Slot;
use host::signed::Signed;
use host::{clock, log, random};

/// Twice the tolerance of a receiver.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// The length of a large body: 1 MiB.
const LARGE: usize = 1024 * 1024;

/// How many come in a burst.
const BURST: usize = 100;

/// Makes step 3, with the fault that is ordered for it, if one is.
pub(super) async fn send(
    begun: &Begun,
    endpoint: u32,
    client: &post::Client,
    scale: Scale,
    slot: &Slot,
    faults: &Faults,
) -> post::Sent {
    let fault = faults.delivery(begun.body.account_id().as_str(), begun.endpoint.as_str());
    if let Some(fault) = fault {
        log::info(format!("sandbox fault {} {begun}", fault.as_str())).write();
    }
    // Receivers go by the machine's clock, wherever the service's has been moved to.
    let mut now = clock::machine();
    let mut body = Cow::Borrowed(&begun.body);
    let mut client = Cow::Borrowed(client);
    let mut at_once = 1;
    match fault {
        Some(DeliveryFault::OutOfOrder) => faults.overtaken(endpoint).await,
        Some(DeliveryFault::OldTimestamp) => now = now.saturating_sub(TEN_MINUTES),
        Some(DeliveryFault::UnknownType) => body = altered(&begun.body, "/type", "sandbox.unknown"),
        Some(DeliveryFault::ChangedObject) => {
            body = altered(&begun.body, "/data/object", "changed");
        }
        Some(DeliveryFault::FutureTimestamp) => now = now.saturating_add(TEN_MINUTES),
        Some(DeliveryFault::LargeBody) => {
            let room = LARGE.saturating_sub(extended(&begun.body, "").as_bytes().len());
            body = extended(&begun.body, &"x".repeat(room));
        }
        Some(DeliveryFault::NonAscii) => {
            body = extended(&begun.body, "Åse Ødegård \u{4e88}\u{7d04} \u{1f9b7}");
        }
        Some(DeliveryFault::HeaderCase) => client = Cow::Owned(client.titled()),
        Some(DeliveryFault::TwiceAtOnce) => at_once = 2,
        Some(DeliveryFault::Burst) => at_once = BURST,
        Some(
            DeliveryFault::Twice
            | DeliveryFault::WrongSignature
            | DeliveryFault::NoSignature
            | DeliveryFault::OldSecret
            | DeliveryFault::TwoDigests
            | DeliveryFault::Chunked,
        )
        | None => {}
    }
    let signed = signed(begun, fault, now);
    let Ok(mut request) = begun.attempt.request(&begun.destination, &body, now) else {
        return post::Sent::without_answer(Outcome::Unsent, clock::machine());
    };
    change_headers(fault, request.headers_mut(), body.as_bytes(), now);
    let patience = scale.timeout(begun.attempt.deadline().since(begun.attempt.began_at()));
    let target = begun.destination.target();
    let post = || client.send(target, request.clone().map(Full::from), patience, slot);
    if fault == Some(DeliveryFault::Twice) {
        let _ = post().await;
    }
    let mut others = JoinSet::new();
    for _ in 1..at_once {
        let (client, target, slot) = (client.clone().into_owned(), target.clone(), slot.clone());
        let request = request.clone().map(Full::from);
        others.spawn(async move { client.send(&target, request, patience, &slot).await });
    }
    let sent = post::Sent { signed: Some(signed), ..post().await };
    others.join_all().await;
    if fault != Some(DeliveryFault::OutOfOrder) {
        faults.sent(endpoint);
    }
    sent
}

/// Notes what signs the request, and what it cannot be shown with.
fn signed(begun: &Begun, fault: Option<DeliveryFault>, now: Timestamp) -> Signed {
    let mut signed = Signed::new(&begun.signer, now);
    match fault {
        None
        | Some(
            DeliveryFault::Twice
            | DeliveryFault::TwiceAtOnce
            | DeliveryFault::Burst
            | DeliveryFault::OutOfOrder
            | DeliveryFault::OldTimestamp
            | DeliveryFault::FutureTimestamp,
        ) => {}
        Some(DeliveryFault::OldSecret) => {
            signed.secrets = signed.secrets.last().copied().into_iter().collect();
        }
        Some(fault) => signed.fault = Some(fault.as_str()),
    }
    signed
}

/// Makes of the header fields what a fault makes of them.
fn change_headers(
    fault: Option<DeliveryFault>,
    headers: &mut HeaderMap,
    body: &[u8],
    now: Timestamp,
) {
    let name = Product::default().signature_header().clone();
    let signature = headers.get(&name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (time, digests) = signature.split_once(',').unwrap_or_default();
    let foreign = || Signer::new(SigningSecret::from_random(random::bytes())).sign(body, now);
    let changed = match fault {
        Some(DeliveryFault::WrongSignature) => foreign().as_str().to_owned(),
        Some(DeliveryFault::NoSignature) => {
            headers.remove(&name);
            return;
        }
        Some(DeliveryFault::Chunked) => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            return;
        }
        Some(DeliveryFault::OldSecret) => {
            let oldest = digests.rsplit(',').next().unwrap_or(digests);
            format!("{time},{oldest}")
        }
        Some(DeliveryFault::TwoDigests) => {
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
