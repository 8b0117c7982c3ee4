//! Which endpoint may send next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::delivery::Outcome;
use super::accounts::{Accounts, Held, Part};
use super::lanes::Entry;
use super::limits::Limits;
use super::line::Line;
use super::pending::Pending;
use super::slots::{Slots, index};

/// The endpoints' lines and turns, and what is in flight.
pub(super) struct Turns {
    limits: Limits,
    /// Microseconds between two attempts of one endpoint.
    interval: i64,
    /// Apart from the lines, because most deliveries need no line, and a small table stays in the
    /// cache.
    endpoints: Vec<Memory>,
    lines: Vec<Lines>,
    slots: Slots,
    accounts: Accounts,
    /// Endpoints that have sent within the interval, and when it ends.
    paced: VecDeque<(i64, u32)>,
    in_flight: u32,
    /// Of those, the attempts of slow endpoints.
    slow: u32,
    /// Whose turn it is if there is room for both.
    next: Part,
}

/// What is remembered of an endpoint.
#[derive(Clone, Copy, Default)]
struct Memory {
    account: u32,
    in_flight: u16,
    /// Attempts in a row that lasted long, up to [`SLOW`].
    long: u8,
    /// [`KNOWN`], [`PACED`], [`LINE`], and a bit for each line of its account that it is in.
    flags: u8,
}

/// An endpoint's deliveries that are due and wait for room or for a turn.
#[derive(Clone, Copy, Default)]
struct Lines {
    retries: Line,
    firsts: Line,
    /// The next endpoint in each line of its account.
    next: [u32; 3],
}

/// The kind of room that an endpoint waits for, in the order in which an account gives them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The part of slow endpoints.
    Slow,
    /// Any, for an endpoint that has nothing in flight.
    Any,
    /// The part of second and further attempts.
    Further,
}

/// How many long attempts in a row make an endpoint slow.
const SLOW: u8 = 2;

/// An attempt that lasts longer is long.
const LONG: Duration = Duration::from_secs(8);

/// Has sent within the interval. The lower bits are those of [`Room`].
const PACED: u8 = 1 << 3;

/// Has a line.
const LINE: u8 = 1 << 4;

