//! What to send next, in a process that has much to send.

mod due_delivery;
mod limits;
mod places;
mod waiting;

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use self::due_delivery::{round_up, timestamp};
use self::limits::interval;
use self::places::Places;
use self::waiting::Clock;
use super::delivery::Outcome;
use super::schedule::FARTHEST_DUE;
use crate::Timestamp;

pub use self::due_delivery::{Added, DueDelivery, DueKind};
pub use self::limits::{LimitOf, Rate, SenderLimits};

/// The order in which deliveries are sent, under limits on what is in flight.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::webhook::sender::{DueDelivery, DueKind, Outcome, Planner, SenderLimits};
/// use call_assistant::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut planner = Planner::new(SenderLimits { overall: 100, per_endpoint: 1 });
/// let kind = DueKind::First;
/// let add = |planner: &mut Planner, delivery, endpoint| {
///     let (account, shard, event_created_at, due) = (0, 0, now, now);
///     planner.add(DueDelivery { delivery, endpoint, account, shard, event_created_at, due, kind })
/// };
/// add(&mut planner, 10, 0);
/// add(&mut planner, 11, 0);
/// add(&mut planner, 20, 1);
///
/// let next = |planner: &mut Planner| planner.next(now).map(|planned| planned.delivery);
/// assert_eq!(next(&mut planner), Some(10));
/// assert_eq!(next(&mut planner), Some(20)); // 11 waits for 10
/// assert_eq!(next(&mut planner), None);
/// planner.finished(0, Outcome::TimedOut, Duration::from_secs(10)); // the wire is free
/// assert_eq!(next(&mut planner), Some(11));
/// let again = now.saturating_add(Duration::from_secs(10));
/// planner.release(10, Some((again, DueKind::Retry))); // the row is stored
/// assert_eq!(planner.next_due(), None); // the endpoint has one in flight
/// ```
///
/// A process that holds many pending deliveries [adds](Self::add) each and takes the
/// [`next`](Self::next) until there is none. It begins and sends what it took. Of each that it took it reports
/// two ends, which come in any order: the attempt has [`finished`](Self::finished), so another may begin;
/// and the row is stored, so the delivery is [released](Self::release). The planner's time is the one
/// that `next` was given last.
///
/// Deliveries, endpoints and accounts are numbers of the host's. Delivery numbers may be any. Endpoint
/// and account numbers index tables, so they count from 0 without large gaps: numbers that the process
/// gives, and never numbers that are made of a text id.
///
/// A planner can be filled again from the stored deliveries at any time: [cleared](Self::clear), or new.
/// A new one has forgotten which endpoints are slow, and learns it again from two attempts of each. Until
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
/// - Of an endpoint's slots, [redeliveries](DueKind::Redelivery) have at most three quarters, rounded
///   up, so that new events find room beside a recovery.
/// - Each [limit](Self::limit) that applies to an attempt has to allow it, and is used up by it.
///
/// # How long an account waits
/// The bounds are those of an account whose endpoints are neither slow nor limited. They hold whatever the
/// other accounts do: they may have any number of endpoints and any backlog, and choose how long each
/// attempt lasts, up to ten seconds, and how it ends.
///
/// - The first attempt of an account that has nothing in flight waits for nobody while `k`, the number
///   of other accounts, is below `overall / 8`. Beyond that, its next turn comes within
///   `10 s * ceil(2 * (k + 1) / overall)`.
/// - Of any account, as many attempts begin when they are due as are left free by `k` others:
///   `overall / (k + 1)` if each has as much as the others, and `overall / 2^k` at least.
///
/// The bounds count from when an endpoint is awake. A step wakes at most 256 of those that have become
/// due, first those that are due longest, also while everything is in flight. So add the steps that wake
/// the endpoints that are due longer: 4 for a thousand, 4,000 for a million. How many deliveries each of
/// them has does not matter. An endpoint that has something due when it is added is awake at once.
///
/// Within one account, endpoints that become late together hold up the others only if they are more
/// than a quarter of `overall`, and only until they are slow. So does a backlog of one of its endpoints, by
/// the quarter that further attempts have. Slow endpoints wait for each other, also those of different
/// accounts: an account whose own endpoint is slow may wait for another account's.
///
/// # Several processes
/// A planner knows only what was added to it. What another process accepted, or began before it
/// died, is in the store alone. So every process searches the store about every
/// [`ATTEMPT_LEASE`](super::ATTEMPT_LEASE) for what is due, and adds all that it finds: a delivery
/// is planned once, [however often](Added) it is added.
///
/// # Clocks
/// A delivery that is due more than twice the longest wait after `now` was added by a clock that was wrong,
/// because no [schedule](super::RetrySchedule) waits longer. It counts as due.
///
/// # Cost
/// Every step is O(log n), however many are pending and whatever [`overall`](SenderLimits::overall) is. A
/// delivery takes 3 to 7 us in all of its steps together, and up to 10 while all are due. An endpoint with
/// one pending delivery takes 170 to 210 bytes. The memory of a delivery is free again after its end. That of an
/// endpoint's number, 40 bytes, and of an account's, 48, is kept.
pub struct Planner(Places);

