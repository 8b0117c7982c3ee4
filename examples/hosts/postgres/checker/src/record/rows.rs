//! The record, read: rows as the library's values.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, EndpointColumns, EndpointHealth, Outcome,
};
use call_assistant_postgres::db::At;
use deadpool_postgres::GenericClient;
use serde_json::Value;

/// All that was noted, in its order.
pub(super) struct Record {
    pub rows: Vec<Noted>,
    /// The endpoint and the shard of each delivery.
    pub places: HashMap<i64, (i64, i64)>,
}

/// One change of one row.
pub(super) struct Noted {
    pub tx: u64,
    snapshot: Snapshot,
    pub at: Timestamp,
    /// The sender that did it, if one did.
    pub process: Option<String>,
    pub change: Change,
}

pub(super) enum Change {
    Delivery {
        id: i64,
        before: Option<Delivery>,
        after: Option<Delivery>,
    },
    Endpoint {
        number: i64,
        before: Option<EndpointHealth>,
        after: Option<EndpointHealth>,
    },
    Attempt {
        delivery: i64,
        entry: Entry,
    },
    Shard {
        shard: i64,
        lease: Option<Lease>,
        /// Whether it was taken, and not renewed.
        is_new: bool,
    },
    /// Nothing: somebody looked.
    Look,
}

/// Who sends for a shard.
pub(super) struct Lease {
    pub owner: String,
    pub until: Timestamp,
}

/// A row of the log.
#[derive(Clone)]
pub(super) struct Entry {
    pub number: u8,
    pub manual: bool,
    pub outcome: Outcome,
    pub late: bool,
    /// By the sender's clock.
    pub began_at: Timestamp,
    pub took: Duration,
}

/// Which transactions could be seen.
struct Snapshot {
    xmin: u64,
    xmax: u64,
    running: Vec<u64>,
}

impl Record {
    pub(super) async fn read(client: &impl GenericClient) -> Self {
        // As text, for the driver's JSON is a feature that nothing else needs.
        let sql = "SELECT tx::text, snapshot::text, noted_at, process, kind, id,
            before::text, after::text FROM transitions ORDER BY seq";
        let mut record = Self { rows: Vec::new(), places: HashMap::new() };
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
                "delivery" => Change::Delivery {
                    id,
                    before: before.map(delivery),
                    after: after.map(delivery),
                },
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
                snapshot: Snapshot::parse(snapshot),
                at: at.0,
                process: process.filter(|process| !process.is_empty()),
                change,
            });
        }
        record
    }

    /// Returns an instant by which everybody saw what the transaction of a row did: when a later row was
    /// noted by somebody who did.
    pub(super) fn seen_by(&self, position: usize) -> Option<Timestamp> {
        let tx = self.rows[position].tx;
        let sees = |later: &&Noted| later.tx != tx && later.snapshot.sees(tx);
        self.rows[position..].iter().find(sees).map(|later| later.at)
    }
}

impl Snapshot {
    /// Reads `xmin:xmax:xip,xip`.
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let mut number = || parts.next().unwrap().parse().unwrap();
        let (xmin, xmax) = (number(), number());
        let running = parts.next().unwrap_or_default().split(',');
        Self { xmin, xmax, running: running.filter_map(|tx| tx.parse().ok()).collect() }
    }

    fn sees(&self, tx: u64) -> bool {
        tx < self.xmin || (tx < self.xmax && !self.running.contains(&tx))
    }
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
