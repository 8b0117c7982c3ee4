//! The choice of the next endpoint.
//!
//! Each endpoint and each account has a place in the order of sending. The place depends on the
//! attempts in flight, the waiting deliveries and the limits. The planner's sets list endpoints and
//! accounts by place. Only [`Planner::change`] moves an endpoint to another place, and only
//! [`Planner::change_account`] moves an account.

use alloc::collections::BTreeSet;
use core::time::Duration;

use super::Planner;
use super::due_delivery::DueDelivery;
use super::limits::{LimitOf, NEVER};
use super::waiting::{Clock, Entry, Waiting};

#[derive(Default)]
pub(super) struct Endpoint {
    /// The endpoint's account, or `None` while the planner does not know the endpoint.
    pub(super) account: Option<u32>,
    pub(super) shard: u16,
    pub(super) in_flight: u16,
    /// The endpoint's redeliveries in hand.
    pub(super) redeliveries: u16,
    /// The long attempts since the last response within [`LONG`], at most [`SLOW`].
    pub(super) long: u8,
    /// When the endpoint's rate allows the next attempt.
    pub(super) from: i64,
    place: Place,
    pub(super) waiting: Waiting,
}

/// The place of an endpoint in the order of sending.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// No delivery waits, or an attempt to this endpoint or a pause must end first.
    #[default]
    Nowhere,
    /// No delivery to the endpoint may be sent before this time.
    Asleep(i64),
    /// A delivery may be sent, after the deliveries to endpoints with an earlier turn.
    Waits(Room, u64),
}

/// The kind of slot that the next attempt of an endpoint takes. Endpoints with no attempt in flight
/// precede endpoints with attempts in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    is_slow: bool,
    is_further: bool,
}

#[derive(Default)]
pub(super) struct Account {
    in_flight: u32,
    /// The attempts in flight to the account's endpoints, excluding one attempt to each endpoint.
    further: u32,
    /// The room, turn and number of each endpoint that has a due delivery and a free slot of its own.
    /// The second set is for slow endpoints.
    rooms: [BTreeSet<(Room, u64, u32)>; 2],
    /// The account's entries in the planner's two sets of turns: its attempts in flight and its turn.
    turns: [Option<(u32, u64)>; 2],
    /// The time until which a limit makes the account sleep.
    until: Option<i64>,
}

/// In a pair of sets, the index of the set for slow endpoints: 1. The other set has index 0.
pub(super) const SLOW_ONES: usize = 1;

/// The number of long attempts that make an endpoint slow, if no response within [`LONG`] comes between
/// them: 2.
pub(super) const SLOW: u8 = 2;

/// The time after which an attempt is long: 8 s.
pub(super) const LONG: Duration = Duration::from_secs(8);

/// The largest number of endpoints that one call of `next` wakes, or checks after the clock went back:
/// 256. The call therefore stays short.
const BATCH: usize = 256;

/// The longest step back of the clock after which the endpoints need no check: a second. A rate
/// delays an endpoint for at most a second.
const STEP_BACK: i64 = 1_000_000;

impl Planner {
    /// Records the account and the shard of the delivery's endpoint, if they are not known.
    pub(super) fn belongs(&mut self, of: DueDelivery) {
        let endpoints = self.endpoints.len().max(index(of.endpoint) + 1);
        self.endpoints.resize_with(endpoints, Endpoint::default);
        let endpoint = &mut self.endpoints[index(of.endpoint)];
        if endpoint.account.is_none() {
            (endpoint.account, endpoint.shard) = (Some(of.account), of.shard);
            let accounts = self.accounts.len().max(index(of.account) + 1);
            self.accounts.resize_with(accounts, || None);
            let shards = self.in_hand.len().max(usize::from(of.shard) + 1);
            self.in_hand.resize(shards, 0);
        }
    }

