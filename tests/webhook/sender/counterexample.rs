//! What a model checker has found, in words: the property, the steps that lead there, and what is
//! stored then.

use std::fmt;

use stateright::{Checker, Expectation, Model};

use super::world::{Action, Outside, Rules, World};

/// Checks every property in each world that these rules allow, which are so many at least.
#[track_caller]
pub(super) fn check(rules: Rules, at_least: usize) {
    let checker = rules.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    for property in checker.model().properties() {
        let name = property.name;
        match (property.expectation, checker.discovery(name)) {
            (Expectation::Sometimes, None) => panic!("none of {states} worlds shows it: {name}"),
            (Expectation::Sometimes, Some(_)) | (_, None) => {}
            (_, Some(path)) => panic!("{}", words(name, path.into_vec())),
        }
    }
    assert!(checker.is_done(), "the search ended before all worlds were seen");
    assert!(states >= at_least, "{states} worlds were seen, and there were {at_least} at least");
}

/// Describes what was found: first what is wrong, then how it came about.
pub(super) fn words(property: &str, path: Vec<(World, Option<Action>)>) -> String {
    let mut said = format!("a world in which this does not hold: {property}\n");
    if let Some((world, _)) = path.last() {
        said += &format!("{world}after these steps:\n");
    }
    for (number, action) in path.iter().filter_map(|(_, action)| action.as_ref()).enumerate() {
        said += &format!("{:4}. {action}\n", number + 1);
    }
    said
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(broken) = self.ledger.broken {
            writeln!(f, "what must never happen: {broken}")?;
        }
        writeln!(
            f,
            "endpoint: {} failures, disabled: {:?}; by the specification {}, disabled: {:?}",
            self.endpoint.failures(),
            self.endpoint.disabled(),
            self.ledger.streak,
            self.ledger.disabled
        )?;
        for (of, (row, account)) in self.rows.iter().zip(&self.ledger.each).enumerate() {
            let (status, attempts) = (row.status(), row.attempts());
            let is_acknowledged = account.acknowledged;
            writeln!(
                f,
                "delivery {of}: {status:?} after {attempts} attempts; the endpoint received it {} \
                 times, acknowledged: {is_acknowledged}, counted as a failure {} times",
                account.received, account.counted
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Look(at, of) => write!(f, "sender {at} reads delivery {of}, which is due"),
            Self::Begin(at) => write!(f, "sender {at} begins an attempt"),
            Self::Send(at) => write!(f, "sender {at} sends it"),
            Self::Hear(at, outcome) => write!(f, "sender {at} hears its outcome: {outcome:?}"),
            Self::LookAgain(at) => write!(f, "sender {at} reads both rows again"),
            Self::Store(at) => write!(f, "sender {at} stores the outcome"),
            Self::Repeat(at) => write!(f, "sender {at} is to store the outcome once more"),
            Self::Rest(at) => write!(f, "sender {at} has nothing more to do"),
            Self::Crash(at) => write!(f, "sender {at} dies, and starts again"),
            Self::Remind(at) => write!(f, "sender {at} finds a reminder due"),
            Self::StoreReminder(at) => write!(f, "sender {at} stores the reminder"),
            Self::Park(of) => write!(f, "delivery {of} is parked"),
            Self::Outside(Outside::SetClock(at)) => {
                write!(f, "the clock of sender {at} is set a year ahead, or back")
            }
            Self::Outside(Outside::Tick) => write!(f, "time passes until a delivery is due"),
            Self::Outside(Outside::Day) => write!(f, "a day passes"),
            Self::Outside(Outside::Enable) => write!(f, "the owner enables the endpoint"),
            Self::Outside(Outside::Redeliver(of)) => {
                write!(f, "the owner redelivers delivery {of}")
            }
        }
    }
}
