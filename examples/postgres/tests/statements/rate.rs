//! Rate limits of several processes: the function in SQL.

use std::num::NonZeroU16;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::RateWindows;
use call_assistant_postgres::db::At;
use tokio::time::Instant;
use tokio_postgres::Client;

use super::support::{Dice, connect, second, server, statement, statements};

const TABLES: &str = include_str!("../../../../src/guide/sql/server/rate.sql");
const CALLS: &str = include_str!("../../../../src/guide/sql/server/admit.sql");

/// What the function says: `None` admits.
async fn admit(client: &Client, quota: Quota, credential: &str) -> Option<i64> {
    let admit = client.prepare_typed(&statement(CALLS, "SELECT"), &[]).await.unwrap();
    let per_minute = i32::from(quota.per_minute());
    let row = client.query_one(&admit, &[&credential, &quota.name(), &per_minute]).await.unwrap();
    row.get(0)
}

// The quotas of the specification, with as many requests at the same time as there are connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_together_admit_exactly_the_quota() {
    let server = server();
    connect(&server).await.batch_execute(TABLES).await.unwrap();
    for (quota, requests) in [(Quota::ACCOUNT, 150), (Quota::READS, 750)] {
        for connections in [1, 2, 4] {
            let credential = format!("cred_{connections}");
            let mut tasks = Vec::new();
            for _ in 0..connections {
                let (client, credential) = (connect(&server).await, credential.clone());
                tasks.push(tokio::spawn(async move {
                    let mut admitted = 0;
                    for _ in 0..requests {
                        match admit(&client, quota, &credential).await {
                            None => admitted += 1,
                            Some(wait) => assert!((1..=60_000_000).contains(&wait), "{wait}"),
                        }
                    }
                    admitted
                }));
            }
            let mut admitted = 0;
            for task in tasks {
                admitted += task.await.unwrap();
            }
            let expected = u32::from(quota.per_minute());
            assert_eq!(admitted, expected, "{}, {connections} connections", quota.name());
        }
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

// The function against the library's window, and where clocks step back against a naive one: the
// function has no row to forget with what it refuses, so it remembers more then.
#[tokio::test]
async fn the_function_admits_as_a_window_does() {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLES).await.unwrap();
    let admit = client.prepare("SELECT admit($1, 'reads', $2, $3)").await.unwrap();
    for seed in 0..40 {
        let steps_back = seed % 2 == 1;
        let (mut dice, mut windows) = (Dice::new(seed), RateWindows::new(1));
        let mut naive = Naive::default();
        let credential = format!("cred_{seed}");
        let id = CredentialId::parse(&credential).unwrap();
        let mut clock: Timestamp = second(1_000_000);
        for request in 0..60 {
            let micros = match dice.below(8) {
                0 => 0,
                1 => 1,
                2 => 60_000_000,
                3 => 59_999_999,
                _ => dice.below(20_000_000),
            };
            clock = clock.saturating_add(Duration::from_micros(micros));
            match dice.below(12) {
                0 if steps_back => {
                    clock = clock.saturating_sub(Duration::from_secs(dice.below(60)))
                }
                1 if steps_back => {
                    clock = clock.saturating_sub(Duration::from_secs(60 + dice.below(900)))
                }
                _ => {}
            }
            let per_minute = 1 + dice.below(5) as u16;
            let quota = Quota::READS.with_per_minute(NonZeroU16::new(per_minute).unwrap());
            let (limit, now) = (i32::from(per_minute), At(clock));
            let row = client.query_one(&admit, &[&credential, &limit, &now]).await.unwrap();
            let wait: Option<i64> = row.get(0);
            let expected = naive.check(per_minute.into(), clock.unix_micros());
            assert_eq!(wait, expected, "seed {seed}, request {request}");
            if !steps_back {
                let wait = wait.map(|wait| Duration::from_micros(wait as u64));
                let checked = windows.check(&id, quota, clock);
                assert_eq!(wait, checked.err().map(|error| error.wait), "seed {seed}, {request}");
            }
        }
    }
}

#[tokio::test]
async fn quotas_beyond_the_ring_are_refused_and_idle_windows_go() {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLES).await.unwrap();
    for per_minute in [0, 1_001] {
        let sql = format!("SELECT admit('cred_1', 'reads', {per_minute})");
        let error = client.batch_execute(&sql).await.unwrap_err();
        let message = error.as_db_error().unwrap().message().to_owned();
        assert_eq!(message, format!("per_minute is {per_minute}, not from 1 to 1000"));
    }
    // The younger one has ten seconds, for the statements between here and there take time.
    for (age, rows) in [(61, 1), (50, 0)] {
        let sql = format!("SELECT admit('{age}', 'reads', 1, now() - interval '{age} seconds')");
        client.batch_execute(&sql).await.unwrap();
        let gone = client.execute(&statement(CALLS, "DELETE"), &[]).await.unwrap();
        assert_eq!(gone, rows, "{age}");
    }
    assert_eq!(statements(CALLS).len(), 2);
}

/// Requests a second, for the report: `cargo test --release ... -- --ignored --nocapture rate`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods)]
async fn requests_a_second() {
    let server = server();
    connect(&server).await.batch_execute(TABLES).await.unwrap();
    for keys in [1, 1_000] {
        let mut tasks = Vec::new();
        for connection in 0..8 {
            let client = connect(&server).await;
            tasks.push(tokio::spawn(async move {
                let mut dice = Dice::new(connection);
                let admit = client.prepare(&statement(CALLS, "SELECT")).await.unwrap();
                let (began, mut requests) = (Instant::now(), 0);
                while began.elapsed() < Duration::from_secs(3) {
                    let credential = format!("cred_{}", dice.below(keys));
                    client.query_one(&admit, &[&credential, &"reads", &600]).await.unwrap();
                    requests += 1;
                }
                requests / 3
            }));
        }
        let mut requests = 0;
        for task in tasks {
            requests += task.await.unwrap();
        }
        eprintln!("{keys} keys, 8 connections: {requests} requests a second");
    }
}
