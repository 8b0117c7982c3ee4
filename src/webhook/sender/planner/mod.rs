//! What to send next, in a process that has much to send.

mod accounts;
mod due_delivery;
mod due_queue;
mod limits;
mod ready;
mod slab;

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use self::due_delivery::round_up;
use self::due_queue::{DueQueue, Entry};
use self::ready::Ready;
use super::delivery::Outcome;
use super::schedule::FARTHEST_DUE;
use crate::Timestamp;

pub use self::due_delivery::DueDelivery;
pub use self::limits::SenderLimits;

/// The order in which deliveries are sent, under limits on what is in flight.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::webhook::sender::{DueDelivery, Outcome, Planner, SenderLimits};
/// use call_assistant::Timestamp;
///
/// let due = Timestamp::UNIX_EPOCH;
/// let mut planner = Planner::new(SenderLimits { overall: 100, per_endpoint: 1 });
/// planner.add(DueDelivery { delivery: 10, endpoint: 0, account: 0, due, is_retry: false });
/// planner.add(DueDelivery { delivery: 11, endpoint: 0, account: 0, due, is_retry: false });
/// planner.add(DueDelivery { delivery: 20, endpoint: 1, account: 0, due, is_retry: false });
///
/// assert_eq!(planner.next(due), Some((10, 0)));
/// assert_eq!(planner.next(due), Some((20, 1))); // 11 waits for 10
/// assert_eq!(planner.next(due), None);
/// planner.finished(0, Outcome::TimedOut, Duration::from_secs(10));
/// assert_eq!(planner.next(due), Some((11, 0)));
/// ```
///
/// A process that holds many pending deliveries [adds](Self::add) each, takes the
/// [`next`](Self::next) until there is none, begins and sends what it took, and reports each attempt
/// that has [`finished`](Self::finished).
///
/// Deliveries, endpoints and accounts are numbers of the host's. Delivery numbers may be any. Endpoint
/// and account numbers index tables, so they count from 0 without large gaps: numbers that the process
/// gives, and never numbers that are made of a text id.
///
/// The planner can be [rebuilt](Self::rebuild) from the stored deliveries at any time. Then it has
/// forgotten only which endpoints are slow, and learns it again from two attempts of each. Until
/// then the other limits hold, so that is not stored. It may also be outdated: a
/// delivery that has ended, or is leased to another sender, is refused by
/// [`Delivery::begin`](super::Delivery::begin), which costs one step.
///
/// # Which endpoint is next
/// - Accounts that wait take turns, one delivery each: first who has the fewest attempts in flight,
///   and of those who has waited longest. Then the endpoints of the account take turns. Of one
///   endpoint, due retries go before first attempts, so the deliveries that decide whether it is
///   disabled are followed to their ends.
/// - An account that has nothing in flight may use any free room. Any other leaves as many attempts
///   free as it has in flight itself, and at least an eighth of [`overall`](SenderLimits::overall). So one
///   account never has more than half of `overall` in flight, even while nobody else waits.
/// - An endpoint that has nothing in flight may use any room of its account. Second and further
///   attempts use at most a quarter of `overall`, all endpoints of an account together.
/// - An endpoint is **slow** after two long attempts: such that timed out, or lasted more than eight
///   seconds, whatever came of them. A quicker response, whatever its status, ends that; a quicker
///   failure without a response changes nothing. A slow endpoint has one attempt in flight. All slow
///   endpoints together have an eighth of `overall`, at least one, and no other room. They and all
///   others go alternately while both have room, so that nobody starves where an eighth is the whole.
///
/// # How long an account waits
/// The bounds are those of an account whose endpoints are not slow. They hold whatever the other
/// accounts do: they may have any number of endpoints, and choose how long each attempt lasts, up to
/// ten seconds, and how it ends.
///
/// The bounds count from when the planner has looked at a delivery. It looks at deliveries in the order of
/// their due times, at 64 in a step, and at none while `overall` are in flight. So a delivery may
/// wait longer while many others are overdue, for example in a planner that was
/// [rebuilt](Self::rebuild) after an outage: beside a million overdue deliveries whose attempts last
/// ten seconds and take all of 448 slots, for some minutes.
///
/// - The first attempt of an account that has nothing in flight waits for nobody while `k`, the number
///   of other accounts, is below `overall / 8`. Beyond that, its next turn comes within
///   `10 s * ceil(2 * (k + 1) / overall)`.
/// - Of any account, as many attempts begin when they are due as are left free by `k` others:
///   `overall / (k + 1)` if each has as much as the others, and `overall / 2^k` at least.
///
/// Within one account, endpoints that become late together hold up the others only if they are more
/// than a quarter of `overall`, and only until they are slow. Slow endpoints wait for each other, also
/// those of different accounts.
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
/// because no [schedule](super::RetrySchedule) waits longer. It counts as due.
///
/// # Cost
/// A schedule has few different waits, so deliveries that are added for one wait come in order. A
/// queue for each wait keeps all of them in order, and every step is O(1), however many are pending.
/// Deliveries that come out of order, because of jitter or a clock that was set, go to a tree, at
/// O(log n). A pending delivery takes 24 bytes in a buffer that may be half empty, or 12 in its
/// endpoint's list. An endpoint number takes 32 bytes, an account number 48. A planner keeps the memory
/// of its largest number of pending deliveries, about 57 MB after a million. The time of a step also grows
/// with [`overall`](SenderLimits::overall): from 0.2 us at 448 to some 400 us at 1,000,000.
pub struct Planner {
    /// The deliveries that are not due, or were not looked at yet.
    queue: DueQueue,
    /// The deliveries that are due, and the attempts in flight.
    ready: Ready,
}

