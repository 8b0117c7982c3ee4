//! What to send next, in a process that has much to send.

mod lanes;
mod turns;

use alloc::vec::Vec;
use core::fmt;

use self::lanes::{Lanes, Pending};
use self::turns::Turns;
use super::Outcome;
use super::limits::Limits;
use super::schedule::{LONGEST_WAIT, farthest};
use crate::Timestamp;

/// Decides which delivery to send next, under limits on what is in flight.
///
/// ```
/// use call_assistant::webhook::sender::{Limits, Outcome, Planner};
/// use call_assistant::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut planner = Planner::new(Limits { overall: 100, per_endpoint: 1 });
/// planner.add(10, 0, now);
/// planner.add(11, 0, now);
/// planner.add(20, 1, now);
///
/// assert_eq!(planner.next(now), Some((10, 0)));
/// assert_eq!(planner.next(now), Some((20, 1))); // 11 waits for 10
/// assert_eq!(planner.next(now), None);
/// planner.finished(0, Outcome::TimedOut);
/// assert_eq!(planner.next(now), Some((11, 0)));
/// ```
///
/// A process that holds many pending deliveries [adds](Self::add) each with its
/// [`due`](super::Delivery::due) time, takes the [`next`](Self::next) until there is none, begins
/// and sends what it took, and reports each attempt that has [`finished`](Self::finished).
///
/// Deliveries and endpoints are numbers of the host's. Delivery numbers may be any; endpoint numbers
/// count from 0 without large gaps, because they index a table.
///
/// The planner can be [rebuilt](Self::rebuild) from the stored deliveries at any time. Then it has
/// forgotten only which endpoints are slow, and learns it again from two timeouts of each. Healthy
/// endpoints are safe from the first moment on, so that is not stored. It may also be outdated: a delivery that has ended, or
/// is leased to another sender, is refused by [`Delivery::begin`](super::Delivery::begin), which
/// costs one step.
///
/// # Which endpoint is next
/// - Endpoints that wait take turns, one delivery each. Of one endpoint, due retries go before first
///   attempts, so the deliveries that decide whether it is disabled are followed to their ends.
/// - An endpoint that has nothing in flight may use any free room. Second and further attempts use
///   at most half of [`overall`](Limits::overall), all endpoints together.
/// - An endpoint is **slow** after two timeouts without a response between them. The next response,
///   whatever its status, ends that. A slow endpoint has one attempt in flight. All slow endpoints
///   together have an eighth of `overall`, at least one. They go first in that part, and nowhere
///   else.
///
/// So endpoints that fall silent together hold up the others only if they are more than half of
/// `overall`, and only until they have timed out twice.
///
/// # Several processes
/// A planner knows only what was added to it. What another process accepted, or began before it
/// died, is in the store alone. So every process searches the store about every
/// [`ATTEMPT_LEASE`](super::ATTEMPT_LEASE) for what is due, and adds the deliveries that it does
/// not hold yet. The host tracks those in a set: a delivery enters the set when it is added, and
/// leaves it when it was refused, or was begun and has finished. One that is added twice is not
/// sent twice, because only one of the two can begin.
///
/// # Clocks
/// A delivery that is due more than twelve hours after `now` was added by a clock that was wrong,
/// because no wait is longer than six. It counts as due.
///
/// # Cost
/// A schedule has few different waits, so deliveries that are added for one wait come in order. A
/// queue for each wait keeps all of them in order, and every step is O(1), however many are pending.
/// Deliveries that come out of order, because of jitter or a clock that was set, go to a tree, at
/// O(log n). A pending delivery takes 24 bytes in a buffer that may be half empty, or 8 in its
/// endpoint's line; an endpoint number takes 4 bytes, 32 more where any has had a line, and 32 more
/// where any has had a line of retries.
pub struct Planner {
    /// What is not due, or was not looked at yet.
    lanes: Lanes,
    /// What is due.
    turns: Turns,
}

/// How many deliveries a step moves into lines at most while others may send: deliveries that are
/// all due at once do not stop the process.
const BATCH: usize = 64;

