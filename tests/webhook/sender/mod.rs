//! The service's side: one delivery's life, one endpoint's health, who may be called, and what
//! happens when any of it is interrupted.

mod attempt;
mod day;
mod disabling;
mod life;
mod model;
mod plan;
mod planner;
mod simulation;
mod stored;
mod target;

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, Endpoint, Outcome, WAITS};
use http::StatusCode;

/// 2026-01-01T00:00:00Z: where every test begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_unix(1_767_225_600).unwrap()
}

/// So many seconds after that.
pub(crate) fn at(seconds: u64) -> Timestamp {
    start().saturating_add(Duration::from_secs(seconds))
}

/// The outcome of an answer with this status.
pub(crate) fn answered(status: u16) -> Outcome {
    Outcome::Answered(StatusCode::from_u16(status).unwrap())
}

/// A delivery that has failed so often, and is due by now.
pub(crate) fn failed_before(attempts: u8, endpoint: &Endpoint, now: Timestamp) -> Delivery {
    let mut then = now.saturating_sub(WAITS.iter().sum());
    let mut delivery = Delivery::accept(then, endpoint, then);
    for _ in 0..attempts {
        let attempt = delivery.begin(endpoint, then).unwrap();
        let _ = delivery.finish(&attempt, answered(500), then);
        then = delivery.due().unwrap();
    }
    delivery
}