/// The most deliveries that a step moves into lists while others may send: 64. Deliveries that are
/// all due at once do not stop the process.
const BATCH: usize = 64;

impl Planner {
    /// Creates an empty planner.
    #[must_use]
    pub fn new(limits: SenderLimits) -> Self {
        Self { queue: DueQueue::default(), ready: Ready::new(limits) }
    }

    /// Creates a planner of what is stored: each pending delivery, in any order. Attempts that others
    /// have in flight are due when their leases expire; leave out those of this process, and count
    /// them with [`began`](Self::began).
    ///
    /// Do this before the process accepts events, or together with the first [`add`](Self::add): a
    /// delivery that is accepted in between would be added twice.
    #[must_use]
    pub fn rebuild(limits: SenderLimits, pending: impl IntoIterator<Item = DueDelivery>) -> Self {
        let mut planner = Self::new(limits);
        let mut all: Vec<_> = pending.into_iter().map(|each| planner.ready.know(each)).collect();
        all.sort_unstable();
        // All tables at once, so that no step takes long because one of them grows.
        planner.ready.reserve(all.len());
        planner.queue = DueQueue::sorted(all);
        planner
    }

    /// Limits the attempts of each endpoint to this number a second, one at a time: two attempts
    /// begin at least `1 / per_second` seconds apart. 0 is no limit, as in a new planner.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::sender::{DueDelivery, Planner, SenderLimits};
    ///
    /// let limits = SenderLimits { overall: 448, per_endpoint: 8 };
    /// let mut planner = Planner::new(limits).with_rate(20);
    /// let now = Timestamp::UNIX_EPOCH;
    /// let pending = DueDelivery { delivery: 1, endpoint: 0, account: 0, due: now, is_retry: false };
    /// planner.add(pending);
    /// planner.add(DueDelivery { delivery: 2, ..pending });
    /// assert_eq!(planner.next(now), Some((1, 0)));
    /// assert_eq!(planner.next(now), None);
    /// let later = now.saturating_add(Duration::from_millis(50));
    /// assert_eq!(planner.next_due(), Some(later));
    /// assert_eq!(planner.next(later), Some((2, 0)));
    /// ```
    #[must_use]
    pub fn with_rate(mut self, per_second: u32) -> Self {
        let interval = 1_000_000_u32.checked_div(per_second).map_or(0, |micros| micros.max(1));
        self.ready.set_interval(interval.into());
        self
    }

