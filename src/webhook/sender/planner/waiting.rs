//! The deliveries that wait, by endpoint.

use alloc::collections::BTreeSet;

use super::due_delivery::DueKind;

/// The planner's time, in microseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) now: i64,
    /// A due time after this one was made by a clock that was wrong, and counts as reached.
    pub(super) farthest: i64,
}

/// A delivery that waits. The order is the one in which an endpoint's deliveries of one kind are sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) endpoint: u32,
    pub(super) kind: DueKind,
    /// The time in microseconds since 1970, rounded up: never early, and less than a microsecond late.
    pub(super) due: i64,
    pub(super) delivery: u64,
}

impl Clock {
    /// Returns from when on a delivery may be sent.
    pub(super) fn from(self, due: i64) -> i64 {
        if due > self.farthest { self.now } else { due }
    }
}

/// Returns what waits for one endpoint.
pub(super) fn of(all: &BTreeSet<Entry>, endpoint: u32) -> impl DoubleEndedIterator<Item = &Entry> {
    let entry = |kind, due, delivery| Entry { endpoint, kind, due, delivery };
    let first = entry(DueKind::Retry, i64::MIN, 0);
    all.range(first..=entry(DueKind::Redelivery, i64::MAX, u64::MAX))
}

/// Returns the delivery of an endpoint that is sent next: of those that are due a retry, else the first
/// one; and if none is due, the first that will be. A redelivery only if it may be one.
pub(super) fn first(
    all: &BTreeSet<Entry>,
    endpoint: u32,
    redelivers: bool,
    clock: Clock,
) -> Option<Entry> {
    use DueKind::{First, Redelivery, Retry};
    let mut own = of(all, endpoint);
    let first = own.next()?.kind;
    let last = own.next_back().map_or(first, |last| last.kind);
    // Nearly always there is one kind.
    let (one, all_kinds) = ([first], [Retry, First, Redelivery]);
    let kinds = if first == last { &one[..] } else { &all_kinds };
    let kinds = kinds.iter().filter(|kind| redelivers || **kind != Redelivery);
    let heads = kinds.filter_map(|kind| head(all, endpoint, *kind, clock));
    heads.min_by_key(|entry| {
        let (from, is_retry) = (clock.from(entry.due), entry.kind == Retry);
        (from > clock.now, from <= clock.now && !is_retry, from)
    })
}

/// Returns the first of one kind, or one whose due time is too far ahead to be right.
fn head(all: &BTreeSet<Entry>, endpoint: u32, kind: DueKind, clock: Clock) -> Option<Entry> {
    let entry = |due, delivery| Entry { endpoint, kind, due, delivery };
    let mut all = all.range(entry(i64::MIN, 0)..=entry(i64::MAX, u64::MAX));
    let first = *all.next()?;
    Some(*all.next_back().filter(|last| last.due > clock.farthest).unwrap_or(&first))
}
