//! What each transaction did to a delivery is what the machine gives for the results it logs.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, Attempt, AttemptReport, Delivery, DeliveryColumns, DeliveryStatus,
    EndpointColumns, EndpointHealth, Outcome, RETRY_WAITS,
};
use host::sender::UNSENT;

use super::Lost;
use super::endpoints::{self, States};
use super::record::{Change, Entry, Noted, Record};

/// What one transaction did to one delivery.
#[derive(Default)]
struct Step<'a> {
    before: Option<Delivery>,
    after: Option<Delivery>,
    /// The last change of its row.
    last: Option<&'a Noted>,
    /// Log entries, with their positions in the record.
    log: Vec<(usize, &'a Noted, &'a Entry)>,
}

/// What an attempt has to tell its endpoint, in the transaction that stores its result.
pub(super) struct Told {
    pub tx: u64,
    pub endpoint: i64,
    /// The log entry's position in the record.
    pub position: usize,
    /// When the attempt ended. A result that changes no delivery leaves the time to the millisecond,
    /// rounded down.
    pub at: Timestamp,
    pub noted: Timestamp,
    /// The report; several where the record does not tell in which life the attempt began.
    pub reports: Vec<AttemptReport>,
}

/// A step that is right if its endpoint was so.
pub(super) struct Assumed<'a> {
    pub delivery: i64,
    pub endpoint: i64,
    pub noted: &'a Noted,
    pub row: Delivery,
    pub what: Assumption,
}

pub(super) enum Assumption {
    /// It was as the new row says, active or not.
    Accepted,
    /// It was active, in the row's generation.
    Redelivered,
    /// It was disabled, then or before.
    Parked,
}

/// What steps mean for endpoints.
#[derive(Default)]
pub(super) struct Outcomes<'a> {
    pub told: Vec<Told>,
    pub assumed: Vec<Assumed<'a>>,
}

/// Returns what the steps mean for endpoints, and each step that is wrong.
pub(super) fn check<'a>(
    record: &'a Record,
    states: &States,
    lost: &[Lost],
) -> (Outcomes<'a>, Vec<String>) {
    let mut steps: BTreeMap<(u64, i64), Step> = BTreeMap::new();
    for (position, noted) in record.rows.iter().enumerate() {
        match &noted.change {
            // A row that moves is deleted in one table and inserted into the other.
            Change::Delivery { id, before, after } => {
                let step = steps.entry((noted.tx, *id)).or_default();
                step.before = step.before.or(*before);
                step.after = after.or(step.after);
                step.last = Some(noted);
            }
            Change::Attempt { delivery, entry } => {
                let step = steps.entry((noted.tx, *delivery)).or_default();
                step.log.push((position, noted, entry));
            }
            _ => {}
        }
    }
    let (mut outcomes, mut wrong) = (Outcomes::default(), Vec::new());
    for ((tx, id), step) in &steps {
        let (endpoint, _) = record.places[id];
        if let (Some(noted), Some(row)) = (step.last, step.after) {
            let assumed = |what| Assumed { delivery: *id, endpoint, noted, row, what };
            outcomes.assumed.extend(step.assumption().map(assumed));
        }
        let lives = |noted: &Noted, entry: &Entry| {
            let began = noted.at.saturating_sub(entry.took);
            endpoints::lives(states, endpoint, [entry.began_at, began], lost)
        };
        match replay(step, lives, record.time_scale) {
            Ok(reports) => {
                let told = |(position, noted, at, reports): Reported| Told {
                    tx: *tx,
                    endpoint,
                    position,
                    at,
                    noted: noted.at,
                    reports,
                };
                outcomes.told.extend(reports.into_iter().map(told));
            }
            Err(what) => wrong.push(format!(
                "delivery {id}: {what}: {:?} became {:?} by {} log entries",
                step.before.map(DeliveryColumns::from),
                step.after.map(DeliveryColumns::from),
                step.log.len(),
            )),
        }
    }
    (outcomes, wrong)
}

impl Step<'_> {
    fn assumption(&self) -> Option<Assumption> {
        let (before, after) = (self.before, self.after?);
        let was = before.map(|before| before.status());
        match after.status() {
            _ if before.is_none() => Some(Assumption::Accepted),
            DeliveryStatus::Parked if self.last?.process.as_deref() == Some(super::ERASURE) => None,
            DeliveryStatus::Parked if was != Some(DeliveryStatus::Parked) => {
                Some(Assumption::Parked)
            }
            DeliveryStatus::Waiting if !before?.is_pending() => Some(Assumption::Redelivered),
            _ => None,
        }
    }
}

/// A log entry's position and row, when the attempt ended, and the reports it may have made.
type Reported<'a> = (usize, &'a Noted, Timestamp, Vec<AttemptReport>);