    /// Sets the time, and wakes the endpoints and accounts that may send now.
    pub(super) fn wake(&mut self, clock: Clock) {
        if clock.now < self.clock.now.saturating_sub(STEP_BACK) || self.clock.now == i64::MIN {
            self.unseen = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        }
        self.clock = clock;
        for _ in 0..BATCH {
            let awake = self.asleep.first().filter(|first| first.0 <= clock.now);
            let awake = awake.map(|first| first.1).or_else(|| {
                self.unseen = self.unseen.checked_sub(1)?;
                Some(LimitOf::Endpoint(self.unseen))
            });
            let Some(awake) = awake else { break };
            self.look(awake);
        }
    }

    /// Returns the next endpoint and the index of its set. Only accounts with at most `most` attempts
    /// in flight count.
    pub(super) fn next_turn(&self, most: u32) -> Option<(usize, u32)> {
        [self.next, 1 - self.next].into_iter().find_map(|part| {
            // All slow endpoints together have an eighth, and one attempt at least.
            let is_full = part == SLOW_ONES && self.slow >= (self.limits.overall / 8).max(1);
            let (.., account) = self.turns[part].first().filter(|of| of.0 <= most && !is_full)?;
            Some((part, self.accounts[index(*account)].as_ref()?.rooms[part].first()?.2))
        })
    }

    /// Returns the largest number of attempts in flight with which an account may begin another
    /// attempt. The account then leaves free at least as many slots as it takes, and an eighth of
    /// `overall`. Returns `None` if no slot is free.
    pub(super) fn most_held(&self) -> Option<u32> {
        let left = self.limits.overall.checked_sub(self.in_flight)?.checked_sub(1)?;
        // An eighth is for those that have nothing in flight.
        Some(if left < self.limits.overall / 8 { 0 } else { left.saturating_sub(1) })
    }

    /// Moves an endpoint or an account to its place, after the time or a limit has changed.
    pub(super) fn look(&mut self, of: LimitOf) {
        match of {
            LimitOf::All => {}
            LimitOf::Account(account) => self.change_account(account, |_| {}),
            LimitOf::Endpoint(endpoint) => self.change(endpoint, |_| {}),
        }
    }

    /// Changes an endpoint, counts its attempts in flight, and moves it to its place. If the place is
    /// new or the endpoint has had a turn, the endpoint is behind all endpoints that wait for the same
    /// [`Room`]. If the planner does not know the endpoint, the call is ignored.
    pub(super) fn change(&mut self, endpoint: u32, change: impl FnOnce(&mut Endpoint)) {
        let Some(of) = self.endpoints.get_mut(index(endpoint)) else { return };
        let Some(account) = of.account else { return };
        let (before, [in_flight, further, slow]) = (of.place, of.counts());
        change(of);
        let [in_flight_now, further_now, slow_now] = of.counts();
        let mut place = self.place(endpoint, &self.endpoints[index(endpoint)]);
        if let (Place::Waits(was, turn), Place::Waits(room, new)) = (before, &mut place)
            && was == *room
            && in_flight_now <= in_flight
        {
            *new = turn;
        }
        self.endpoints[index(endpoint)].place = place;
        self.turn += 1;
        self.in_flight = self.in_flight - in_flight + in_flight_now;
        self.slow = self.slow - slow + slow_now;
        let asleep = |place| match place {
            Place::Asleep(until) => Some((until, LimitOf::Endpoint(endpoint))),
            _ => None,
        };
        replace(&mut self.asleep, asleep(before), asleep(place));
        let waiting = |place| match place {
            Place::Waits(room, turn) => Some((room, turn, endpoint)),
            _ => None,
        };
        let (left, entered) = (waiting(before), waiting(place));
        if left != entered || in_flight != in_flight_now {
            self.change_account(account, |of| {
                left.map(|entry| of.rooms[usize::from(entry.0.is_slow)].remove(&entry));
                entered.map(|entry| of.rooms[usize::from(entry.0.is_slow)].insert(entry));
                of.in_flight = of.in_flight - in_flight + in_flight_now;
                of.further = of.further - further + further_now;
            });
        }
    }

