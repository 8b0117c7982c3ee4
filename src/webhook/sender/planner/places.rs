//! Which endpoint is next.
//!
//! An endpoint and an account have a place each, which follows from what they have: in flight, waiting, and
//! limits. The sets here are indexes of these places. [`Places::change`] alone takes an endpoint out of its
//! place and puts it into the one where it then belongs, and [`Places::change_account`] an account.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::super::delivery::Outcome;
use super::due_delivery::{Added, DueDelivery, DueKind, Known, State};
use super::limits::{LimitOf, NEVER, Rate, Rates, SenderLimits};
use super::waiting::{self, Clock, Entry};
use crate::Timestamp;

/// The endpoints and accounts, and their places.
pub(super) struct Places {
    pub(super) limits: SenderLimits,
    /// The microseconds between two attempts of one endpoint; 0 without a rate.
    pub(super) interval: i64,
    pub(super) clock: Clock,
    rates: Rates,
    /// The deliveries that wait or are in hand, by number.
    pub(super) known: BTreeMap<u64, Known>,
    /// How many are in hand, by shard.
    pub(super) in_hand: BTreeMap<u16, usize>,
    /// The deliveries that wait, due or not: none moves when its time comes.
    pub(super) waiting: BTreeSet<Entry>,
    endpoints: Vec<Endpoint>,
    accounts: Vec<Account>,
    /// Until when endpoints and accounts sleep.
    asleep: BTreeSet<(i64, Sleeper)>,
    /// The endpoints that have something due and room of their own: account, room, turn, endpoint.
    rooms: BTreeSet<(u32, Room, u64, u32)>,
    /// The accounts that wait for a turn, of their slow endpoints or of their others: attempts in flight,
    /// turn, account.
    turns: [BTreeSet<(u32, u64, u32)>; 2],
    /// The turn that was given last.
    turn: u64,
    pub(super) in_flight: u32,
    /// The attempts of slow endpoints among those.
    slow: u32,
    /// Which of these two is next if there is room for both.
    next: usize,
    /// The endpoints below this number were not looked at since the clock went back.
    unseen: u32,
}

/// Who has nothing to send before some instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sleeper {
    Endpoint(u32),
    /// For its limit.
    Account(u32),
}

#[derive(Clone, Copy, Default)]
struct Endpoint {
    /// `None` while it is not known.
    account: Option<u32>,
    in_flight: u16,
    /// The redeliveries that are in hand.
    redeliveries: u16,
    /// Attempts in a row that lasted long, up to [`SLOW`].
    long: u8,
    /// When its rate allows the next attempt.
    from: i64,
    place: Place,
}

/// Where an endpoint is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Nothing waits, or what waits needs an attempt of the endpoint or a pause to end.
    #[default]
    Nowhere,
    /// Nothing may be sent before.
    Asleep(i64),
    /// Something may be sent, after those that have an earlier turn.
    Waits(Room, u64),
}

/// The room that the next attempt of an endpoint takes, in the order in which an account gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Room {
    /// The part of slow endpoints.
    Slow,
    /// Any, for an endpoint that has nothing in flight.
    Any,
    /// The part of second and further attempts.
    Further,
}

#[derive(Clone, Copy, Default)]
struct Account {
    in_flight: u32,
    /// The second and further attempts of its endpoints among those.
    further: u32,
    /// Its turns; 0 if it does not wait for one.
    turns: [u64; 2],
    /// How many it had in flight when it got these turns.
    held: u32,
    /// Until when it sleeps.
    until: Option<i64>,
}

/// The turns of slow endpoints. Those of others are 1.
const SLOW_ONES: usize = 0;

/// The number of long attempts in a row that make an endpoint slow: 2.
const SLOW: u8 = 2;

/// The duration of the longest attempt that is not long: 8 s.
const LONG: Duration = Duration::from_secs(8);

/// The most endpoints that a step wakes, or looks at after the clock went back: 256. Endpoints
/// that are all due at once do not stop the process.
const BATCH: usize = 256;

/// How far a clock may go back without every endpoint being looked at again: a second, which is as long
/// as a rate has an endpoint wait.
const STEP_BACK: i64 = 1_000_000;

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts what is in memory and within its limits; an account is known before it is used"
)]
impl Places {
    pub(super) fn new(limits: SenderLimits) -> Self {
        Self {
            limits,
            interval: 0,
            clock: Clock { now: i64::MIN, farthest: i64::MAX },
            rates: Rates::default(),
            known: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            waiting: BTreeSet::new(),
            endpoints: Vec::new(),
            accounts: Vec::new(),
            asleep: BTreeSet::new(),
            rooms: BTreeSet::new(),
            turns: Default::default(),
            turn: 0,
            in_flight: 0,
            slow: 0,
            next: SLOW_ONES,
            unseen: 0,
        }
    }