impl Planner {
    /// Creates an empty planner.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { lanes: Lanes::default(), turns: Turns::new(limits) }
    }

    /// Creates a planner of what is stored: delivery, endpoint and due time of each pending delivery,
    /// and whether it is a [retry](Self::add_retry), in any order. Attempts that others have in
    /// flight are due when their leases expire; leave out those of this process, and count them with
    /// [`began`](Self::began).
    ///
    /// Do this before the process accepts events, or together with the first [`add`](Self::add): a
    /// delivery that is accepted in between would be added twice.
    #[must_use]
    pub fn rebuild(
        limits: Limits,
        pending: impl IntoIterator<Item = (u64, u32, Timestamp, bool)>,
    ) -> Self {
        let mut all: Vec<Pending> = pending
            .into_iter()
            .map(|(delivery, endpoint, due, is_retry)| Pending {
                due: round_up(due),
                delivery,
                endpoint,
                is_retry,
            })
            .collect();
        all.sort_unstable();
        Self { lanes: Lanes::sorted(all), ..Self::new(limits) }
    }

    /// Limits the attempts of each endpoint to this number a second, one at a time: two attempts
    /// begin at least `1 / per_second` seconds apart. 0 is no limit, as in a new planner.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::sender::{Limits, Planner};
    ///
    /// let limits = Limits { overall: 448, per_endpoint: 8 };
    /// let mut planner = Planner::new(limits).with_rate(20);
    /// let now = Timestamp::UNIX_EPOCH;
    /// planner.add(1, 0, now);
    /// planner.add(2, 0, now);
    /// assert_eq!(planner.next(now), Some((1, 0)));
    /// assert_eq!(planner.next(now), None);
    /// let later = now.saturating_add(Duration::from_millis(50));
    /// assert_eq!(planner.next_due(), Some(later));
    /// assert_eq!(planner.next(later), Some((2, 0)));
    /// ```
    #[must_use]
    pub fn with_rate(mut self, per_second: u32) -> Self {
        let interval = 1_000_000_u32.checked_div(per_second).map_or(0, |micros| micros.max(1));
        self.turns.set_interval(interval.into());
        self
    }

    /// Adds a delivery whose first attempt is due at this time. A manual attempt is added like a
    /// first one.
    pub fn add(&mut self, delivery: u64, endpoint: u32, due: Timestamp) {
        self.lanes.add(Pending { due: round_up(due), delivery, endpoint, is_retry: false });
    }

    /// Adds a delivery whose next attempt is due at this time: one that has
    /// [failed](super::Delivery::attempts) before.
    pub fn add_retry(&mut self, delivery: u64, endpoint: u32, due: Timestamp) {
        self.lanes.add(Pending { due: round_up(due), delivery, endpoint, is_retry: true });
    }

    /// Takes the delivery to begin now, and its endpoint. `None` if nothing is due, or everything
    /// that is due has to wait for an attempt to finish.
    ///
    /// It counts as in flight until [`finished`](Self::finished) is called for its endpoint.
    pub fn next(&mut self, now: Timestamp) -> Option<(u64, u32)> {
        // Rounded up, so that nothing is taken that `Delivery::begin` would call early.
        let farthest = round_up(now.saturating_add(farthest(LONGEST_WAIT)));
        let now = now.unix_micros();
        self.turns.end_paces(now);
        if self.turns.is_full() {
            return None;
        }
        loop {
            let mut moved = 0..BATCH;
            while moved.next().is_some()
                && let Some(Pending { delivery, endpoint, is_retry, .. }) =
                    self.lanes.pop(now, farthest)
            {
                // The usual case: nothing else is due, so it needs no line.
                if self.lanes.first_due() > now && self.turns.begin_alone(endpoint, now) {
                    return Some((delivery, endpoint));
                }
                self.turns.line_up(delivery, endpoint, is_retry);
            }
            let planned = self.turns.take(now);
            // A batch that was not full has left nothing to look at.
            if planned.is_some() || !moved.is_empty() {
                return planned;
            }
        }
    }

    /// Reports what came of an attempt of this endpoint, and that it is no longer in flight. Ignored
    /// for an endpoint that has nothing in flight.
    ///
    /// What was planned and not begun has finished as [`Outcome::Unsent`].
    pub fn finished(&mut self, endpoint: u32, outcome: Outcome) {
        self.turns.finished(endpoint, outcome);
    }

    /// Counts an attempt that this process has in flight already, after the planner was
    /// [rebuilt](Self::rebuild). It ends with [`finished`](Self::finished).
    ///
    /// Such attempts may exceed the limits; then nothing else begins.
    pub fn began(&mut self, endpoint: u32) {
        self.turns.began(endpoint);
    }

    /// Forgets the pending deliveries of an endpoint that this process does not own any more, or
    /// that is disabled. What is in flight stays until it has [`finished`](Self::finished).
    pub fn forget(&mut self, endpoint: u32) {
        self.retain(|_, of| of != endpoint);
    }

    /// Keeps only the pending deliveries, with their endpoints, for which `keep` returns true: one
    /// pass, when several endpoints go to another owner at once.
    pub fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        self.lanes.retain(&mut keep);
        self.turns.retain(&mut keep);
    }

    /// Returns when to ask for the [`next`](Self::next) again. After a `None`, sleep until then, or
    /// until an attempt finishes or a delivery is added.
    ///
    /// It is the due time of the first delivery that `next` has not seen yet, or the time from which
    /// the [rate](Self::with_rate) of an endpoint allows an attempt. `None` if there is none, and
    /// while the overall limit is reached: then only the end of an attempt makes room.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.turns.is_full() {
            return None;
        }
        let due = self.lanes.first_due().min(self.turns.next_pace());
        Some(due).filter(|due| *due != i64::MAX).map(timestamp)
    }

    /// Returns how many deliveries are pending, without those in flight.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.lanes.len().saturating_add(self.turns.in_line())
    }

    /// Returns how many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.turns.in_flight()
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("limits", &self.turns.limits())
            .field("pending", &self.pending())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

fn round_up(at: Timestamp) -> i64 {
    at.unix_micros().saturating_add(i64::from(!at.subsec_nanos().is_multiple_of(1_000)))
}

/// The last microsecond of the year 9999, rounded up, is not a timestamp.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
}
