//! What must hold at the end of a day.

use std::collections::BTreeMap;

use call_assistant::webhook::sender::RecoveryStatus;
use testing::judge::{self, Ended, Ends, Logged};
use testing::store::{Place, Row, Step};

use crate::world::World;

/// What came of a day.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) wrong: Vec<String>,
    pub(crate) trace: String,
    pub(crate) attempts: u64,
    pub(crate) changes: usize,
    /// The highest number of an attempt.
    pub(crate) most: u8,
    pub(crate) hits: BTreeMap<(Step, &'static str), u32>,
}

/// Judges a world.
pub(crate) fn of(world: &World, hits: BTreeMap<(Step, &'static str), u32>) -> Verdict {
    let record = world.store.tables().record();
    let mut wrong = world.net.wrong();
    wrong.extend(judge::check(&record, &world.lost));
    let (ends, running) = ends(world);
    wrong.extend(ends.check(|endpoint, event| {
        let number = endpoint.trim_start_matches("we_").parse().unwrap();
        world.net.answers(number, event)
    }));
    wrong.extend(running.into_iter().map(|id| format!("recovery {id} is not complete")));
    let (attempts, most) = world.net.attempts();
    let trace = world.trace.text();
    Verdict { wrong, trace, attempts, changes: record.rows.len(), most, hits }
}

/// Returns what is stored in the end, and the recoveries that still run.
fn ends(world: &World) -> (Ends, Vec<u64>) {
    let (mut ends, mut running) = (Ends::default(), Vec::new());
    let mut stored = std::collections::BTreeSet::new();
    for (place, row) in world.store.tables().rows() {
        match (place, row) {
            (Place::Pending(id), Row::Delivery(row)) => {
                ends.pending.push(id.cast_signed());
                stored.insert(row.event.id().as_str().to_owned());
            }
            (Place::Ended(id), Row::Delivery(row)) => {
                let delivery = &row.delivery;
                let event = row.event.id().as_str().to_owned();
                stored.insert(event.clone());
                ends.ended.push(Ended {
                    id: id.cast_signed(),
                    endpoint: format!("we_{}", delivery.endpoint()),
                    event,
                    status: delivery.status().as_str().to_owned(),
                    attempts: delivery.attempts().into(),
                });
            }
            (Place::Endpoint(number), Row::Endpoint(row)) => {
                let account = format!("acct_{}", row.account);
                ends.endpoints.entry(account).or_default().push(format!("we_{number}"));
            }
            (Place::Recovery(id), Row::Recovery(row))
                if row.recovery.status() == RecoveryStatus::Running =>
            {
                running.push(*id);
            }
            (Place::Attempt(delivery, _), Row::Attempt(_, entry)) => {
                let entry = Logged {
                    number: entry.attempt.into(),
                    manual: entry.manual,
                    outcome: entry.outcome.to_string(),
                    late: entry.late,
                };
                ends.log.entry(delivery.cast_signed()).or_default().push(entry);
            }
            _ => {}
        }
    }
    for (event, account) in &*world.accepted.lock().unwrap() {
        // What was lost when the store went back is repeated by who caused it.
        if !world.plan.goes_back() || stored.contains(event.id().as_str()) {
            ends.accepted.insert(event.id().as_str().to_owned(), format!("acct_{account}"));
        }
    }
    (ends, running)
}
