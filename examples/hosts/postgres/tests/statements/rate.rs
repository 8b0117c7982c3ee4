//! Rate limits of several processes: the function in SQL.

use std::num::NonZeroU16;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::RateWindows;
use call_assistant_postgres::db::At;
use private_server::PrivateServer;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::support::{Dice, connect, second, server, statement, statements};

const TABLES: &str = include_str!("../../../../../src/guide/sql/server/rate.sql");
const CALLS: &str = include_str!("../../../../../src/guide/sql/server/admit.sql");
const ONE: &str = "SELECT admitted, wait";
const TOGETHER: &str = "SELECT decided.admitted, decided.wait";

/// A server with the tables, and a connection.
async fn tables() -> (PrivateServer, Client) {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLES).await.unwrap();
    (server, client)
}

/// What the function says of one request: `None` admits.
async fn admit(client: &Client, quota: Quota) -> Option<i64> {
    let per_minute = i32::from(quota.per_minute());
    let admit = client.prepare(&statement(CALLS, ONE)).await.unwrap();
    let row = client.query_one(&admit, &[&"cred_1", &quota.name(), &per_minute]).await.unwrap();
    let (admitted, wait): (i32, Option<i64>) = (row.get(0), row.get(1));
    assert_eq!(admitted == 0, wait.is_some(), "{admitted}, {wait:?}");
    wait
}

/// Several at the same time, of one credential under both quotas: how many are admitted.
async fn admit_together(client: &Client, credential: &str, requests: i32) -> [i32; 2] {
    let (ids, quotas) = ([credential; 2], [Quota::ACCOUNT, Quota::READS]);
    let (names, limits) = (quotas.map(Quota::name), quotas.map(|it| i32::from(it.per_minute())));
    let admit = client.prepare(&statement(CALLS, TOGETHER)).await.unwrap();
    let counts = [requests; 2];
    let parameters: [&(dyn ToSql + Sync); 4] = [&&ids[..], &&names[..], &&limits[..], &&counts[..]];
    let rows = client.query(&admit, &parameters).await.unwrap();
    let rows: [_; 2] = rows.try_into().unwrap();
    rows.map(|row| {
        let (admitted, wait): (i32, Option<i64>) = (row.get(0), row.get(1));
        assert_eq!(admitted < requests, wait.is_some(), "{admitted}, {wait:?}");
        assert!(wait.is_none_or(|wait| (1..=60_000_000).contains(&wait)), "{wait:?}");
        admitted
    })
}

// The quotas of the specification, one request after the other.
#[tokio::test]
async fn one_request_after_the_other_is_admitted_up_to_the_quota() {
    let (_server, client) = tables().await;
    for quota in [Quota::ACCOUNT, Quota::READS] {
        for request in 0..quota.per_minute() {
            assert_eq!(admit(&client, quota).await, None, "{}, {request}", quota.name());
        }
        let wait = admit(&client, quota).await;
        assert!(wait.is_some_and(|wait| (1..=60_000_000).contains(&wait)), "{wait:?}");
    }
}

// Processes that each count many requests of many credentials in one statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_together_admit_exactly_the_quota() {
    let (server, _) = tables().await;
    for round in 0..5_u64 {
        let mut tasks = Vec::new();
        for process in 0..3 {
            let client = connect(&server).await;
            tasks.push(tokio::spawn(async move {
                let (mut dice, mut admitted) = (Dice::new(10 * round + process), [0; 2]);
                let mut left = 400;
                while left > 0 {
                    let requests = (1 + dice.below(40) as i32).min(left);
                    left -= requests;
                    let both = admit_together(&client, &format!("cred_{round}"), requests).await;
                    (0..2).for_each(|quota| admitted[quota] += both[quota]);
                }
                admitted
            }));
        }
        let mut admitted = [0; 2];
        for task in tasks {
            let both = task.await.unwrap();
            (0..2).for_each(|quota| admitted[quota] += both[quota]);
        }
        assert_eq!(admitted, [60, 600], "round {round}");
    }
}

/// The window as one would write it first: every instant of an admission, in microseconds.
#[derive(Default)]
struct Naive(Vec<i64>);

impl Naive {
    fn check(&mut self, per_minute: usize, now: i64) -> Option<i64> {
        let newest = self.0.last().copied().unwrap_or(now);
        if newest - now > MINUTE {
            self.0.iter_mut().for_each(|admitted| *admitted -= newest - now);
        }
        let counts_as = self.0.last().copied().unwrap_or(now).max(now);
        let oldest = self.0.len().checked_sub(per_minute).map(|nth| self.0[nth]);
        match oldest.filter(|oldest| counts_as - oldest < MINUTE) {
            Some(oldest) => Some(oldest + MINUTE - now),
            None => {
                self.0.push(counts_as);
                None
            }
        }
    }
}

const MINUTE: i64 = 60_000_000;

