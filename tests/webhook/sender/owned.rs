//! Two owners who both believe that they own an endpoint: model checking of settling, with attempts
//! begun in memory or in the store, and endpoints written only if they change. DEL-6, DEL-7, DEL-8, D-53 to D-58,
//! D-80, D-84.
//!
//! An owner reads, begins, sends, hears, reads the endpoint and stores, each a step of its own.
//! Between any two it may die, be slow for as long as anything else takes, or have a clock that is a
//! year ahead; the other owner may make the same attempt. Next to the values runs the ledger of the
//! specification; it also says what the endpoint's owner is to be told, once.

use std::collections::BTreeMap;

use call_assistant::webhook::sender::{EndedAttempt, settle};
use stateright::{Checker, Expectation, Model};

use super::BEFORE_LAST;
use super::ledger::Step;
use super::world::Sender::{Done, Heard, Ready};
use super::world::{BUDGET, Budget, Past, Rules, World, held, is_version};

impl Rules {
    pub(super) fn settle(&self, world: &mut World, at: usize) {
        let Ready(mut job, outcome, read) = world.senders[at] else { return };
        let (row, _) = job.read;
        let now = world.clock(at);
        let ended = EndedAttempt {
            delivery: job.of,
            endpoint: 0,
            attempt: job.attempt,
            outcome,
            at: now,
            response: None,
        };
        let settled = settle(
            &[ended],
            &BTreeMap::from([(job.of, row)]),
            &BTreeMap::from([(0, read.into_stored())]),
        );
        let row = settled.deliveries.first().map(|(_, row)| *row);
        let endpoint = settled.endpoints.first().map(|(_, endpoint)| *endpoint);
        let fits = row.is_none_or(|row| is_version(world.rows[job.of].version(), row.if_version()))
            && endpoint.is_none_or(|new| is_version(world.endpoint.version(), new.if_version()));
        if !fits {
            world.refused = true;
            // Both are read again, the endpoint in a step of its own.
            job.read = held(world.rows[job.of].into_stored());
            world.senders[at] = Heard(job, outcome);
            return;
        }
        world.unwritten |= endpoint.is_none() && world.endpoint.version() != read.version();
        let entry = &settled.log[0].1;
        let step = Step {
            of: job.of,
            number: entry.attempt,
            life: job.life,
            outcome,
            late: entry.late,
            status: entry.status,
        };
        let counts = endpoint.is_some_and(|new| new.failures() > read.failures());
        world.ledger.each[job.of].counted += u8::from(counts);
        let unmoved = endpoint.is_none() && job.unmoved;
        let told = settled.alerts.first().map(|(_, alert)| alert.clone());
        if world.ledger.note(step, unmoved, now) != told {
            world.ledger.broken = Some("told otherwise than it should be");
        }
        world.rows[job.of] = row.map_or(world.rows[job.of], |row| row.into_stored());
        world.endpoint = endpoint.map_or(world.endpoint, |new| new.into_stored());
        job.read = held(world.rows[job.of].into_stored());
        world.senders[at] = Done(job, outcome);
    }
}

/// Checks every property in each world that these rules allow, which are so many at least.
#[track_caller]
fn check(rules: Rules, at_least: usize) {
    let checker = rules.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    for property in checker.model().properties() {
        let name = property.name;
        match (property.expectation, checker.discovery(name)) {
            (Expectation::Sometimes, None) => panic!("none of {states} worlds shows it: {name}"),
            (Expectation::Sometimes, Some(_)) | (_, None) => {}
            (_, Some(path)) => {
                let broken = path.last_state().ledger.broken;
                panic!("not in each world: {name} ({broken:?}), after these steps:\n{path}");
            }
        }
    }
    assert!(checker.is_done(), "the search ended before all worlds were seen");
    assert!(states >= at_least, "{states} worlds were seen, and there were {at_least} at least");
}

fn rules(failed: &[u8], streak: u8, owned: bool, budget: Budget) -> Rules {
    let past = Past { failed: failed.to_vec(), streak, firsts: 0 };
    Rules { past, budget, owned }
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
    check(rules(&[BEFORE_LAST; 2], 19, true, Budget { enables: 1, ..BUDGET }), 70_000);
    check(rules(&[BEFORE_LAST; 2], 0, true, Budget { enables: 1, ..BUDGET }), 85_000);
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
    check(rules(&[BEFORE_LAST; 2], 19, false, BUDGET), 95_000);
    check(rules(&[BEFORE_LAST; 2], 0, false, Budget { enables: 1, ..BUDGET }), 165_000);
}

/// An early sign is told once, whoever stores what makes it, and so is its end.
#[test]
fn two_owners_before_an_endpoint_is_suspect() {
    let past = Past { failed: vec![0, 0], streak: 4, firsts: 3 };
    for owned in [true, false] {
        // In the store a lease expires before another may begin.
        let budget = Budget { crashes: 0, ticks: u8::from(!owned), ..BUDGET };
        check(Rules { past: past.clone(), ..rules(&[], 0, owned, budget) }, 16_000);
    }
}
