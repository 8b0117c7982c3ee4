//! Deliveries to plan.

use super::waiting::Entry;
use crate::Timestamp;

/// A delivery that a planner receives or returns.
///
/// Closed: a host has to take each field from its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DueDelivery {
    /// The host's number of the delivery.
    pub delivery: u64,
    /// The host's number of the delivery's endpoint.
    pub endpoint: u32,
    /// The host's number of the endpoint's account. If the host gives an endpoint several accounts,
    /// the first account applies.
    pub account: u32,
    /// The [shard](super::super::shard_of) of the endpoint, or 0 without shards. If the host gives
    /// an endpoint several shards, the first shard applies.
    pub shard: u16,
    /// When the delivery's [event](crate::webhook::sender::Delivery::event_created_at) was created,
    /// to the microsecond. A delivery with the same number and another instant is another delivery.
    pub event_created_at: Timestamp,
    /// When the delivery's next attempt is [due](crate::webhook::sender::Delivery::due).
    pub due: Timestamp,
    /// The kind of the next attempt.
    pub kind: DueKind,
}

/// The kind of a delivery's next attempt. An endpoint's due retries are sent first. The endpoint's due
/// first attempts and redeliveries follow together, in the order of their due times.
///
/// Closed: the planner has a rule for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DueKind {
    /// An attempt that follows a [failed](crate::webhook::sender::Delivery::attempts) attempt.
    Retry,
    /// The first attempt.
    First,
    /// A [manual](crate::webhook::sender::Delivery::is_manual) attempt.
    Redelivery,
}

/// The result of [adding](super::Planner::add) a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Added {
    /// The delivery is new to the planner, and now waits.
    New,
    /// The delivery waits for its new due time, which is earlier than its previous due time.
    Earlier,
    /// The planner knew the delivery, which waits as before.
    Known,
    /// The delivery was [taken](super::Planner::next) and not released, so it is in hand.
    /// [Releasing](super::Planner::release) the delivery sets its next due time. Even if the release
    /// reports the delivery's end, the delivery is planned again, because it may have become pending
    /// again.
    InHand,
    /// The planner knows another delivery with this number. The store was reset to an earlier state, or
    /// assigns a number twice. If the known delivery waits, the planner forgets it. If the known
    /// delivery is in hand, the planner does not plan it again. Add all pending deliveries from the
    /// store again.
    Other,
}

/// A delivery that the planner knows, in 24 bytes.
#[derive(Clone, Copy)]
pub(super) struct Known {
    event_created_at: i64,
    pub(super) due: i64,
    pub(super) endpoint: u32,
    pub(super) kind: DueKind,
    pub(super) state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waits,
    InHand,
    /// A delivery in hand that was added again.
    Found,
    /// A delivery in hand whose number belongs to another delivery.
    Replaced,
}

impl Known {
    pub(super) fn new(of: DueDelivery) -> Self {
        let DueDelivery { endpoint, kind, .. } = of;
        let (event_created_at, due) = (of.event_created_at.unix_micros(), round_up(of.due));
        Self { event_created_at, due, endpoint, kind, state: State::Waits }
    }

    /// Returns whether both values are one delivery. After a reset of the store, equal numbers prove
    /// nothing.
    pub(super) fn is_of(self, other: Self) -> bool {
        (self.endpoint, self.event_created_at) == (other.endpoint, other.event_created_at)
    }

    pub(super) fn again(self, due: Timestamp, kind: DueKind) -> Self {
        Self { due: round_up(due), kind, state: State::Waits, ..self }
    }

    pub(super) fn entry(self, delivery: u64) -> Entry {
        Entry { kind: self.kind, due: self.due, delivery }
    }

    pub(super) fn due_delivery(self, delivery: u64, account: u32, shard: u16) -> DueDelivery {
        let Self { endpoint, kind, .. } = self;
        let (event_created_at, due) = (timestamp(self.event_created_at), timestamp(self.due));
        DueDelivery { delivery, endpoint, account, shard, event_created_at, due, kind }
    }
}

/// Returns the microseconds from 1970 to `at`, rounded up.
pub(super) fn round_up(at: Timestamp) -> i64 {
    at.unix_micros().saturating_add(i64::from(!at.subsec_nanos().is_multiple_of(1_000)))
}

/// Returns the instant of `micros`. An instant after the year 9999 becomes [`Timestamp::MAX`].
pub(super) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
}