// The function against the library's window, and where clocks step back against a naive one, which forgets
// nothing with what it refuses. Several requests at the same time are as many, one after the other. Three
// connections take turns, as processes do.
#[tokio::test]
async fn the_function_admits_as_a_window_does() {
    let (server, client) = tables().await;
    let clients = [client, connect(&server).await, connect(&server).await];
    let sql = "SELECT admitted, wait FROM admit_requests($1, 'reads', $2, $3, $4)";
    let mut prepared = Vec::new();
    for client in &clients {
        prepared.push(client.prepare(sql).await.unwrap());
    }
    let (mut together, mut refused) = (0, 0);
    for seed in 0..60 {
        let steps_back = seed % 2 == 1;
        // Quotas of a few, which clocks outlast, and some of a hundred, whose windows are trimmed.
        let few = if seed % 3 == 0 { 100 } else { 5 };
        let pause = if seed % 3 == 0 { 900_000 } else { 20_000_000 };
        let (mut dice, mut windows) = (Dice::new(seed), RateWindows::new(1));
        let mut naive = Naive::default();
        let credential = format!("cred_{seed}");
        let id = CredentialId::parse(&credential).unwrap();
        let mut clock: Timestamp = second(1_000_000);
        let mut per_minute = 1 + dice.below(few) as u16;
        for request in 0..if few > 5 { 400 } else { 60 } {
            let micros = match dice.below(if few > 5 { 80 } else { 8 }) {
                0 => 0,
                1 => 1,
                2 => 60_000_000,
                3 => 59_999_999,
                _ => dice.below(pause),
            };
            clock = clock.saturating_add(Duration::from_micros(micros));
            let back = match dice.below(12) {
                0 if steps_back => dice.below(60),
                1 if steps_back => 60 + dice.below(900),
                _ => 0,
            };
            clock = clock.saturating_sub(Duration::from_secs(back));
            if few == 5 || dice.below(50) == 0 {
                per_minute = 1 + dice.below(few) as u16;
            }
            let requests = if dice.below(3) == 0 { 1 + dice.below(7) as i32 } else { 1 };
            let quota = Quota::READS.with_per_minute(NonZeroU16::new(per_minute).unwrap());
            let (limit, now) = (i32::from(per_minute), At(clock));
            let process = dice.below(3) as usize;
            let parameters: [&(dyn ToSql + Sync); 4] = [&credential, &limit, &requests, &now];
            let row = clients[process].query_one(&prepared[process], &parameters).await.unwrap();
            let (admitted, wait): (i32, Option<i64>) = (row.get(0), row.get(1));
            let expected: Vec<Option<i64>> = (0..requests)
                .map(|_| naive.check(per_minute.into(), clock.unix_micros()))
                .collect();
            let case = format!("seed {seed}, request {request}");
            let admits = |nth| if nth < admitted { None } else { Some(wait.unwrap()) };
            let found: Vec<Option<i64>> = (0..requests).map(admits).collect();
            assert_eq!(found, expected, "{case}");
            if !steps_back {
                for (nth, wait) in (0..).zip(found) {
                    let wait = wait.map(|wait| Duration::from_micros(wait as u64));
                    let checked = windows.check(&id, quota, clock);
                    assert_eq!(wait, checked.err().map(|error| error.wait), "{case}, {nth}");
                }
            }
            together += i32::from(requests > 1);
            refused += i32::from(wait.is_some());
        }
    }
    assert!(together > 1_000 && refused > 1_000, "{together}, {refused}");
}

// A window that never falls idle, for hours: what it counts by begins again in time.
#[tokio::test]
async fn a_window_that_is_never_idle_counts_on() {
    let (_server, client) = tables().await;
    let sql = "SELECT wait FROM admit_requests('cred_1', 'reads', $1, 1, $2)";
    let admit = client.prepare(sql).await.unwrap();
    for (per_minute, step) in [(1, 60_000_000), (2, 59_999_999), (3, 30_000_000), (1_000, 60_000)] {
        let (mut naive, mut clock) = (Naive::default(), second(2_000_000 + i64::from(per_minute)));
        client.batch_execute("DELETE FROM request_windows").await.unwrap();
        for request in 0..1_500 {
            let row = client.query_one(&admit, &[&per_minute, &At(clock)]).await.unwrap();
            let expected = naive.check(per_minute as usize, clock.unix_micros());
            assert_eq!(row.get::<_, Option<i64>>(0), expected, "{per_minute}, request {request}");
            clock = clock.saturating_add(Duration::from_micros(step));
        }
        let sql = "SELECT cardinality(ticks), ticks[cardinality(ticks)], pg_column_size(ticks)
            FROM request_windows";
        let row = client.query_one(sql, &[]).await.unwrap();
        let (ticks, newest, bytes): (i32, i32, i32) = (row.get(0), row.get(1), row.get(2));
        assert!(
            ticks <= per_minute + 30 && newest < 32 * 60_000_000,
            "{per_minute}: {ticks}, {newest}"
        );
        assert!(bytes <= 24 + 4 * ticks, "{per_minute}: {bytes} B");
    }
}

#[tokio::test]
async fn quotas_beyond_the_ring_are_refused_and_idle_windows_go() {
    let (_server, client) = tables().await;
    for per_minute in [0, 1_001] {
        let sql = format!("SELECT admit_requests('cred_1', 'reads', {per_minute})");
        let error = client.batch_execute(&sql).await.unwrap_err();
        let message = error.as_db_error().unwrap().message().to_owned();
        assert_eq!(message, format!("per_minute is {per_minute}, not from 1 to 1000"));
    }
    // The younger one has ten seconds, for the statements between here and there take time.
    for (age, rows) in [(61, 1), (50, 0)] {
        let sql = format!(
            "SELECT admit_requests('{age}', 'reads', 1, 1, now() - interval '{age} seconds')"
        );
        client.batch_execute(&sql).await.unwrap();
        let gone = client.execute(&statement(CALLS, "DELETE"), &[]).await.unwrap();
        assert_eq!(gone, rows, "{age}");
    }
    assert_eq!(statements(CALLS).len(), 3);
}
