//! Two owners who both believe that they own an endpoint: model checking of settling, with attempts
//! begun in memory or in the store, and endpoints written only if they change. DEL-6, DEL-7, DEL-8, D-53 to D-58,
//! D-80, D-84.
//!
//! An owner reads, begins, sends, hears, reads the endpoint and stores, each a step of its own.
//! Between any two it may die, be slow for as long as anything else takes, or have a clock that is a
//! year ahead; the other owner may make the same attempt. Next to the values runs the ledger of the
//! specification; it also says what the endpoint's owner is to be told, once. Hosts with one mistake
//! each must be caught.
//!
//! More budgets are spent with `--release -- --ignored`.

use std::collections::{BTreeMap, BTreeSet};

use call_assistant::webhook::sender::{Delivery, DeliveryStatus, EndedAttempt, settle};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::BEFORE_LAST;
use super::counterexample::{check, words};
use super::ledger::Step;
use super::world::Sender::{Done, Heard, Idle, Ready};
use super::world::{BUDGET, Budget, EVERYTHING, Past, Rules, World, held, is_version};

/// What a host does wrong without noticing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mistake {
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

/// What holds of owners, and what some world shows of them.
pub(super) fn properties() -> Vec<Property<Rules>> {
    vec![
        Property::sometimes("refused by a version", |_, world: &World| world.refused),
        Property::sometimes("unwritten, and changed since it was read", |_, world: &World| {
            world.unwritten
        }),
        Property::always("an attempt of a dead sender is found", |rules: &Rules, world: &World| {
            rules.mistake != Some(Mistake::WaitingAlone)
                || world.rows.iter().all(|row| row.status() != DeliveryStatus::Sending)
                || world.senders.iter().any(|sender| !matches!(sender, Idle))
        }),
    ]
}

impl Rules {
    pub(super) fn settle(&self, world: &mut World, at: usize) {
        let Ready(mut job, outcome, read) = world.senders[at] else { return };
        let ((row, _), early) = job.read;
        let now = world.clock(at);
        let settled = settle(
            &[EndedAttempt {
                delivery: job.of,
                endpoint: 0,
                attempt: job.attempt,
                outcome,
                at: now,
                response: None,
            }],
            &BTreeMap::from([(job.of, row)]),
            &BTreeMap::from([(0, read.into_stored())]),
        );
        let mistake = |mistake| self.mistake == Some(mistake);
        let row = settled.deliveries.first().map(|(_, row)| *row);
        let if_version = |row: Delivery| match mistake(Mistake::VersionMinusOne) {
            true => Some(i32::try_from(row.version()).unwrap() - 1),
            false => row.if_version(),
        };
        let endpoint = settled.endpoints.first().map(|(_, endpoint)| *endpoint);
        let told = settled.alerts.first().map(|(_, alert)| alert.clone());
        let row_fits = mistake(Mistake::DeliveryWithoutVersion)
            || row.is_none_or(|row| is_version(world.rows[job.of].version(), if_version(row)));
        let endpoint_fits = mistake(Mistake::EndpointWithoutVersion)
            || endpoint.is_none_or(|new| is_version(world.endpoint.version(), new.if_version()));
        if !(row_fits && endpoint_fits) {
            if mistake(Mistake::RowsAffectedIgnored) && endpoint_fits {
                world.endpoint = endpoint.map_or(world.endpoint, |new| new.into_stored());
            }
            if mistake(Mistake::ToldBeforeStored) && told.is_some() {
                world.ledger.broken = Some("told what is not so");
            }
            world.refused = true;
            // Both are read again, the endpoint in a step of its own.
            job.read = (held(world.rows[job.of].into_stored()), early);
            world.senders[at] = Heard(job, outcome);
            return;
        }
        world.unwritten |= endpoint.is_none() && world.endpoint.version() != read.version();
        let entry = &settled.log[0].1;
        let step = Step {
            number: entry.attempt,
            manual: entry.manual,
            ..job.step(outcome, entry.late, entry.status)
        };
        let counts = endpoint.is_some_and(|new| new.failures() > read.failures());
        world.ledger.each[job.of].counted += u8::from(counts);
        let unmoved = endpoint.is_none() && job.unmoved;
        if world.ledger.note(step, unmoved, now) != told {
            world.ledger.broken = Some("told otherwise than it should be");
        }
        world.rows[job.of] = row.map_or(world.rows[job.of], |row| row.into_stored());
        if !mistake(Mistake::EndpointNotWritten) {
            world.endpoint = endpoint.map_or(world.endpoint, |new| new.into_stored());
        }
        job.read = (held(world.rows[job.of].into_stored()), early);
        world.senders[at] = Done(job, outcome);
    }
}

