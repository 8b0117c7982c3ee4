//! The steps of a delivery: from acceptance to its end, with several senders, and what they read.

use std::time::Duration;

use call_assistant::webhook::sender::{DisabledReason, Outcome, oldest_kept};
use call_assistant_postgres::db::At;
use http::StatusCode;
use private_server::PrivateServer;
use tokio_postgres::Client;

use super::store::{
    ACCEPT, BEGIN, ENABLE, FINISH, MISSED, PARK, RECOVER, REMIND, SWEEP, TABLES, accept, begin,
    endpoint, event, finish, park, recover, register, statuses, store,
};
use super::support::{connect, database_now, second, server, statements};

async fn database(endpoints: &[&str]) -> (PrivateServer, Client) {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLES).await.unwrap();
    for id in endpoints {
        register(&client, id, second(0)).await;
    }
    (server, client)
}

/// As if what waits had waited.
async fn make_due(client: &Client) {
    let sql = "UPDATE deliveries SET at = statement_timestamp() WHERE status = 'waiting'";
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn every_statement_is_one_that_postgresql_knows() {
    let (_server, client) = database(&[]).await;
    let mut prepared = 0;
    for file in [ACCEPT, BEGIN, FINISH, PARK, ENABLE, MISSED, RECOVER, REMIND, SWEEP] {
        for statement in statements(file) {
            if !["BEGIN;\n", "COMMIT;\n"].contains(&statement.as_str()) {
                client.prepare(&statement).await.expect(&statement);
                prepared += 1;
            }
        }
    }
    assert_eq!(prepared, 29);
}

// Twenty events fail six times each: the endpoint is disabled, one event that waits is parked, and
// all are redelivered when it is enabled.
#[tokio::test]
async fn from_acceptance_to_the_end() {
    let (_server, client) = database(&["whep_1"]).await;
    for change in 0..20 {
        let now = database_now(&client).await;
        assert_eq!(accept(&client, &event(&change.to_string(), now), now).await.unwrap(), 1);
    }
    for number in 1..=6 {
        make_due(&client).await;
        let begun = begin(&client, 0).await.unwrap();
        assert_eq!(begun.len(), 20, "attempt {number}");
        assert!(begin(&client, 0).await.unwrap().is_empty(), "they are leased");
        if number == 6 {
            // It is waiting while the others disable the endpoint.
            let now = database_now(&client).await;
            accept(&client, &event("late", now), now).await.unwrap();
        }
        let at = database_now(&client).await;
        let settled = finish(&client, &begun, Outcome::TimedOut, at).await.unwrap();
        let disabled = [("whep_1".to_owned(), DisabledReason::Failing)];
        assert_eq!(settled.disabled, disabled[..usize::from(number == 6)], "attempt {number}");
    }
    assert_eq!(park(&client, "whep_1").await.unwrap(), 1);
    let now = database_now(&client).await;
    accept(&client, &event("skipped", now), now).await.unwrap();
    let expected = [("failed".to_owned(), 20), ("parked".to_owned(), 1), ("skipped".to_owned(), 1)];
    assert_eq!(statuses(&client).await, expected.into());
    let attempts: i64 =
        client.query_one("SELECT count(*) FROM attempts", &[]).await.unwrap().get(0);
    assert_eq!(attempts, 120);

    let mut row = endpoint(&client, "whep_1").await;
    let missed = row.enable(now).unwrap();
    assert!(store(&client, "whep_1", &row).await.unwrap());
    assert!(!store(&client, "whep_1", &row).await.unwrap(), "the row has another version now");
    assert_eq!(recover(&client, "whep_1", &missed).await.unwrap(), 22);
    // Again, as by another process after this one died: nothing more.
    assert_eq!(recover(&client, "whep_1", &missed).await.unwrap(), 0);
    let begun = begin(&client, 0).await.unwrap();
    let (some, others) = begun.split_at(12);
    let at = database_now(&client).await;
    for part in [some, others] {
        let _ = finish(&client, part, Outcome::Answered(StatusCode::OK), at).await.unwrap();
    }
    assert_eq!(statuses(&client).await, [("delivered".to_owned(), 22)].into());

    for (passed, left) in [(29, 22), (31, 0)] {
        let now = database_now(&client).await.saturating_add(passed * Duration::from_secs(86_400));
        for statement in statements(SWEEP) {
            client.execute(&statement, &[&At(oldest_kept(now))]).await.unwrap();
        }
        for table in ["deliveries", "events"] {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
            assert_eq!(rows, left, "{table} after {passed} days");
        }
    }
}

// What a clock that was wrong has put too far ahead is found by the other search.
#[tokio::test]
async fn what_is_too_far_ahead_is_found() {
    let (_server, client) = database(&["whep_1"]).await;
    let now = database_now(&client).await;
    for change in 0..2 {
        accept(&client, &event(&change.to_string(), now), now).await.unwrap();
    }
    let sql = "UPDATE deliveries SET at = at + id * interval '10 hours'";
    client.batch_execute(sql).await.unwrap();
    assert_eq!(begin(&client, 0).await.unwrap().len(), 0);
    assert_eq!(begin(&client, 1).await.unwrap().len(), 1);
}

// Three senders and a process that parks, on the same rows: no deadlock, nothing counted twice,
// nothing left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_and_parking_do_not_block_each_other() {
    let ids = ["whep_1", "whep_2", "whep_3"];
    let (server, client) = database(&ids).await;
    for change in 0..200 {
        let now = database_now(&client).await;
        accept(&client, &event(&change.to_string(), now), now).await.unwrap();
    }
    // Their last attempt is to come, and fails: each endpoint is disabled in the middle of it.
    client.batch_execute("UPDATE deliveries SET attempts = 5").await.unwrap();
    let mut senders = Vec::new();
    for _ in 0..3 {
        let client = connect(&server).await;
        senders.push(tokio::spawn(async move {
            let mut disabled = Vec::new();
            loop {
                let begun = begin(&client, 0).await.unwrap();
                if begun.is_empty() {
                    return disabled;
                }
                for part in begun.chunks(7) {
                    let at = database_now(&client).await;
                    let settled = finish(&client, part, Outcome::Reset, at).await.unwrap();
                    disabled.extend(settled.disabled);
                }
            }
        }));
    }
    let parking = connect(&server).await;
    let parks = tokio::spawn(async move {
        for _ in 0..20 {
            for id in ids {
                park(&parking, id).await.unwrap();
            }
        }
    });
    let mut disabled = Vec::new();
    for sender in senders {
        disabled.extend(sender.await.unwrap());
    }
    parks.await.unwrap();
    disabled.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(disabled, ids.map(|id| (id.to_owned(), DisabledReason::Failing)));
    for id in ids {
        park(&client, id).await.unwrap();
        assert_eq!(endpoint(&client, id).await.failures(), 20, "{id}");
    }
    let statuses = statuses(&client).await;
    assert_eq!(statuses.values().sum::<i64>(), 600);
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["failed", "parked"], "{statuses:?}");
}

