//! Replays every change of a row through the library: each has to be what the machine gives.
//!
//! Triggers have noted each row before and after, and each log entry, in the transaction that made
//! them. The stored row before a change is what was really there: a host that wrote over a row that
//! it had not read has written what the machine does not give for that row.

use std::collections::{BTreeMap, BTreeSet};

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DeliveryColumns, DisabledReason, Endpoint, EndpointColumns, Outcome,
    RETRY_WAITS, Report, Status,
};
use call_assistant_postgres::db::Session;
use deadpool_postgres::GenericClient;
use serde_json::{Value, json};

/// What one transaction did to one delivery.
#[derive(Default)]
struct Step {
    before: Option<Delivery>,
    after: Option<Delivery>,
    endpoint: i64,
    /// Log entries, with their places in the order of all.
    log: Vec<(i64, Entry)>,
}

#[derive(Clone)]
struct Entry {
    number: u8,
    manual: bool,
    outcome: Outcome,
    late: bool,
    began_at: Timestamp,
}

impl Entry {
    fn is_gone(&self) -> bool {
        self.outcome.to_string() == "410"
    }
}

/// What hosts that are broken would have left. The replay has to find each.
const BROKEN: [(&str, &str); 3] = [
    (
        "a failure stored over a row that was not read",
        "UPDATE transitions
         SET before = jsonb_set(before, '{attempts}', to_jsonb((before ->> 'attempts')::int + 1))
         WHERE seq = (
             SELECT min(seq) FROM transitions
             WHERE kind = 'delivery' AND before ->> 'status' = 'waiting'
                 AND after ->> 'status' = 'waiting' AND after ->> 'attempts' IN ('1', '2', '3'))",
    ),
    (
        "a result in the log, and not in the delivery",
        "DELETE FROM transitions AS t USING (
             SELECT tx, id FROM transitions
             WHERE kind = 'delivery' AND after ->> 'status' = 'delivered' ORDER BY seq LIMIT 1) AS one
         WHERE t.kind = 'delivery' AND t.tx = one.tx AND t.id = one.id",
    ),
    (
        "an endpoint that was not told of its last failure",
        "DELETE FROM transitions WHERE kind = 'endpoint' AND id = (
             SELECT id FROM transitions WHERE kind = 'endpoint' GROUP BY id
             HAVING count(*) FILTER (WHERE after ->> 'disabled' IS NOT NULL) = 1
                 AND bool_or(after ->> 'disabled' = 'failing')
             ORDER BY id LIMIT 1) AND after ->> 'disabled' = 'failing'",
    ),
];

/// How much that is wrong on purpose a replay finds, and what it does not find.
pub(crate) async fn unseen(session: &mut Session) -> (usize, Vec<String>) {
    let (mut seen, mut unseen) = (0, Vec::new());
    for (what, sql) in BROKEN {
        let change = session.transaction().await.unwrap();
        let broken = change.execute(sql, &[]).await.unwrap();
        // A short run may have nothing of the kind.
        if broken > 0 {
            match replay(&change).await.1.is_empty() {
                true => unseen.push(format!("the replay does not see {what}")),
                false => seen += 1,
            }
        }
        change.rollback().await.unwrap();
    }
    (seen, unseen)
}

/// What an attempt has to tell its endpoint, with its place in the order of all.
type Told = (i64, Report, Timestamp);

