//! Deliveries in the order of their due times.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// The number of lanes: 8. One for each wait, one for first attempts, one for what was rebuilt, and one
/// to spare.
const LANES: usize = 8;

/// Deliveries that no list has yet, first due first.
#[derive(Default)]
pub(super) struct DueQueue {
    lanes: [VecDeque<Entry>; LANES],
    /// The deliveries that fit into no lane.
    unordered: BTreeSet<Entry>,
}

/// A delivery in a lane. Ordered by time, then by number, so that the order is total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// The time in microseconds since 1970, rounded up: never early, and less than a microsecond late.
    pub(super) due: i64,
    pub(super) delivery: u64,
    pub(super) endpoint: u32,
    pub(super) is_retry: bool,
}

impl DueQueue {
    /// Creates lanes of entries in order, which fit into one.
    pub(super) fn sorted(entries: Vec<Entry>) -> Self {
        let mut lanes = Self::default();
        let [first, ..] = &mut lanes.lanes;
        *first = entries.into();
        lanes
    }

    pub(super) fn add(&mut self, entry: Entry) {
        // The lane that ends closest before it, so that each wait keeps a lane of its own.
        let fits = self.lanes.iter_mut().filter(|lane| last_due(lane) <= entry.due);
        match fits.max_by_key(|lane| last_due(lane)) {
            Some(lane) => lane.push_back(entry),
            None => _ = self.unordered.insert(entry),
        }
    }

    pub(super) fn retain(&mut self, keep: &mut impl FnMut(u64, u32) -> bool) {
        for lane in &mut self.lanes {
            lane.retain(|entry| keep(entry.delivery, entry.endpoint));
        }
        self.unordered.retain(|entry| keep(entry.delivery, entry.endpoint));
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).fold(self.unordered.len(), usize::saturating_add)
    }

    /// Returns when the first delivery is due; `i64::MAX` if there is none.
    pub(super) fn first_due(&self) -> i64 {
        self.lanes.iter().map(first_due).fold(self.first_unordered(), i64::min)
    }

    fn first_unordered(&self) -> i64 {
        self.unordered.first().map_or(i64::MAX, |entry| entry.due)
    }

    /// Takes the first delivery that is due, or one whose due time is too far ahead to be right.
    pub(super) fn pop(&mut self, now: i64, farthest: i64) -> Option<Entry> {
        let unordered = self.first_unordered();
        let lane = self.lanes.iter_mut().min_by_key(|lane| first_due(lane));
        match lane {
            Some(lane) if first_due(lane) <= now.min(unordered) => lane.pop_front(),
            _ if unordered <= now => self.unordered.pop_first(),
            _ => self.pop_misdated(farthest),
        }
    }

    fn pop_misdated(&mut self, farthest: i64) -> Option<Entry> {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| last_due(lane) > farthest) {
            return lane.pop_back();
        }
        let last = self.unordered.last()?;
        if last.due > farthest { self.unordered.pop_last() } else { None }
    }
}

fn first_due(lane: &VecDeque<Entry>) -> i64 {
    lane.front().map_or(i64::MAX, |entry| entry.due)
}

/// Returns when the last entry is due; `i64::MIN` if there is none: then everything fits.
fn last_due(lane: &VecDeque<Entry>) -> i64 {
    lane.back().map_or(i64::MIN, |entry| entry.due)
}
