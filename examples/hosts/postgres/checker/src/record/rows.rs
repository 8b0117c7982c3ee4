//! The record, read: rows as the library's values.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, EndpointColumns, EndpointHealth};
use call_assistant_postgres::db::At;
use deadpool_postgres::GenericClient;
use serde_json::Value;
use testing::judge::{Change, Entry, Lease, Noted, Record, Snapshot};

/// Reads all of it.
pub(super) async fn read(client: &impl GenericClient) -> Record {
    // As text, for the driver's JSON is a feature that nothing else needs.
    let sql = "SELECT tx::text, snapshot::text, noted_at, process, kind, id,
        before::text, after::text FROM transitions ORDER BY seq";
    let time_scale = super::TIME_SCALE.parse().unwrap();
    let mut record = Record { rows: Vec::new(), places: HashMap::new(), time_scale };
    for row in client.query(sql, &[]).await.unwrap() {
        let (tx, snapshot, at): (&str, &str, At) = (row.get(0), row.get(1), row.get(2));
        let process: Option<String> = row.get(3);
        let (kind, id): (&str, i64) = (row.get(4), row.get(5));
        let [before, after] = [6, 7].map(|at| {
            let text: Option<&str> = row.get(at);
            text.map(|text| serde_json::from_str::<Value>(text).unwrap())
        });
        if kind == "delivery" {
            let row = before.as_ref().or(after.as_ref()).unwrap();
            let place = (whole(&row["endpoint"]), whole(&row["shard"]));
            record.places.insert(id, place);
        }
        let (before, after) = (before.as_ref(), after.as_ref());
        let change = match kind {
            "delivery" => {
                Change::Delivery { id, before: before.map(delivery), after: after.map(delivery) }
            }
            "endpoint" => Change::Endpoint {
                number: id,
                before: before.map(endpoint),
                after: after.map(endpoint),
            },
            "attempt" => Change::Attempt { delivery: id, entry: entry(after.unwrap()) },
            "shard" => {
                let (before, after) = (before.unwrap(), after.unwrap());
                let is_new = before["epoch"] != after["epoch"];
                Change::Shard { shard: id, lease: lease(after), is_new }
            }
            _ => Change::Look,
        };
        record.rows.push(Noted {
            tx: tx.parse().unwrap(),
            snapshot: snapshot_of(snapshot),
            at: at.0,
            process: process.filter(|process| !process.is_empty()),
            change,
        });
    }
    record
}

/// Reads `xmin:xmax:xip,xip`.
fn snapshot_of(text: &str) -> Snapshot {
    let mut parts = text.split(':');
    let mut number = || parts.next().unwrap().parse().unwrap();
    let (xmin, xmax) = (number(), number());
    let running = parts.next().unwrap_or_default().split(',');
    Snapshot { xmin, xmax, running: running.filter_map(|tx| tx.parse().ok()).collect() }
}

fn delivery(row: &Value) -> Delivery {
    // What is replayed is one delivery to one endpoint.
    Delivery::from_columns(
        1,
        1,
        DeliveryColumns {
            event_created_at: instant(&row["event_created_at"]),
            status: row["status"].as_str().unwrap().parse().unwrap(),
            at: instant(&row["at"]),
            attempts: small(&row["attempts"]),
            manual: row["manual"].as_bool().unwrap(),
            generation: number(&row["generation"]),
            version: number(&row["version"]),
        },
    )
    .unwrap()
}

fn endpoint(row: &Value) -> EndpointHealth {
    EndpointHealth::from_columns(
        1,
        EndpointColumns {
            disabled: row["disabled"].as_str().map(|text| text.parse().unwrap()),
            since: instant(&row["since"]),
            failures: small(&row["failures"]),
            first_failures: small(&row["first_failures"]),
            first_failed_at: Some(&row["first_failed_at"]).filter(|at| !at.is_null()).map(instant),
            reminders: small(&row["reminders"]),
            generation: number(&row["generation"]),
            version: number(&row["version"]),
        },
    )
    .unwrap()
}

fn entry(row: &Value) -> Entry {
    Entry {
        number: u8::try_from(number(&row["number"])).unwrap(),
        manual: row["manual"].as_bool().unwrap(),
        outcome: row["outcome"].as_str().unwrap().parse().unwrap(),
        late: row["late"].as_bool().unwrap(),
        began_at: instant(&row["began_at"]),
        took: Duration::from_millis(row["took_ms"].as_u64().unwrap()),
    }
}

fn lease(row: &Value) -> Option<Lease> {
    let owner = row["owner"].as_str()?.to_owned();
    Some(Lease { owner, until: instant(&row["expires_at"]) })
}

fn instant(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

fn whole(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn number(value: &Value) -> i32 {
    i32::try_from(whole(value)).unwrap()
}

fn small(value: &Value) -> i16 {
    i16::try_from(whole(value)).unwrap()
}