    pub(super) fn add(&mut self, of: DueDelivery) -> Added {
        let new = Known::new(of);
        let added = match self.known.get_mut(&of.delivery) {
            None => Added::New,
            Some(known) if known.state == State::Waits => {
                let before = *known;
                if before.is_of(new) && before.due <= new.due {
                    return Added::Known;
                }
                self.known.remove(&of.delivery);
                self.waiting.remove(&before.entry(of.delivery));
                if !before.is_of(new) {
                    self.look(before.endpoint);
                    return Added::Other;
                }
                Added::Earlier
            }
            Some(known) if known.state == State::InHand && !known.is_of(new) => {
                known.state = State::Replaced;
                return Added::Other;
            }
            Some(_) => return Added::InHand,
        };
        self.belongs(of.endpoint, of.account);
        self.known.insert(of.delivery, new);
        self.waiting.insert(new.entry(of.delivery));
        self.look(of.endpoint);
        added
    }

    /// Notes whose endpoint it is, unless that is known.
    fn belongs(&mut self, endpoint: u32, account: u32) {
        if index(endpoint) >= self.endpoints.len() {
            self.endpoints.resize(index(endpoint) + 1, Endpoint::default());
        }
        let account = *self.endpoints[index(endpoint)].account.get_or_insert(account);
        let accounts = self.accounts.len().max(index(account) + 1);
        self.accounts.resize(accounts, Account::default());
    }

    /// Ends what is in hand of a delivery. Returns whether its number is another's by now.
    pub(super) fn release(&mut self, delivery: u64, again: Option<(Timestamp, DueKind)>) -> bool {
        let Some(known) = self.known.get_mut(&delivery).filter(|of| of.state != State::Waits)
        else {
            return false;
        };
        let before = *known;
        match again.filter(|_| before.state == State::InHand) {
            Some((due, kind)) => {
                known.wait(due, kind);
                self.waiting.insert(known.entry(delivery));
            }
            None => _ = self.known.remove(&delivery),
        }
        if let Some(count) = self.in_hand.get_mut(&before.shard) {
            *count -= 1;
        }
        let is_redelivery = u16::from(before.kind == DueKind::Redelivery);
        self.change(before.endpoint, |of| of.redeliveries -= is_redelivery);
        before.state == State::Replaced
    }

    /// Forgets those that wait and for which this returns true.
    pub(super) fn forget(&mut self, is_meant: impl Fn(Known) -> bool) {
        let mut forgotten = BTreeSet::new();
        self.known.retain(|delivery, known| {
            let stays = known.state != State::Waits || !is_meant(*known);
            if !stays {
                self.waiting.remove(&known.entry(*delivery));
                forgotten.insert(known.endpoint);
            }
            stays
        });
        forgotten.into_iter().for_each(|endpoint| self.look(endpoint));
    }

    /// Forgets those that wait for an endpoint.
    pub(super) fn forget_endpoint(&mut self, endpoint: u32) {
        let all: Vec<_> = waiting::of(&self.waiting, endpoint).copied().collect();
        for entry in all {
            self.waiting.remove(&entry);
            self.known.remove(&entry.delivery);
        }
        self.look(endpoint);
    }

    pub(super) fn limit(&mut self, of: LimitOf, rate: Rate) {
        self.rates.set(of, rate, self.clock.now);
        match of {
            LimitOf::All => {}
            LimitOf::Account(account) => self.change_account(account, |_| {}),
            LimitOf::Endpoint(endpoint) => self.look(endpoint),
        }
    }

    /// Puts an endpoint where it belongs, after what waits for it or the time has changed.
    fn look(&mut self, endpoint: u32) {
        self.change(endpoint, |_| {});
    }

    /// Sets the time, and wakes whoever may send by now.
    pub(super) fn wake(&mut self, clock: Clock) {
        if clock.now < self.clock.now.saturating_sub(STEP_BACK) || self.clock.now == i64::MIN {
            self.unseen = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        }
        self.clock = clock;
        for _ in 0..BATCH {
            match self.asleep.first().copied() {
                Some((until, Sleeper::Endpoint(endpoint))) if until <= clock.now => {
                    self.look(endpoint);
                }
                Some((until, Sleeper::Account(account))) if until <= clock.now => {
                    self.change_account(account, |_| {});
                }
                _ if self.unseen == 0 => break,
                _ => {
                    self.unseen -= 1;
                    self.look(self.unseen);
                }
            }
        }
    }

    /// Returns when an endpoint may be sent to, or is to be woken.
    pub(super) fn next_due(&self) -> Option<i64> {
        let now = self.clock.now;
        if self.unseen > 0 {
            return Some(now);
        }
        let turn = self.most_held().and_then(|most| self.next_turn(most));
        let from = turn.map(|_| self.rates.from(LimitOf::All, now).max(now));
        let wake = self.asleep.first().map(|(until, _)| *until);
        from.into_iter().chain(wake).min().filter(|at| *at != NEVER)
    }

