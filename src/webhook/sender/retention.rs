//! Thirty days: how long an event can be seen and redelivered, and what of a log can go.

use core::time::Duration;

use super::delivery::{Delivery, Status};
use crate::Timestamp;

/// How long delivery logs and payloads are kept, from the event's `created_at`.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Whether what belongs to an event of this age is still kept: until thirty days after it, that
/// instant not included.
#[must_use]
pub fn is_kept(event_created_at: Timestamp, now: Timestamp) -> bool {
    now < event_created_at.saturating_add(RETENTION)
}

/// What an endpoint did not get, to redeliver it: of a span of time, or of its life until it was
/// enabled.
///
/// The span is over the events' `created_at`, from the start on, the end not included, and never
/// reaches back further than [`RETENTION`]: what is older may be gone from the store.
///
/// A host runs over the endpoint's deliveries in the span, takes those this
/// [`includes`](Self::includes), and [redelivers](Delivery::redeliver) each. An endpoint that has
/// missed much gets it no faster than a [`Planner`](super::Planner)'s limits let it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MissedDeliveries {
    from: Timestamp,
    until: Timestamp,
    former: Option<Former>,
}

/// An endpoint's life until it was enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Former {
    /// The endpoint's, now that it is enabled.
    generation: u32,
    /// What failed of older events failed long before the endpoint was disabled.
    failed_from: Timestamp,
}

impl MissedDeliveries {
    /// The span between two instants, as far as it is still kept. Where nothing of it is, it is
    /// empty.
    #[must_use]
    pub fn between(from: Timestamp, until: Timestamp, now: Timestamp) -> Self {
        // At exactly thirty days an event is gone: the span begins one nanosecond later.
        let oldest = now.saturating_sub(RETENTION).saturating_add(Duration::from_nanos(1));
        let from = from.max(oldest);
        Self { from, until: until.max(from), former: None }
    }

    /// What an endpoint missed that has been enabled. It is told by the generation and not by the
    /// time: clocks differ, and who accepts an event may not have heard yet that it is enabled.
    pub(super) fn of_former_life(generation: u32, failed_from: Timestamp, now: Timestamp) -> Self {
        let former = Some(Former { generation, failed_from });
        Self { former, ..Self::between(Timestamp::MIN, Timestamp::MAX, now) }
    }

    /// The `created_at` of the oldest event in the span.
    #[must_use]
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// The end of the span: the first instant past it.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether this delivery's event is of the span, and the endpoint did not get it.
    ///
    /// What [`Endpoint::enable`](super::Endpoint::enable) returns includes what has been pending
    /// since before the endpoint was disabled, too: nobody has parked it yet, and it is not sent.
    #[must_use]
    pub fn includes(&self, delivery: &Delivery) -> bool {
        let created_at = delivery.event_created_at();
        let missed = match self.former {
            None => delivery.status().is_missed(),
            Some(Former { generation, failed_from }) => {
                let of_it = delivery.generation().checked_add(1) == Some(generation);
                match delivery.status() {
                    Status::Waiting | Status::Sending => delivery.generation() < generation,
                    Status::Parked | Status::Skipped => of_it,
                    Status::Failed | Status::Gone => of_it && failed_from <= created_at,
                    Status::Delivered => false,
                }
            }
        };
        self.from <= created_at && created_at < self.until && missed
    }
}
