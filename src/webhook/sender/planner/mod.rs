//! The choice of the next delivery, in a process with many deliveries.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts what is in memory and within its limits; the endpoint of what is known has a place"
)]

mod due_delivery;
mod limits;
mod places;
mod waiting;

use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, mem};

use self::due_delivery::{Known, State, round_up, timestamp};
use self::limits::{NEVER, Rates};
use self::places::{Account, Endpoint, LONG, SLOW, SLOW_ONES, index};
use self::waiting::Clock;
use super::delivery::Outcome;
use super::schedule::FARTHEST_DUE;
use crate::Timestamp;

pub use self::due_delivery::{Added, DueDelivery, DueKind};
pub use self::limits::{LimitOf, Rate, SenderLimits};

/// Decides which delivery is sent next, within limits on the attempts in flight.
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
/// A process [adds](Self::add) each of its pending deliveries, and calls [`next`](Self::next) until
/// `next` returns `None`. The process begins and sends each returned delivery, and then makes two calls
/// in any order. [`finished`](Self::finished) reports the end of the attempt, so that another attempt
/// may begin. [`release`](Self::release) reports that the delivery's row is stored. The planner's
/// current time is the `now` of the last call of `next`.
///
/// The host numbers its deliveries, endpoints and accounts. A delivery's number may be any `u64`. The
/// numbers of endpoints and accounts are indexes of tables in memory. The host therefore assigns these
/// numbers from 0, without large gaps, and never derives them from a text id. While the planner exists,
/// a delivery keeps its endpoint, and an endpoint keeps its account and shard.
///
/// The host can fill a new or [cleared](Self::clear) planner from the store at any time. The store
/// does not record which endpoints are slow. A new planner recognizes a slow endpoint after two
/// attempts to it. Until then, the limits for slow endpoints do not apply to this endpoint.
///
/// If a delivery has ended or is leased to another sender,
/// [`Delivery::begin`](super::Delivery::begin) refuses the delivery. If a delivery's
/// [kind](DueKind) has changed since the delivery was added, do not begin the delivery. Release it
/// with the new kind, because the kind decides the order.
///
/// # Which endpoint is next
/// Each attempt in flight takes one of [`overall`](SenderLimits::overall) slots. An eighth of `overall`
/// is rounded down, and a quarter of `overall` is rounded up.
///
/// - Accounts with due deliveries take turns, and each turn sends one delivery. The account with the
///   fewest attempts in flight is first. Among accounts with equally many attempts, the account that
///   has waited longest is first.
/// - Within an account, the endpoints take turns. An endpoint's due retries precede its first attempts.
///   Retries end deliveries, and ended deliveries decide whether the endpoint is disabled.
/// - An account with no attempt in flight may take any free slot. An account with attempts in flight
///   leaves free at least as many slots as it takes, and at least an eighth of `overall`. One account
///   therefore never takes more than half of the slots, even while no other account waits.
/// - An endpoint with no attempt in flight may take any slot that its account may take. All attempts in
///   flight to an endpoint except the first are *further* attempts. The further attempts to all
///   endpoints of an account together take at most a quarter of `overall`.
/// - An attempt is long if it timed out, or if it lasted more than eight seconds with any outcome
///   except [unsent](Outcome::Unsent). An endpoint is **slow** after two long attempts, if no response
///   came within eight seconds between these attempts. A response of any status within eight seconds
///   ends the slowness. A failure within eight seconds without a response, or an unsent attempt,
///   changes nothing.
/// - A slow endpoint has at most one attempt in flight. All slow endpoints together take at most an
///   eighth of `overall`, or one slot if `overall` is below 8. While slots are free for both slow and
///   other endpoints, the two groups take turns. Both groups therefore get slots, even if `overall` is
///   1.
/// - An endpoint's [redeliveries](DueKind::Redelivery) take at most three quarters of
///   [`per_endpoint`](SenderLimits::per_endpoint), rounded up. During a recovery, the endpoint's other
///   slots remain for new events.
/// - An attempt begins only if every [limit](Self::limit) that applies to the attempt allows it.
///   These limits then count the attempt.
///
/// # How long an account waits
/// The following bounds apply to an account whose endpoints are not slow and have no
/// [limit](Self::limit). The `k` other accounts may have any number of endpoints, any backlog, any
/// outcome, and attempts of up to ten seconds.
///
/// - If `k` is below `overall / 8` and the account has no attempt in flight, the account waits for no
///   other account. Otherwise, the account has its next turn within `10 s * ceil(2 * (k + 1) /
///   overall)`.
/// - While the other accounts leave slots free, an account's attempts begin when they are due. If all
///   accounts take equally many slots, the other accounts leave `overall / (k + 1)` slots free. The
///   other accounts always leave at least `overall / 2^k` slots free.
///
/// A bound counts from the moment when the planner notices that the endpoint has a due delivery.
/// The endpoint is then *awake*. If a delivery is due when it is added, its endpoint is awake at
/// once. Otherwise, a call of `next` wakes the endpoint. Even while all slots are taken, each call
/// wakes at most 256 due endpoints, beginning with the endpoint that has been due longest. The
/// calls that wake other endpoints first therefore add to the bound. A thousand endpoints need 4
/// calls, and a million endpoints need 4,000 calls, regardless of the number of deliveries.
///
/// If the number of one account's endpoints that begin to answer late exceeds a quarter of
/// `overall`, these endpoints delay the account's other endpoints until they count as slow. A
/// backlog of one endpoint delays the account's other endpoints only by the endpoint's further
/// attempts. A slow endpoint may wait for other slow endpoints of any account.
///
/// # Several processes
/// If another process accepted a delivery, or began a delivery and then died, the delivery is only
/// in the store. Therefore each process must search the store at intervals of about
/// [`ATTEMPT_LEASE`](super::ATTEMPT_LEASE), and add all due deliveries. A delivery that is
/// [added](Added) several times is planned only once.
///
/// # Clocks
/// If a due time is later than `now` by more than twice the longest wait, the delivery counts as
/// due. No [schedule](super::RetrySchedule) has such a long wait, so a wrong clock caused this due
/// time.
///
/// # Cost
/// For n pending deliveries and any [`overall`](SenderLimits::overall), each call takes O(log n)
/// time. The following times are for a million pending deliveries. If a delivery is due when it is
/// added, all calls for this delivery together take 0.3 to 0.6 us. If the delivery waits until it
/// is due, these calls take 1.3 to 2.7 us, mostly to read uncached memory.
///
/// An endpoint with one pending delivery takes 160 to 220 bytes. The planner frees a delivery's memory
/// when the delivery ends, and an account's memory when the account has no attempt in flight and no
/// delivery that may be sent now. The planner keeps 72 bytes for each endpoint number and 8 bytes for
/// each account number, from 0 to the highest number.
pub struct Planner {
    limits: SenderLimits,
    /// The microseconds between two attempts of one endpoint, or 0 if no rate is set.
    interval: i64,
    clock: Clock,
    rates: Rates,
    /// The deliveries that wait or are in hand, by number.
    known: BTreeMap<u64, Known>,
    in_hand: Vec<usize>,
    endpoints: Vec<Endpoint>,
    /// The accounts that have an attempt in flight, or a delivery that may be sent.
    accounts: Vec<Option<Box<Account>>>,
    /// The times until which endpoints and accounts sleep.
    asleep: BTreeSet<(i64, LimitOf)>,
    /// The attempts in flight, the turn and the number of each account that waits for a turn. The set
    /// at [`SLOW_ONES`] is for slow endpoints, and the other set for all other endpoints.
    turns: [BTreeSet<(u32, u64, u32)>; 2],
    /// The turn that was given last.
    turn: u64,
    in_flight: u32,
    slow: u32,
    /// The index of the set in `turns` that is next if slots are free for both sets.
    next: usize,
    /// Endpoints with smaller numbers were not checked since the clock went back.
    unseen: u32,
}

