//! Two owners who both believe that they own an endpoint: model checking of settling, with attempts
//! begun in memory or in the store, and endpoints written only if they change. D-54, D-58, D-80, D-84.
//!
//! An owner reads, begins, sends, hears, reads the endpoint and stores, each a step of its own.
//! Between any two it may die, be slow for as long as anything else takes, or have a clock that is a
//! year ahead; the other owner may make the same attempt. Next to the values runs the ledger of the
//! specification; it also says what the endpoint's owner is to be told, once. Hosts with one mistake
//! each must be caught.
//!
//! 700 000 states are seen in an ordinary run, 2 500 000 more with `--release -- --ignored`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, Attempt, Delivery, DisabledReason, Ended, Endpoint, Outcome, Row, Status, Write, settle,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::answered;
use super::ledger::{self, BUDGET, Budget, Outside, Past, Step, Store, check};

#[derive(Clone, Debug)]
struct Rules {
    past: Past,
    /// Whether attempts are begun in memory. If not, beginning is stored.
    owned: bool,
    budget: Budget,
    mistake: Option<Mistake>,
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
    /// Searches rows that wait, and not those of senders that died.
    WaitingAlone,
    /// Uses the version before the new one as the condition.
    VersionMinusOne,
    /// Tells the owner before it knows whether the write is stored.
    ToldBeforeStored,
    /// Writes a reminder whatever the endpoint's version is.
    ReminderWithoutVersion,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    store: Store,
    owners: [Owner; 2],
    /// A write was refused; an endpoint that was not written had changed since it was read.
    refused: bool,
    unwritten: bool,
}

