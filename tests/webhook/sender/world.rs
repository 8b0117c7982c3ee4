//! What is checked as a model: two processes over one store, every interleaving of their steps, and what
//! happens to them from outside.
//!
//! A process reads, begins, sends, hears, reads again and stores, each a step of its own. Between any
//! two it may die, be slow for as long as anything else takes, or have a clock that is a year ahead.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, DeliveryStatus, DisabledReason, EndpointHealth, MAX_ATTEMPTS,
    Outcome,
};
use stateright::{Model, Property};

use super::ledger::{self, Ledger};
use super::{BEFORE_LAST, answered, failed_before, longest_wait, record, start};

/// What the world holds when it begins, how much may happen in it, and how attempts begin.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) past: Past,
    pub(super) budget: Budget,
    /// Whether attempts are begun in memory. If not, beginning is stored.
    pub(super) owned: bool,
}

/// How often what may happen does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) crashes: u8,
    pub(super) ticks: u8,
    pub(super) enables: u8,
    pub(super) repeats: u8,
    pub(super) unsent: u8,
    pub(super) jumps: u8,
}

pub(super) const BUDGET: Budget =
    Budget { crashes: 1, ticks: 1, enables: 0, repeats: 0, unsent: 0, jumps: 0 };

/// What happened before the world begins.
#[derive(Clone, Debug)]
pub(super) struct Past {
    /// One delivery for each: how often it has failed before.
    pub(super) failed: Vec<u8>,
    /// How many deliveries in a row have failed before.
    pub(super) streak: u8,
    /// How many first attempts in a row have failed before, the first of them a minute ago.
    pub(super) firsts: u8,
}

/// The store, two processes and their clocks, and the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) rows: Vec<Delivery>,
    pub(super) endpoint: EndpointHealth,
    /// Whose clock is a year ahead.
    ahead: [bool; 2],
    left: Budget,
    pub(super) ledger: Ledger,
    pub(super) senders: [Sender; 2],
    /// A write was refused; an endpoint that was not written had changed since it was read.
    pub(super) refused: bool,
    pub(super) unwritten: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    Idle,
    Read(usize, Delivery, EndpointHealth),
    Begun(Job),
    Sent(Job),
    Heard(Job, Outcome),
    /// Has read the endpoint again.
    Ready(Job, Outcome, EndpointHealth),
    Done(Job, Outcome),
}
use Sender::{Begun, Done, Heard, Idle, Read, Ready, Sent};

/// A row as a sender holds it, with the condition of its write, which equality ignores.
pub(super) type Held = (Delivery, Option<i32>);

pub(super) fn held(row: Delivery) -> Held {
    (row, row.if_version())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) of: usize,
    pub(super) attempt: Attempt,
    /// How often the endpoint had been enabled when the sender read it.
    pub(super) life: u8,
    /// The row as it was read before the attempt.
    pub(super) read: Held,
    /// Whether there was an instant, since the end of the attempt, at which its outcome changed
    /// nothing.
    pub(super) unmoved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    Look(usize, usize),
    Begin(usize),
    Send(usize),
    Hear(usize, Outcome),
    LookAgain(usize),
    Store(usize),
    Repeat(usize),
    Rest(usize),
    Crash(usize),
    Park(usize),
    /// What no process does.
    SetClock(usize),
    Tick,
    Enable,
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.past, self.budget)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, sender) in world.senders.iter().enumerate() {
            match sender {
                Idle => {
                    let now = world.clock(at);
                    let found = (0..world.rows.len()).filter(|of| world.is_due(*of, now));
                    actions.extend(found.map(|of| Action::Look(at, of)));
                }
                Read(..) => actions.push(Action::Begin(at)),
                Begun(_) => actions.push(Action::Send(at)),
                Sent(_) => {
                    let heard = [answered(200), answered(410), Outcome::Reset];
                    actions.extend(heard.map(|outcome| Action::Hear(at, outcome)));
                    if world.left.unsent > 0 {
                        actions.push(Action::Hear(at, Outcome::Unsent));
                    }
                }
                Heard(..) => actions.push(Action::LookAgain(at)),
                Ready(..) => actions.push(Action::Store(at)),
                Done(..) => {
                    actions.push(Action::Rest(at));
                    if world.left.repeats > 0 {
                        actions.push(Action::Repeat(at));
                    }
                }
            }
            if world.left.crashes > 0 && *sender != Idle && !matches!(sender, Done(..)) {
                actions.push(Action::Crash(at));
            }
        }
        let parks = |row: &Delivery| { *row }.park(&world.endpoint, world.now);
        let parked = (0..world.rows.len()).filter(|of| parks(&world.rows[*of]));
        actions.extend(parked.map(Action::Park));
        actions.extend(world.outside());
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.is_within(self.budget)
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Look(at, of) => {
                world.senders[at] = Read(of, world.rows[of].into_stored(), world.endpoint);
            }
            Action::Begin(at) => self.begin(&mut world, at),
            Action::Send(at) => {
                let Begun(job) = world.senders[at] else { return None };
                world.ledger.sends(job.of);
                world.senders[at] = Sent(job);
            }
            Action::Hear(at, outcome) => {
                let Sent(job) = world.senders[at] else { return None };
                world.ledger.each[job.of].acknowledged |= outcome == answered(200);
                world.left.unsent -= u8::from(outcome == Outcome::Unsent);
                world.senders[at] = Heard(job, outcome);
            }
            Action::LookAgain(at) => {
                let Heard(job, outcome) = world.senders[at] else { return None };
                world.senders[at] = Ready(job, outcome, world.endpoint);
            }
            Action::Store(at) => self.settle(&mut world, at),
            Action::Repeat(at) => {
                let Done(job, outcome) = world.senders[at] else { return None };
                world.left.repeats -= 1;
                world.senders[at] = Heard(job, outcome);
            }
            Action::Rest(at) => world.senders[at] = Idle,
            Action::Crash(at) => {
                world.left.crashes -= 1;
                world.senders[at] = Idle;
            }
            Action::Park(of) => {
                let (endpoint, now) = (world.endpoint, world.now);
                assert!(world.rows[of].park(&endpoint, now));
            }
            outside => world.happens(outside)?,
        }
        for at in 0..2 {
            let now = world.clock(at);
            if let Heard(job, outcome) | Ready(job, outcome, ..) = &mut world.senders[at] {
                job.unmoved |= world.ledger.is_unmoved(*outcome, now);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = ledger::properties(&self.past);
        // What is not one failure before its end does not show it.
        if self.past.streak == 19 {
            all.push(Property::sometimes("disabled by failing", |_, world: &World| {
                world.endpoint.disabled() == Some(DisabledReason::Failing)
            }));
        }
        all
    }
}