/// How many changes were replayed, and each that is wrong.
pub(crate) async fn replay(client: &impl GenericClient) -> (usize, Vec<String>) {
    let sql = "SELECT seq, tx::text, kind, id, before, after FROM transitions ORDER BY seq";
    // As text, for the driver's JSON is a feature that nothing else needs.
    let sql = sql.replace("before, after", "before::text, after::text");
    let mut steps: BTreeMap<(String, i64), Step> = BTreeMap::new();
    let mut endpoints: Vec<(String, i64, Option<Endpoint>, Option<Endpoint>)> = Vec::new();
    for row in client.query(&sql, &[]).await.unwrap() {
        let (seq, tx, kind, id): (i64, String, String, i64) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        let value = |at| {
            let text: Option<String> = row.get(at);
            text.map(|text| serde_json::from_str::<Value>(&text).unwrap())
        };
        let (before, after) = (value(4), value(5));
        if kind == "endpoint" {
            let [before, after] = [before, after].map(|value| value.as_ref().map(endpoint));
            endpoints.push((tx, id, before, after));
            continue;
        }
        let step = steps.entry((tx, id)).or_default();
        match kind.as_str() {
            "attempt" => step.log.push((seq, entry(&after.unwrap()))),
            // A row that moves is deleted in one table and inserted into the other.
            _ => {
                let of = before.as_ref().or(after.as_ref()).unwrap();
                step.endpoint = of["endpoint"].as_i64().unwrap();
                step.before = step.before.or(before.as_ref().map(delivery));
                step.after = after.as_ref().map(delivery).or(step.after);
            }
        }
    }

    let mut wrong = Vec::new();
    let mut replayed = 0;
    // What each transaction has to tell each endpoint, in the order of the log.
    let mut reports: BTreeMap<(String, i64), Vec<Told>> = BTreeMap::new();
    for ((tx, id), step) in &steps {
        replayed += 1;
        match check(step) {
            Some(told) => reports.entry((tx.clone(), step.endpoint)).or_default().extend(told),
            None => wrong.push(format!(
                "delivery {id} became {:?} from {:?} by {} entries",
                step.after.map(DeliveryColumns::from),
                step.before.map(DeliveryColumns::from),
                step.log.len(),
            )),
        }
    }
    let mut states: BTreeMap<i64, Vec<Endpoint>> = BTreeMap::new();
    let late_gone: BTreeSet<&String> = steps
        .iter()
        .filter(|(_, step)| step.log.iter().any(|(_, entry)| entry.late && entry.is_gone()))
        .map(|((tx, _), _)| tx)
        .collect();
    for (tx, number, before, after) in endpoints {
        let may_be_gone = late_gone.contains(&tx);
        states.entry(number).or_default().extend(after);
        replayed += 1;
        let mut told = reports.remove(&(tx, number)).unwrap_or_default();
        told.sort_by_key(|(seq, ..)| *seq);
        if !endpoint_follows(before, after, &told, may_be_gone) {
            wrong.push(format!("endpoint {number} became {after:?} from {before:?}"));
        }
    }
    // A report that changes every active endpoint of its generation must not be left unsaid.
    for ((_, number), told) in reports {
        let states = states.get(&number).map_or([].as_slice(), Vec::as_slice);
        if told.iter().any(|(_, report, _)| !report.is_nothing()) && !unsaid_is_right(states, &told)
        {
            wrong.push(format!("endpoint {number} was not told of a failure"));
        }
    }
    (replayed, wrong)
}

/// The reports of a step that the machine gives, or `None` if it gives something else.
fn check(step: &Step) -> Option<Vec<Told>> {
    let Some(after) = step.after else {
        // A result that changes nothing comes late; and a row is never just gone.
        let late = step.log.iter().all(|(_, entry)| entry.late);
        return (step.before.is_none() && late).then(Vec::new);
    };
    let Some(before) = step.before else {
        let new = DeliveryColumns::from(after);
        let is_new = (new.version, new.attempts, new.manual) == (0, 0, false)
            && matches!(new.status, Status::Waiting | Status::Skipped);
        return is_new.then(Vec::new);
    };
    let live = with(DeliveryColumns::from(before).generation, None);
    if step.log.is_empty() {
        let at = DeliveryColumns::from(after).at;
        let (mut parked, mut again) = (before, before);
        parked.park(&with(0, Some("paused")), at);
        let now = with(DeliveryColumns::from(after).generation, None);
        let _ = again.redeliver(&now, at);
        return [parked, again].contains(&after).then(Vec::new);
    }
    // One attempt in one transaction is all that an owner does to a delivery.
    let [(seq, entry)] = step.log.as_slice() else { return None };
    ends(after).into_iter().find_map(|at| {
        // As its owner began it in memory, or as a result that comes when somebody else was first.
        let mut begun = before;
        let began = begun.begin(&live, DeliveryColumns::from(before).at.max(entry.began_at));
        let fits = |attempt: &Attempt| {
            attempt.number() == entry.number && attempt.is_manual() == entry.manual
        };
        let owned = began.ok().filter(fits).map(|attempt| (begun, attempt));
        let generations = 0..=DeliveryColumns::from(before).generation;
        let others = generations.map(|generation| (before, other(entry, generation)));
        owned.into_iter().chain(others).find_map(|(mut row, attempt)| {
            let report = row.finish(&attempt, entry.outcome, at);
            let mut parked = row;
            parked.park(&with(0, Some("gone")), at);
            ([row, parked].contains(&after) && report.is_late() == entry.late)
                .then(|| vec![(*seq, report, at)])
        })
    })
}