    /// Returns the place of an endpoint, with the next turn if the endpoint waits.
    fn place(&self, endpoint: u32, of: &Endpoint) -> Place {
        let now = self.clock.now;
        let Some(room) = self.room(of) else { return Place::Nowhere };
        let Some(first) = self.first(of) else { return Place::Nowhere };
        // An interval that ends too far ahead was begun by another clock.
        let paced = if of.from > now.saturating_add(self.interval) { now } else { of.from };
        let limited = self.rates.from(LimitOf::Endpoint(endpoint), now);
        match self.clock.from(first.due).max(paced).max(limited) {
            NEVER => Place::Nowhere,
            from if from > now => Place::Asleep(from),
            _ => Place::Waits(room, self.turn + 1),
        }
    }

    /// Returns the next delivery of an endpoint. Redeliveries are included only while another
    /// redelivery to the endpoint is allowed.
    pub(super) fn first(&self, of: &Endpoint) -> Option<Entry> {
        // Redeliveries have three quarters of an endpoint's attempts.
        let most = self.limits.per_endpoint.saturating_sub(self.limits.per_endpoint / 4);
        of.waiting.first(u32::from(of.redeliveries) < most.min(u16::MAX.into()), self.clock)
    }

    /// Returns the [`Room`] that the next attempt of an endpoint takes. Returns `None` if one of the
    /// endpoint's attempts must end first.
    fn room(&self, of: &Endpoint) -> Option<Room> {
        let is_slow = of.long == SLOW;
        let most = if is_slow { 1 } else { u16::MAX };
        let has_room = of.in_flight < most && u32::from(of.in_flight) < self.limits.per_endpoint;
        has_room.then_some(Room { is_slow, is_further: of.in_flight > 0 })
    }

    /// Changes an account, and moves it to its place. If the account waits and its number of attempts
    /// in flight has changed, the account is behind all accounts with equally many attempts in flight.
    fn change_account(&mut self, account: u32, change: impl FnOnce(&mut Account)) {
        let (now, number) = (self.clock.now, index(account));
        let Some(of) = self.accounts.get_mut(number) else { return };
        let of = of.get_or_insert_default();
        change(of);
        let from = self.rates.from(LimitOf::Account(account), now);
        let mut until = None;
        for part in 0..2 {
            let first = of.rooms[part].first().map(|first| first.0);
            // Second and further attempts of an account have a quarter.
            let may_further = of.further < self.limits.overall.div_ceil(4);
            let waits = first.is_some_and(|room| !room.is_further || may_further);
            until = until.or((waits && from > now && from != NEVER).then_some(from));
            let (before, waits) = (of.turns[part], waits && from <= now);
            if !(waits && before.is_some_and(|(held, _)| held == of.in_flight)) {
                self.turn += 1;
                of.turns[part] = waits.then_some((of.in_flight, self.turn));
            }
            let entry = |(held, turn)| (held, turn, account);
            replace(&mut self.turns[part], before.map(entry), of.turns[part].map(entry));
        }
        let entry = |until| (until, LimitOf::Account(account));
        replace(&mut self.asleep, of.until.map(entry), until.map(entry));
        of.until = until;
        if of.in_flight == 0 && of.rooms.iter().all(BTreeSet::is_empty) {
            self.accounts[number] = None;
        }
    }
}

impl Endpoint {
    /// Returns how many attempts are in flight: all, all except the first, and all if the endpoint
    /// is slow (otherwise 0).
    fn counts(&self) -> [u32; 3] {
        let slow = if self.long == SLOW { self.in_flight } else { 0 };
        [self.in_flight, self.in_flight.saturating_sub(1), slow].map(u32::from)
    }
}

/// Replaces an entry of a set.
fn replace<T: Ord>(set: &mut BTreeSet<T>, before: Option<T>, after: Option<T>) {
    if before != after {
        before.map(|entry| set.remove(&entry));
        after.map(|entry| set.insert(entry));
    }
}

#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
pub(super) fn index(number: u32) -> usize {
    usize::try_from(number).expect("numbers fit into memory")
}
