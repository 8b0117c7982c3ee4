//! What simulations share: their seeds, what happens when, and how often each thing happened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// The seeds of a simulation: those that `SIMULATION_SEED` or `SIMULATION_WORLDS` ask for, or so many.
pub fn seeds(worlds: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIMULATION_WORLDS").unwrap_or(worlds),
    }
}

/// What is to happen, in milliseconds of virtual time. At one instant, what was planned first is first.
#[derive(Debug)]
pub struct Agenda<H> {
    queue: BinaryHeap<Reverse<(u64, u64, H)>>,
    planned: u64,
}

impl<H: Ord> Agenda<H> {
    /// An agenda with this.
    pub fn new(all: impl IntoIterator<Item = (u64, H)>) -> Self {
        let mut agenda = Self { queue: BinaryHeap::new(), planned: 0 };
        all.into_iter().for_each(|(at, what)| agenda.plan(at, what));
        agenda
    }

    pub fn plan(&mut self, at: u64, what: H) {
        self.planned += 1;
        self.queue.push(Reverse((at, self.planned, what)));
    }

    pub fn pop(&mut self) -> Option<(u64, H)> {
        self.queue.pop().map(|Reverse((at, _, what))| (at, what))
    }

    /// Whether nothing more happens at this instant.
    pub fn is_past(&self, now: u64) -> bool {
        self.queue.peek().is_none_or(|Reverse((next, ..))| *next > now)
    }
}

/// How often each thing happened, in one world or in many.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    pub fn count(&mut self, what: &'static str, times: usize) {
        *self.0.entry(what).or_default() += times;
    }

    pub fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, times)| self.count(what, *times));
    }

    /// Whether each of these happened. A simulation in which a thing never happens says nothing
    /// about it.
    pub fn has_all(&self, all: &[&str]) -> bool {
        all.iter().all(|what| self.of(what) > 0)
    }
}