// What each search reads, where a quarter of a million deliveries have ended and as many wait for
// later, whichever plan is forced.
#[tokio::test]
async fn no_search_reads_what_it_does_not_need() {
    let (_server, client) = database(&["whep_1"]).await;
    let fill =
        "INSERT INTO deliveries (account_id, event_id, endpoint_id, event_created_at, status,
            at, attempts, manual, generation, version)
        SELECT 'acct_1', 'evt_' || n, 'whep_' || n % 1000, now(),
            CASE WHEN n % 2 = 0 THEN 'delivered' ELSE 'waiting' END,
            now() + (n - 100) * interval '30 milliseconds', 0, false, 0, 0
        FROM generate_series(1, 500000) AS n;
        INSERT INTO endpoints SELECT 'whep_' || n, 'acct_' || n / 10, NULL, now(), 0, 0, 0
        FROM generate_series(2, 1000) AS n;
        ANALYZE";
    client.batch_execute(fill).await.unwrap();
    const MISSED_BY_ALL: &str = "'whep_1', '-infinity', 'infinity', ARRAY['failed', 'parked'], 0,
        '-infinity', 0, ARRAY['call.ended']";
    let arrays = "ARRAY[1], ARRAY[0], ARRAY['waiting'], ARRAY[now()], ARRAY[1::smallint],
        ARRAY[false], ARRAY[0], ARRAY[1]";
    let cases = [
        (ACCEPT, "SELECT", "'acct_7'"),
        (BEGIN, "SELECT id, endpoint_id", ""),
        (BEGIN, "SELECT id, disabled", "ARRAY['whep_1', 'whep_2']"),
        (BEGIN, "UPDATE", arrays),
        (FINISH, "SELECT id, endpoint_id", "ARRAY[1, 2, 3]"),
        (
            FINISH,
            "UPDATE endpoints",
            "ARRAY['whep_1'], ARRAY[0], ARRAY[NULL], ARRAY[now()],
            ARRAY[0::smallint], ARRAY[0], ARRAY[0],
            ARRAY[0::smallint], ARRAY[NULL::timestamptz], ARRAY[0::smallint]",
        ),
        (PARK, "SELECT id", "'whep_1', 0"),
        (MISSED, "SELECT", MISSED_BY_ALL),
        (RECOVER, "SELECT count", "'whep_1'"),
        (RECOVER, "SELECT id", &format!("{MISSED_BY_ALL}, 0, 100")),
    ];
    for plan in ["force_generic_plan", "force_custom_plan"] {
        client.batch_execute(&format!("SET plan_cache_mode = {plan}")).await.unwrap();
        for (file, beginning, parameters) in cases {
            for statement in statements(file).iter().filter(|text| text.starts_with(beginning)) {
                client.batch_execute(&format!("PREPARE it AS {statement}")).await.unwrap();
                let parameters =
                    if parameters.is_empty() { "" } else { &format!("({parameters})") };
                let sql = format!("BEGIN; EXPLAIN ANALYZE EXECUTE it {parameters}; ROLLBACK");
                let messages = client.simple_query(&sql).await.unwrap();
                let lines = messages.iter().filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                let text = lines.collect::<Vec<_>>().join("\n");
                assert!(!text.contains("Seq Scan on deliveries"), "{plan}: {statement}{text}");
                let removed = text.split("Rows Removed by Filter: ").skip(1);
                let removed: Vec<u32> = removed
                    .map(|rest| rest.split_whitespace().next().unwrap().parse().unwrap())
                    .collect();
                assert!(removed.iter().all(|rows| *rows < 1_000), "{plan}: {statement}{text}");
                client.batch_execute("DEALLOCATE it").await.unwrap();
            }
        }
    }
}
