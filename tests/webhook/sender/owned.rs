//! Two owners who both believe that they own an endpoint: model checking of settling, with attempts
//! begun in memory or in the store, and endpoints written only if they change. D-54, D-58, D-80, D-84.
//!
//! An owner reads, begins, sends, hears, reads the endpoint and stores, each a step of its own.
//! Between any two it may die, be slow for as long as anything else takes, or have a clock that is a
//! year ahead; the other owner may make the same attempt. Beside the values runs a ledger that is
//! kept by the specification alone. Hosts with one mistake each must be caught.
//!
//! 600 000 states are seen in an ordinary run, 2 700 000 more with `--release -- --ignored`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, DisabledReason, Ended, Endpoint, Outcome, RETRY_WAITS, Row,
    Settled, Status, settle,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::{answered, failed_before, start};

#[derive(Clone, Debug)]
struct Rules {
    /// One delivery for each: how often it has failed before.
    failed: Vec<u8>,
    /// How many deliveries in a row have failed before.
    streak: u8,
    /// Whether attempts are begun in memory. If not, beginning is stored.
    owned: bool,
    budget: Budget,
    mistake: Option<Mistake>,
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

/// What a host does wrong without noticing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    /// Writes the delivery whatever its version is.
    DeliveryWithoutVersion,
    /// Writes the endpoint whatever its version is.
    EndpointWithoutVersion,
    /// Writes the endpoint though the delivery's write affected no row.
    RowsAffectedIgnored,
    /// Writes the delivery alone.
    EndpointNotWritten,
    /// Uses the endpoint that was read before the attempt ended.
    EndpointReadEarly,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now: Timestamp,
    rows: Vec<Delivery>,
    endpoint: Endpoint,
    owners: [Owner; 2],
    /// Whose clock is a year ahead.
    ahead: [bool; 2],
    left: Budget,
    ledger: Ledger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Idle,
    Read(usize, Row<Delivery>, Endpoint),
    Begun(Job),
    Sent(Job),
    Heard(Job, Outcome),
    Ready(Job, Outcome, Endpoint),
    Done(Job, Outcome),
}
use Owner::{Begun, Done, Heard, Idle, Read, Ready, Sent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Job {
    of: usize,
    row: Row<Delivery>,
    attempt: Attempt,
    /// As it was read before the attempt.
    endpoint: Endpoint,
    /// How often the endpoint had been enabled then.
    life: u8,
    /// Whether there was an instant, since the end of the attempt, at which a success changed nothing.
    no_reset: bool,
}

/// The specification's view, made of what happened and of nothing that the values say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ledger {
    streak: u8,
    disabled: Option<DisabledReason>,
    life: u8,
    was_disabled: bool,
    each: Vec<Account>,
    /// A write was refused; an endpoint that was not written had changed since it was read.
    refused: bool,
    unwritten: bool,
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
    Begin(usize),
    Send(usize),
    Hear(usize, Outcome),
    ReadEndpoint(usize),
    Store(usize),
    Repeat(usize),
    Rest(usize),
    Crash(usize),
    SetClock(usize),
    Tick,
    Enable,
    Redeliver(usize),
    Park(usize),
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut endpoint = Endpoint::new(start());
        for _ in 0..self.streak {
            let mut delivery = failed_before(5, &endpoint, start());
            let attempt = delivery.begin(&endpoint, start()).unwrap();
            let _ = endpoint.record(delivery.finish(&attempt, answered(500), start()), start());
        }
        let rows = self.failed.iter().map(|failed| failed_before(*failed, &endpoint, start()));
        let charged = |failed: &u8| Account { charged: *failed, ..Account::default() };
        vec![World {
            now: start(),
            rows: rows.collect(),
            endpoint,
            owners: [Idle; 2],
            ahead: [false; 2],
            left: self.budget,
            ledger: Ledger {
                streak: self.streak,
                disabled: None,
                life: 0,
                was_disabled: false,
                each: self.failed.iter().map(charged).collect(),
                refused: false,
                unwritten: false,
                broken: None,
            },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, owner) in world.owners.iter().enumerate() {
            match owner {
                Idle => {
                    let due = |of: &usize| world.is_due(*of, world.clock(at));
                    let due = (0..world.rows.len()).filter(due);
                    actions.extend(due.map(|of| Action::Look(at, of)));
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
                Heard(..) => actions.push(Action::ReadEndpoint(at)),
                Ready(..) => actions.push(Action::Store(at)),
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
            if world.left.crashes > 0 && *owner != Idle && !matches!(owner, Done(..)) {
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
            if row.park(&world.endpoint, world.now) {
                actions.push(Action::Park(of));
            }
            if world.left.redeliveries > 0 && row.redeliver(&world.endpoint, world.now).is_ok() {
                actions.push(Action::Redeliver(of));
            }
        }
    }

    /// Two owners whose clocks are a year apart could take a lease from one another for ever.
    fn within_boundary(&self, world: &World) -> bool {
        let steps = |row: &Delivery| row.version() - 2 * u32::from(row.attempts());
        self.budget.jumps == 0 || world.rows.iter().all(|row| steps(row) <= 5)
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Look(at, of) => {
                world.owners[at] = Read(of, Row::from(world.rows[of]), world.endpoint);
            }
            Action::Begin(at) => self.begin(&mut world, at),
            Action::Send(at) => {
                let Begun(job) = world.owners[at] else { return None };
                let account = &mut world.ledger.each[job.of];
                account.received = (account.received + 1).min(2);
                world.owners[at] = Sent(job);
            }
            Action::Hear(at, outcome) => {
                let Sent(job) = world.owners[at] else { return None };
                world.ledger.each[job.of].acknowledged |= outcome == answered(200);
                world.left.unsent -= u8::from(outcome == Outcome::Unsent);
                world.owners[at] = Heard(job, outcome);
            }
            Action::ReadEndpoint(at) => {
                let Heard(job, outcome) = world.owners[at] else { return None };
                let early = self.mistake == Some(Mistake::EndpointReadEarly);
                let endpoint = if early { job.endpoint } else { world.endpoint };
                world.owners[at] = Ready(job, outcome, endpoint);
            }
            Action::Store(at) => self.store(&mut world, at),
            Action::Repeat(at) => {
                let Done(job, outcome) = world.owners[at] else { return None };
                world.left.repeats -= 1;
                world.owners[at] = Heard(job, outcome);
            }
            Action::Rest(at) => world.owners[at] = Idle,
            Action::Crash(at) => {
                world.left.crashes -= 1;
                world.owners[at] = Idle;
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
            Action::Park(of) => {
                let endpoint = world.endpoint;
                assert!(world.rows[of].park(&endpoint, world.now));
            }
        }
        let no_reset = world.ledger.streak == 0;
        for owner in &mut world.owners {
            if let Heard(job, _) | Ready(job, ..) = owner {
                job.no_reset |= no_reset;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always("nothing forbidden happened", |_, world: &World| {
                world.ledger.broken.is_none()
            }),
            Property::always("no accepted event is lost", |_, world: &World| world.loses_nothing()),
            Property::always("six attempts at most are charged", |_, world: &World| {
                let each = world.rows.iter().zip(&world.ledger.each);
                each.into_iter().all(|(row, account)| account.charged <= 6 && row.attempts() <= 6)
            }),
            Property::always("each delivery is counted once at most", |_, world: &World| {
                world.ledger.each.iter().all(|account| account.counted <= 1)
            }),
            Property::always("disabled exactly when it should be", |_, world: &World| {
                let ledger = &world.ledger;
                world.endpoint.disabled() == ledger.disabled
                    && (ledger.disabled.is_some() || world.endpoint.failures() == ledger.streak)
            }),
            Property::sometimes("delivered twice to the receiver", |_, world: &World| {
                world.ledger.each.iter().any(|account| account.received > 1)
            }),
            Property::sometimes("refused by a version", |_, world: &World| world.ledger.refused),
            Property::sometimes("disabled by a 410", |_, world: &World| {
                world.endpoint.disabled() == Some(DisabledReason::Gone)
            }),
            Property::sometimes("unwritten, and changed since it was read", |_, world: &World| {
                world.ledger.unwritten
            }),
        ];
        if self.streak == 19 {
            all.push(Property::sometimes("disabled by failing", |_, world: &World| {
                world.endpoint.disabled() == Some(DisabledReason::Failing)
            }));
        }
        all
    }
}

impl Rules {
    fn begin(&self, world: &mut World, at: usize) {
        let Read(of, mut row, endpoint) = world.owners[at] else { return };
        world.owners[at] = Idle;
        let result = row.begin(&endpoint, world.clock(at));
        if result.is_err() || !self.owned {
            let Some(write) = row.write() else { return };
            if !is_version(world.rows[of].version(), write.if_version) {
                return;
            }
            world.rows[of] = write.value;
            row = Row::from(write.value);
        }
        if let Ok(attempt) = result {
            if !endpoint.is_active() {
                world.ledger.broken = Some("sent by an owner that knew the endpoint is disabled");
            }
            let life = u8::try_from(endpoint.generation()).unwrap();
            world.owners[at] = Begun(Job { of, row, attempt, endpoint, life, no_reset: false });
        }
    }

    fn store(&self, world: &mut World, at: usize) {
        let Ready(mut job, outcome, read) = world.owners[at] else { return };
        let now = world.clock(at);
        let settled = settle(
            &[Ended {
                delivery: job.of,
                endpoint: 0,
                attempt: job.attempt,
                outcome,
                at: now,
                response: None,
            }],
            &BTreeMap::from([(job.of, job.row)]),
            &BTreeMap::from([(0, Row::from(read))]),
        );
        let row = settled.deliveries.first().map(|(_, write)| *write);
        let endpoint = settled.endpoints.first().map(|(_, write)| *write);
        let mistake = |mistake| self.mistake == Some(mistake);
        let row_fits = mistake(Mistake::DeliveryWithoutVersion)
            || row.is_none_or(|row| is_version(world.rows[job.of].version(), row.if_version));
        let endpoint_fits = mistake(Mistake::EndpointWithoutVersion)
            || endpoint.is_none_or(|write| is_version(world.endpoint.version(), write.if_version));
        if !(row_fits && endpoint_fits) {
            if mistake(Mistake::RowsAffectedIgnored) && endpoint_fits {
                world.endpoint = endpoint.map_or(world.endpoint, |write| write.value);
            }
            world.ledger.refused = true;
            // Both are read again, the endpoint in a step of its own.
            job.row = Row::from(world.rows[job.of]);
            world.owners[at] = Heard(job, outcome);
            return;
        }
        world.ledger.unwritten |= endpoint.is_none() && world.endpoint.version() != read.version();
        world.note(job, outcome, &settled, read);
        world.rows[job.of] = row.map_or(world.rows[job.of], |write| write.value);
        if !mistake(Mistake::EndpointNotWritten) {
            world.endpoint = endpoint.map_or(world.endpoint, |write| write.value);
        }
        job.row = Row::from(world.rows[job.of]);
        world.owners[at] = Done(job, outcome);
    }
}

fn is_version(stored: u32, expected: i32) -> bool {
    i64::from(stored) == i64::from(expected)
}

impl World {
    fn clock(&self, owner: usize) -> Timestamp {
        let ahead = Duration::from_secs(365 * 86_400);
        if self.ahead[owner] { self.now.saturating_add(ahead) } else { self.now }
    }

    fn is_due(&self, of: usize, now: Timestamp) -> bool {
        self.rows[of].due(now).is_some_and(|due| due <= now)
    }

    /// Whoever comes when a delivery is due can begin it, or finds the endpoint disabled.
    fn loses_nothing(&self) -> bool {
        self.rows.iter().zip(&self.ledger.each).all(|(row, account)| match row.status() {
            Status::Waiting | Status::Sending => {
                let mut row = *row;
                let due = row.due(self.now).unwrap();
                let begun = row.begin(&self.endpoint, due);
                due.since(self.now) <= RETRY_WAITS[4]
                    && (begun.is_ok()
                        || begun == Err(BeginError::Parked) && self.ledger.was_disabled)
            }
            Status::Delivered => account.acknowledged,
            Status::Failed => account.charged == 6 || self.ledger.was_disabled,
            _ => self.ledger.was_disabled,
        })
    }

    /// Writes down what a stored step means by the specification.
    fn note(&mut self, job: Job, outcome: Outcome, settled: &Settled<usize, i32>, read: Endpoint) {
        let ledger = &mut self.ledger;
        let account = &mut ledger.each[job.of];
        let entry = &settled.log[0].1;
        let (counts, manual) = (!entry.late, job.attempt.is_manual());
        let written = settled.endpoints.first().map(|(_, write)| write.value);
        if counts && !manual && outcome == Outcome::Reset {
            account.charged += 1;
        }
        let failing = settled.disabled.iter().any(|(_, why)| *why == DisabledReason::Failing);
        if failing || written.is_some_and(|endpoint| endpoint.failures() > read.failures()) {
            account.counted += 1;
        }
        if ledger.disabled.is_some() || ledger.life != job.life {
            return;
        }
        if counts && entry.status == Status::Delivered {
            match written {
                Some(_) => ledger.streak = 0,
                // It may count from an instant at which there was nothing to reset.
                None if job.no_reset => {}
                None => ledger.broken = Some("a success did not reset the count"),
            }
        } else if counts && entry.status == Status::Failed && !manual {
            ledger.streak += 1;
            if ledger.streak == 20 {
                (ledger.disabled, ledger.was_disabled) = (Some(DisabledReason::Failing), true);
            }
        } else if outcome == answered(410) {
            (ledger.disabled, ledger.was_disabled) = (Some(DisabledReason::Gone), true);
        }
    }
}

const BUDGET: Budget =
    Budget { crashes: 1, ticks: 1, enables: 0, redeliveries: 0, repeats: 0, unsent: 0, jumps: 0 };

fn rules(failed: &[u8], streak: u8, owned: bool, budget: Budget) -> Rules {
    Rules { failed: failed.to_vec(), streak, owned, budget, mistake: None }
}

#[track_caller]
fn check(rules: Rules, at_least: usize) {
    let checker = rules.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    checker.assert_properties();
    assert!(states >= at_least, "only {states} states");
}

/// D-84: one delivery at its last attempt, one failure before the endpoint is disabled.
#[test]
fn two_owners_of_one_delivery() {
    check(rules(&[5], 19, true, Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET }), 35_000);
}

/// D-84: two deliveries of one endpoint, from either end of the count.
#[test]
fn two_owners_of_two_deliveries() {
    check(rules(&[5, 5], 19, true, Budget { enables: 1, ..BUDGET }), 75_000);
    check(rules(&[5, 5], 0, true, Budget { enables: 1, ..BUDGET }), 100_000);
}

/// D-80, D-84: an owner whose clock is a year ahead for a while.
#[test]
fn two_owners_one_with_a_wrong_clock() {
    check(rules(&[4], 19, true, Budget { ticks: 2, jumps: 1, ..BUDGET }), 80_000);
}

/// Attempts whose beginning is stored, settled with endpoints that are written only if they change.
#[test]
fn two_senders_settle_over_one_store() {
    check(rules(&[5, 5], 19, false, BUDGET), 100_000);
    check(rules(&[5, 5], 0, false, Budget { enables: 1, ..BUDGET }), 190_000);
}

/// What a host breaks silently is seen, whether its attempts begin in memory or in the store.
#[test]
fn every_mistake_is_caught() {
    for (mistake, owned, says) in [
        (Mistake::DeliveryWithoutVersion, true, "each delivery is counted once at most"),
        (Mistake::EndpointWithoutVersion, true, "disabled exactly when it should be"),
        (Mistake::EndpointWithoutVersion, false, "disabled exactly when it should be"),
        (Mistake::RowsAffectedIgnored, true, "disabled exactly when it should be"),
        (Mistake::EndpointNotWritten, true, "disabled exactly when it should be"),
        (Mistake::EndpointNotWritten, false, "disabled exactly when it should be"),
        (Mistake::EndpointReadEarly, true, "nothing forbidden happened"),
        (Mistake::EndpointReadEarly, false, "nothing forbidden happened"),
    ] {
        let rules = Rules { mistake: Some(mistake), ..rules(&[5, 5], 0, owned, BUDGET) };
        let caught = HasDiscoveries::AnyOf(BTreeSet::from([says]));
        let checker = rules.checker().threads(2).finish_when(caught).spawn_bfs().join();
        let found = checker.discoveries();
        let states = checker.unique_state_count();
        println!("{mistake:?}, owned {owned}: {states} states");
        assert!(found.contains_key(says), "{mistake:?}: {:?}", found.keys());
    }
}

#[test]
#[ignore = "half a minute in release"]
fn two_owners_with_everything() {
    let all = Budget {
        crashes: 2,
        ticks: 2,
        enables: 1,
        redeliveries: 1,
        repeats: 1,
        unsent: 1,
        jumps: 0,
    };
    check(rules(&[4], 19, true, all), 1_900_000);
    check(rules(&[5, 5], 19, true, Budget { enables: 1, redeliveries: 1, ..BUDGET }), 800_000);
}
