//! Two senders over one store, every interleaving of their steps: model checking of the order that
//! the module's page writes down. DEL-6, DEL-7, DEL-8, D-53 to D-58, D-80.
//!
//! A sender reads, stores, sends, hears and stores again, each a step of its own; between any two
//! it may die, time may pass to the next instant at which anything is due, its clock may jump a year
//! ahead and back, the owner may enable the endpoint or redeliver, and an outcome may be said twice.
//! Next to the values runs a ledger that is kept by the specification alone; it also says what the
//! owner is to be told, once.
//!
//! 1 000 000 states are seen in an ordinary run, 6 800 000 more with `--release -- --ignored`.

use call_assistant::webhook::sender::{DeliveryStatus, EndpointChange};
use stateright::Property;

use super::counterexample::check;
use super::world::Sender::{CountLeft, Done, Heard, Ready};
use super::world::Storing::{RowByRow, Together};
use super::world::{BUDGET, Budget, EVERYTHING, Job, Past, Rules, Storing, World};
use super::{BEFORE_LAST, answered};

/// What some world shows of these senders.
pub(super) fn properties(past: &Past) -> Vec<Property<Rules>> {
    let mut all = Vec::new();
    // What is not one failure before its end does not show it.
    if past.streak == 19 {
        all.push(Property::sometimes(
            "acknowledged after it had failed for good",
            |_, world: &World| {
                let mut each = world.rows.iter().zip(&world.ledger.each);
                each.any(|(row, account)| {
                    row.status() == DeliveryStatus::Delivered && account.counted == 1
                })
            },
        ));
    }
    // Nothing else is pending where there is one delivery.
    if past.failed.len() > 1 {
        all.push(Property::sometimes("parked", |_, world: &World| {
            world.rows.iter().any(|row| row.status() == DeliveryStatus::Parked)
        }));
    }
    all
}

impl World {
    pub(super) fn store(&mut self, at: usize, together: bool) {
        let Ready(job, outcome, read_row, read_endpoint) = self.senders[at] else { return };
        let (mut row, mut endpoint) = (read_row, read_endpoint);
        let now = self.clock(at);
        let report = row.finish(&job.attempt, outcome, now).unwrap();
        let change = endpoint.record(report, now).unwrap();
        let same_row = self.rows[job.of].version() == read_row.version();
        let same_endpoint = self.endpoint.version() == read_endpoint.version();
        if together {
            if !(same_row && same_endpoint) {
                self.senders[at] = Heard(job, outcome);
                return;
            }
            self.rows[job.of] = row;
            self.endpoint = endpoint;
            let told =
                self.ledger.note(job.step(outcome, report.is_late(), row.status()), false, now);
            if told != change.alert() {
                self.ledger.broken = Some("told otherwise than it should be");
            }
            self.note_change(job, read_endpoint.failures());
            self.senders[at] = Done(job, outcome);
            return;
        }
        // One row at a time: what forgives or ends first, what counts after.
        let endpoint_first = outcome.is_success() || outcome == answered(410);
        if endpoint_first && change != EndpointChange::Unchanged && same_endpoint {
            self.endpoint = endpoint;
            self.note_change(job, read_endpoint.failures());
            // Then the delivery, from the same step of the sender, if it is still as read.
            self.senders[at] = Heard(job, outcome);
        } else if same_row && same_endpoint {
            self.rows[job.of] = row;
            // A crash may cost the count: what is told is then not exact.
            self.ledger.note(job.step(outcome, report.is_late(), row.status()), false, now);
            self.senders[at] = CountLeft(job, outcome, report);
        } else {
            self.senders[at] = Heard(job, outcome);
        }
    }

    /// Notes a failure that was counted, given the count before.
    pub(super) fn note_change(&mut self, job: Job, before: u8) {
        if self.endpoint.failures() > before {
            self.ledger.each[job.of].counted += 1;
        }
        self.ledger.was_disabled |= !self.endpoint.is_active();
    }
}

fn rules(failed: &[u8], storing: Storing, budget: Budget) -> Rules {
    let past = Past { failed: failed.to_vec(), streak: 19, firsts: 0 };
    Rules { past, budget, storing, mistake: None }
}

/// One delivery at its last attempt, one failure before the endpoint is disabled.
#[test]
fn two_senders_over_one_delivery() {
    check(
        rules(&[BEFORE_LAST], Together, Budget { enables: 1, repeats: 1, unsent: 1, ..BUDGET }),
        25_000,
    );
}

/// Two deliveries of the same endpoint.
#[test]
fn two_senders_over_two_deliveries() {
    check(rules(&[BEFORE_LAST; 2], Together, Budget { enables: 1, ..BUDGET }), 50_000);
}

/// A store that writes one row at a time.
#[test]
fn two_senders_over_a_store_of_single_rows() {
    check(rules(&[BEFORE_LAST; 2], RowByRow, BUDGET), 150_000);
}

/// D-80: a sender whose clock is a year ahead for a while.
#[test]
fn two_senders_one_with_a_wrong_clock() {
    check(rules(&[4], Together, Budget { ticks: 2, jumps: 1, ..BUDGET }), 10_000);
}

/// An early sign is told once, whoever stores what makes it.
#[test]
fn two_senders_before_an_endpoint_is_suspect() {
    let past = Past { failed: vec![0, 0], streak: 4, firsts: 3 };
    let budget = Budget { crashes: 0, ..BUDGET };
    check(Rules { past, ..rules(&[], Together, budget) }, 21_000);
}

#[test]
#[ignore = "half a minute in release"]
fn one_delivery_with_everything() {
    check(rules(&[4], Together, EVERYTHING), 1_500_000);
}

#[test]
#[ignore = "half a minute in release"]
fn two_deliveries_with_everything() {
    check(
        rules(&[BEFORE_LAST; 2], Together, Budget { enables: 1, redeliveries: 1, ..BUDGET }),
        700_000,
    );
}

#[test]
#[ignore = "half a minute in release"]
fn single_rows_with_everything() {
    check(
        rules(&[BEFORE_LAST; 2], RowByRow, Budget { enables: 1, redeliveries: 1, ..BUDGET }),
        3_200_000,
    );
}
