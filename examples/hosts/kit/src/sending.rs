//! The limits of a sender, independent of its store.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Outcome, Planner, SenderLimits, Settled};
use tokio::time::Instant;

use super::clock;
use super::rows::LoadRow;
use super::shutdown::Shutdown;

/// The most attempts in flight. One account has at most half of them.
pub const LIMITS: SenderLimits = SenderLimits { overall: 448, per_endpoint: 8 };

/// How long to wait after an attempt that could not be made: the missing resource needs time.
pub const UNSENT: Duration = Duration::from_secs(1);

/// Makes deliveries wait whose attempt could not be made. The wait is stored, so it outlives the process.
pub fn postpone<D: Ord, E>(settled: &mut Settled<D, E>) {
    for (id, entry) in &mut settled.log {
        if entry.outcome != Outcome::Unsent || entry.late {
            continue;
        }
        let row = settled.deliveries.iter_mut().find(|(of, _)| of == id);
        let (Some((_, row)), Some(due)) = (row, &mut entry.next_at) else { continue };
        if row.postpone(UNSENT, *due) {
            *due = due.saturating_add(UNSENT);
            let again = settled.again.iter_mut().filter(|(of, ..)| of == id);
            again.for_each(|(.., at)| *at = *due);
        }
    }
}

/// How long attempts in flight have to end after shutdown is requested.
const GRACE: Duration = Duration::from_secs(5);

/// Returns when attempts in flight have had their time to end.
pub async fn given_up(shutdown: &Shutdown) {
    shutdown.requested().await;
    tokio::time::sleep(GRACE).await;
}

/// Waits until this time.
pub async fn until(due: Timestamp) {
    // A millisecond more than the wait, for timers count in whole ones.
    let wait = due.since(clock::now());
    tokio::time::sleep(wait.saturating_add(Duration::from_millis(1))).await;
}

/// What a sender's planner has, for monitoring. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Load(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    row: LoadRow,
    behind_since: Option<Instant>,
}

impl Load {
    /// Notes what the planner has, once it was asked for all that may start, and how many deliveries are due
    /// and kept from it.
    pub fn note(&self, planner: &Planner, kept: usize, now: Timestamp) {
        let row = LoadRow {
            in_flight: planner.in_flight(),
            planned: planner.pending().saturating_add(kept),
            limited: planner.limited().saturating_add(kept),
            behind: Duration::ZERO,
        };
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.row = row;
        noted.behind_since = match planner.is_behind(now) {
            true => noted.behind_since.or_else(|| Some(Instant::now())),
            false => None,
        };
    }

    /// Returns what was noted.
    pub fn row(&self) -> LoadRow {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use call_assistant::id::{AccountId, EventId};
    use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
    use call_assistant::webhook::sender::{
        Delivery, DeliveryStatus, EndedAttempt, EndpointHealth, RetrySchedule,
    };

    use super::*;

    #[test]
    fn an_attempt_that_could_not_be_made_is_made_a_second_later() {
        let now = Timestamp::from_unix(1_770_000_000).unwrap();
        let at = |seconds| now.saturating_add(Duration::from_secs(seconds));
        let (id, account) = (EventId::parse("evt_1").unwrap(), AccountId::parse("acct_1").unwrap());
        let version = ApiVersion::parse("2026-01-15").unwrap();
        let event =
            NewEvent::new(id, account, version, Origin::voice(), now).ping("hello").unwrap();
        let endpoint = EndpointHealth::new(1, now);
        for (outcome, is_late) in
            [(Outcome::Unsent, false), (Outcome::Unsent, true), (Outcome::Refused, false)]
        {
            let stored = Delivery::accept(&event, &endpoint, now);
            let mut begun = stored;
            let attempt = begun.begin(&endpoint, now).unwrap();
            let (delivery, of) = (7, 1);
            let ended = [EndedAttempt {
                delivery,
                endpoint: of,
                attempt,
                outcome,
                at: at(2),
                response: None,
            }];
            let rows = BTreeMap::from([(delivery, if is_late { stored } else { begun })]);
            let endpoints = BTreeMap::from([(of, endpoint)]);
            let mut settled = RetrySchedule::default().settle(&ended, &rows, &endpoints);
            let (before, said) = (settled.clone(), format!("{outcome:?}, late: {is_late}"));
            postpone(&mut settled);
            if is_late || outcome != Outcome::Unsent {
                assert_eq!(settled, before, "{said}");
                continue;
            }
            let due = at(3);
            assert_eq!(settled.again, [(delivery, of, due)], "{said}");
            assert_eq!(settled.log[0].1.next_at, Some(due), "{said}");
            let [(_, row)] = settled.deliveries.as_slice() else { panic!("{settled:?}") };
            let waits = (DeliveryStatus::Waiting, Some(due));
            assert_eq!((row.status(), row.due(at(2))), waits, "{said}");
            assert_eq!(row.if_version(), before.deliveries[0].1.if_version(), "{said}");
        }
    }
}
