//! The deliveries that wait for an endpoint.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use super::due_delivery::DueKind;

/// The planner's time, in microseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) now: i64,
    /// The farthest correct due time. A later due time comes from a wrong clock, and counts as
    /// reached.
    pub(super) farthest: i64,
}

/// A delivery that waits. The due time is in microseconds since 1970, rounded up. The delivery is
/// therefore never sent early.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: i64,
    pub(super) kind: DueKind,
    pub(super) delivery: u64,
}

/// The deliveries that wait for one endpoint, whether due or not. A delivery that becomes due stays in
/// its set.
///
/// Most endpoints have one delivery at a time. Therefore one delivery is stored outside the sets,
/// whose first entry takes 200 bytes.
#[derive(Default)]
pub(super) struct Waiting {
    one: Option<Entry>,
    others: Option<Box<[Others; 3]>>,
}

/// The due times and numbers of the deliveries of one kind in [`KINDS`].
type Others = BTreeSet<(i64, u64)>;

const KINDS: [DueKind; 3] = [DueKind::Retry, DueKind::First, DueKind::Redelivery];

impl Clock {
    /// Returns the time from which a delivery with this due time may be sent.
    pub(super) fn from(self, due: i64) -> i64 {
        if due > self.farthest { self.now } else { due }
    }
}

impl Waiting {
    pub(super) fn insert(&mut self, entry: Entry) {
        if self.one.is_none() {
            self.one = Some(entry);
        } else {
            let others = self.others.get_or_insert_default();
            others[number(entry.kind)].insert((entry.due, entry.delivery));
        }
    }

    pub(super) fn remove(&mut self, entry: Entry) {
        if self.one == Some(entry) {
            self.one = None;
        } else if let Some(others) = &mut self.others {
            others[number(entry.kind)].remove(&(entry.due, entry.delivery));
            if others.iter().all(BTreeSet::is_empty) {
                self.others = None;
            }
        }
    }

    /// Returns the numbers of all deliveries.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = u64> {
        let others = self.others.iter().flat_map(|others| others.iter().flatten());
        self.one.map(|entry| entry.delivery).into_iter().chain(others.map(|of| of.1))
    }

    /// Returns the next delivery to send. A due retry comes first, then the delivery that has been
    /// due longest, then the delivery that becomes due next. Redeliveries are included only if
    /// `redelivers` is true.
    pub(super) fn first(&self, redelivers: bool, clock: Clock) -> Option<Entry> {
        let may_be = |entry: &Entry| redelivers || entry.kind != DueKind::Redelivery;
        let Some(others) = &self.others else { return self.one.filter(may_be) };
        let heads = KINDS.into_iter().zip(others.iter()).filter_map(|(kind, set)| {
            // One whose due time is too far ahead to be right may be the last.
            let last = set.last().filter(|last| last.0 > clock.farthest);
            let (due, delivery) = *last.or(set.first())?;
            Some(Entry { due, kind, delivery })
        });
        heads.chain(self.one).filter(may_be).min_by_key(|entry| {
            let (from, is_retry) = (clock.from(entry.due), entry.kind == DueKind::Retry);
            (from > clock.now, from <= clock.now && !is_retry, from, *entry)
        })
    }
}

fn number(kind: DueKind) -> usize {
    KINDS.iter().take_while(|of| **of != kind).count()
}