impl Planner {
    /// Creates an empty planner.
    #[must_use]
    pub fn new(limits: SenderLimits) -> Self {
        Self(Places::new(limits))
    }

    /// Limits the attempts of each endpoint to this number a second, one at a time: two attempts
    /// begin at least `1 / per_second` seconds apart. 0 is no limit, as in a new planner.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::sender::{DueDelivery, DueKind, Planner, SenderLimits};
    ///
    /// let limits = SenderLimits { overall: 448, per_endpoint: 8 };
    /// let mut planner = Planner::new(limits).with_rate(20);
    /// let now = Timestamp::UNIX_EPOCH;
    /// let pending = DueDelivery {
    ///     delivery: 1,
    ///     endpoint: 0,
    ///     account: 0,
    ///     shard: 0,
    ///     event_created_at: now,
    ///     due: now,
    ///     kind: DueKind::First,
    /// };
    /// planner.add(pending);
    /// planner.add(DueDelivery { delivery: 2, ..pending });
    /// assert_eq!(planner.next(now).map(|planned| planned.delivery), Some(1));
    /// assert_eq!(planner.next(now), None);
    /// let later = now.saturating_add(Duration::from_millis(50));
    /// assert_eq!(planner.next_due(), Some(later));
    /// assert_eq!(planner.next(later).map(|planned| planned.delivery), Some(2));
    /// ```
    #[must_use]
    pub fn with_rate(mut self, per_second: u32) -> Self {
        self.0.interval = NonZeroU32::new(per_second).map_or(0, interval);
        self
    }