    /// Takes the first delivery of the endpoint whose turn it is.
    pub(super) fn take(&mut self) -> Option<DueDelivery> {
        let now = self.clock.now;
        if self.rates.from(LimitOf::All, now) > now {
            return None;
        }
        let (part, endpoint) = self.next_turn(self.most_held()?)?;
        let of = self.endpoints[index(endpoint)];
        let account = of.account?;
        let first = self.first(endpoint, of)?;
        let known = self.known.get_mut(&first.delivery)?;
        known.state = State::InHand;
        let known = *known;
        *self.in_hand.entry(known.shard).or_default() += 1;
        self.next = 1 - part;
        self.waiting.remove(&first);
        self.rates.use_up(account, endpoint, now);
        let from = now.saturating_add(self.interval);
        self.change(endpoint, |of| {
            of.in_flight += 1;
            of.redeliveries += u16::from(known.kind == DueKind::Redelivery);
            of.from = from;
        });
        Some(known.due_delivery(first.delivery, account))
    }

    /// Returns whose turn it is among accounts that have at most so many in flight.
    fn next_turn(&self, most: u32) -> Option<(usize, u32)> {
        let rooms = |part| match part {
            SLOW_ONES if self.slow < self.limits.of_slow() => &[Room::Slow][..],
            SLOW_ONES => &[],
            _ => &[Room::Any, Room::Further],
        };
        [self.next, 1 - self.next].into_iter().find_map(|part| {
            let (_, _, account) = self.turns[part].first().filter(|of| of.0 <= most)?;
            let first = |room: &Room| self.first_in(*account, *room);
            Some((part, rooms(part).iter().find_map(first)?))
        })
    }

    /// Returns how many attempts an account may have in flight at most to begin one more: it then
    /// leaves as many free as it has, and the part of first attempts. `None` if nothing is free.
    fn most_held(&self) -> Option<u32> {
        let left = self.limits.overall.checked_sub(self.in_flight)?.checked_sub(1)?;
        Some(if left < self.limits.of_idle() { 0 } else { left.saturating_sub(1) })
    }

    /// Tells whether somebody waits for more than a limit of its own.
    pub(super) fn is_behind(&self, now: i64) -> bool {
        let may_send = self.rates.from(LimitOf::All, now) <= now;
        let is_full = self.in_flight >= self.limits.overall;
        let is_held_up = may_send && is_full && self.next_turn(u32::MAX).is_some();
        let is_due = self.next_due().is_some_and(|due| due <= now);
        self.limits.overall > 0 && (is_due || is_held_up)
    }