/// Returns the reports of a step that the machine gives.
fn replay<'a>(
    step: &Step<'a>,
    lives: impl Fn(&Noted, &Entry) -> Vec<EndpointHealth>,
    time_scale: f64,
) -> Result<Vec<Reported<'a>>, &'static str> {
    let Some(after) = step.after else {
        if step.before.is_some() {
            return Err("a row is just gone");
        }
        if step.log.iter().any(|(.., entry)| !entry.late) {
            return Err("a result is in the log, and not in the row");
        }
        let late = |(position, noted, entry): &(usize, &'a Noted, &Entry)| {
            let at = entry.began_at.saturating_add(entry.took);
            (*position, *noted, at, late_reports(entry, at, &lives(noted, entry)))
        };
        return Ok(step.log.iter().map(late).collect());
    };
    let Some(before) = step.before else {
        let new = DeliveryColumns::from(after);
        let is_new = (new.version, new.attempts, new.manual) == (0, 0, false)
            && matches!(new.status, DeliveryStatus::Waiting | DeliveryStatus::Skipped);
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
        // By a sender that stores what it begins, which those of this host do not.
        if step.last.is_some_and(|noted| noted.process.is_none()) {
            let _ = begun.begin(&live, at.saturating_sub(ATTEMPT_LEASE));
        }
        let is_known = [parked, again, begun].contains(&after);
        return is_known.then(Vec::new).ok_or("a change without a result is none of the machine's");
    }
    let [(position, noted, entry)] = step.log.as_slice() else {
        return Err("two results in one transaction");
    };
    // As its owner began it in memory, or as a result that comes when somebody else was first.
    let lives = lives(noted, entry);
    let (mut begun, mut owned) = (before, Vec::new());
    for life in &lives {
        let mut row = before;
        if let Ok(attempt) = row.begin(life, entry.began_at)
            && (attempt.number(), attempt.is_manual()) == (entry.number, entry.manual)
        {
            begun = row;
            owned.push(attempt);
        }
    }
    // When it ended, by what it has left.
    let left = DeliveryColumns::from(after).at;
    let ends = || {
        let waits = RETRY_WAITS.iter().map(|wait| shorter(*wait, time_scale));
        [Duration::ZERO, UNSENT].into_iter().chain(waits).map(|wait| left.saturating_sub(wait))
    };
    let report = |mut row: Delivery, attempt: &Attempt, at| {
        let report = row.finish(attempt, entry.outcome, at).unwrap();
        if !report.is_late() {
            row = on_the_wall(row, at, time_scale);
            // An attempt that could not be made leaves a wait that no schedule has.
            let _ = entry.outcome == Outcome::Unsent && row.postpone(UNSENT, at);
        }
        let mut parked = row;
        parked.park(&with(0, Some("gone")), at);
        let fits = [row, parked].contains(&after) && report.is_late() == entry.late;
        fits.then_some(report)
    };
    let replayed = |row, attempts: &[Attempt]| {
        ends().find_map(|at| {
            let reports: Vec<AttemptReport> =
                attempts.iter().filter_map(|attempt| report(row, attempt, at)).collect();
            (!reports.is_empty()).then(|| vec![(*position, *noted, at, reports)])
        })
    };
    let others = || lives.iter().map(|life| other(entry, life)).collect::<Vec<_>>();
    replayed(begun, &owned)
        .or_else(|| replayed(before, &others()))
        .ok_or("a result is stored over a row that was not read")
}

/// Returns a row whose attempt ended at an instant, with its wait by the wall clock.
fn on_the_wall(row: Delivery, ended: Timestamp, time_scale: f64) -> Delivery {
    let mut columns = DeliveryColumns::from(row);
    if columns.status == DeliveryStatus::Waiting {
        columns.at = ended.saturating_add(shorter(columns.at.since(ended), time_scale));
    }
    Delivery::from_columns(row.id(), row.endpoint(), columns).unwrap()
}

/// Returns a wait of the schedule by the wall clock, as precise as it is stored.
fn shorter(wait: Duration, time_scale: f64) -> Duration {
    let wait = wait.mul_f64(time_scale);
    Duration::from_micros(u64::try_from(wait.as_micros()).unwrap())
}

/// Returns what a result means for the endpoint that changes no delivery: only a 410 means anything.
fn late_reports(entry: &Entry, at: Timestamp, lives: &[EndpointHealth]) -> Vec<AttemptReport> {
    let ended = with_status(DeliveryStatus::Delivered, at, 0);
    let report = |life| ended.clone().finish(&other(entry, life), entry.outcome, at).unwrap();
    lives.iter().map(report).collect()
}

/// Makes an attempt that began in a life of its endpoint, and whose lease is not the row's.
fn other(entry: &Entry, life: &EndpointHealth) -> Attempt {
    let generation = EndpointColumns::from(*life).generation;
    let mut begun = with_status(DeliveryStatus::Waiting, entry.began_at, generation);
    let attempt = begun.begin(life, entry.began_at).unwrap();
    let mut stored = serde_json::to_value(attempt).unwrap();
    stored["number"] = entry.number.into();
    stored["manual"] = entry.manual.into();
    stored["lease"] = i32::MAX.into();
    serde_json::from_value(stored).unwrap()
}

fn with_status(status: DeliveryStatus, at: Timestamp, generation: i32) -> Delivery {
    Delivery::from_columns(
        1,
        1,
        DeliveryColumns {
            event_created_at: at,
            status,
            at,
            attempts: 1,
            manual: false,
            generation,
            version: 0,
        },
    )
    .unwrap()
}

fn with(generation: i32, disabled: Option<&str>) -> EndpointHealth {
    let disabled = disabled.map(|text| text.parse().unwrap());
    let new = EndpointColumns::from(EndpointHealth::new(1, Timestamp::UNIX_EPOCH));
    EndpointHealth::from_columns(1, EndpointColumns { disabled, generation, ..new }).unwrap()
}
