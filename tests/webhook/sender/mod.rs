//! The service's side: one delivery's life, one endpoint's health, who may be called, and what
//! happens when any of it is interrupted.

mod alerts;
mod attempt;
mod columns;
mod delivery;
mod disabling;
mod endpoint_url;
mod fairness;
mod ledger;
mod outlook;
mod owned;
mod owner;
mod plan;
mod planner;
mod recovery;
mod settling;
mod single_rows;
mod stored;
mod world;
mod wrong_clocks;

use std::cell::RefCell;
use std::error::Error;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    Alert, Attempt, AttemptReport, Delivery, DisabledReason, EndedAttempt, EndpointChange,
    EndpointHealth, LogEntry, MAX_ATTEMPTS, Outcome, RETRY_WAITS,
};
use http::StatusCode;
use serde_json::json;

/// A delivery from its JSON, as that of a row.
pub(crate) fn delivery_from(json: &str) -> Result<Delivery, Box<dyn Error>> {
    let (columns, row) =
        (serde_json::from_str(json)?, failed_before(0, &EndpointHealth::new(1, start()), start()));
    Ok(Delivery::from_columns(row.id(), 1, columns)?)
}

/// An endpoint from its JSON, as that of a row.
pub(crate) fn endpoint_from(json: &str) -> Result<EndpointHealth, Box<dyn Error>> {
    Ok(EndpointHealth::from_columns(1, serde_json::from_str(json)?)?)
}

/// The log's entry of an attempt that ended at `at`.
pub(crate) fn entry(
    attempt: Attempt,
    (outcome, at): (Outcome, Timestamp),
    report: &AttemptReport,
    delivery: &Delivery,
    response: Option<&[u8]>,
) -> LogEntry {
    let ended = EndedAttempt { delivery: (), endpoint: (), attempt, outcome, at, response };
    LogEntry::new(&ended, report, delivery)
}

/// A ping that was created then.
pub(crate) fn event(created_at: Timestamp) -> EventBody {
    // Hundreds of thousands are asked for, mostly of one instant.
    thread_local!(static LAST: RefCell<Option<EventBody>> = const { RefCell::new(None) });
    LAST.with_borrow_mut(|last| {
        if let Some(body) = last.as_ref().filter(|body| body.created_at() == created_at) {
            return body.clone();
        }
        let (id, account) = (EventId::parse("evt_1"), AccountId::parse("acct_1"));
        let version = ApiVersion::parse("2026-01-15").unwrap();
        let new =
            NewEvent::new(id.unwrap(), account.unwrap(), version, Origin::voice(), created_at);
        last.insert(new.ping("It works.").unwrap()).clone()
    })
}

pub(crate) use support::{seconds as at, start};

/// The outcome of an answer with this status.
pub(crate) fn answered(status: u16) -> Outcome {
    Outcome::Answered(StatusCode::from_u16(status).unwrap())
}

/// The failures after which the next attempt is the last.
pub(crate) const BEFORE_LAST: u8 = MAX_ATTEMPTS - 1;

/// The last of the waits, and the longest.
pub(crate) fn longest_wait() -> Duration {
    *RETRY_WAITS.last().unwrap()
}

/// A delivery that has failed this many times, and is due by now.
#[track_caller]
pub(crate) fn failed_before(attempts: u8, endpoint: &EndpointHealth, now: Timestamp) -> Delivery {
    let mut then = now.saturating_sub(RETRY_WAITS[..usize::from(attempts)].iter().sum());
    let mut delivery = Delivery::accept(&event(then), endpoint, then);
    for _ in 0..attempts {
        let _ = attempted(&mut delivery, endpoint, answered(500), then, then);
        then = delivery.due(then).unwrap();
    }
    delivery
}

/// The warning after this many failures in a row. Only the library can write its variants, so these are read.
pub(crate) fn failing(failures: u8) -> Alert {
    serde_json::from_value(json!({ "kind": "failing", "failures": failures })).unwrap()
}

/// The alert that an endpoint was disabled.
pub(crate) fn disabled(reason: DisabledReason) -> Alert {
    serde_json::from_value(json!({ "kind": "disabled", "reason": reason })).unwrap()
}

/// The reminder after these days.
pub(crate) fn still_disabled(reason: DisabledReason, days: u8) -> Alert {
    let reminder = json!({ "kind": "still_disabled", "reason": reason, "days": days });
    serde_json::from_value(reminder).unwrap()
}

/// Makes one attempt of a delivery, and returns what it reports.
#[track_caller]
pub(crate) fn attempted(
    delivery: &mut Delivery,
    endpoint: &EndpointHealth,
    outcome: Outcome,
    began: Timestamp,
    ended: Timestamp,
) -> AttemptReport {
    let attempt = delivery.begin(endpoint, began).unwrap();
    delivery.finish(&attempt, outcome, ended).unwrap()
}

/// Records an attempt of a delivery that has failed this many times before.
#[track_caller]
pub(crate) fn record(
    endpoint: &mut EndpointHealth,
    failed: u8,
    outcome: Outcome,
    now: Timestamp,
) -> EndpointChange {
    let mut delivery = failed_before(failed, endpoint, now);
    let report = attempted(&mut delivery, endpoint, outcome, now, now);
    endpoint.record(report, now).unwrap()
}