/// When the attempt may have ended, by what it has left.
fn ends(after: Delivery) -> Vec<Timestamp> {
    let columns = DeliveryColumns::from(after);
    let waits = RETRY_WAITS.iter().map(|wait| columns.at.saturating_sub(*wait));
    std::iter::once(columns.at).chain(waits).collect()
}

/// An attempt whose lease is not this row's.
fn other(entry: &Entry, generation: i32) -> Attempt {
    serde_json::from_value(json!({
        "number": entry.number, "manual": entry.manual, "began_at": entry.began_at,
        "deadline": entry.began_at, "lease": i32::MAX, "generation": generation,
    }))
    .unwrap()
}

fn endpoint_follows(
    before: Option<Endpoint>,
    after: Option<Endpoint>,
    told: &[Told],
    may_be_gone: bool,
) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_none() };
    let mut row = before;
    for (_, report, at) in told {
        let _ = row.record(*report, *at);
    }
    // Or its owner did something, in a transaction without attempts.
    let (mut enabled, mut paused) = (before, before);
    enabled.enable(after.since());
    paused.pause(after.since());
    // A late 410 says so of an endpoint although it changes no delivery.
    let disabled = after.disabled().map(DisabledReason::as_str);
    if may_be_gone && before.is_active() && disabled == Some("gone") {
        return true;
    }
    row == after || (told.is_empty() && [enabled, paused].contains(&after))
}

/// Whether one of the states that the endpoint had makes nothing of these reports.
fn unsaid_is_right(states: &[Endpoint], told: &[Told]) -> bool {
    states.iter().any(|state| {
        told.iter().all(|(_, report, at)| {
            let mut copy = *state;
            let _ = copy.record(*report, *at);
            copy == *state
        })
    })
}

fn with(generation: i32, disabled: Option<&str>) -> Endpoint {
    let disabled = disabled.map(|text| text.parse().unwrap());
    let new = EndpointColumns::from(Endpoint::new(Timestamp::UNIX_EPOCH));
    Endpoint::try_from(EndpointColumns { disabled, generation, ..new }).unwrap()
}

fn delivery(row: &Value) -> Delivery {
    Delivery::try_from(DeliveryColumns {
        event_created_at: instant(&row["event_created_at"]),
        status: row["status"].as_str().unwrap().parse().unwrap(),
        at: instant(&row["at"]),
        attempts: small(&row["attempts"]),
        manual: row["manual"].as_bool().unwrap(),
        generation: number(&row["generation"]),
        version: number(&row["version"]),
    })
    .unwrap()
}

fn endpoint(row: &Value) -> Endpoint {
    Endpoint::try_from(EndpointColumns {
        disabled: row["disabled"].as_str().map(|text| text.parse().unwrap()),
        since: instant(&row["since"]),
        failures: small(&row["failures"]),
        first_failures: small(&row["first_failures"]),
        first_failed_at: Some(&row["first_failed_at"]).filter(|at| !at.is_null()).map(instant),
        reminders: small(&row["reminders"]),
        generation: number(&row["generation"]),
        version: number(&row["version"]),
    })
    .unwrap()
}

fn entry(row: &Value) -> Entry {
    Entry {
        number: u8::try_from(number(&row["number"])).unwrap(),
        manual: row["manual"].as_bool().unwrap(),
        outcome: row["outcome"].as_str().unwrap().parse().unwrap(),
        late: row["late"].as_bool().unwrap(),
        began_at: instant(&row["began_at"]),
    }
}

fn instant(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

fn number(value: &Value) -> i32 {
    i32::try_from(value.as_i64().unwrap()).unwrap()
}

fn small(value: &Value) -> i16 {
    i16::try_from(value.as_i64().unwrap()).unwrap()
}