    pub(super) fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        self.change(endpoint, |of| {
            if of.in_flight == 0 {
                return;
            }
            of.in_flight -= 1;
            match outcome {
                Outcome::Unsent => {}
                Outcome::TimedOut => of.long = SLOW.min(of.long + 1),
                _ if took > LONG => of.long = SLOW.min(of.long + 1),
                Outcome::Answered(_) => of.long = 0,
                _ => {}
            }
        });
    }

    /// Changes an endpoint, counts what it has in flight, and puts it where it belongs: behind those that
    /// wait for the same room, also after its turn. Nothing happens to one that is not known.
    fn change(&mut self, endpoint: u32, change: impl FnOnce(&mut Endpoint)) {
        let Some(of) = self.endpoints.get_mut(index(endpoint)) else { return };
        let Some(account) = of.account else { return };
        let before = *of;
        change(of);
        let after = *of;
        let place = match (before.place, self.place(endpoint, after)) {
            (Place::Waits(was, turn), Place::Waits(room, _))
                if was == room && after.in_flight <= before.in_flight =>
            {
                Place::Waits(room, turn)
            }
            (_, place) => place,
        };
        if place != before.place {
            self.turn += 1;
            match before.place {
                Place::Nowhere => false,
                Place::Asleep(until) => self.asleep.remove(&(until, Sleeper::Endpoint(endpoint))),
                Place::Waits(room, turn) => self.rooms.remove(&(account, room, turn, endpoint)),
            };
            match place {
                Place::Nowhere => false,
                Place::Asleep(until) => self.asleep.insert((until, Sleeper::Endpoint(endpoint))),
                Place::Waits(room, turn) => self.rooms.insert((account, room, turn, endpoint)),
            };
            self.endpoints[index(endpoint)].place = place;
        }
        let waits = [before.place, place].iter().any(|of| matches!(of, Place::Waits(..)));
        if !waits && before.in_flight == after.in_flight {
            return;
        }
        self.in_flight = self.in_flight - u32::from(before.in_flight) + u32::from(after.in_flight);
        self.slow = self.slow - before.slow() + after.slow();
        self.change_account(account, |of| {
            of.in_flight = of.in_flight - u32::from(before.in_flight) + u32::from(after.in_flight);
            of.further = of.further - before.further() + after.further();
        });
    }

    /// Returns where an endpoint belongs, with the next turn.
    fn place(&self, endpoint: u32, of: Endpoint) -> Place {
        let Clock { now, .. } = self.clock;
        let Some(room) = self.room(of) else { return Place::Nowhere };
        let Some(first) = self.first(endpoint, of) else { return Place::Nowhere };
        // An interval that ends too far ahead was begun by another clock.
        let paced = if of.from > now.saturating_add(self.interval) { now } else { of.from };
        let limited = self.rates.from(LimitOf::Endpoint(endpoint), now);
        match self.clock.from(first.due).max(paced).max(limited) {
            NEVER => Place::Nowhere,
            from if from > now => Place::Asleep(from),
            _ => Place::Waits(room, self.turn + 1),
        }
    }

    /// Returns the delivery of an endpoint that is next. A redelivery only while it has its part.
    fn first(&self, endpoint: u32, of: Endpoint) -> Option<Entry> {
        let most = self.limits.of_redeliveries().min(u16::MAX.into());
        waiting::first(&self.waiting, endpoint, u32::from(of.redeliveries) < most, self.clock)
    }

    /// Returns the room that the next attempt of an endpoint takes. `None` if an attempt of its own has to
    /// end first.
    fn room(&self, of: Endpoint) -> Option<Room> {
        match of.in_flight {
            u16::MAX => None,
            in_flight if u32::from(in_flight) >= self.limits.per_endpoint => None,
            0 if of.is_slow() => Some(Room::Slow),
            0 => Some(Room::Any),
            _ if of.is_slow() => None,
            _ => Some(Room::Further),
        }
    }

    /// Changes what an account has in flight, and puts it where it belongs. If it waits and has another
    /// number in flight than before, it goes behind those that have as many.
    fn change_account(&mut self, account: u32, change: impl FnOnce(&mut Account)) {
        let Some(before) = self.accounts.get(index(account)).copied() else { return };
        let mut after = before;
        change(&mut after);
        let mut own = self
            .rooms
            .range((account, Room::Slow, 0, 0)..=(account, Room::Further, u64::MAX, u32::MAX));
        let first = own.next().map(|of| of.1);
        let last = own.next_back().map_or(first, |of| Some(of.1));
        let has_any = [first, last].contains(&Some(Room::Any))
            || first != last && self.first_in(account, Room::Any).is_some();
        let has_further = last == Some(Room::Further) && after.further < self.limits.of_further();
        let waits = [first == Some(Room::Slow), has_any || has_further];
        let from = self.rates.from(LimitOf::Account(account), self.clock.now);
        let may_send = from <= self.clock.now;
        let sleeps = waits.contains(&true) && !may_send && from != NEVER;
        after.until = sleeps.then_some(from);
        if after.until != before.until {
            let entry = |until| (until, Sleeper::Account(account));
            before.until.map(|until| self.asleep.remove(&entry(until)));
            after.until.map(|until| self.asleep.insert(entry(until)));
        }
        let is_moved = after.in_flight != before.held;
        after.held = after.in_flight;
        for (at, waits) in waits.into_iter().enumerate() {
            let (turn, waits) = (before.turns[at], waits && may_send);
            if waits == (turn > 0) && !(waits && is_moved) {
                continue;
            }
            if turn > 0 {
                self.turns[at].remove(&(before.held, turn, account));
            }
            after.turns[at] = 0;
            if waits {
                self.turn += 1;
                after.turns[at] = self.turn;
                self.turns[at].insert((after.held, self.turn, account));
            }
        }
        self.accounts[index(account)] = after;
    }

    /// Returns the endpoint of an account that is next in a room.
    fn first_in(&self, account: u32, room: Room) -> Option<u32> {
        let all = (account, room, 0, 0)..=(account, room, u64::MAX, u32::MAX);
        self.rooms.range(all).next().map(|(.., endpoint)| *endpoint)
    }
}

impl Endpoint {
    fn is_slow(self) -> bool {
        self.long == SLOW
    }

    /// Returns how many of its attempts count as those of a slow endpoint.
    fn slow(self) -> u32 {
        if self.is_slow() { u32::from(self.in_flight) } else { 0 }
    }

    /// Returns how many of its attempts are second and further ones.
    fn further(self) -> u32 {
        u32::from(self.in_flight.saturating_sub(1))
    }
}

#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
fn index(number: u32) -> usize {
    usize::try_from(number).expect("numbers fit into memory")
}
