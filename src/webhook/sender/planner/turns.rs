//! Which endpoint may send next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::Outcome;
use super::super::limits::Limits;

/// The endpoints' lines and turns, and what is in flight.
pub(super) struct Turns {
    limits: Limits,
    /// Microseconds between two attempts of one endpoint.
    interval: i64,
    /// Apart from the lines, because most deliveries need no line, and a small table stays in the
    /// cache.
    endpoints: Vec<Memory>,
    /// Each endpoint's retries that are due and wait for room or for a turn.
    retries: Vec<VecDeque<u64>>,
    /// The same of first attempts.
    firsts: Vec<VecDeque<u64>>,
    /// Endpoints that have a line, by the kind of room they wait for; in each at most once. An entry
    /// may be outdated, but an endpoint is always in the queue where it belongs.
    queues: [VecDeque<u32>; 3],
    /// Endpoints that have sent within the interval, and when it ends.
    paced: VecDeque<(i64, u32)>,
    in_line: usize,
    in_flight: u32,
    /// Of those, the second and further attempts of their endpoints.
    further: u32,
    /// Of those, the attempts of slow endpoints.
    slow: u32,
}

/// What is remembered of an endpoint.
#[derive(Clone, Copy, Default)]
struct Memory {
    in_flight: u16,
    /// Since the last response, up to [`SLOW`].
    timeouts: u8,
    /// [`PACED`], [`LINE`], and a bit for each queue that the endpoint is in.
    flags: u8,
}

/// The kind of room that an endpoint waits for, in the order in which they are given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The part of slow endpoints.
    Slow,
    /// Any, for an endpoint that has nothing in flight.
    Any,
    /// The part of second and further attempts.
    Further,
}

/// How many timeouts without a response make an endpoint slow.
const SLOW: u8 = 2;

/// Has sent within the interval. The lower bits are those of [`Room`].
const PACED: u8 = 1 << 3;