/// Its account is known.
const KNOWN: u8 = 1 << 5;

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts what is in memory and within its limits; there is a line for each kind"
)]
impl Turns {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            interval: 0,
            endpoints: Vec::new(),
            lines: Vec::new(),
            slots: Slots::default(),
            accounts: Accounts::default(),
            paced: VecDeque::new(),
            in_flight: 0,
            slow: 0,
            next: Part::Slow,
        }
    }

    /// Makes the tables as large as they become when so many deliveries of the endpoints that are
    /// known are in lines.
    pub(super) fn reserve(&mut self, deliveries: usize) {
        self.slots.reserve(deliveries);
        self.lines.resize(self.endpoints.len(), Lines::default());
    }

    pub(super) fn set_interval(&mut self, micros: i64) {
        self.interval = micros;
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn in_line(&self) -> usize {
        self.slots.taken()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.limits.overall
    }

    /// When the interval of an endpoint ends; `i64::MAX` if none is in one.
    pub(super) fn next_pace(&self) -> i64 {
        self.paced.front().map_or(i64::MAX, |(end, _)| *end)
    }

    /// Notes whose endpoint it is, unless that is known, before the delivery goes to a lane.
    pub(super) fn know(&mut self, pending: Pending) -> Entry {
        self.belongs(pending.endpoint, pending.account);
        pending.entry()
    }

    fn belongs(&mut self, endpoint: u32, account: u32) {
        let memory = entry(&mut self.endpoints, endpoint);
        if memory.flags & KNOWN == 0 {
            memory.flags |= KNOWN;
            memory.account = account;
            self.accounts.reach(account);
        }
    }

    /// Ends the intervals that are over. One that ends too far ahead was begun by another clock.
    pub(super) fn end_paces(&mut self, now: i64) {
        let farthest = now.saturating_add(self.interval);
        while let Some((end, endpoint)) = self.paced.front().copied()
            && (end <= now || end > farthest)
        {
            self.paced.pop_front();
            self.endpoints[index(endpoint)].flags &= !PACED;
            self.queue(endpoint);
        }
    }

    /// Begins at once if no account waits for a turn and this endpoint has room.
    pub(super) fn begin_alone(&mut self, endpoint: u32, now: i64) -> bool {
        let held = self.accounts.held(self.endpoints[index(endpoint)].account);
        // It has no line: with a line and room its account would wait.
        let alone = self.accounts.nobody_waits()
            && self.room(endpoint).is_some_and(|room| self.is_open(room, held))
            && self.most_held().is_some_and(|most| held.all <= most);
        if alone {
            self.begin(endpoint, now);
        }
        alone
    }

    pub(super) fn line_up(&mut self, delivery: u64, endpoint: u32, is_retry: bool) {
        let Lines { retries, firsts, .. } = entry(&mut self.lines, endpoint);
        self.slots.push(delivery, if is_retry { retries } else { firsts });
        self.endpoints[index(endpoint)].flags |= LINE;
        self.queue(endpoint);
    }

    /// Takes the first in line of the endpoint whose turn it is.
    pub(super) fn take(&mut self, now: i64) -> Option<(u64, u32)> {
        let most = self.most_held()?;
        for part in [self.next, self.next.other()] {
            while (part == Part::Others || self.slow < self.limits.of_slow())
                && let Some(account) = self.accounts.first(part, most)
            {
                let rooms: &[Room] = match part {
                    Part::Slow => &[Room::Slow],
                    Part::Others => &[Room::Any, Room::Further],
                };
                let Some(endpoint) = rooms.iter().find_map(|room| self.call(account, *room)) else {
                    self.wait(account);
                    continue;
                };
                let delivery = self.leave_line(endpoint);
                self.next = part.other();
                self.begin(endpoint, now);
                self.queue(endpoint);
                return Some((delivery, endpoint));
            }
        }
        None
    }

    pub(super) fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        // A number that is not known takes no room.
        let known = usize::try_from(endpoint).ok().and_then(|at| self.endpoints.get_mut(at));
        let Some(memory) = known.filter(|memory| memory.in_flight > 0) else { return };
        let before = *memory;
        memory.in_flight -= 1;
        match outcome {
            Outcome::Unsent => {}
            Outcome::TimedOut => memory.long = SLOW.min(memory.long + 1),
            _ if took > LONG => memory.long = SLOW.min(memory.long + 1),
            Outcome::Answered(_) => memory.long = 0,
            _ => {}
        }
        self.slow = self.slow - before.slow() + memory.slow();
        self.in_flight -= 1;
        let Held { all, further } = self.accounts.held(before.account);
        let further = further - u32::from(before.in_flight > 1);
        self.accounts.hold(before.account, Held { all: all - 1, further });
        self.queue(endpoint);
    }

    /// Leaves endpoints without a line where they wait, as outdated entries.
    pub(super) fn retain(&mut self, keep: &mut impl FnMut(u64, u32) -> bool) {
        for ((endpoint, memory), lines) in (0..).zip(&mut self.endpoints).zip(&mut self.lines) {
            for line in [&mut lines.retries, &mut lines.firsts] {
                self.slots.retain(line, |delivery| keep(delivery, endpoint));
            }
            if lines.retries.is_empty() && lines.firsts.is_empty() {
                memory.flags &= !LINE;
            }
        }
    }

    /// Begins an attempt out of turn, beyond the limits if need be.
    pub(super) fn began(&mut self, endpoint: u32, account: u32) {
        self.belongs(endpoint, account);
        if self.endpoints[index(endpoint)].in_flight < u16::MAX {
            self.count(endpoint);
            self.queue(endpoint);
        }
    }

    /// Takes the next endpoint of an account that waits for this room, if it is open.
    fn call(&mut self, account: u32, room: Room) -> Option<u32> {
        let at = room.index();
        if !self.is_open(room, self.accounts.held(account)) {
            return None;
        }
        loop {
            let line = &mut self.accounts.rooms(account)[at];
            let endpoint = line.pop(|before| self.lines[index(before)].next[at])?;
            let memory = &mut self.endpoints[index(endpoint)];
            memory.flags &= !room.bit();
            if memory.flags & LINE != 0 && self.room(endpoint) == Some(room) {
                return Some(endpoint);
            }
        }
    }

    /// Takes the first delivery of an endpoint that has a line: retries first.
    #[expect(clippy::expect_used, reason = "the flag says that it has a line")]
    fn leave_line(&mut self, endpoint: u32) -> u64 {
        let Lines { retries, firsts, .. } = &mut self.lines[index(endpoint)];
        let delivery = self.slots.pop(retries).or_else(|| self.slots.pop(firsts));
        if retries.is_empty() && firsts.is_empty() {
            self.endpoints[index(endpoint)].flags &= !LINE;
        }
        delivery.expect("it has a line")
    }

    fn count(&mut self, endpoint: u32) {
        let memory = &mut self.endpoints[index(endpoint)];
        let is_further = memory.in_flight > 0;
        memory.in_flight += 1;
        self.slow += u32::from(memory.long == SLOW);
        self.in_flight += 1;
        let Held { all, further } = self.accounts.held(memory.account);
        let further = further + u32::from(is_further);
        self.accounts.hold(memory.account, Held { all: all + 1, further });
    }

    fn begin(&mut self, endpoint: u32, now: i64) {
        self.count(endpoint);
        if self.interval > 0 {
            self.endpoints[index(endpoint)].flags |= PACED;
            self.paced.push_back((now.saturating_add(self.interval), endpoint));
        }
    }

    /// Puts an endpoint that has a line where it belongs, and makes its account wait for a turn.
    fn queue(&mut self, endpoint: u32) {
        if self.slots.taken() == 0 && self.accounts.nobody_waits() {
            return;
        }
        let memory = self.endpoints[index(endpoint)];
        if let Some(room) = self.room(endpoint)
            && memory.flags & LINE != 0
            && memory.flags & room.bit() == 0
        {
            self.endpoints[index(endpoint)].flags |= room.bit();
            let line = &mut self.accounts.rooms(memory.account)[room.index()];
            if let Some(before) = line.push(endpoint) {
                self.lines[index(before)].next[room.index()] = endpoint;
            }
        }
        self.wait(memory.account);
    }

    /// Makes an account wait for the parts in which it has endpoints, and for no others.
    fn wait(&mut self, account: u32) {
        let (held, rooms) = (self.accounts.held(account), *self.accounts.rooms(account));
        let waits = |room: Room| !rooms[room.index()].is_empty();
        let slow = waits(Room::Slow);
        let others = waits(Room::Any) || waits(Room::Further) && self.is_open(Room::Further, held);
        self.accounts.set_waiting(account, Part::Slow, slow);
        self.accounts.set_waiting(account, Part::Others, others);
    }

    /// What room the next attempt of an endpoint takes. `None` if an attempt of its own, or its
    /// interval, has to end first.
    fn room(&self, endpoint: u32) -> Option<Room> {
        let memory = self.endpoints[index(endpoint)];
        let is_slow = memory.long == SLOW;
        match memory.in_flight {
            _ if memory.flags & PACED != 0 => None,
            u16::MAX => None,
            in_flight if u32::from(in_flight) >= self.limits.per_endpoint => None,
            0 if is_slow => Some(Room::Slow),
            0 => Some(Room::Any),
            _ if is_slow => None,
            _ => Some(Room::Further),
        }
    }

    fn is_open(&self, room: Room, held: Held) -> bool {
        match room {
            Room::Slow => self.slow < self.limits.of_slow(),
            Room::Any => true,
            Room::Further => held.further < self.limits.of_further(),
        }
    }

    /// How many attempts an account may have in flight at most to begin one more: it then leaves as
    /// many free as it has, and the part of first attempts. `None` if nothing is free.
    fn most_held(&self) -> Option<u32> {
        let left = self.limits.overall.checked_sub(self.in_flight)?.checked_sub(1)?;
        Some(if left < self.limits.of_idle() { 0 } else { left.saturating_sub(1) })
    }
}

impl Room {
    fn index(self) -> usize {
        match self {
            Self::Slow => 0,
            Self::Any => 1,
            Self::Further => 2,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Slow => 1,
            Self::Any => 2,
            Self::Further => 4,
        }
    }
}

impl Memory {
    /// Its attempts that count as those of a slow endpoint.
    fn slow(self) -> u32 {
        if self.long == SLOW { u32::from(self.in_flight) } else { 0 }
    }
}

/// Returns an endpoint's entry in a table, which grows up to it.
#[expect(clippy::expect_used, reason = "the table has just grown")]
fn entry<T: Clone + Default>(table: &mut Vec<T>, endpoint: u32) -> &mut T {
    let at = index(endpoint);
    if at >= table.len() {
        table.resize(at.saturating_add(1), T::default());
    }
    table.get_mut(at).expect("the table has just grown")
}