    /// Limits how many attempts begin in a second, of all or of an account or an endpoint, or pauses them,
    /// from now on.
    ///
    /// ```
    /// use core::num::NonZeroU32;
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::sender::{
    ///     DueKind, DueDelivery, LimitOf, Planner, Rate, SenderLimits,
    /// };
    ///
    /// let mut planner = Planner::new(SenderLimits { overall: 448, per_endpoint: 8 });
    /// planner.limit(LimitOf::All, Rate::PerSecond(NonZeroU32::new(100).unwrap()));
    /// planner.limit(LimitOf::Account(7), Rate::Paused);
    /// let now = Timestamp::UNIX_EPOCH;
    /// planner.add(DueDelivery {
    ///     delivery: 1,
    ///     endpoint: 0,
    ///     account: 7,
    ///     shard: 0,
    ///     event_created_at: now,
    ///     due: now,
    ///     kind: DueKind::First,
    /// });
    /// assert_eq!(planner.next(now), None);
    /// planner.limit(LimitOf::Account(7), Rate::Unlimited);
    /// assert!(planner.next(now).is_some());
    /// ```
    pub fn limit(&mut self, of: LimitOf, rate: Rate) {
        self.0.limit(of, rate);
    }

    /// Adds a delivery that is pending. It is planned once, however often it is added; its earliest due
    /// time counts.
    pub fn add(&mut self, pending: DueDelivery) -> Added {
        self.0.add(pending)
    }

    /// Takes the delivery to begin now. `None` if nothing is due, or everything that is due has to wait
    /// for an attempt to finish, for a limit, or for the next step, which wakes more.
    ///
    /// It counts as in flight until [`finished`](Self::finished) is called for its endpoint, and is in hand
    /// until it is [released](Self::release).
    pub fn next(&mut self, now: Timestamp) -> Option<DueDelivery> {
        // Rounded up, so that nothing is taken that `Delivery::begin` would call early.
        let farthest = round_up(now.saturating_add(FARTHEST_DUE));
        self.0.wake(Clock { now: now.unix_micros(), farthest });
        self.0.take()
    }

    /// Reports what came of an attempt of this endpoint and how long it lasted, and that it is no
    /// longer in flight. Ignored for an endpoint that has nothing in flight.
    ///
    /// What was planned and not begun has finished as [`Outcome::Unsent`].
    pub fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        self.0.finished(endpoint, outcome, took);
    }

    /// Ends what is in hand of a delivery, once its row is stored or nothing of it began: it waits again, or
    /// has ended. Ignored for one that is not in hand.
    ///
    /// Returns whether its number was found on another delivery meanwhile: then it has ended here, and what
    /// has the number is to be found again.
    pub fn release(&mut self, delivery: u64, again: Option<(Timestamp, DueKind)>) -> bool {
        self.0.release(delivery, again)
    }

    /// Forgets what is pending of an endpoint: it is disabled, or goes to another owner. What is in hand
    /// stays so.
    pub fn forget(&mut self, endpoint: u32) {
        self.0.forget_endpoint(endpoint);
    }

    /// Forgets what is pending of a shard, in a time that grows with all that is pending. What is in hand
    /// stays so.
    pub fn forget_shard(&mut self, shard: u16) {
        self.0.forget(|known| known.shard == shard);
    }

    /// Forgets all that is pending: it is to be found again. What is in hand stays so.
    pub fn clear(&mut self) {
        self.0.forget(|_| true);
    }

    /// Returns how many deliveries of a shard, or of all, were taken and are not released.
    #[must_use]
    pub fn in_hand(&self, shard: Option<u16>) -> usize {
        match shard {
            Some(shard) => self.0.in_hand.get(&shard).copied().unwrap_or_default(),
            None => self.0.known.len().saturating_sub(self.0.waiting.len()),
        }
    }

    /// Returns when to ask for the [`next`](Self::next) again. After a `None`, sleep until then, or
    /// until an attempt finishes or a delivery is added.
    ///
    /// It is the first instant at which something becomes due that no attempt of its own endpoint holds up, or
    /// at which a limit allows an attempt. An instant that has passed means at once: there is more to wake.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.next_due().map(timestamp)
    }

    /// Returns how many deliveries are pending, without those in flight.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.waiting.len()
    }

    /// Returns how many of the pending deliveries are due, also those that a limit or a pause holds back. It counts
    /// all that is pending, so it is not for each step.
    #[must_use]
    pub fn limited(&self) -> usize {
        let clock = self.0.clock;
        self.0.waiting.iter().filter(|entry| clock.from(entry.due) <= clock.now).count()
    }

    /// Tells whether something is due and waits for more than a limit of its endpoint, of its account or of
    /// an operator: all room is taken, or [`next`](Self::next) was not asked until there was none.
    #[must_use]
    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.0.is_behind(now.unix_micros())
    }

    /// Returns how many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.0.in_flight
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("limits", &self.0.limits)
            .field("pending", &self.pending())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