impl Rules {
    fn begin(&self, world: &mut World, at: usize) {
        let Read(of, mut row, endpoint) = world.senders[at] else { return };
        world.senders[at] = Idle;
        let result = row.begin(&endpoint, world.clock(at));
        // If somebody else was first, nothing is stored, and nothing is sent.
        if result.is_err() || !self.owned {
            if !is_version(world.rows[of].version(), row.if_version()) {
                return;
            }
            row = row.into_stored();
            world.rows[of] = row;
        }
        if let Ok(attempt) = result {
            if !endpoint.is_active() {
                world.ledger.broken = Some("sent by who knew that the endpoint is disabled");
            }
            let life = u8::try_from(endpoint.generation()).unwrap();
            world.senders[at] = Begun(Job { of, attempt, life, read: held(row), unmoved: false });
        }
    }
}

/// As in SQL: nothing is equal to `NULL`.
pub(super) fn is_version(stored: u32, expected: Option<i32>) -> bool {
    expected == i32::try_from(stored).ok()
}

impl World {
    fn new(past: &Past, budget: Budget) -> Self {
        let mut endpoint = EndpointHealth::new(1, start());
        let mut fail = |before, now| _ = record(&mut endpoint, before, answered(500), now);
        let minute_ago = start().saturating_sub(Duration::from_secs(60));
        (0..past.streak).for_each(|_| fail(BEFORE_LAST, start()));
        (0..past.firsts).for_each(|_| fail(0, minute_ago));
        let rows = past.failed.iter().map(|failed| failed_before(*failed, &endpoint, start()));
        Self {
            now: start(),
            rows: rows.collect(),
            endpoint,
            ahead: [false; 2],
            left: budget,
            senders: [Idle; 2],
            refused: false,
            unwritten: false,
            ledger: Ledger::new(past, minute_ago),
        }
    }

    pub(super) fn clock(&self, process: usize) -> Timestamp {
        let ahead = Duration::from_secs(365 * 86_400);
        if self.ahead[process] { self.now.saturating_add(ahead) } else { self.now }
    }

    fn is_due(&self, of: usize, now: Timestamp) -> bool {
        self.rows[of].due(now).is_some_and(|due| due <= now)
    }

    fn outside(&self) -> Vec<Action> {
        let jumps = (0..2).filter(|at| self.left.jumps > 0 || self.ahead[*at]);
        let mut all: Vec<_> = jumps.map(Action::SetClock).collect();
        let later = |of| !self.is_due(of, self.now) && self.rows[of].is_pending();
        if self.left.ticks > 0 && (0..self.rows.len()).any(later) {
            all.push(Action::Tick);
        }
        if self.left.enables > 0 && !self.endpoint.is_active() {
            all.push(Action::Enable);
        }
        all
    }

    fn happens(&mut self, what: Action) -> Option<()> {
        match what {
            Action::SetClock(at) => {
                self.left.jumps -= u8::from(!self.ahead[at]);
                self.ahead[at] = !self.ahead[at];
            }
            Action::Tick => {
                self.left.ticks -= 1;
                let due = self.rows.iter().filter_map(|row| row.due(self.now));
                self.now = due.filter(|due| *due > self.now).min()?;
            }
            Action::Enable => {
                self.left.enables -= 1;
                let _ = self.endpoint.enable(self.now)?;
                self.ledger.enabled();
            }
            _ => return None,
        }
        Some(())
    }

    /// Two processes whose clocks are a year apart could take a lease from one another for ever.
    fn is_within(&self, budget: Budget) -> bool {
        let steps = |row: &Delivery| row.version() - 2 * u32::from(row.attempts());
        budget.jumps == 0 || self.rows.iter().all(|row| steps(row) <= 5)
    }

    /// D-80: whoever comes when a delivery is due can begin it, or finds the endpoint disabled, and it
    /// is due no later than after the longest wait.
    pub(super) fn loses_nothing(&self) -> bool {
        self.rows.iter().zip(&self.ledger.each).all(|(row, account)| match row.status() {
            DeliveryStatus::Waiting | DeliveryStatus::Sending => {
                let mut row = *row;
                let due = row.due(self.now).unwrap();
                let begun = row.begin(&self.endpoint, due);
                due.since(self.now) <= longest_wait()
                    && (begun.is_ok()
                        || begun == Err(BeginError::Parked) && self.ledger.was_disabled)
            }
            DeliveryStatus::Delivered => account.acknowledged,
            DeliveryStatus::Failed => account.charged == MAX_ATTEMPTS || self.ledger.was_disabled,
            _ => self.ledger.was_disabled,
        })
    }
}