fn rules(failed: &[u8], streak: u8, owned: bool, budget: Budget) -> Rules {
    let past = Past { failed: failed.to_vec(), streak, firsts: 0 };
    Rules { past, budget, owned, mistake: None }
}

/// D-84: one delivery at its last attempt, one failure before the endpoint is disabled.
#[test]
fn two_owners_of_one_delivery() {
    check(
        rules(&[BEFORE_LAST], 19, true, Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET }),
        33_000,
    );
}

/// D-84: two deliveries of one endpoint, from either end of the count.
#[test]
fn two_owners_of_two_deliveries() {
    check(rules(&[BEFORE_LAST; 2], 19, true, Budget { enables: 1, ..BUDGET }), 75_000);
    check(rules(&[BEFORE_LAST; 2], 0, true, Budget { enables: 1, ..BUDGET }), 97_000);
}

/// D-80, D-84: an owner whose clock is a year ahead for a while.
#[test]
fn two_owners_one_with_a_wrong_clock() {
    check(rules(&[4], 19, true, Budget { ticks: 2, jumps: 1, ..BUDGET }), 80_000);
}

/// Attempts whose beginning is stored, with a lease that another sender takes over.
#[test]
fn two_senders_over_one_delivery() {
    let budget = Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET };
    check(rules(&[BEFORE_LAST], 19, false, budget), 25_000);
    check(rules(&[4], 19, false, Budget { ticks: 2, jumps: 1, ..BUDGET }), 10_000);
}

/// The same with two deliveries of one endpoint.
#[test]
fn two_senders_over_two_deliveries() {
    check(rules(&[BEFORE_LAST; 2], 19, false, BUDGET), 100_000);
    check(rules(&[BEFORE_LAST; 2], 0, false, Budget { enables: 1, ..BUDGET }), 178_000);
}

/// An early sign is told once, whoever stores what makes it, and so is its end.
#[test]
fn two_owners_before_an_endpoint_is_suspect() {
    let past = Past { failed: vec![0, 0], streak: 4, firsts: 3 };
    for owned in [true, false] {
        // In the store a lease expires before another may begin.
        let budget = Budget { crashes: 0, ticks: u8::from(!owned), ..BUDGET };
        check(Rules { past: past.clone(), ..rules(&[], 0, owned, budget) }, 19_000);
    }
}

/// A reminder is told once, after a day and after three, whoever looks.
#[test]
fn two_owners_remind_of_a_disabled_endpoint() {
    let budget = Budget { days: 4, enables: 1, ..BUDGET };
    check(rules(&[BEFORE_LAST], 19, true, budget), 80_000);
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
        caught(
            Rules { mistake: Some(mistake), ..rules(&[BEFORE_LAST; 2], streak, owned, BUDGET) },
            says,
        );
    }
    let budget = Budget { days: 3, crashes: 0, ..BUDGET };
    let mistake = Some(Mistake::ReminderWithoutVersion);
    caught(Rules { mistake, ..rules(&[BEFORE_LAST], 19, true, budget) }, forbidden);
}

#[track_caller]
fn caught(rules: Rules, says: &'static str) {
    let name = format!("{:?}, owned: {}", rules.mistake, rules.owned);
    let when = HasDiscoveries::AnyOf(BTreeSet::from([says]));
    let checker = rules.checker().threads(2).finish_when(when).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    let mut found = checker.discoveries();
    let path = found.remove(says).unwrap_or_else(|| panic!("{name}: only {:?}", found.keys()));
    let said = words(says, path.into_vec());
    for part in [says, "delivery 0: ", "\n   1. "] {
        assert!(said.contains(part), "{name}, {part}: {said}");
    }
}

#[test]
#[ignore = "half a minute in release"]
fn two_owners_with_everything() {
    check(rules(&[4], 19, true, EVERYTHING), 1_800_000);
    check(
        rules(&[BEFORE_LAST; 2], 19, true, Budget { enables: 1, redeliveries: 1, ..BUDGET }),
        750_000,
    );
}
