//! The choice of the next delivery, in a process with many.

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

/// The order in which deliveries are sent, under limits on the attempts in flight.
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
/// A process [adds](Self::add) each of its pending deliveries and takes the [`next`](Self::next) until it
/// returns `None`. It begins and sends each delivery that it took, and reports two ends of it, in any order:
/// the attempt has [`finished`](Self::finished), so another may begin; and the row is stored, so the delivery
/// is [released](Self::release). The planner's time is the last `now` that `next` was given.
///
/// The host numbers its deliveries, endpoints and accounts. Delivery numbers may be any. Endpoint and account
/// numbers index tables, so the process assigns them from 0 without large gaps, and never derives them from a
/// text id. A delivery's endpoint, and an endpoint's account and shard, stay the same while the planner lives.
///
/// A planner can be filled again from the stored deliveries at any time: a [cleared](Self::clear)
/// planner, or a new one. A new planner learns which endpoints are slow from two attempts of each. Until
/// then the other limits hold, so slowness is not stored. A planner may be outdated:
/// [`Delivery::begin`](super::Delivery::begin) refuses a delivery that has ended, or is leased to another
/// sender, which costs one step. A delivery may have become another [kind](DueKind) than planned: release it
/// with that kind instead of beginning it, for each kind has its own room.
///
/// # Which endpoint is next
/// - Accounts that wait take turns, one delivery each: first the account with the fewest attempts
///   in flight, and among equals the one that has waited longest. Then the endpoints of the account
///   take turns. An endpoint's due retries go before its first attempts, so the deliveries that
///   decide whether it is disabled are followed to their ends.
/// - An account that has nothing in flight may use any free room. Any other account leaves as many
///   attempts free as it has in flight, and at least an eighth of [`overall`](SenderLimits::overall). One
///   account therefore never has more than half of `overall` in flight, even while no other account waits.
/// - An endpoint that has nothing in flight may use any room of its account. Second and further
///   attempts use at most a quarter of `overall`, all endpoints of an account together.
/// - An endpoint is **slow** after two long attempts, which timed out or lasted more than eight
///   seconds, with any outcome. A quicker response of any status ends its slowness; a quicker failure
///   without a response changes nothing. A slow endpoint has one attempt in flight. All slow
///   endpoints together have an eighth of `overall`, at least one attempt, and no other room. Slow
///   endpoints and the others alternate while both have room, so that nobody starves where an eighth
///   is the whole.
/// - [Redeliveries](DueKind::Redelivery) have at most three quarters of an endpoint's slots, rounded up, so that
///   new events find room beside a recovery.
/// - Each [limit](Self::limit) that applies to an attempt has to allow it, and counts it.
///
/// # How long an account waits
/// The bounds are for an account whose endpoints are neither slow nor limited. They hold for any behaviour
/// of the other accounts: any number of endpoints, any backlog, any outcome, and attempts of up to ten
/// seconds.
///
/// - The first attempt of an account that has nothing in flight waits for nobody while `k`, the number
///   of other accounts, is below `overall / 8`. Beyond that, its next turn comes within
///   `10 s * ceil(2 * (k + 1) / overall)`.
/// - As many attempts of an account begin when they are due as `k` other accounts leave free:
///   `overall / (k + 1)` if each has as much as the others, and at least `overall / 2^k`.
///
/// The bounds count from the time when an endpoint is awake. A step wakes at most 256 of the endpoints
/// that have become due, the longest due first, even while everything is in flight. Add the steps that
/// wake the endpoints that are due longer: 4 for a thousand, 4,000 for a million. The number of their
/// deliveries does not matter. An endpoint with a due delivery when it is added is awake at once.
///
/// Within one account, endpoints that become late together delay the others only if they are more than a
/// quarter of `overall`, and only until they are slow. A backlog of one endpoint delays the others by the
/// quarter that further attempts have. Slow endpoints wait for each other, even across accounts.
///
/// # Several processes
/// A planner knows only the deliveries that were added to it. Deliveries that another process
/// accepted, or began before it died, are in the store alone. Every process must therefore search
/// the store about every [`ATTEMPT_LEASE`](super::ATTEMPT_LEASE) for due deliveries, and add all of
/// them: a delivery is planned once, [however often](Added) it is added.
///
/// # Clocks
/// A delivery that is due more than twice the longest wait after `now` counts as due: no
/// [schedule](super::RetrySchedule) waits longer, so a wrong clock added it.
///
/// # Cost
/// Every step is O(log n), for any number of pending deliveries and any [`overall`](SenderLimits::overall).
/// Beside a million pending deliveries, a delivery that waits before it is due takes 1.3 to 2.7 us in all of its
/// steps together, most of it for uncached memory. A delivery that is due when it is added takes 0.3 to 0.6 us.
/// An endpoint with one pending delivery takes 160 to 220 bytes. The memory of a delivery, and of an account
/// that sends, is freed after their end. The planner keeps 72 bytes for each endpoint's number, up to the
/// highest, and 8 for each account's.
pub struct Planner {
    limits: SenderLimits,
    /// The microseconds between two attempts of one endpoint; 0 without a rate.
    interval: i64,
    clock: Clock,
    rates: Rates,
    /// The deliveries that wait or are in hand, by number.
    known: BTreeMap<u64, Known>,
    /// How many of them are in hand, by shard.
    in_hand: Vec<usize>,
    endpoints: Vec<Endpoint>,
    /// The accounts that have something in flight, or something that may be sent.
    accounts: Vec<Option<Box<Account>>>,
    /// Until when endpoints and accounts sleep.
    asleep: BTreeSet<(i64, LimitOf)>,
    /// The accounts that wait for a turn, of their endpoints that are not slow or of their
    /// [`SLOW_ONES`]: attempts in flight, turn, account.
    turns: [BTreeSet<(u32, u64, u32)>; 2],
    /// The turn that was given last.
    turn: u64,
    in_flight: u32,
    /// The attempts of slow endpoints among those.
    slow: u32,
    /// The one of the two sets of turns that is next if there is room for both.
    next: usize,
    /// The endpoints below this number were not looked at since the clock went back.
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
        self.interval =
            1_000_000_i64.checked_div(per_second.into()).map_or(0, |micros| micros.max(1));
        self
    }

    /// Limits how many attempts of all, of an account or of an endpoint begin in a second, or pauses them,
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
        self.rates.set(of, rate, self.clock.now);
        self.look(of);
    }

    /// Adds a delivery that is pending. The delivery is planned once, however often it is added; its earliest due
    /// time counts.
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

    /// Takes the delivery to begin now. `None` if no delivery is due, or all due deliveries have to
    /// wait for an attempt to finish, for a limit, or for the next step, which wakes more.
    ///
    /// The delivery counts as in flight until [`finished`](Self::finished) is called for its endpoint, and is in hand
    /// until it is [released](Self::release).
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

    /// Reports the outcome and the duration of an attempt of this endpoint, which is no longer in
    /// flight. Ignored for an endpoint that has nothing in flight.
    ///
    /// A delivery that was planned and not begun has finished as [`Outcome::Unsent`].
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

    /// Releases a delivery in hand, once its row is stored or if it did not begin: it waits again, or has
    /// ended. If it was [added](Self::add) meanwhile, it does not end here: its row may have been read before it became
    /// pending again. Ignored for a delivery that is not in hand.
    ///
    /// Returns whether its number was found on another delivery meanwhile. Then it has ended here, and the
    /// delivery with the number is to be found again.
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

    /// Forgets the pending deliveries of an endpoint that is disabled, or goes to another owner.
    /// Deliveries in hand stay in hand.
    pub fn forget(&mut self, endpoint: u32) {
        let Some(of) = self.endpoints.get_mut(index(endpoint)) else { return };
        for delivery in mem::take(&mut of.waiting).deliveries() {
            self.known.remove(&delivery);
        }
        self.look(LimitOf::Endpoint(endpoint));
    }

    /// Forgets the pending deliveries of a shard, in a time that grows with the number of all endpoints and of
    /// forgotten deliveries. Deliveries in hand stay in hand.
    pub fn forget_shard(&mut self, shard: u16) {
        self.forget_those(|of| of.shard == shard);
    }

    /// Forgets all pending deliveries, which are to be found again. Deliveries in hand stay in
    /// hand.
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

    /// Returns how many deliveries of a shard, or of all, were taken and are not released.
    #[must_use]
    pub fn in_hand(&self, shard: Option<u16>) -> usize {
        match shard {
            Some(shard) => self.in_hand.get(usize::from(shard)).copied().unwrap_or_default(),
            None => self.in_hand.iter().sum(),
        }
    }

    /// Returns when to ask for the [`next`](Self::next) again. After a `None`, sleep until then, or
    /// until an attempt finishes or a delivery is added.
    ///
    /// The result is the first instant at which a delivery becomes due that no attempt of its own endpoint delays, or
    /// at which a limit allows an attempt. An instant that has passed means at once: there is more to wake.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let now = self.clock.now;
        let unseen = (self.unseen > 0).then_some(now);
        let turn = self.most_held().and_then(|most| self.next_turn(most));
        let from = turn.map(|_| self.rates.from(LimitOf::All, now).max(now));
        let wake = self.asleep.first().map(|(until, _)| *until);
        from.into_iter().chain(wake).chain(unseen).min().filter(|at| *at != NEVER).map(timestamp)
    }

    /// Returns how many deliveries are pending, without those in flight.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.known.len() - self.in_hand(None)
    }

    /// Returns how many of the pending deliveries are due, including those that a limit or a pause holds back. The
    /// function counts all pending deliveries, so do not call it in each step.
    #[must_use]
    pub fn limited(&self) -> usize {
        let is_due = |of: &&Known| self.clock.from(of.due) <= self.clock.now;
        self.known.values().filter(|of| of.state == State::Waits).filter(is_due).count()
    }

    /// Tells whether a due delivery waits for more than a limit of its endpoint, of its account or of an
    /// operator: all room is taken, or [`next`](Self::next) was not called until it returned `None`.
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