impl Deref for World {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl AsRef<Store> for World {
    fn as_ref(&self) -> &Store {
        &self.store
    }
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
    /// Has a reminder to store, made then.
    Reminding(Row<Endpoint>, Alert, Timestamp),
}
use Owner::{Begun, Done, Heard, Idle, Read, Ready, Reminding, Sent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Job {
    of: usize,
    row: Row<Delivery>,
    attempt: Attempt,
    /// As it was read before the attempt.
    endpoint: Endpoint,
    /// How often the endpoint had been enabled then.
    life: u8,
    /// Whether there was an instant, since the end of the attempt, at which its outcome changed
    /// nothing.
    unmoved: bool,
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
    Remind(usize),
    StoreReminder(usize),
    Park(usize),
    Outside(Outside),
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let store = Store::new(&self.past, self.budget);
        vec![World { store, owners: [Idle; 2], refused: false, unwritten: false }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, owner) in world.owners.iter().enumerate() {
            match owner {
                Idle => {
                    let found = (0..world.rows.len()).filter(|of| {
                        let waits = world.rows[*of].status() == Status::Waiting;
                        let searched = waits || self.mistake != Some(Mistake::WaitingAlone);
                        searched && world.is_due(*of, world.clock(at))
                    });
                    actions.extend(found.map(|of| Action::Look(at, of)));
                    if self.budget.days > 0 {
                        actions.push(Action::Remind(at));
                    }
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
                Reminding(..) => actions.push(Action::StoreReminder(at)),
                Done(..) => {
                    actions.push(Action::Rest(at));
                    if world.left.repeats > 0 {
                        actions.push(Action::Repeat(at));
                    }
                }
            }
            if world.left.crashes > 0 && *owner != Idle && !matches!(owner, Done(..)) {
                actions.push(Action::Crash(at));
            }
        }
        for (of, row) in world.rows.iter().enumerate() {
            let mut row = *row;
            if row.park(&world.endpoint, world.now) {
                actions.push(Action::Park(of));
            }
        }
        actions.extend(world.outside().into_iter().map(Action::Outside));
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.is_within(self.budget)
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
                world.ledger.sends(job.of);
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
            Action::Remind(at) => {
                let (mut row, now) = (Row::from(world.endpoint), world.clock(at));
                let alert = row.remind(now)?;
                world.owners[at] = Reminding(row, alert, now);
            }
            Action::StoreReminder(at) => {
                let Reminding(row, alert, then) = world.owners[at] else { return None };
                world.owners[at] = Idle;
                let write = row.write()?;
                let blind = self.mistake == Some(Mistake::ReminderWithoutVersion);
                if blind || is_version(world.endpoint.version(), write.if_version) {
                    world.endpoint = write.value;
                    world.ledger.reminds(alert, then);
                }
            }
            Action::Park(of) => {
                let (endpoint, now) = (world.endpoint, world.now);
                assert!(world.rows[of].park(&endpoint, now));
            }
            Action::Outside(what) => world.happens(what)?,
        }
        for at in 0..2 {
            let now = world.clock(at);
            let World { store, owners, .. } = &mut world;
            if let Heard(job, outcome) | Ready(job, outcome, _) = &mut owners[at] {
                job.unmoved |= store.ledger.is_unmoved(*outcome, now);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = ledger::properties();
        all.extend(ledger::exact(&self.past));
        all.extend([
            Property::sometimes("refused by a version", |_, world: &World| world.refused),
            Property::sometimes("unwritten, and changed since it was read", |_, world: &World| {
                world.unwritten
            }),
            Property::always(
                "an attempt of a dead sender is found",
                |rules: &Rules, world: &World| {
                    rules.mistake != Some(Mistake::WaitingAlone)
                        || world.rows.iter().all(|row| row.status() != Status::Sending)
                        || world.owners.iter().any(|owner| !matches!(owner, Idle))
                },
            ),
        ]);
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
            world.owners[at] = Begun(Job { of, row, attempt, endpoint, life, unmoved: false });
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
        let mistake = |mistake| self.mistake == Some(mistake);
        let mut row = settled.deliveries.first().map(|(_, write)| *write);
        if let Some(row) = row.as_mut().filter(|_| mistake(Mistake::VersionMinusOne)) {
            row.if_version = i32::try_from(row.value.version()).unwrap() - 1;
        }
        let endpoint = settled.endpoints.first().map(|(_, write)| *write);
        let told = settled.alerts.first().map(|(_, alert)| *alert);
        let row_fits = mistake(Mistake::DeliveryWithoutVersion)
            || row.is_none_or(|row| is_version(world.rows[job.of].version(), row.if_version));
        let endpoint_fits = mistake(Mistake::EndpointWithoutVersion)
            || endpoint.is_none_or(|write| is_version(world.endpoint.version(), write.if_version));
        if !(row_fits && endpoint_fits) {
            if mistake(Mistake::RowsAffectedIgnored) && endpoint_fits {
                world.endpoint = endpoint.map_or(world.endpoint, |write| write.value);
            }
            if mistake(Mistake::ToldBeforeStored) && told.is_some() {
                world.ledger.broken = Some("told what is not so");
            }
            world.refused = true;
            // Both are read again, the endpoint in a step of its own.
            job.row = Row::from(world.rows[job.of]);
            world.owners[at] = Heard(job, outcome);
            return;
        }
        world.unwritten |= endpoint.is_none() && world.endpoint.version() != read.version();
        let entry = &settled.log[0].1;
        let step = Step {
            of: job.of,
            number: entry.attempt,
            manual: entry.manual,
            life: job.life,
            outcome,
            late: entry.late,
            status: entry.status,
        };
        world.count(job.of, endpoint, read);
        let unmoved = endpoint.is_none() && job.unmoved;
        if world.ledger.note(step, unmoved, now) != told {
            world.ledger.broken = Some("told otherwise than it should be");
        }
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
    fn count(&mut self, of: usize, written: Option<Write<Endpoint>>, read: Endpoint) {
        let counts = written.is_some_and(|write| write.value.failures() > read.failures());
        self.ledger.each[of].counted += u8::from(counts);
    }
}

fn rules(failed: &[u8], streak: u8, owned: bool, budget: Budget) -> Rules {
    let past = Past { failed: failed.to_vec(), streak, firsts: 0 };
    Rules { past, owned, budget, mistake: None }
}

/// D-84: one delivery at its last attempt, one failure before the endpoint is disabled.
#[test]
fn two_owners_of_one_delivery() {
    check(rules(&[5], 19, true, Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET }), 33_000);
}

/// D-84: two deliveries of one endpoint, from either end of the count.
#[test]
fn two_owners_of_two_deliveries() {
    check(rules(&[5, 5], 19, true, Budget { enables: 1, ..BUDGET }), 75_000);
    check(rules(&[5, 5], 0, true, Budget { enables: 1, ..BUDGET }), 97_000);
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
    check(rules(&[5, 5], 0, false, Budget { enables: 1, ..BUDGET }), 178_000);
}

/// An early sign is told once, whoever stores what makes it, and so is its end.
#[test]
fn two_owners_before_an_endpoint_is_suspect() {
    let past = Past { failed: vec![0, 0], streak: 4, firsts: 3 };
    for owned in [true, false] {
        // In the store a lease expires before another may begin.
        let budget = Budget { crashes: 0, ticks: u8::from(!owned), ..BUDGET };
        let rules = Rules { past: past.clone(), owned, budget, mistake: None };
        check(rules, 19_000);
    }
}

/// A reminder is told once, after a day and after three, whoever looks.
#[test]
fn two_owners_remind_of_a_disabled_endpoint() {
    let budget = Budget { days: 4, enables: 1, ..BUDGET };
    check(rules(&[5], 19, true, budget), 80_000);
}

/// What a host breaks silently is seen, whether its attempts begin in memory or in the store.
#[test]
fn every_mistake_is_caught() {
    let disabled = "disabled exactly when it should be";
    let forbidden = "nothing forbidden happened";
    for (mistake, owned, says) in [
        (Mistake::DeliveryWithoutVersion, true, "each delivery is counted once at most"),
        (Mistake::EndpointWithoutVersion, true, disabled),
        (Mistake::EndpointWithoutVersion, false, disabled),
        (Mistake::RowsAffectedIgnored, true, disabled),
        (Mistake::EndpointNotWritten, true, disabled),
        (Mistake::EndpointNotWritten, false, disabled),
        (Mistake::EndpointReadEarly, true, disabled),
        (Mistake::EndpointReadEarly, false, disabled),
        (Mistake::WaitingAlone, false, "an attempt of a dead sender is found"),
        (Mistake::VersionMinusOne, true, "what is delivered stays so"),
        (Mistake::ToldBeforeStored, true, forbidden),
    ] {
        // One failure before the owner is told.
        let streak = if mistake == Mistake::ToldBeforeStored { 4 } else { 0 };
        caught(Rules { mistake: Some(mistake), ..rules(&[5, 5], streak, owned, BUDGET) }, says);
    }
    let budget = Budget { days: 3, crashes: 0, ..BUDGET };
    let mistake = Some(Mistake::ReminderWithoutVersion);
    caught(Rules { mistake, ..rules(&[5], 19, true, budget) }, forbidden);
}

#[track_caller]
fn caught(rules: Rules, says: &'static str) {
    let name = format!("{:?}, owned {}", rules.mistake, rules.owned);
    let when = HasDiscoveries::AnyOf(BTreeSet::from([says]));
    let checker = rules.checker().threads(2).finish_when(when).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    let found = checker.discoveries();
    assert!(found.contains_key(says), "{name}: {:?}", found.keys());
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
        ..BUDGET
    };
    check(rules(&[4], 19, true, all), 1_800_000);
    check(rules(&[5, 5], 19, true, Budget { enables: 1, redeliveries: 1, ..BUDGET }), 750_000);
}
