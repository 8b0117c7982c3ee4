//! How many redeliveries of an endpoint the planner has at once, so that new events find room.

use std::collections::{BTreeSet, HashMap, VecDeque};

use host::sending::LIMITS;

/// The most redeliveries of one endpoint that the planner has: three quarters of what may be in flight
/// to it. A recovery makes many due, and none of them is to be in front of a new event: what is beyond
/// this waits here.
const MOST: usize = {
    #[allow(clippy::as_conversions)]
    let limit = LIMITS.per_endpoint as usize;
    limit.saturating_mul(3).div_ceil(4)
};

/// The redeliveries of each endpoint.
#[derive(Debug, Default)]
pub(super) struct Shares(HashMap<u32, Share>);

#[derive(Debug, Default)]
struct Share {
    /// Those that the planner has, or that are in flight.
    begun: BTreeSet<u64>,
    waiting: VecDeque<u64>,
}

impl Shares {
    /// Admits a redelivery to the planner, or has it wait.
    pub(super) fn admits(&mut self, endpoint: u32, delivery: u64) -> bool {
        let share = self.0.entry(endpoint).or_default();
        let admits = share.begun.len() < MOST || share.begun.contains(&delivery);
        match admits {
            true => _ = share.begun.insert(delivery),
            false => share.waiting.push_back(delivery),
        }
        admits
    }

    /// Ends what the planner has of a redelivery, if it was one. Returns the next one that waits and
    /// still is to be sent.
    pub(super) fn end(
        &mut self,
        endpoint: u32,
        delivery: u64,
        is_to_be_sent: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let share = self.0.get_mut(&endpoint)?;
        if !share.begun.remove(&delivery) {
            return None;
        }
        let next = std::iter::from_fn(|| share.waiting.pop_front()).find(|id| is_to_be_sent(*id));
        share.begun.extend(next);
        if share.begun.is_empty() {
            self.0.remove(&endpoint);
        }
        next
    }

    /// Forgets redeliveries, and returns nothing of them to the planner.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|_, share| {
            share.begun.retain(|delivery| keep(*delivery));
            share.waiting.retain(|delivery| keep(*delivery));
            !share.begun.is_empty()
        });
    }

    /// Forgets what waits for an endpoint, and returns it.
    pub(super) fn forget(&mut self, endpoint: u32) -> VecDeque<u64> {
        self.0
            .get_mut(&endpoint)
            .map(|share| std::mem::take(&mut share.waiting))
            .unwrap_or_default()
    }
}
