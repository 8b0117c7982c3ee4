//! Which endpoint may send next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::delivery::Outcome;
use super::accounts::{Accounts, Held, Part, Room};
use super::due_delivery::DueDelivery;
use super::due_queue::Entry;
use super::limits::SenderLimits;
use super::slab::{IndexList, Links, NONE};
use super::slab::{Slab, index};

/// The endpoints' lists and turns, and what is in flight.
pub(super) struct Ready {
    limits: SenderLimits,
    /// The microseconds between two attempts of one endpoint; 0 without a rate.
    interval: i64,
    endpoints: Vec<Endpoint>,
    slab: Slab,
    accounts: Accounts,
    /// Endpoints that have sent within the interval, and when it ends.
    paced: VecDeque<(i64, u32)>,
    in_flight: u32,
    /// The attempts of slow endpoints among those.
    slow: u32,
    /// The part whose turn it is if there is room for both.
    next: Part,
}

/// An endpoint: all that a step reads of it, in half a cache line.
///
/// It is in the queue of its account for [its room](Ready::waits_for), and in no other.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Endpoint {
    /// Its account; [`NONE`] while that is not known.
    account: u32,
    in_flight: u16,
    /// Attempts in a row that lasted long, up to [`SLOW`].
    long: u8,
    /// Whether it has sent within the interval.
    is_paced: bool,
    /// Its deliveries that are due and wait for room or for a turn.
    retries: IndexList,
    firsts: IndexList,
    /// Its place in the queue of its account.
    links: Links,
}

/// The number of long attempts in a row that make an endpoint slow: 2.
const SLOW: u8 = 2;

/// The duration of the longest attempt that is not long: 8 s.
const LONG: Duration = Duration::from_secs(8);

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts what is in memory and within its limits; there is a list for each kind"
)]
impl Ready {
    pub(super) fn new(limits: SenderLimits) -> Self {
        Self {
            limits,
            interval: 0,
            endpoints: Vec::new(),
            slab: Slab::default(),
            accounts: Accounts::new(limits.of_further()),
            paced: VecDeque::new(),
            in_flight: 0,
            slow: 0,
            next: Part::Slow,
        }
    }

    /// Makes room for so many deliveries in lists.
    pub(super) fn reserve(&mut self, deliveries: usize) {
        self.slab.reserve(deliveries);
    }

    pub(super) fn set_interval(&mut self, micros: i64) {
        self.interval = micros;
    }

    pub(super) fn limits(&self) -> SenderLimits {
        self.limits
    }

    pub(super) fn limited(&self) -> usize {
        self.slab.taken()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.limits.overall
    }

    /// Returns when the interval of an endpoint ends; `i64::MAX` if none is in one.
    pub(super) fn next_pace(&self) -> i64 {
        self.paced.front().map_or(i64::MAX, |(end, _)| *end)
    }

    /// Notes whose endpoint it is, unless that is known, before the delivery goes to a lane.
    pub(super) fn know(&mut self, pending: DueDelivery) -> Entry {
        self.belongs(pending.endpoint, pending.account);
        pending.entry()
    }

    fn belongs(&mut self, endpoint: u32, account: u32) {
        let at = index(endpoint);
        if self.endpoints.get(at).is_some_and(|of| of.account != NONE) {
            return;
        }
        self.accounts.reach(account);
        if at >= self.endpoints.len() {
            self.endpoints.resize(at + 1, Endpoint::default());
        }
        self.endpoints[at].account = account;
    }

    /// Ends the intervals that are over. One that ends too far ahead was begun by another clock.
    pub(super) fn end_paces(&mut self, now: i64) {
        let farthest = now.saturating_add(self.interval);
        while let Some((end, endpoint)) = self.paced.front().copied()
            && (end <= now || end > farthest)
        {
            self.paced.pop_front();
            self.change(endpoint, |of, _| of.is_paced = false);
        }
    }

    /// Begins at once if no account waits for a turn and this endpoint has room.
    pub(super) fn begin_alone(&mut self, endpoint: u32, now: i64) -> bool {
        let of = self.endpoints[index(endpoint)];
        let held = *self.accounts.held(of.account);
        // It has no list: with a list and room its account would wait.
        let alone = self.accounts.nobody_waits()
            && self.room(of).is_some_and(|room| match room {
                Room::Slow => self.has_slow_room(),
                Room::Any => true,
                Room::Further => self.accounts.has_further_room(held),
            })
            && self.most_held().is_some_and(|most| held.all <= most);
        if alone {
            self.begin(endpoint, now);
        }
        alone
    }

    pub(super) fn push(&mut self, delivery: u64, endpoint: u32, is_retry: bool) {
        self.change(endpoint, |of, slab| {
            slab.push(delivery, if is_retry { &mut of.retries } else { &mut of.firsts });
        });
    }