impl Planner {
    /// Creates an empty planner.
    #[must_use]
    pub fn new(limits: SenderLimits) -> Self {
        Self {
            limits,
            interval: 0,
            clock: Clock { now: i64::MIN, farthest: i64::MAX },
            rates: Rates::default(),
            known: BTreeMap::new(),
            in_hand: Vec::new(),
            endpoints: Vec::new(),
            accounts: Vec::new(),
            asleep: BTreeSet::new(),
            turns: Default::default(),
            turn: 0,
            in_flight: 0,
            slow: 0,
            next: SLOW_ONES,
            unseen: 0,
        }
    }

    /// Limits each endpoint to `per_second` attempts a second. Two attempts of an endpoint begin at
    /// least `1 / per_second` seconds apart. A new planner has no such limit, and 0 removes the limit.
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
        self.interval =
            1_000_000_i64.checked_div(per_second.into()).map_or(0, |micros| micros.max(1));
        self
    }

    /// Limits from now on how many attempts may begin in a second, or pauses the attempts. The
    /// limit applies to all attempts, an account's attempts or an endpoint's attempts.
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
        self.rates.set(of, rate, self.clock.now);
        self.look(of);
    }

    /// Adds a pending delivery. If a delivery is added several times, it is planned only once, at its
    /// earliest due time.
    pub fn add(&mut self, pending: DueDelivery) -> Added {
        let (delivery, new, mut is_new) = (pending.delivery, Known::new(pending), false);
        let known = self.known.entry(delivery).or_insert_with(|| {
            is_new = true;
            new
        });
        let before = *known;
        match (before.state, before.is_of(new)) {
            _ if is_new => self.belongs(pending),
            (State::Waits, true) if new.due >= before.due => return Added::Known,
            (State::Waits, _) => {
                *known = new;
                self.change(before.endpoint, |of| of.waiting.remove(before.entry(delivery)));
            }
            (State::InHand | State::Found, false) => known.state = State::Replaced,
            (State::InHand, true) => {
                known.state = State::Found;
                return Added::InHand;
            }
            _ => return Added::InHand,
        }
        if !before.is_of(new) {
            if before.state == State::Waits {
                self.known.remove(&delivery);
            }
            return Added::Other;
        }
        self.change(new.endpoint, |of| of.waiting.insert(new.entry(delivery)));
        if is_new { Added::New } else { Added::Earlier }
    }

    /// Takes and returns the delivery to begin now. Returns `None` if no delivery is due, or if all due
    /// deliveries must wait. A due delivery may wait for the end of another attempt, for a limit, or
    /// for the next call of `next`, which wakes more endpoints.
    ///
    /// The returned delivery counts as in flight until [`finished`](Self::finished) is called for its
    /// endpoint. The delivery is in hand until it is [released](Self::release).
    pub fn next(&mut self, now: Timestamp) -> Option<DueDelivery> {
        // Rounded up, so that nothing is taken that `Delivery::begin` would call early.
        let farthest = round_up(now.saturating_add(FARTHEST_DUE));
        self.wake(Clock { now: now.unix_micros(), farthest });
        let now = self.clock.now;
        let may_begin = self.rates.from(LimitOf::All, now) <= now;
        let (part, endpoint) = self.next_turn(self.most_held().filter(|_| may_begin)?)?;
        let of = &self.endpoints[index(endpoint)];
        let (account, shard, first) = (of.account?, of.shard, self.first(of)?);
        let known = self.known.get_mut(&first.delivery)?;
        known.state = State::InHand;
        let known = *known;
        self.in_hand[usize::from(shard)] += 1;
        self.next = 1 - part;
        self.rates.use_up(account, endpoint, now);
        let from = now.saturating_add(self.interval);
        self.change(endpoint, |of| {
            of.waiting.remove(first);
            of.in_flight += 1;
            of.redeliveries += u16::from(first.kind == DueKind::Redelivery);
            of.from = from;
        });
        Some(known.due_delivery(first.delivery, account, shard))
    }

    /// Reports that an attempt to this endpoint has ended, with its outcome and duration. The
    /// attempt is then no longer in flight. If the endpoint has no attempt in flight, the call is
    /// ignored.
    ///
    /// If you did not begin a delivery that `next` returned, report [`Outcome::Unsent`].
    pub fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        self.change(endpoint, |of| {
            let Some(left) = of.in_flight.checked_sub(1) else { return };
            of.in_flight = left;
            match outcome {
                Outcome::Unsent => {}
                _ if outcome == Outcome::TimedOut || took > LONG => of.long = SLOW.min(of.long + 1),
                Outcome::Answered(_) => of.long = 0,
                _ => {}
            }
        });
    }

    /// Releases a delivery in hand, after you have stored its row or if you did not begin the delivery.
    /// If `again` is `None`, the delivery has ended. Otherwise, the delivery waits until the given
    /// time. If the delivery was [added](Self::add) again while in hand, `None` does not end it,
    /// because it may have become pending again. If the delivery is not in hand, the call is ignored.
    ///
    /// Returns whether another delivery with the same number was added while the released delivery was
    /// in hand. If so, the planner forgets the released delivery, and you must add the other delivery
    /// again.
    pub fn release(&mut self, delivery: u64, again: Option<(Timestamp, DueKind)>) -> bool {
        let Entry::Occupied(mut place) = self.known.entry(delivery) else { return false };
        let before = *place.get();
        if before.state == State::Waits {
            return false;
        }
        let waits = match (before.state, again) {
            (State::Replaced, _) | (State::InHand, None) => None,
            (_, Some((due, kind))) => Some(before.again(due, kind)),
            (_, None) => Some(before.again(timestamp(before.due), before.kind)),
        };
        match waits {
            Some(known) => _ = place.insert(known),
            None => _ = place.remove(),
        }
        self.in_hand[usize::from(self.endpoints[index(before.endpoint)].shard)] -= 1;
        self.change(before.endpoint, |of| {
            of.redeliveries -= u16::from(before.kind == DueKind::Redelivery);
            waits.into_iter().for_each(|known| of.waiting.insert(known.entry(delivery)));
        });
        before.state == State::Replaced
    }

    /// Forgets the pending deliveries of an endpoint that is disabled, or that another process now
    /// serves. Deliveries in hand remain in hand.
    pub fn forget(&mut self, endpoint: u32) {
        let Some(of) = self.endpoints.get_mut(index(endpoint)) else { return };
        for delivery in mem::take(&mut of.waiting).deliveries() {
            self.known.remove(&delivery);
        }
        self.look(LimitOf::Endpoint(endpoint));
    }

    /// Forgets the pending deliveries of a shard. The time of the call grows with the number of all
    /// endpoints and the number of forgotten deliveries. Deliveries in hand remain in hand.
    pub fn forget_shard(&mut self, shard: u16) {
        self.forget_those(|of| of.shard == shard);
    }

    /// Forgets all pending deliveries. Add them again. Deliveries in hand remain in hand.
    pub fn clear(&mut self) {
        self.forget_those(|_| true);
    }

    fn forget_those(&mut self, are_meant: impl Fn(&Endpoint) -> bool) {
        for endpoint in (0..).take(self.endpoints.len()) {
            if are_meant(&self.endpoints[index(endpoint)]) {
                self.forget(endpoint);
            }
        }
    }

    /// Returns how many deliveries of a shard are in hand. A delivery is in hand from `next` to its
    /// release. If `shard` is `None`, all shards count.
    #[must_use]
    pub fn in_hand(&self, shard: Option<u16>) -> usize {
        match shard {
            Some(shard) => self.in_hand.get(usize::from(shard)).copied().unwrap_or_default(),
            None => self.in_hand.iter().sum(),
        }
    }

    /// Returns when to call [`next`](Self::next) again. If `next` has returned `None`, sleep until this
    /// instant, until an attempt finishes, or until a delivery is added or released. Returns `None` if
    /// waiting alone makes no attempt possible.
    ///
    /// The result is the first instant at which a limit allows an attempt or a delivery becomes
    /// due. A delivery that waits until an attempt to its endpoint ends is excluded. If the instant
    /// has passed, call `next` at once, because the call can wake more endpoints.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let now = self.clock.now;
        let unseen = (self.unseen > 0).then_some(now);
        let turn = self.most_held().and_then(|most| self.next_turn(most));
        let from = turn.map(|_| self.rates.from(LimitOf::All, now).max(now));
        let wake = self.asleep.first().map(|(until, _)| *until);
        from.into_iter().chain(wake).chain(unseen).min().filter(|at| *at != NEVER).map(timestamp)
    }

    /// Returns how many deliveries are pending. Deliveries in hand are excluded.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.known.len() - self.in_hand(None)
    }

    /// Returns how many pending deliveries are due, including deliveries that a limit or a pause delays.
    /// The function visits all pending deliveries, so do not call it in each step.
    #[must_use]
    pub fn limited(&self) -> usize {
        let is_due = |of: &&Known| self.clock.from(of.due) <= self.clock.now;
        self.known.values().filter(|of| of.state == State::Waits).filter(is_due).count()
    }

    /// Returns whether a due delivery waits although no limit of its endpoint, its account or an
    /// operator delays it. The cause is that all slots are taken, or that the process did not call
    /// [`next`](Self::next) until it returned `None`.
    #[must_use]
    pub fn is_behind(&self, now: Timestamp) -> bool {
        let may_send = self.rates.from(LimitOf::All, now.unix_micros()) <= now.unix_micros();
        let is_full = self.in_flight >= self.limits.overall;
        let is_held_up = may_send && is_full && self.next_turn(u32::MAX).is_some();
        let is_due = self.next_due().is_some_and(|due| due <= now);
        self.limits.overall > 0 && (is_due || is_held_up)
    }

    /// Returns how many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("limits", &self.limits)
            .field("pending", &self.pending())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
