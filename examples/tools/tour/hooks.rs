//! Webhooks: signatures, retries, and endpoints that are disabled.

use std::error::Error;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, EventData, NewEvent, Origin};
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox};
use call_assistant::webhook::sender::{
    ATTEMPT_TIMEOUT, BeginError, Delivery, DeliveryStatus, DisabledReason, EndpointChange,
    EndpointHealth, EndpointUrl, FAILURES_TO_DISABLE, MAX_ATTEMPTS, Outcome, RETRY_WAITS,
    SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret, Verifier, VerifyError};
use http::{HeaderValue, Request, StatusCode};

use crate::table::Table;
use crate::world::World;

/// The service's end of one webhook: where it goes, and what it is signed with.
struct Hook {
    destination: SignedDestination,
    signer: Signer,
    endpoint: EndpointHealth,
}

impl Hook {
    fn new(world: &mut World) -> Result<(Self, Verifier), Box<dyn Error>> {
        let secret = SigningSecret::from_random(world.random());
        let endpoint = EndpointHealth::new(1, world.now);
        let target = EndpointUrl::parse("https://hooks.example.com/calls")?;
        let signer = Signer::new(secret.clone());
        let hook = Self {
            destination: SignedDestination::new(&endpoint, target, signer.clone()),
            signer,
            endpoint,
        };
        Ok((hook, Verifier::new(secret)))
    }

    /// Takes a delivery to its end, whenever each attempt is due, and says when each one was made.
    fn deliver(
        &mut self,
        world: &mut World,
        delivery: &mut Delivery,
        body: &EventBody,
        mut receiver: impl FnMut(&Request<Vec<u8>>, Timestamp) -> Outcome,
    ) -> Result<(Vec<Timestamp>, EndpointChange), Box<dyn Error>> {
        let (mut made, mut change) = (Vec::new(), EndpointChange::Unchanged);
        while let Some(due) = delivery.due(world.now) {
            world.now = world.now.max(due);
            let attempt = delivery.begin(&self.endpoint, world.now)?;
            made.push(world.now);
            let request = attempt.request(&self.destination, body, world.now)?;
            let outcome = receiver(&request, world.now);
            world.now = match outcome {
                Outcome::TimedOut => attempt.deadline(),
                _ => world.now.saturating_add(Duration::from_millis(40)),
            };
            let report = delivery.finish(&attempt, outcome, world.now)?;
            change = self.endpoint.record(report, world.now)?;
        }
        Ok((made, change))
    }
}

fn ping(world: &mut World) -> Result<EventBody, Box<dyn Error>> {
    let id = EventId::from_random(world.random());
    let account = AccountId::parse("acct_1")?;
    let event =
        NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), world.now);
    Ok(event.ping("It works.")?)
}

