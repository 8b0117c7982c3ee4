//! The schema and the statements on it: each is understood, each gives what a predicate gives on
//! random rows, and a later version of the schema disturbs nobody.
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, Endpoint, Status, oldest_kept};
use call_assistant_postgres::db::{At, Session, delivery_of};
use call_assistant_postgres::private_server::Settings;
use call_assistant_postgres::support::clock;
use serde_json::json;
use tokio_postgres::types::ToSql;

use support::running::{File, eventually};
use support::{World, data};

#[tokio::test]
async fn every_statement_is_understood() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let sql = std::fs::read_to_string(&path).unwrap();
        // Several statements, without parameters, are not prepared.
        let code = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let several = code.filter(|line| line.trim_end().ends_with(';')).count() > 1;
        let understood = match several {
            true => session.batch_execute(&format!("BEGIN; {sql} ROLLBACK;")).await,
            false => session.prepare(&sql).await.map(drop),
        };
        assert!(understood.is_ok(), "{}: {understood:?}", path.display());
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

#[derive(Clone, Debug)]
struct Row {
    id: i64,
    endpoint: i32,
    event: String,
    kind: &'static str,
    delivery: Delivery,
}

const KINDS: [&str; 2] = ["call.ended", "ping"];

/// Two endpoints of an account, and deliveries in every state.
async fn fill(session: &Session, dice: &mut Dice, now: Timestamp) -> Vec<Row> {
    session
        .batch_execute(
            "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
                 VALUES ('acct_1', 'UTC', 'pro', true, false);
             INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
                 since, failures, generation, version)
             SELECT 'we_' || n, 'acct_1', n, now(), 'https://x.example/', false, '', now(), 0, 0, 0
                 FROM generate_series(0, 1) AS n;",
        )
        .await
        .unwrap();
    let mut rows = Vec::new();
    for id in 0..400 {
        let age = Duration::from_secs(dice.roll(3) * 86_400 + dice.roll(1000));
        let created = now.saturating_sub(age);
        let status = Status::ALL[usize::try_from(dice.roll(7)).unwrap()];
        let delivery = Delivery::try_from(DeliveryColumns {
            event_created_at: created,
            status,
            at: created,
            attempts: i16::try_from(dice.roll(7)).unwrap(),
            manual: false,
            generation: i32::try_from(dice.roll(3)).unwrap(),
            version: 1,
        });
        let endpoint = i32::try_from(dice.roll(2)).unwrap();
        let kind = KINDS[usize::try_from(dice.roll(2)).unwrap()];
        let row =
            Row { id, endpoint, event: format!("evt_{id}"), kind, delivery: delivery.unwrap() };
        store(session, &row).await;
        rows.push(row);
    }
    rows
}

async fn store(session: &Session, row: &Row) {
    let columns = DeliveryColumns::from(row.delivery);
    let (created, shard) = (At(columns.event_created_at), i16::try_from(row.endpoint).unwrap());
    let event: [&(dyn ToSql + Sync); 3] = [&row.event, &created, &row.kind];
    let insert = "INSERT INTO events (account_id, id, created_at, type, body)
                  VALUES ('acct_1', $1, $2, $3, '{}')";
    session.execute(insert, &event).await.unwrap();
    let table = if row.delivery.is_pending() { "deliveries" } else { "ended" };
    let sql = format!(
        "INSERT INTO {table} (id, shard, endpoint, account_id, event_id, event_created_at, status,
             at, attempts, manual, generation, version)
         VALUES ($1, $2, $3, 'acct_1', $4, $5, $6, $7, $8, $9, $10, $11)"
    );
    session
        .execute(
            &sql,
            &[
                &row.id,
                &shard,
                &row.endpoint,
                &row.event,
                &created,
                &columns.status.as_str(),
                &At(columns.at),
                &columns.attempts,
                &columns.manual,
                &columns.generation,
                &columns.version,
            ],
        )
        .await
        .unwrap();
}

// D-54 to D-56: what an enabled endpoint missed is what the library says of each row.
#[tokio::test]
async fn what_was_missed_is_what_the_library_says() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    let (now, mut dice) = (clock::now(), Dice(18));
    let rows = fill(&session, &mut dice, now).await;
    for generation in 0..3 {
        let mut endpoint = Endpoint::new(now);
        for _ in 0..=generation {
            endpoint.pause(now);
            if endpoint.generation() == generation {
                break;
            }
            endpoint.enable(now);
        }
        let missed = endpoint.enable(now).unwrap();
        for number in 0..2_i32 {
            let shard = i16::try_from(number).unwrap();
            let from = At(oldest_kept(now).floor_to_micros());
            let sql = include_str!("../sql/missed.sql");
            let found = session.query(sql, &[&shard, &number, &from]).await.unwrap();
            let found: Vec<i64> = found
                .iter()
                .filter(|row| missed.includes(&delivery_of(row).unwrap()))
                .map(|row| row.get("id"))
                .collect();
            let of_it = rows.iter().rev().filter(|row| row.endpoint == number);
            let expected: Vec<i64> =
                of_it.filter(|row| missed.includes(&row.delivery)).map(|row| row.id).collect();
            assert!(!expected.is_empty(), "endpoint {number}, generation {generation}");
            assert_eq!(found, expected, "endpoint {number}, generation {generation}");
        }
    }
}

