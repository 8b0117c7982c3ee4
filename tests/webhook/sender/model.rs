//! Two senders over one store, every interleaving of their steps: model checking of the order that
//! the module's page writes down. DEL-6, DEL-7, DEL-8, D-53 to D-58, D-80.
//!
//! A sender reads, stores, sends, hears and stores again, each a step of its own; between any two
//! it may die, time may pass to the next instant at which anything is due, its clock may jump a year
//! ahead and back, the owner may enable the endpoint or redeliver, and an outcome may be said twice. Beside the values runs a ledger
//! that is kept by the specification alone.
//!
//! 300 000 states are seen in an ordinary run, 5 600 000 more with `--release -- --ignored`.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, DisabledReason, Endpoint, EndpointChange, Outcome, RETRY_WAITS,
    Report, Status,
};
use stateright::{Checker, Model, Property};

use super::{answered, failed_before, start};

/// What the world holds when it begins, and how much may happen in it.
#[derive(Clone, Debug)]
struct Rules {
    /// One delivery for each: how often it has failed before.
    failed: Vec<u8>,
    /// How many deliveries in a row have failed before.
    streak: u8,
    budget: Budget,
    /// Whether the store writes both rows at once. If not, in the order the page gives.
    together: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    crashes: u8,
    ticks: u8,
    enables: u8,
    redeliveries: u8,
    repeats: u8,
    unsent: u8,
    jumps: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now: Timestamp,
    rows: Vec<Delivery>,
    endpoint: Endpoint,
    senders: [Sender; 2],
    /// Whose clock is a year ahead.
    ahead: [bool; 2],
    left: Budget,
    ledger: Ledger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sender {
    Idle,
    Read {
        of: usize,
        row: Delivery,
        endpoint: Endpoint,
    },
    Begun(Job),
    Sent(Job),
    Heard(Job, Outcome),
    ReadBack(Job, Outcome, Delivery, Endpoint),
    /// One of the two rows is written: the other is to come.
    CountLeft(Job, Outcome, Report),
    Done(Job, Outcome),
}
use Sender::{Begun, CountLeft, Done, Heard, Idle, Read, ReadBack, Sent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Job {
    of: usize,
    attempt: Attempt,
    /// How often the endpoint had been enabled when the sender read it.
    life: u8,
}

/// The specification's view, made of what happened and of nothing that the values say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ledger {
    streak: u8,
    disabled: Option<DisabledReason>,
    life: u8,
    was_disabled: bool,
    each: Vec<Account>,
    /// Something that must never happen did.
    broken: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Account {
    charged: u8,
    counted: u8,
    received: u8,
    acknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Look(usize, usize),
    StoreBegun(usize),
    Send(usize),
    Hear(usize, Outcome),
    LookAgain(usize),
    StoreFinished(usize),
    StoreCount(usize),
    Repeat(usize),
    Rest(usize),
    Crash(usize),
    SetClock(usize),
    Tick,
    Enable,
    Redeliver(usize),
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut endpoint = Endpoint::new(start());
        for _ in 0..self.streak {
            let mut delivery = failed_before(5, &endpoint, start());
            let attempt = delivery.begin(&endpoint, start()).unwrap();
            let report = delivery.finish(&attempt, answered(500), start());
            let _ = endpoint.record(report, start());
        }
        let rows = self.failed.iter().map(|failed| failed_before(*failed, &endpoint, start()));
        vec![World {
            now: start(),
            rows: rows.collect(),
            endpoint,
            senders: [Idle; 2],
            ahead: [false; 2],
            left: self.budget,
            ledger: Ledger {
                streak: self.streak,
                disabled: None,
                life: 0,
                was_disabled: false,
                each: self
                    .failed
                    .iter()
                    .map(|failed| Account { charged: *failed, ..Account::default() })
                    .collect(),
                broken: None,
            },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, sender) in world.senders.iter().enumerate() {
            match sender {
                Idle => actions.extend(
                    (0..world.rows.len())
                        .filter(|of| world.is_due(*of, world.clock(at)))
                        .map(|of| Action::Look(at, of)),
                ),
                Read { .. } => actions.push(Action::StoreBegun(at)),
                Begun(_) => actions.push(Action::Send(at)),
                Sent(_) => {
                    let heard = [answered(200), answered(410), Outcome::Reset];
                    actions.extend(heard.map(|outcome| Action::Hear(at, outcome)));
                    if world.left.unsent > 0 {
                        actions.push(Action::Hear(at, Outcome::Unsent));
                    }
                }
                Heard(..) => actions.push(Action::LookAgain(at)),
                ReadBack(..) => actions.push(Action::StoreFinished(at)),
                CountLeft(..) => actions.push(Action::StoreCount(at)),
                Done(..) => {
                    actions.push(Action::Rest(at));
                    if world.left.repeats > 0 {
                        actions.push(Action::Repeat(at));
                    }
                }
            }
            if world.left.jumps > 0 || world.ahead[at] {
                actions.push(Action::SetClock(at));
            }
            if world.left.crashes > 0 && *sender != Idle && !matches!(sender, Done(..)) {
                actions.push(Action::Crash(at));
            }
        }
        let later = |of| !world.is_due(of, world.now) && world.rows[of].is_pending();
        if world.left.ticks > 0 && (0..world.rows.len()).any(later) {
            actions.push(Action::Tick);
        }
        if world.left.enables > 0 && !world.endpoint.is_active() {
            actions.push(Action::Enable);
        }
        for (of, row) in world.rows.iter().enumerate() {
            let mut row = *row;
            if world.left.redeliveries > 0 && row.redeliver(&world.endpoint, world.now).is_ok() {
                actions.push(Action::Redeliver(of));
            }
        }
    }

    /// Two senders whose clocks are a year apart could take an attempt from one another for ever.
    fn within_boundary(&self, world: &World) -> bool {
        let steps = |row: &Delivery| row.version() - 2 * u32::from(row.attempts());
        self.budget.jumps == 0 || world.rows.iter().all(|row| steps(row) <= 5)
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Look(at, of) => {
                let (row, endpoint) = (world.rows[of], world.endpoint);
                world.senders[at] = Read { of, row, endpoint };
            }
            Action::StoreBegun(at) => world.store_begun(at),
            Action::Send(at) => {
                let Begun(job) = world.senders[at] else { return None };
                let account = &mut world.ledger.each[job.of];
                account.received = (account.received + 1).min(2);
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
                world.senders[at] = ReadBack(job, outcome, world.rows[job.of], world.endpoint);
            }
            Action::StoreFinished(at) => world.store_finished(at, self.together),
            Action::StoreCount(at) => {
                let CountLeft(job, outcome, report) = world.senders[at] else { return None };
                let change = world.endpoint.record(report, world.clock(at));
                world.note_change(job, change);
                world.senders[at] = Done(job, outcome);
            }
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
            Action::SetClock(at) => {
                world.left.jumps -= u8::from(!world.ahead[at]);
                world.ahead[at] = !world.ahead[at];
            }
            Action::Tick => {
                world.left.ticks -= 1;
                let due = world.rows.iter().filter_map(|row| row.due(before.now));
                world.now = due.filter(|due| *due > before.now).min()?;
            }
            Action::Enable => {
                world.left.enables -= 1;
                let _ = world.endpoint.enable(world.now)?;
                world.ledger.streak = 0;
                world.ledger.disabled = None;
                world.ledger.life += 1;
            }
            Action::Redeliver(of) => {
                world.left.redeliveries -= 1;
                let endpoint = world.endpoint;
                world.rows[of].redeliver(&endpoint, world.now).unwrap();
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always("nothing forbidden happened", |_, world: &World| {
                world.ledger.broken.is_none()
            }),
            Property::always("no accepted event is lost", |_, world: &World| {
                world.rows.iter().zip(&world.ledger.each).all(|(row, account)| match row.status() {
                    // D-80: whoever comes when it is due can begin, or finds the endpoint disabled,
                    // and it is due no later than after the longest wait.
                    Status::Waiting | Status::Sending => {
                        let mut row = *row;
                        let due = row.due(world.now).unwrap();
                        let begun = row.begin(&world.endpoint, due);
                        due.since(world.now) <= RETRY_WAITS[4]
                            && (begun.is_ok()
                                || begun == Err(BeginError::Parked) && world.ledger.was_disabled)
                    }
                    Status::Delivered => account.acknowledged,
                    Status::Failed => account.charged == 6 || world.ledger.was_disabled,
                    _ => world.ledger.was_disabled,
                })
            }),
            Property::always("six attempts at most are charged", |_, world: &World| {
                let each = world.rows.iter().zip(&world.ledger.each);
                each.into_iter().all(|(row, account)| account.charged <= 6 && row.attempts() <= 6)
            }),
            Property::always("each delivery is counted once at most", |_, world: &World| {
                world.ledger.each.iter().all(|account| account.counted <= 1)
            }),
            Property::sometimes("delivered twice to the receiver", |_, world: &World| {
                world.ledger.each.iter().any(|account| account.received > 1)
            }),
            Property::sometimes("acknowledged after it had failed for good", |_, world: &World| {
                world
                    .rows
                    .iter()
                    .zip(&world.ledger.each)
                    .any(|(row, account)| row.status() == Status::Delivered && account.counted == 1)
            }),
            Property::sometimes("disabled by a 410", |_, world: &World| {
                world.endpoint.disabled() == Some(DisabledReason::Gone)
            }),
            Property::sometimes("disabled by failing", |_, world: &World| {
                world.endpoint.disabled() == Some(DisabledReason::Failing)
            }),
        ];
        // Nothing else is pending where there is one delivery.
        if self.failed.len() > 1 {
            all.push(Property::sometimes("parked", |_, world: &World| {
                world.rows.iter().any(|row| row.status() == Status::Parked)
            }));
        }
        if self.together {
            all.push(Property::always("disabled exactly when it should be", |_, world: &World| {
                let ledger = &world.ledger;
                world.endpoint.disabled() == ledger.disabled
                    && (ledger.disabled.is_some() || world.endpoint.failures() == ledger.streak)
            }));
        }
        all
    }
}

impl World {
    fn clock(&self, sender: usize) -> Timestamp {
        let ahead = Duration::from_secs(365 * 86_400);
        if self.ahead[sender] { self.now.saturating_add(ahead) } else { self.now }
    }

    fn is_due(&self, of: usize, now: Timestamp) -> bool {
        self.rows[of].due(now).is_some_and(|due| due <= now)
    }

    fn store_begun(&mut self, at: usize) {
        let Read { of, row, endpoint } = self.senders[at] else { return };
        let mut begun = row;
        let result = begun.begin(&endpoint, self.clock(at));
        self.senders[at] = Idle;
        // Somebody else was first: nothing is stored, nothing is sent.
        if self.rows[of].version() != row.version() {
            return;
        }
        self.rows[of] = begun;
        if let Ok(attempt) = result {
            if !endpoint.is_active() {
                self.ledger.broken = Some("sent by somebody who knew the endpoint is disabled");
            }
            let life = u8::try_from(endpoint.generation()).unwrap();
            self.senders[at] = Begun(Job { of, attempt, life });
        }
    }

    fn store_finished(&mut self, at: usize, together: bool) {
        let ReadBack(job, outcome, read_row, read_endpoint) = self.senders[at] else { return };
        let (mut row, mut endpoint) = (read_row, read_endpoint);
        let report = row.finish(&job.attempt, outcome, self.clock(at));
        let change = endpoint.record(report, self.clock(at));
        let same_row = self.rows[job.of].version() == read_row.version();
        let same_endpoint = self.endpoint.version() == read_endpoint.version();
        if together {
            if !(same_row && same_endpoint) {
                self.senders[at] = Heard(job, outcome);
                return;
            }
            self.rows[job.of] = row;
            self.endpoint = endpoint;
            self.note_step(job, outcome, report, row.status());
            self.note_change(job, change);
            self.senders[at] = Done(job, outcome);
            return;
        }
        // One row at a time: what forgives or ends first, what counts after.
        if matches!(
            change,
            EndpointChange::Recovered | EndpointChange::Disabled(DisabledReason::Gone)
        ) && same_endpoint
        {
            self.endpoint = endpoint;
            self.note_change(job, change);
            // Then the delivery, from the same step of the sender, if it is still as read.
            self.senders[at] = Heard(job, outcome);
        } else if same_row && same_endpoint {
            self.rows[job.of] = row;
            self.note_step(job, outcome, report, row.status());
            self.senders[at] = CountLeft(job, outcome, report);
        } else {
            self.senders[at] = Heard(job, outcome);
        }
    }

    /// Writes down what a stored step means by the specification.
    fn note_step(&mut self, job: Job, outcome: Outcome, report: Report, status: Status) {
        let ledger = &mut self.ledger;
        let account = &mut ledger.each[job.of];
        let by_schedule = !job.attempt.is_manual();
        let step = (!report.is_late() && outcome != Outcome::Unsent).then_some(status);
        if by_schedule && matches!(step, Some(Status::Waiting | Status::Failed)) {
            account.charged += 1;
        }
        if ledger.disabled.is_some() || ledger.life != job.life {
            return;
        }
        if step == Some(Status::Delivered) {
            ledger.streak = 0;
        } else if step == Some(Status::Failed) && by_schedule {
            ledger.streak += 1;
            if ledger.streak == 20 {
                (ledger.disabled, ledger.was_disabled) = (Some(DisabledReason::Failing), true);
            }
        } else if outcome == answered(410) {
            (ledger.disabled, ledger.was_disabled) = (Some(DisabledReason::Gone), true);
        }
    }

    fn note_change(&mut self, job: Job, change: EndpointChange) {
        let failing = EndpointChange::Disabled(DisabledReason::Failing);
        if matches!(change, EndpointChange::Counted { .. }) || change == failing {
            self.ledger.each[job.of].counted += 1;
        }
        self.ledger.was_disabled |= !self.endpoint.is_active();
    }
}

fn check(rules: Rules, at_least: usize) {
    let checker = rules.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    checker.assert_properties();
    assert!(states >= at_least, "only {states} states");
}

fn rules(failed: &[u8], together: bool, budget: Budget) -> Rules {
    Rules { failed: failed.to_vec(), streak: 19, budget, together }
}

const BUDGET: Budget =
    Budget { crashes: 1, ticks: 1, enables: 0, redeliveries: 0, repeats: 0, unsent: 0, jumps: 0 };

/// One delivery at its last attempt, one failure before the endpoint is disabled.
#[test]
fn two_senders_over_one_delivery() {
    check(rules(&[5], true, Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET }), 25_000);
}

/// Two deliveries of the same endpoint.
#[test]
fn two_senders_over_two_deliveries() {
    check(rules(&[5, 5], true, Budget { enables: 1, ..BUDGET }), 50_000);
}

/// A store that writes one row at a time.
#[test]
fn two_senders_over_a_store_of_single_rows() {
    check(rules(&[5, 5], false, BUDGET), 150_000);
}

/// D-80: a sender whose clock is a year ahead for a while.
#[test]
fn two_senders_one_with_a_wrong_clock() {
    check(rules(&[4], true, Budget { ticks: 2, jumps: 1, ..BUDGET }), 10_000);
}

#[test]
#[ignore = "half a minute in release"]
fn one_delivery_with_everything() {
    let all = Budget {
        crashes: 2,
        ticks: 2,
        enables: 1,
        redeliveries: 1,
        repeats: 1,
        unsent: 1,
        jumps: 0,
    };
    check(rules(&[4], true, all), 1_600_000);
}

#[test]
#[ignore = "half a minute in release"]
fn two_deliveries_with_everything() {
    check(rules(&[5, 5], true, Budget { enables: 1, redeliveries: 1, ..BUDGET }), 700_000);
}

#[test]
#[ignore = "half a minute in release"]
fn single_rows_with_everything() {
    check(rules(&[5, 5], false, Budget { enables: 1, redeliveries: 1, ..BUDGET }), 3_200_000);
}