/// Has a line.
const LINE: u8 = 1 << 4;

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts what is in memory and within its limits; there is a queue for each kind"
)]
impl Turns {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            interval: 0,
            endpoints: Vec::new(),
            retries: Vec::new(),
            firsts: Vec::new(),
            queues: [const { VecDeque::new() }; 3],
            paced: VecDeque::new(),
            in_line: 0,
            in_flight: 0,
            further: 0,
            slow: 0,
        }
    }

    pub(super) fn set_interval(&mut self, micros: i64) {
        self.interval = micros;
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn in_line(&self) -> usize {
        self.in_line
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

    /// Ends the intervals that are over. One that ends too far ahead was begun by another clock.
    pub(super) fn end_paces(&mut self, now: i64) {
        let farthest = now.saturating_add(self.interval);
        while let Some((end, endpoint)) = self.paced.front().copied()
            && (end <= now || end > farthest)
        {
            self.paced.pop_front();
            entry(&mut self.endpoints, endpoint).flags &= !PACED;
            self.queue(endpoint);
        }
    }

    /// Begins at once if no endpoint waits for a turn and this one has room.
    pub(super) fn begin_alone(&mut self, endpoint: u32, now: i64) -> bool {
        // It has no line: with a line and room it would be in a queue.
        let alone = self.queues.iter().all(VecDeque::is_empty)
            && self.room(endpoint).is_some_and(|room| self.is_open(room));
        if alone {
            self.begin(endpoint, now);
        }
        alone
    }

    pub(super) fn line_up(&mut self, delivery: u64, endpoint: u32, is_retry: bool) {
        let lines = if is_retry { &mut self.retries } else { &mut self.firsts };
        entry(lines, endpoint).push_back(delivery);
        entry(&mut self.endpoints, endpoint).flags |= LINE;
        self.in_line += 1;
        self.queue(endpoint);
    }

    /// Takes the first in line of the endpoint whose turn it is.
    #[expect(clippy::expect_used, reason = "the flag says that it has a line")]
    pub(super) fn take(&mut self, now: i64) -> Option<(u64, u32)> {
        for room in [Room::Slow, Room::Any, Room::Further] {
            while self.is_open(room) {
                let Some(endpoint) = self.queues[room.index()].pop_front() else { break };
                let memory = entry(&mut self.endpoints, endpoint);
                memory.flags &= !room.bit();
                if memory.flags & LINE == 0 || self.room(endpoint) != Some(room) {
                    continue;
                }
                let delivery = self.leave_line(endpoint).expect("it has a line");
                self.begin(endpoint, now);
                self.queue(endpoint);
                return Some((delivery, endpoint));
            }
        }
        None
    }

    pub(super) fn finished(&mut self, endpoint: u32, outcome: Outcome) {
        // Not by `entry`, which makes room for a number that is not known.
        let known = usize::try_from(endpoint).ok().and_then(|at| self.endpoints.get_mut(at));
        let Some(memory) = known.filter(|memory| memory.in_flight > 0) else { return };
        let before = *memory;
        memory.in_flight -= 1;
        match outcome {
            Outcome::TimedOut => memory.timeouts = SLOW.min(memory.timeouts + 1),
            Outcome::Answered(_) => memory.timeouts = 0,
            _ => {}
        }
        self.slow = self.slow - before.slow() + memory.slow();
        self.further -= u32::from(before.in_flight > 1);
        self.in_flight -= 1;
        self.queue(endpoint);
    }

    /// Leaves endpoints without a line in their queues, as outdated entries.
    pub(super) fn retain(&mut self, keep: &mut impl FnMut(u64, u32) -> bool) {
        self.in_line = 0;
        for (endpoint, memory) in (0..).zip(&mut self.endpoints) {
            memory.flags &= !LINE;
            let Ok(at) = usize::try_from(endpoint) else { break };
            for line in [self.retries.get_mut(at), self.firsts.get_mut(at)].into_iter().flatten() {
                line.retain(|delivery| keep(*delivery, endpoint));
                memory.flags |= if line.is_empty() { 0 } else { LINE };
                self.in_line += line.len();
            }
        }
    }

    /// Retries first.
    fn leave_line(&mut self, endpoint: u32) -> Option<u64> {
        let at = usize::try_from(endpoint).ok()?;
        let mut lines = [self.retries.get_mut(at), self.firsts.get_mut(at)];
        let delivery = lines.iter_mut().flatten().find_map(|line| line.pop_front())?;
        if lines.iter().flatten().all(|line| line.is_empty()) {
            entry(&mut self.endpoints, endpoint).flags &= !LINE;
        }
        self.in_line -= 1;
        Some(delivery)
    }

    /// Begins an attempt out of turn, beyond the limits if need be.
    pub(super) fn began(&mut self, endpoint: u32) {
        self.count(endpoint);
        self.queue(endpoint);
    }

    fn count(&mut self, endpoint: u32) {
        let memory = entry(&mut self.endpoints, endpoint);
        self.further += u32::from(memory.in_flight > 0);
        memory.in_flight += 1;
        self.slow += u32::from(memory.timeouts == SLOW);
        self.in_flight += 1;
    }

    fn begin(&mut self, endpoint: u32, now: i64) {
        self.count(endpoint);
        if self.interval > 0 {
            entry(&mut self.endpoints, endpoint).flags |= PACED;
            self.paced.push_back((now.saturating_add(self.interval), endpoint));
        }
    }

    /// Puts an endpoint that has a line into the queue where it belongs.
    fn queue(&mut self, endpoint: u32) {
        let Some(room) = self.room(endpoint) else { return };
        let memory = entry(&mut self.endpoints, endpoint);
        if memory.flags & LINE != 0 && memory.flags & room.bit() == 0 {
            memory.flags |= room.bit();
            self.queues[room.index()].push_back(endpoint);
        }
    }

    /// What room the next attempt of an endpoint takes. `None` if an attempt of its own, or its
    /// interval, has to end first.
    fn room(&mut self, endpoint: u32) -> Option<Room> {
        let per_endpoint = self.limits.per_endpoint;
        let memory = *entry(&mut self.endpoints, endpoint);
        let is_slow = memory.timeouts == SLOW;
        match memory.in_flight {
            _ if memory.flags & PACED != 0 => None,
            u16::MAX => None,
            in_flight if u32::from(in_flight) >= per_endpoint => None,
            0 if is_slow => Some(Room::Slow),
            0 => Some(Room::Any),
            _ if is_slow => None,
            _ => Some(Room::Further),
        }
    }

    fn is_open(&self, room: Room) -> bool {
        match room {
            Room::Slow => self.slow < self.limits.of_slow(),
            Room::Any => true,
            Room::Further => self.further < self.limits.overall.div_ceil(2),
        }
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
        if self.timeouts == SLOW { u32::from(self.in_flight) } else { 0 }
    }
}

/// Returns an endpoint's entry in a table, which grows up to it.
#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
fn entry<T: Clone + Default>(table: &mut Vec<T>, endpoint: u32) -> &mut T {
    let at = usize::try_from(endpoint).expect("endpoint numbers fit into memory");
    if at >= table.len() {
        table.resize(at.saturating_add(1), T::default());
    }
    table.get_mut(at).expect("the table has just grown")
}