#[tokio::test]
async fn a_page_of_deliveries_is_what_its_filter_says() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    let (now, mut dice) = (clock::now(), Dice(54));
    let rows = fill(&session, &mut dice, now).await;
    let sql = session.prepare(include_str!("../sql/deliveries_page.sql")).await.unwrap();
    for round in 0..200 {
        let endpoints: Vec<i32> = match dice.roll(3) {
            0 => vec![0],
            1 => vec![1],
            _ => vec![0, 1],
        };
        let shards: Vec<i16> = endpoints.iter().map(|n| i16::try_from(*n).unwrap()).collect();
        let statuses: Option<Vec<&str>> = (dice.roll(2) == 0).then(|| {
            Status::ALL.iter().filter(|_| dice.roll(2) == 0).map(|status| status.as_str()).collect()
        });
        let kind = (dice.roll(3) == 0).then(|| KINDS[usize::try_from(dice.roll(2)).unwrap()]);
        let event = (dice.roll(9) == 0).then(|| format!("evt_{}", dice.roll(400)));
        let from = now.saturating_sub(Duration::from_secs(dice.roll(4) * 86_400));
        let until = now.saturating_sub(Duration::from_secs(dice.roll(2) * 86_400));
        let below = i64::try_from(dice.roll(500)).unwrap();
        let limit = i64::try_from(1 + dice.roll(60)).unwrap();
        let id = (dice.roll(9) == 0).then(|| i64::try_from(dice.roll(400)).unwrap());
        let longest = 100_i32;
        let found = session
            .query(
                &sql,
                &[
                    &shards,
                    &endpoints,
                    &statuses,
                    &kind,
                    &event,
                    &At(from),
                    &At(until),
                    &below,
                    &limit,
                    &longest,
                    &id,
                ],
            )
            .await
            .unwrap();
        let found: Vec<i64> = found.iter().map(|row| row.get("id")).collect();
        let fits = |row: &&Row| {
            let created = row.delivery.event_created_at();
            endpoints.contains(&row.endpoint)
                && statuses.as_ref().is_none_or(|all| all.contains(&row.delivery.status().as_str()))
                && kind.is_none_or(|kind| row.kind == kind)
                && event.as_ref().is_none_or(|event| row.event == *event)
                && from <= created
                && created < until
                && row.id < below
                && id.is_none_or(|id| row.id == id)
        };
        let expected = rows.iter().rev().filter(fits).take(usize::try_from(limit).unwrap());
        let expected: Vec<i64> = expected.map(|row| row.id).collect();
        assert_eq!(found, expected, "round {round}");
    }
}

/// Answers every request with 204, until the test ends.
fn receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
    });
    url
}

// A rolling deployment: the schema of the next version comes first, and its processes beside those of
// this one. What they write in a word of their own is theirs.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_versions_schema_comes_while_this_one_runs() {
    let world = World::new(Settings::default()).await;
    let file = File::new("deploy.json", &data(3).to_string());
    let flags = ["--allow-loopback-endpoints", "--data", file.path()];
    let before = world.start("all", &flags);
    let asked = json!({ "url": receiver() });
    let endpoint = before.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
    let id = endpoint["id"].as_str().unwrap();

    let session = world.database.session().await.unwrap();
    let next = "BEGIN;
        ALTER TABLE deliveries ADD COLUMN held_by text;
        ALTER TABLE ended ADD COLUMN held_by text;
        CREATE TABLE holds (id bigint PRIMARY KEY);
        INSERT INTO migrations (number, digest) VALUES (1000, '\\x00');
        COMMIT;";
    session.batch_execute(next).await.unwrap();
    // A process of the next version holds a delivery back, and one has ended in its way.
    let row = |table: &str, number: i64, status: &str| {
        format!(
            "INSERT INTO {table} (id, shard, endpoint, account_id, event_id, event_created_at,
                 status, at, attempts, manual, generation, version, held_by)
             SELECT {number}, shard, number, account_id, 'evt_{number}', now(),
                 '{status}', now(), 0, false, 0, 7, 'somebody' FROM endpoints WHERE id = '{id}';
             INSERT INTO events (account_id, id, created_at, type, body)
             SELECT 'acct_1', 'evt_{number}', event_created_at, 'note', '{{}}'
             FROM {table} WHERE id = {number};"
        )
    };
    session.batch_execute(&row("deliveries", 1_000_001, "held")).await.unwrap();
    session.batch_execute(&row("ended", 1_000_002, "refused")).await.unwrap();

    // Both the process that was there and one that starts now go on with all else.
    let after = world.start("all", &flags);
    for process in [&before, &after] {
        assert_eq!(process.get("/v1/calls").status, 200);
        let call = process.ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
        let delivery = format!("/deliveries/{}", call["deliveries"][0].as_str().unwrap());
        eventually("it is delivered", || {
            let shown = process.ask("GET", &delivery, &json!({}), 200);
            (shown["status"] == "delivered").then_some(())
        });
    }
    let listed = after.ask("GET", "/accounts/acct_1/deliveries", &json!({}), 200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "what this version knows");
    let enabled = after.ask("POST", &format!("/endpoints/{id}/pause"), &json!({}), 200);
    assert_eq!(enabled["reason"], "paused");
    assert_eq!(
        after.ask("POST", &format!("/endpoints/{id}/enable"), &json!({}), 200)["missed_deliveries"],
        json!([])
    );
    for (table, number, status) in
        [("deliveries", 1_000_001_i64, "held"), ("ended", 1_000_002, "refused")]
    {
        let sql = format!("SELECT status, version, held_by FROM {table} WHERE id = $1");
        let row = session.query_one(&sql, &[&number]).await.unwrap();
        let left: (&str, i32, &str) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(left, (status, 7, "somebody"), "{table}");
    }
}
