//! The load of a sender for monitoring, and the slots of its attempts.

use std::fmt;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Outcome, Planner};
use tokio::time::Instant;

use crate::lock;
use crate::store::LoadRow;

/// How often what is due is counted, where more than a few are pending.
const COUNT: Duration = Duration::from_secs(1);
const FEW: usize = 100;

/// What a sender's planner has, for monitoring. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Load(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    row: LoadRow,
    /// When what is due was counted.
    counted: Option<Instant>,
    behind_since: Option<Instant>,
    /// Of each shard, whether something of it is in hand.
    in_hand: Vec<bool>,
}

impl Load {
    /// Creates the load of a sender of so many shards at most, which gives them back.
    pub fn of_shards(shards: NonZeroU16) -> Self {
        let in_hand = vec![false; usize::from(shards.get())];
        Self(Arc::new(Mutex::new(Noted { in_hand, ..Noted::default() })))
    }

    /// Notes what the planner has, once it was asked for all that may start.
    pub fn note(&self, planner: &Planner, now: Timestamp) {
        let (in_flight, planned) = (planner.in_flight(), planner.pending());
        let mut noted = lock(&self.0);
        // All that is pending is counted for this.
        if planned <= FEW || noted.counted.is_none_or(|at| at.elapsed() >= COUNT) {
            noted.row.limited = planner.limited();
            noted.counted = Some(Instant::now());
        }
        noted.row = LoadRow { in_flight, planned, ..noted.row };
        noted.behind_since = match planner.is_behind(now) {
            true => noted.behind_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        for (shard, in_hand) in (0..).zip(&mut noted.in_hand) {
            *in_hand = planner.in_hand(Some(shard)) > 0;
        }
    }

    /// Tells whether nothing of a shard is in hand, as was noted.
    pub fn is_free(&self, shard: u16) -> bool {
        let noted = lock(&self.0);
        noted.in_hand.get(usize::from(shard)) != Some(&true)
    }

    /// Returns what was noted.
    pub fn row(&self) -> LoadRow {
        let noted = lock(&self.0);
        let behind = noted.behind_since.map_or(Duration::ZERO, |since| since.elapsed());
        LoadRow { behind, ..noted.row }
    }
}

/// One slot of its endpoint's limit. It is free when the last clone is dropped: that of the
/// attempt, or of a thread that still looks up a name though the attempt has timed out.
#[derive(Clone)]
pub struct Slot(Arc<Held>);

struct Held {
    outcome: OnceLock<(Outcome, Duration)>,
    free: Box<dyn Fn(Outcome, Duration) + Send + Sync>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.0.outcome).finish_non_exhaustive()
    }
}

impl Slot {
    /// Creates a slot that calls `free` once nothing of its attempt is left.
    pub fn new(free: impl Fn(Outcome, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Held { outcome: OnceLock::new(), free: Box::new(free) }))
    }

    /// Sets what the planner is told when the slot is free.
    pub fn finish(self, outcome: Outcome, took: Duration) {
        let _ = self.0.outcome.set((outcome, took));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let finished = self.outcome.get().copied();
        let (outcome, took) = finished.unwrap_or((Outcome::Unsent, Duration::ZERO));
        (self.free)(outcome, took);
    }
}