    /// Adds a delivery.
    pub fn add(&mut self, pending: DueDelivery) {
        let entry = self.ready.know(pending);
        self.queue.add(entry);
    }

    /// Takes the delivery to begin now, and its endpoint. `None` if nothing is due, or everything
    /// that is due has to wait for an attempt to finish.
    ///
    /// It counts as in flight until [`finished`](Self::finished) is called for its endpoint.
    pub fn next(&mut self, now: Timestamp) -> Option<(u64, u32)> {
        // Rounded up, so that nothing is taken that `Delivery::begin` would call early.
        let farthest = round_up(now.saturating_add(FARTHEST_DUE));
        let now = now.unix_micros();
        self.ready.end_paces(now);
        if self.ready.is_full() {
            return None;
        }
        loop {
            let mut moved = 0..BATCH;
            while moved.next().is_some()
                && let Some(Entry { delivery, endpoint, is_retry, .. }) =
                    self.queue.pop(now, farthest)
            {
                // The usual case: nothing else is due, so it needs no list.
                if self.queue.first_due() > now && self.ready.begin_alone(endpoint, now) {
                    return Some((delivery, endpoint));
                }
                self.ready.push(delivery, endpoint, is_retry);
            }
            let planned = self.ready.take(now);
            // A batch that was not full has left nothing to look at.
            if planned.is_some() || !moved.is_empty() {
                return planned;
            }
        }
    }

    /// Reports what came of an attempt of this endpoint and how long it lasted, and that it is no
    /// longer in flight. Ignored for an endpoint that has nothing in flight.
    ///
    /// What was planned and not begun has finished as [`Outcome::Unsent`].
    pub fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        self.ready.finished(endpoint, outcome, took);
    }

    /// Counts an attempt that this process has in flight already, after the planner was
    /// [rebuilt](Self::rebuild). It ends with [`finished`](Self::finished).
    ///
    /// Such attempts may exceed the limits; then nothing else begins. More than 65,535 of one
    /// endpoint count as 65,535.
    pub fn began(&mut self, endpoint: u32, account: u32) {
        self.ready.began(endpoint, account);
    }

    /// Keeps only the pending deliveries, with their endpoints, for which `keep` returns true: when
    /// endpoints are disabled or go to another owner. What is in flight stays until it has
    /// [`finished`](Self::finished).
    pub fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        self.queue.retain(&mut keep);
        self.ready.retain(&mut keep);
    }

    /// Returns when to ask for the [`next`](Self::next) again. After a `None`, sleep until then, or
    /// until an attempt finishes or a delivery is added.
    ///
    /// It is the due time of the first delivery that `next` has not seen yet, or the time from which
    /// the [rate](Self::with_rate) of an endpoint allows an attempt. `None` if there is none, and
    /// while the overall limit is reached: then only the end of an attempt makes room.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.ready.is_full() {
            return None;
        }
        let due = self.queue.first_due().min(self.ready.next_pace());
        Some(due).filter(|due| *due != i64::MAX).map(timestamp)
    }

    /// Returns how many deliveries are pending, without those in flight.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len().saturating_add(self.ready.limited())
    }

    /// Returns how many of these are due and have been passed over: for a limit of their endpoint, of
    /// their account, or of all.
    #[must_use]
    pub fn limited(&self) -> usize {
        self.ready.limited()
    }

    /// Tells whether something is due and waits for more than its endpoint or its account: all room is
    /// taken, or [`next`](Self::next) was not asked until there was none.
    ///
    /// While all room is taken it is also true if what waits would have to wait for its own endpoint anyway.
    #[must_use]
    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.queue.first_due() <= now.unix_micros() || (self.ready.is_full() && self.limited() > 0)
    }

    /// Returns how many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.ready.in_flight()
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("limits", &self.ready.limits())
            .field("pending", &self.pending())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

/// Returns the instant. The last microsecond of the year 9999, rounded up, is not a timestamp.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
}