    /// Takes the first in the list of the endpoint whose turn it is.
    pub(super) fn take(&mut self, now: i64) -> Option<(u64, u32)> {
        let most = self.most_held()?;
        for part in [self.next, self.next.other()] {
            if (part == Part::Others || self.has_slow_room())
                && let Some(endpoint) = self.accounts.first(part, most)
            {
                self.next = part.other();
                return self.begin(endpoint, now).map(|delivery| (delivery, endpoint));
            }
        }
        None
    }

    pub(super) fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        // A number that is not known takes no room.
        let known = usize::try_from(endpoint).ok().and_then(|at| self.endpoints.get(at));
        if known.is_none_or(|of| of.in_flight == 0) {
            return;
        }
        self.change(endpoint, |of, _| {
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

    pub(super) fn retain(&mut self, keep: &mut impl FnMut(u64, u32) -> bool) {
        for endpoint in (0..).take(self.endpoints.len()) {
            if !self.endpoints[index(endpoint)].has_list() {
                continue;
            }
            self.change(endpoint, |of, slab| {
                for list in [&mut of.retries, &mut of.firsts] {
                    slab.retain(list, |delivery| keep(delivery, endpoint));
                }
            });
        }
    }

    /// Begins an attempt out of turn, beyond the limits if need be.
    pub(super) fn began(&mut self, endpoint: u32, account: u32) {
        self.belongs(endpoint, account);
        self.change(endpoint, |of, _| of.in_flight = of.in_flight.saturating_add(1));
    }

    /// Begins an attempt, of the first delivery in the list if there is one: retries first.
    fn begin(&mut self, endpoint: u32, now: i64) -> Option<u64> {
        let paces = self.interval > 0;
        if paces {
            self.paced.push_back((now.saturating_add(self.interval), endpoint));
        }
        self.change(endpoint, |of, slab| {
            of.in_flight += 1;
            of.is_paced = paces;
            slab.pop(&mut of.retries).or_else(|| slab.pop(&mut of.firsts))
        })
    }

    /// Changes an endpoint, counts what it has in flight, and puts it where it belongs: at the end of
    /// another queue, also after its turn.
    fn change<T>(
        &mut self,
        endpoint: u32,
        change: impl FnOnce(&mut Endpoint, &mut Slab) -> T,
    ) -> T {
        let of = &mut self.endpoints[index(endpoint)];
        let before = *of;
        let changed = change(of, &mut self.slab);
        let after = *of;
        self.in_flight = self.in_flight - u32::from(before.in_flight) + u32::from(after.in_flight);
        self.slow = self.slow - before.slow() + after.slow();
        let hold = |held: &mut Held| {
            held.all = held.all - u32::from(before.in_flight) + u32::from(after.in_flight);
            held.further = held.further - before.further() + after.further();
        };
        let (from, to) = (self.waits_for(before), self.waits_for(after));
        // The usual case: nobody has a list.
        if self.slab.taken() == 0 && from.is_none() {
            hold(self.accounts.held(after.account));
            return changed;
        }
        self.accounts.change(after.account, |held, rooms| {
            hold(held);
            if from != to || after.in_flight > before.in_flight {
                if let Some(room) = from {
                    rooms[room.index()].remove(endpoint, &mut self.endpoints, |of| &mut of.links);
                }
                if let Some(room) = to {
                    rooms[room.index()].push(endpoint, &mut self.endpoints, |of| &mut of.links);
                }
            }
        });
        changed
    }

    /// Returns the room that the next attempt of an endpoint takes. `None` if an attempt of its own, or its
    /// interval, has to end first.
    fn room(&self, of: Endpoint) -> Option<Room> {
        match of.in_flight {
            _ if of.is_paced => None,
            u16::MAX => None,
            in_flight if u32::from(in_flight) >= self.limits.per_endpoint => None,
            0 if of.is_slow() => Some(Room::Slow),
            0 => Some(Room::Any),
            _ if of.is_slow() => None,
            _ => Some(Room::Further),
        }
    }

    /// Returns the queue of its account in which an endpoint is.
    fn waits_for(&self, of: Endpoint) -> Option<Room> {
        if of.has_list() { self.room(of) } else { None }
    }

    fn has_slow_room(&self) -> bool {
        self.slow < self.limits.of_slow()
    }

    /// Returns how many attempts an account may have in flight at most to begin one more: it then
    /// leaves as many free as it has, and the part of first attempts. `None` if nothing is free.
    fn most_held(&self) -> Option<u32> {
        let left = self.limits.overall.checked_sub(self.in_flight)?.checked_sub(1)?;
        Some(if left < self.limits.of_idle() { 0 } else { left.saturating_sub(1) })
    }
}

impl Endpoint {
    fn has_list(self) -> bool {
        !self.retries.is_empty() || !self.firsts.is_empty()
    }

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

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            account: NONE,
            in_flight: 0,
            long: 0,
            is_paced: false,
            retries: IndexList::default(),
            firsts: IndexList::default(),
            links: Links::default(),
        }
    }
}
