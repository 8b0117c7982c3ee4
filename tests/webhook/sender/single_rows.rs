//! A store without transactions: the program of `guide::storing`, killed at any access, with writes whose
//! answer is lost and copies of its jobs that overlap. D-54, D-58, DEL-8: each delivery that fails counts
//! once, and each alert is in the endpoint's row once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, Attempt, AttemptReport, BeginError, Delivery, DeliveryColumns, DeliveryStatus,
    DisabledReason, EndpointColumns, EndpointHealth, FAILURES_TO_WARN, LONGEST_DELIVERY,
    MAX_ATTEMPTS, Outcome,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{answered, at, disabled, event, failing};
use crate::dice::Dice;

// The program that the page names begins here.

#[derive(Serialize, Deserialize)]
struct DeliveryRow {
    endpoint: String,
    state: DeliveryColumns,
    report: Option<AttemptReport>, // of a finished attempt, until it is recorded
}

#[derive(Serialize, Deserialize)]
struct EndpointRow {
    number: u64,
    state: EndpointColumns,
    recorded: Option<(String, u64)>, // the row of the last report, and its revision
    alerts: Vec<Alert>,              // to tell the owner, and then to remove
}

/// Finishes an attempt. Repeat it until it is `Ok`.
fn finish(
    map: &Map,
    key: &str,
    attempt: &Attempt,
    outcome: Outcome,
    now: Timestamp,
) -> Result<(), Fault> {
    let (mut row, revision) = record(map, key, now)?;
    let mut delivery = row.delivery(key, map)?;
    let report = delivery.finish(attempt, outcome, now)?;
    (row.state, row.report) = (delivery.into(), Some(report).filter(|report| !report.is_empty()));
    map.replace(key, revision, &row)?;
    record(map, key, now).map(drop)
}

/// Records the report that waits in a delivery's row, and returns the row without it. Every step of a delivery
/// begins with this.
fn record(map: &Map, key: &str, now: Timestamp) -> Result<(DeliveryRow, u64), Fault> {
    let (row, revision) = map.read::<DeliveryRow>(key)?;
    if row.report.is_none() {
        return Ok((row, revision));
    }
    let (mut owner, owner_revision) = map.read::<EndpointRow>(&row.endpoint)?;
    // Read again, after the endpoint: a report is marked there before it is removed here.
    let (row, revision) = map.read::<DeliveryRow>(key)?;
    let Some(report) = row.report else { return Ok((row, revision)) };
    let mark = Some((key.to_owned(), revision));
    if owner.recorded != mark {
        if let Some((other, revision)) = &owner.recorded {
            remove_report(map, other, *revision)?;
        }
        let mut health = EndpointHealth::from_columns(owner.number, owner.state)?;
        let change = health.record(report, now)?;
        if health.if_version().is_some() {
            (owner.state, owner.recorded) = (health.into(), mark);
            owner.alerts.extend(change.alert());
            map.replace(&row.endpoint, owner_revision, &owner)?;
        }
    }
    remove_report(map, key, revision)?;
    record(map, key, now)
}

/// Removes a report that is recorded. A row with another revision has it no more.
fn remove_report(map: &Map, key: &str, revision: u64) -> Result<(), Fault> {
    let (mut row, found) = map.read::<DeliveryRow>(key)?;
    if found == revision {
        row.report = None;
        map.replace(key, revision, &row)?;
    }
    Ok(())
}

// The program ends here.

impl DeliveryRow {
    fn delivery(&self, key: &str, map: &Map) -> Result<Delivery, Fault> {
        let (owner, _) = map.read::<EndpointRow>(&self.endpoint)?;
        let number = u64::from_str_radix(key, 16).unwrap(); // the key is made of the number
        Ok(Delivery::from_columns(number, owner.number, self.state)?)
    }
}