/// Shows a genuine delivery, and all the ways in which it is none.
pub(crate) fn sign_and_refuse(world: &mut World, table: &mut Table) -> Result<(), Box<dyn Error>> {
    table.chapter("A webhook is signed, and refused");
    let (hook, verifier) = Hook::new(world)?;
    let account = AccountId::parse("acct_1")?;
    let call = world.new_call("call_hooked")?;
    world.add(call.clone());
    let id = EventId::from_random(world.random());
    let version = ApiVersion::parse("2026-01-15")?;
    let body = NewEvent::new(id, account, version, Origin::voice(), world.now).call_ended(&call)?;
    let now = world.now;
    let good = body.signed_request(&hook.signer, now);

    let event = verifier.verify(good.headers(), good.body(), now)?.event()?;
    table.tell(&format!("{} {} verified: the call {}", event.id, event.event_type(), call.id));
    let carried = matches!(&event.data, EventData::CallEnded(read) if *read == call);
    table.show("EVT-4", "call.ended carries the call, to the last field", carried);

    let header = "x-service-signature";
    let value = good.headers().get(header).ok_or("no signature")?.to_str()?.to_owned();
    let (time, digest) = value.split_once(",v1=").ok_or("no v1")?;
    let with = |value: String| -> Result<Request<Vec<u8>>, Box<dyn Error>> {
        let mut request = good.clone();
        request.headers_mut().insert(header, HeaderValue::try_from(value)?);
        Ok(request)
    };
    let mut tampered = good.clone();
    tampered.body_mut().push(b'\n');
    let mut missing = good.clone();
    missing.headers_mut().remove(header);
    let uppercase = with(format!("{time},v1={}", digest.to_uppercase()))?;
    let mut refused = Vec::new();
    for (what, request) in [
        ("a body with one byte more", tampered),
        ("a digest in uppercase", uppercase),
        ("an empty digest", with(format!("{time},v1="))?),
        ("no signature", missing),
    ] {
        let Err(error) = verifier.verify(request.headers(), request.body(), now) else {
            return Err(format!("{what} was accepted").into());
        };
        table.tell(&format!("{} {what}: {error}", error.response().into_status().as_u16()));
        refused.push(error.response().into_status());
    }
    let all = refused.iter().all(|status| *status == StatusCode::BAD_REQUEST);
    table.show("SIG-2", "tampered, uppercase, empty, missing: 400 each", all && refused.len() == 4);

    // From t, which is in whole seconds.
    let signed_at = Timestamp::from_unix(now.unix_seconds()).ok_or("out of range")?;
    let at = |seconds| signed_at.saturating_add(Duration::from_secs(seconds));
    let fresh = verifier.verify(good.headers(), good.body(), at(300)).is_ok();
    let stale = verifier.verify(good.headers(), good.body(), at(301)).map(drop);
    table.show("SIG-4", "300 seconds pass, 301 do not", {
        fresh && matches!(stale, Err(VerifyError::TooOld { .. }))
    });
    Ok(())
}

/// Shows five failures of different kinds, and a success at the last attempt; then a delivery that the
/// receiver gets twice.
pub(crate) fn retry_over_the_whole_schedule(
    world: &mut World,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    table.chapter("A delivery is retried over its whole schedule");
    let (mut hook, verifier) = Hook::new(world)?;
    let body = ping(world)?;
    let mut delivery = Delivery::accept(&body, &hook.endpoint, world.now);
    let failures = [
        ("500", Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR)),
        ("no answer in ten seconds", Outcome::TimedOut),
        ("a redirect", Outcome::Answered(StatusCode::FOUND)),
        ("a closed port", Outcome::Refused),
        ("503", Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE)),
    ];
    // A failure before each wait, and a success after the last.
    let mut next = failures.iter().cycle().take(RETRY_WAITS.len());
    let (mut bodies, mut genuine) = (Vec::new(), true);
    let (made, _) = hook.deliver(world, &mut delivery, &body, |request, now| {
        genuine &= verifier.verify(request.headers(), request.body(), now).is_ok();
        bodies.push(request.body().clone());
        let success = ("204", Outcome::Answered(StatusCode::NO_CONTENT));
        let (what, outcome) = *next.next().unwrap_or(&success);
        table.tell(&format!("{now} {what}"));
        outcome
    })?;
    let waits: Vec<u64> =
        made.iter().zip(made.iter().skip(1)).map(|(a, b)| b.since(*a).as_secs()).collect();
    // An attempt without an answer takes all of its time before the wait that follows it begins.
    let took =
        |outcome| if outcome == Outcome::TimedOut { ATTEMPT_TIMEOUT } else { Duration::ZERO };
    let failed = failures.iter().cycle().map(|(_, outcome)| took(*outcome));
    let expected =
        RETRY_WAITS.iter().zip(failed).map(|(wait, took)| wait.saturating_add(took).as_secs());
    table.show("DEL-4", "an attempt at once and one after each wait of the schedule", {
        expected.eq(waits.iter().copied()) && delivery.status() == DeliveryStatus::Delivered
    });
    table.show("DEL-3", "a redirect is a failure like any other", waits.len() == RETRY_WAITS.len());
    table.show("DEL-13", "the same bytes each time, signed afresh", {
        genuine && bodies.iter().all(|sent| sent == body.as_bytes())
    });

    let mut inbox = Inbox::new(1_000);
    let request = body.signed_request(&hook.signer, world.now);
    let mut acted = Vec::new();
    for _ in 0..2 {
        let receipt = verifier.receive(request.headers(), request.body(), world.now)?;
        let answer = match inbox.claim(receipt, ActiveClaim::LEASE, world.now) {
            ClaimOutcome::Process(claimed) => {
                acted.push(claimed.receipt().key().id().to_owned());
                inbox.done(claimed, world.now)
            }
            ClaimOutcome::Answer(answer) => answer,
        };
        table.tell(&format!("{} to a copy", answer.into_status()));
    }
    table.show("EVT-8", "an event that comes twice is acted on once", acted.len() == 1);

    let body = ping(world)?;
    let mut delivery = Delivery::accept(&body, &hook.endpoint, world.now);
    let (made, _) =
        hook.deliver(world, &mut delivery, &body, |_, _| Outcome::Answered(StatusCode::NOT_FOUND))?;
    let failed =
        delivery.status() == DeliveryStatus::Failed && made.len() == usize::from(MAX_ATTEMPTS);
    delivery.redeliver(&hook.endpoint, world.now)?;
    hook.deliver(world, &mut delivery, &body, |_, _| Outcome::Answered(StatusCode::OK))?;
    table.tell("another delivery fails each time, and is redelivered");
    table.show("DEL-10", "a failed delivery is made again on request", {
        failed && delivery.status() == DeliveryStatus::Delivered
    });
    Ok(())
}

