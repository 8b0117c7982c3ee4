//! What each transaction did to a delivery is what the machine gives for the results it logs.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, Attempt, Delivery, DeliveryColumns, Endpoint, EndpointColumns, RETRY_WAITS,
    Report, Status,
};
use serde_json::json;

use super::rows::{Change, Entry, Noted, Record};

/// What one transaction did to one delivery.
#[derive(Default)]
struct Step<'a> {
    before: Option<Delivery>,
    after: Option<Delivery>,
    /// Log entries, with their positions in the record.
    log: Vec<(usize, &'a Noted, &'a Entry)>,
}

/// What an attempt has to tell its endpoint, in the transaction that stores its result.
pub(crate) struct Told {
    pub(crate) tx: u64,
    pub(crate) endpoint: i64,
    /// The log entry's position in the record.
    pub(crate) position: usize,
    /// When the attempt ended, by its sender's clock and by the database's. A result that changes no
    /// delivery leaves the time to the millisecond, rounded down.
    pub(crate) at: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) noted: Timestamp,
    /// The report; several where the record does not tell of which generation the attempt was.
    pub(crate) reports: Vec<Report>,
}

/// What is to be told, and each step that is wrong.
pub(crate) fn check(record: &Record) -> (Vec<Told>, Vec<String>) {
    let mut steps: BTreeMap<(u64, i64), Step> = BTreeMap::new();
    let mut generations: BTreeMap<i64, i32> = BTreeMap::new();
    for (position, noted) in record.rows.iter().enumerate() {
        match &noted.change {
            // A row that moves is deleted in one table and inserted into the other.
            Change::Delivery { id, before, after } => {
                let step = steps.entry((noted.tx, *id)).or_default();
                step.before = step.before.or(*before);
                step.after = after.or(step.after);
                let generation = after.map_or(0, |after| DeliveryColumns::from(after).generation);
                let most = generations.entry(*id).or_default();
                *most = generation.max(*most);
            }
            Change::Attempt { delivery, entry } => {
                let step = steps.entry((noted.tx, *delivery)).or_default();
                step.log.push((position, noted, entry));
            }
            _ => {}
        }
    }
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    for ((tx, id), step) in &steps {
        let generation = generations.get(id).copied().unwrap_or_default();
        match replay(step, generation) {
            Ok(reports) => {
                told.extend(reports.into_iter().map(|(position, noted, at, reports)| {
                    let (endpoint, _) = record.places[id];
                    let (tx, ended) = (*tx, noted.true_time(at));
                    Told { tx, endpoint, position, at, ended, noted: noted.at, reports }
                }))
            }
            Err(what) => wrong.push(format!(
                "delivery {id}: {what}: {:?} became {:?} by {} log entries",
                step.before.map(DeliveryColumns::from),
                step.after.map(DeliveryColumns::from),
                step.log.len(),
            )),
        }
    }
    (told, wrong)
}

/// A log entry's position and row, when the attempt ended, and the reports it may have made.
type Reported<'a> = (usize, &'a Noted, Timestamp, Vec<Report>);

/// The reports of a step that the machine gives.
fn replay<'a>(step: &Step<'a>, generation: i32) -> Result<Vec<Reported<'a>>, &'static str> {
    let Some(after) = step.after else {
        if step.before.is_some() {
            return Err("a row is just gone");
        }
        if step.log.iter().any(|(.., entry)| !entry.late) {
            return Err("a result is in the log, and not in the row");
        }
        let late = |(position, noted, entry): &(usize, &'a Noted, &Entry)| {
            let at = entry.began_at.saturating_add(entry.took);
            (*position, *noted, at, late_reports(entry, at, generation))
        };
        return Ok(step.log.iter().map(late).collect());
    };
    let Some(before) = step.before else {
        let new = DeliveryColumns::from(after);
        let is_new = (new.version, new.attempts, new.manual) == (0, 0, false)
            && matches!(new.status, Status::Waiting | Status::Skipped);
        return is_new.then(Vec::new).ok_or("a new row is not new");
    };
    let columns = DeliveryColumns::from(before);
    let live = with(columns.generation, None);
    if step.log.is_empty() {
        let at = DeliveryColumns::from(after).at;
        let (mut parked, mut again, mut begun) = (before, before, before);
        parked.park(&with(0, Some("paused")), at);
        let now = with(DeliveryColumns::from(after).generation, None);
        let _ = again.redeliver(&now, at);
        // By a sender that stores what it begins.
        let _ = begun.begin(&live, at.saturating_sub(ATTEMPT_LEASE));
        let is_known = [parked, again, begun].contains(&after);
        return is_known.then(Vec::new).ok_or("a change without a result is none of the machine's");
    }
    let [(position, noted, entry)] = step.log.as_slice() else {
        return Err("two results in one transaction");
    };
    // When it ended, by what it has left.
    let waits =
        RETRY_WAITS.iter().map(|wait| DeliveryColumns::from(after).at.saturating_sub(*wait));
    let reports = std::iter::once(DeliveryColumns::from(after).at).chain(waits).find_map(|at| {
        // As its owner began it in memory, or as a result that comes when somebody else was first.
        let mut begun = before;
        let began = begun.begin(&live, columns.at.max(entry.began_at));
        let fits = |attempt: &Attempt| {
            attempt.number() == entry.number && attempt.is_manual() == entry.manual
        };
        let owned = began.ok().filter(fits).map(|attempt| (begun, attempt));
        let others = (0..=columns.generation).map(|of| (before, other(entry, of)));
        owned.into_iter().chain(others).find_map(|(mut row, attempt)| {
            let report = row.finish(&attempt, entry.outcome, at);
            let mut parked = row;
            parked.park(&with(0, Some("gone")), at);
            ([row, parked].contains(&after) && report.is_late() == entry.late)
                .then(|| (*position, *noted, at, vec![report]))
        })
    });
    reports.map(|reports| vec![reports]).ok_or("a result is stored over a row that was not read")
}

/// What a result means for the endpoint that changes no delivery: only a 410 means anything.
fn late_reports(entry: &Entry, at: Timestamp, generation: i32) -> Vec<Report> {
    let ended = with_status(Status::Delivered, at);
    let report = |generation| ended.clone().finish(&other(entry, generation), entry.outcome, at);
    (0..=generation).map(report).collect()
}

/// An attempt whose lease is not this row's.
fn other(entry: &Entry, generation: i32) -> Attempt {
    serde_json::from_value(json!({
        "number": entry.number, "manual": entry.manual, "began_at": entry.began_at,
        "deadline": entry.began_at, "lease": i32::MAX, "generation": generation,
    }))
    .unwrap()
}

fn with_status(status: Status, at: Timestamp) -> Delivery {
    Delivery::try_from(DeliveryColumns {
        event_created_at: at,
        status,
        at,
        attempts: 1,
        manual: false,
        generation: 0,
        version: 0,
    })
    .unwrap()
}

fn with(generation: i32, disabled: Option<&str>) -> Endpoint {
    let disabled = disabled.map(|text| text.parse().unwrap());
    let new = EndpointColumns::from(Endpoint::new(Timestamp::UNIX_EPOCH));
    Endpoint::try_from(EndpointColumns { disabled, generation, ..new }).unwrap()
}