/// One job of the queue: begins, sends and finishes. `None` acknowledges it, and an instant shows it again.
fn work(
    map: &Map,
    key: &str,
    outcome: Outcome,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let (mut row, revision) = record(map, key, now)?;
    let mut delivery = row.delivery(key, map)?;
    let (owner, _) = map.read::<EndpointRow>(&row.endpoint)?;
    let health = EndpointHealth::from_columns(owner.number, owner.state)?;
    let begun = delivery.begin(&health, now);
    if delivery.if_version().is_some() {
        row.state = delivery.into();
        map.replace(key, revision, &row)?; // lost, perhaps: nothing is sent
    }
    match begun {
        Ok(attempt) => {
            while let Err(fault) = finish(map, key, &attempt, outcome, now) {
                if fault == Fault::Died {
                    return Err(fault);
                }
            }
            Ok(map.read::<DeliveryRow>(key)?.0.delivery(key, map)?.due(now))
        }
        Err(BeginError::Ended | BeginError::Parked) => Ok(None),
        Err(_) => Ok(delivery.due(now)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Another write came first, or whether this one happened is not known.
    Conflict,
    /// The process was killed.
    Died,
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        panic!("a row or an attempt that does not fit: {error}");
    }
}

/// A map whose rows are replaced one at a time, if they have the revision that was read.
struct Map {
    rows: RefCell<BTreeMap<String, (String, u64)>>,
    dice: RefCell<Dice>,
    /// In percent of the accesses.
    mishaps: u64,
    depth: Cell<u8>,
    now: Cell<Timestamp>,
    met: RefCell<[u32; 3]>,
}

impl Map {
    fn read<R: DeserializeOwned>(&self, key: &str) -> Result<(R, u64), Fault> {
        self.mishap()?;
        let (text, revision) = self.rows.borrow()[key].clone();
        Ok((serde_json::from_str(&text)?, revision))
    }

    fn replace<R: Serialize>(&self, key: &str, revision: u64, row: &R) -> Result<(), Fault> {
        self.mishap()?;
        let text = serde_json::to_string(row)?;
        // An answer may be lost, of a write that happened or did not.
        let is_lost = self.chance(1);
        if !(is_lost && self.dice.borrow_mut().chance(50)) {
            match self.rows.borrow_mut().get_mut(key) {
                Some(stored) if stored.1 == revision => *stored = (text, revision + 1),
                _ => return Err(Fault::Conflict),
            }
        }
        self.mishap()?;
        if is_lost { Err(Fault::Conflict) } else { Ok(()) }
    }

    fn chance(&self, of: usize) -> bool {
        let chance = self.dice.borrow_mut().chance(self.mishaps);
        self.met.borrow_mut()[of] += u32::from(chance);
        chance
    }

    /// At each access the process may be killed, or another one may do a whole job.
    fn mishap(&self) -> Result<(), Fault> {
        if self.chance(0) {
            return Err(Fault::Died);
        }
        if self.depth.get() < 2 && self.chance(2) {
            let keys: Vec<String> = self.jobs().collect();
            let any = self.dice.borrow_mut().below(keys.len() as u64);
            self.depth.set(self.depth.get() + 1);
            let key = &keys[usize::try_from(any).unwrap()];
            // Its own queue shows the job again, whatever becomes of this copy.
            let _ = work(self, key, outcome(key), self.now.get());
            self.depth.set(self.depth.get() - 1);
        }
        Ok(())
    }

    fn jobs(&self) -> impl Iterator<Item = String> {
        let keys: Vec<String> = self.rows.borrow().keys().cloned().collect();
        keys.into_iter().filter(|key| key != ENDPOINT)
    }

    fn owner(&self) -> EndpointRow {
        serde_json::from_str(&self.rows.borrow()[ENDPOINT].0).unwrap()
    }

    fn row(&self, key: &str) -> DeliveryRow {
        serde_json::from_str(&self.rows.borrow()[key].0).unwrap()
    }
}

const ENDPOINT: &str = "whep_1";

/// Only what is accepted last is answered, and its key says how.
fn outcome(key: &str) -> Outcome {
    match key {
        "fe" => answered(204),
        "ff" => answered(410),
        _ => answered(500),
    }
}

/// What is accepted, in this order, each half a minute after the one before; `None` is after the end of all of them.
fn world(seed: u64, keys: &[Option<&str>], mishaps: u64) -> Map {
    let health = EndpointHealth::new(1, at(0));
    let owner = EndpointRow { number: 1, state: health.into(), recorded: None, alerts: Vec::new() };
    let owner = (serde_json::to_string(&owner).unwrap(), 0);
    let map = Map {
        rows: RefCell::new(BTreeMap::from([(ENDPOINT.to_owned(), owner)])),
        dice: RefCell::new(Dice::new(seed)),
        mishaps,
        depth: Cell::new(0),
        now: Cell::new(at(0)),
        met: RefCell::default(),
    };
    let (mut then, mut queue) = (at(0), Vec::new());
    for key in keys {
        let wait = key.map_or(2 * LONGEST_DELIVERY, |_| Duration::from_secs(30));
        then = then.saturating_add(wait);
        queue.extend(key.map(|key| (then, key.to_owned())));
    }
    queue.sort_by(|one, other| other.cmp(one));
    while let Some((shown, key)) = queue.pop() {
        map.now.set(map.now.get().max(shown));
        let now = map.now.get();
        if !map.rows.borrow().contains_key(&key) {
            let health = EndpointHealth::from_columns(1, map.owner().state).unwrap();
            let state = Delivery::accept(&event(now), &health, now).into();
            let row = DeliveryRow { endpoint: ENDPOINT.to_owned(), state, report: None };
            map.rows.borrow_mut().insert(key.clone(), (serde_json::to_string(&row).unwrap(), 0));
        }
        let again = work(&map, &key, outcome(&key), now);
        // What is not acknowledged is shown again after a minute.
        if let Some(due) = again.unwrap_or(Some(now.saturating_add(Duration::from_secs(60)))) {
            queue.push((due, key));
            queue.sort_by(|one, other| other.cmp(one));
        }
    }
    map
}

#[test]
fn the_page_names_this_program() {
    assert!(
        include_str!("../../../src/guide/storing.md")
            .contains("tests/webhook/sender/single_rows.rs")
    );
}

/// The class: what is known between two writes is lost with the process. The report waits in the delivery's
/// row, and the alert is in the endpoint's, in the write that makes it.
#[test]
fn a_store_of_single_rows_counts_and_tells_everything_once() {
    let failing_ones: Vec<String> = (1..=20).map(|number| format!("{number:02x}")).collect();
    let failing_ones: Vec<_> = failing_ones.iter().map(|key| Some(key.as_str())).collect();
    let nineteen = &failing_ones[..19];
    let warned =
        [vec![Alert::Suspect], FAILURES_TO_WARN.iter().copied().map(failing).collect()].concat();
    let told = |last: Alert| [warned.clone(), vec![last]].concat();
    use DisabledReason::{Failing, Gone};
    let with = |last| [nineteen, &[None, Some(last)]].concat();
    let worlds = [
        ("nineteen", nineteen.to_vec(), 19, None, warned.clone()),
        ("twenty", failing_ones.clone(), 20, Some(Failing), told(disabled(Failing))),
        ("forgiven", with("fe"), 0, None, told(Alert::Recovered)),
        ("gone", with("ff"), 19, Some(Gone), told(disabled(Gone))),
    ];
    let mut met = [0; 3];
    for (name, keys, failures, reason, alerts) in worlds {
        for seed in 0..40 {
            let map = world(seed, &keys, if seed == 0 { 0 } else { 5 });
            let owner = map.owner();
            let counted = (owner.state.failures, owner.state.disabled);
            assert_eq!(counted, (failures, reason), "{name}, seed {seed}");
            assert_eq!(owner.alerts, alerts, "{name}, seed {seed}");
            for key in map.jobs() {
                let DeliveryRow { state, report, .. } = map.row(&key);
                let ended = match key.as_str() {
                    "fe" => (DeliveryStatus::Delivered, 1),
                    "ff" => (DeliveryStatus::Gone, 1),
                    _ => (DeliveryStatus::Failed, MAX_ATTEMPTS.into()),
                };
                let met = ((state.status, state.attempts), report);
                assert_eq!(met, (ended, None), "{name}, seed {seed}, {key}");
            }
            let more = map.met.into_inner();
            (0..3).for_each(|of| met[of] += more[of]);
        }
    }
    assert!(met.iter().all(|times| *times > 1_000), "killed, not answered, overtaken: {met:?}");
}