/// Shows that 410 ends it at once, whatever else is waiting.
pub(crate) fn disable_by_410(world: &mut World, table: &mut Table) -> Result<(), Box<dyn Error>> {
    table.chapter("An endpoint is disabled by 410");
    let (mut hook, _) = Hook::new(world)?;
    let body = ping(world)?;
    let mut waiting = Delivery::accept(&body, &hook.endpoint, world.now);
    let mut delivery = Delivery::accept(&body, &hook.endpoint, world.now);
    let (made, change) =
        hook.deliver(world, &mut delivery, &body, |_, _| Outcome::Answered(StatusCode::GONE))?;
    let parked = waiting.begin(&hook.endpoint, world.now);
    let later = Delivery::accept(&body, &hook.endpoint, world.now);
    table.tell(&format!("one attempt, and {change:?}; the other delivery: {:?}", waiting.status()));
    table.show("DEL-6", "one 410, and nothing more is sent", {
        made.len() == 1
            && change == EndpointChange::Disabled(DisabledReason::Gone)
            && matches!(parked, Err(BeginError::Parked))
            && later.status() == DeliveryStatus::Skipped
    });
    Ok(())
}

/// Shows twenty in a row; a success in between counts from the beginning again.
pub(crate) fn disable_by_twenty_failures(
    world: &mut World,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    table.chapter("An endpoint is disabled by twenty failures");
    let (mut hook, _) = Hook::new(world)?;
    let mut run = |world: &mut World, outcome: Outcome| -> Result<EndpointChange, Box<dyn Error>> {
        let body = ping(world)?;
        let mut delivery = Delivery::accept(&body, &hook.endpoint, world.now);
        Ok(hook.deliver(world, &mut delivery, &body, |_, _| outcome)?.1)
    };
    let began = world.now;
    let mut before = EndpointChange::Unchanged;
    for _ in 1..FAILURES_TO_DISABLE {
        before = run(world, Outcome::Reset)?;
    }
    table.tell(&format!("nineteen deliveries fail for good: {before:?}"));
    let recovered = run(world, Outcome::Answered(StatusCode::OK))?;
    table.tell(&format!("one is delivered: {recovered:?}"));
    let mut last = EndpointChange::Unchanged;
    let mut failures = 0_u8;
    while last != EndpointChange::Disabled(DisabledReason::Failing) && failures < 30 {
        last = run(world, Outcome::Reset)?;
        failures = failures.saturating_add(1);
    }
    let days = world.now.since(began).as_secs() / 86_400;
    table.tell(&format!("{failures} more fail: {last:?}, after {days} days of this world"));
    table.show("DEL-7", "twenty failures in a row disable it, one success sets zero", {
        recovered == EndpointChange::Recovered && failures == FAILURES_TO_DISABLE
    });
    Ok(())
}
