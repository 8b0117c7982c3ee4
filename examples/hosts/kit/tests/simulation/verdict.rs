//! What must hold at the end of a day.

use std::collections::{BTreeMap, BTreeSet};

use call_assistant::webhook::sender::{
    DeliveryStatus, DisabledReason, EndpointHealth, RecoveryStatus,
};
use testing::judge::{self, Ended, Ends, Logged};
use testing::store::{Place, RecoveryRow, Row, Step};

use crate::customers;
use crate::world::World;

/// Why endpoints disable themselves.
const OWN: [DisabledReason; 2] = [DisabledReason::Failing, DisabledReason::Gone];

/// What came of a day.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) wrong: Vec<String>,
    pub(crate) trace: String,
    pub(crate) attempts: u64,
    pub(crate) changes: usize,
    pub(crate) steps: u64,
    /// The highest number of an attempt.
    pub(crate) most: u8,
    pub(crate) hits: BTreeMap<(Step, &'static str), u32>,
}

/// Judges a world after so many steps.
pub(crate) fn of(world: &World, steps: u64) -> Verdict {
    let record = world.store.tables().record();
    let mut wrong = world.net.wrong();
    wrong.extend(judge::check(&record, &world.lost));
    let (ends, running) = ends(world);
    wrong.extend(ends.check(|endpoint, event| {
        let number = endpoint.trim_start_matches("we_").parse().unwrap();
        world.net.answers(number, event)
    }));
    wrong.extend(untold(world, &record));
    wrong.extend(left_out(world));
    wrong.extend(late(world));
    wrong.extend(running.into_iter().map(|id| format!("recovery {id} is not complete")));
    let (attempts, most) = world.net.attempts();
    let trace = world.trace.text();
    let (changes, hits) = (record.rows.len(), world.aim.hits());
    Verdict { wrong, trace, attempts, changes, steps, most, hits }
}

/// Returns endpoints that disabled themselves, and whose owners were not told.
fn untold(world: &World, record: &judge::Record) -> Vec<String> {
    let tables = world.store.tables();
    let told = |number: u32, health: &EndpointHealth| {
        let place = Place::Alert(number, health.version());
        tables.rows().any(|(at, _)| *at == place)
    };
    let disabled = record.rows.iter().filter_map(|noted| match &noted.change {
        judge::Change::Endpoint { number, before: Some(before), after: Some(after) } => {
            let is_new =
                before.is_active() && after.disabled().is_some_and(|why| OWN.contains(&why));
            is_new.then(|| (u32::try_from(*number).unwrap(), after))
        }
        _ => None,
    });
    disabled
        .filter(|(number, health)| !told(*number, health))
        .map(|(number, _)| format!("nobody was told that endpoint {number} is disabled"))
        .collect()
}

/// Returns attempts that count as late, where one sender makes all of them and nothing happens to it. An attempt that
/// was parked meanwhile is late.
fn late(world: &World) -> Vec<String> {
    let plan = &world.plan;
    let is_alone = plan.senders == 1 && plan.faults.is_empty() && plan.deeds.is_empty();
    let tables = world.store.tables();
    let is_parked = |id: u64| {
        tables.rows().any(|(place, row)| match row {
            Row::Delivery(row) => {
                *place == Place::Ended(id) && row.delivery.status() == DeliveryStatus::Parked
            }
            _ => false,
        })
    };
    let late = tables.rows().filter_map(|(place, row)| match (place, row) {
        (Place::Attempt(id, _), Row::Attempt(_, entry)) => {
            let is_wrong = is_alone && entry.late && !is_parked(*id);
            is_wrong.then(|| format!("delivery {id}: attempt {} is late", entry.attempt))
        }
        _ => None,
    });
    late.collect()
}

/// Returns what recoveries that are complete have left out: what an endpoint missed and nobody touched since.
fn left_out(world: &World) -> Vec<String> {
    let (tables, mut wrong) = (world.store.tables(), Vec::new());
    let complete = tables.recoveries();
    let complete = complete.filter(|(_, row)| row.recovery.status() == RecoveryStatus::Completed);
    for (id, RecoveryRow { endpoint, recovery, .. }) in complete {
        for (_, row) in tables.rows() {
            let Row::Delivery(row) = row else { continue };
            let delivery = &row.delivery;
            // What was accepted by a transaction that was open is missed until the next recovery.
            let is_held = customers::is_held(&row.event);
            let is_of = delivery.endpoint() == u64::from(*endpoint) && !is_held;
            let is_old = delivery.ended_at().is_some_and(|at| at < recovery.started_at());
            if is_of && is_old && recovery.missed().includes(delivery) {
                wrong.push(format!("recovery {id} has left out delivery {}", delivery.id()));
            }
        }
    }
    // What comes back with a store that went back was missed by nobody.
    if world.plan.goes_back() { Vec::new() } else { wrong }
}

/// Returns what is stored in the end, and the recoveries that still run.
fn ends(world: &World) -> (Ends, Vec<u64>) {
    let (mut ends, mut running) = (Ends::default(), Vec::new());
    let mut stored = BTreeSet::new();
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
