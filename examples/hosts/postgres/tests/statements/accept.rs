//! Accepting events: relayed twice, and while their endpoint is enabled.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant_postgres::db::At;
use private_server::PrivateServer;
use tokio_postgres::Client;

use super::store::{
    ACCEPT, TABLES, accept, accept_deliveries, accept_endpoints, accept_event, after_commit,
    endpoint, event, have_ended, recover, register, statuses, store,
};
use super::support::{Dice, connect, database_now, second, server, statement};

async fn database() -> (PrivateServer, Client) {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLES).await.unwrap();
    register(&client, "whep_1", second(0)).await;
    (server, client)
}

async fn pause(client: &Client) {
    let now = database_now(client).await;
    let mut row = endpoint(client, "whep_1").await;
    row.pause(now);
    assert!(store(client, "whep_1", &row).await.unwrap());
}

// A relay that dies after its commit relays again, on the next day: one event, with the same bytes.
// The same where each day has its partition, because the day is that of the change.
#[tokio::test]
async fn a_change_that_is_relayed_twice_is_one_event() {
    let midnight = 31 * 86_400;
    for partitions in [false, true] {
        let (_server, client) = database().await;
        if partitions {
            let key = "PRIMARY KEY (account_id, id)";
            let table = TABLES.split("CREATE TABLE events (").nth(1).unwrap();
            let (columns, _) = table.split_once(key).unwrap();
            let sql = &format!(
                "DROP TABLE events; CREATE TABLE events ({columns}
                    PRIMARY KEY (account_id, id, created_at)) PARTITION BY RANGE (created_at);
                CREATE TABLE a PARTITION OF events FOR VALUES FROM ('2026-01-31 00:00+00')
                    TO ('2026-02-01 00:00+00');
                CREATE TABLE b PARTITION OF events FOR VALUES FROM ('2026-02-01 00:00+00')
                    TO ('2026-02-02 00:00+00');"
            );
            client.batch_execute(sql).await.unwrap();
        }
        let changed_at = second(midnight - 1);
        for (relayed_at, deliveries) in [(midnight - 1, 1), (midnight + 1, 0), (midnight + 9, 0)] {
            let event = event("call_1 completed", changed_at);
            let accepted = accept_with(&client, &event, second(relayed_at), partitions).await;
            assert_eq!(accepted, deliveries, "{relayed_at}, partitions: {partitions}");
        }
        let rows = client.query("SELECT body FROM events", &[]).await.unwrap();
        let bodies: Vec<&[u8]> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(bodies, [event("call_1 completed", changed_at).as_bytes()], "{partitions}");
    }
}

/// Step 1, with the key that a table of partitions has.
async fn accept_with(client: &Client, event: &EventBody, now: Timestamp, partitions: bool) -> u64 {
    if !partitions {
        return accept(client, event, now).await.unwrap();
    }
    let insert = statement(ACCEPT, "INSERT INTO events").replace("id) DO", "id, created_at) DO");
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let (at, kind) = (At(event.created_at()), event.event_type().as_str());
    client.execute(&insert, &[&account, &id, &at, &kind, &event.as_bytes()]).await.unwrap()
}

// Two relays at the same time: the second waits for the first and then finds the event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_at_the_same_time_accept_an_event_once() {
    let (server, client) = database().await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = connect(&server).await;
        tasks.push(tokio::spawn(async move {
            let mut deliveries = 0;
            for change in 0..50 {
                let event = event(&change.to_string(), second(change));
                deliveries += accept(&client, &event, second(change)).await.unwrap();
            }
            deliveries
        }));
    }
    let mut deliveries = 0;
    for task in tasks {
        deliveries += task.await.unwrap();
    }
    assert_eq!(deliveries, 50);
    assert_eq!(statuses(&client).await["waiting"], 50);
}

// The order of step 1 matters: an acceptance that has read the endpoint as disabled is waited for
// if its event was inserted before, and is overlooked if not.
#[tokio::test]
async fn enabling_waits_for_an_acceptance_that_read_the_endpoint_before() {
    for insert_first in [true, false] {
        let (server, owner) = database().await;
        let relay = connect(&server).await;
        pause(&owner).await;
        let now = database_now(&owner).await;
        let event = event("call_1 completed", now);

        relay.batch_execute("BEGIN").await.unwrap();
        if insert_first {
            assert!(accept_event(&relay, &event).await.unwrap());
        }
        let endpoints = accept_endpoints(&relay).await.unwrap();

        let mut row = endpoint(&owner, "whep_1").await;
        let missed = row.enable(now).unwrap();
        // It waits for no lock: nobody else goes on in this test.
        assert!(store(&owner, "whep_1", &row).await.unwrap());
        let after = after_commit(&owner).await.unwrap();
        let ended = have_ended(&owner, &after).await.unwrap();
        assert_eq!(ended, !insert_first, "the mistake is that nothing is waited for");
        let early = recover(&owner, "whep_1", &missed).await.unwrap();
        assert_eq!(early, 0);

        if !insert_first {
            assert!(accept_event(&relay, &event).await.unwrap());
        }
        accept_deliveries(&relay, &event, &endpoints, now).await.unwrap();
        relay.batch_execute("COMMIT").await.unwrap();
        assert!(have_ended(&owner, &after).await.unwrap());
        assert_eq!(statuses(&owner).await["skipped"], 1);
        assert_eq!(recover(&owner, "whep_1", &missed).await.unwrap(), 1);
        assert_eq!(statuses(&owner).await["waiting"], 1);
    }
}

// Events come while their endpoint is paused and enabled again and again: when the last enabling has
// gone through what was missed, each of them is pending, for the endpoint's present generation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_left_behind_while_its_endpoint_is_enabled() {
    let (server, owner) = database().await;
    let mut relays = Vec::new();
    for relay in 0..4_u64 {
        let client = connect(&server).await;
        relays.push(tokio::spawn(async move {
            let mut dice = Dice::new(relay);
            for change in 0..150 {
                let now = database_now(&client).await;
                let event = event(&format!("{relay} {change}"), now);
                client.batch_execute("BEGIN").await.unwrap();
                assert!(accept_event(&client, &event).await.unwrap());
                let endpoints = accept_endpoints(&client).await.unwrap();
                if dice.below(3) == 0 {
                    let pause = format!("SELECT pg_sleep({})", dice.below(20) as f64 / 1e3);
                    client.batch_execute(&pause).await.unwrap();
                }
                accept_deliveries(&client, &event, &endpoints, now).await.unwrap();
                client.batch_execute("COMMIT").await.unwrap();
            }
        }));
    }
    let mut redelivered = 0;
    for _ in 0..25 {
        pause(&owner).await;
        owner.batch_execute("SELECT pg_sleep(0.01)").await.unwrap();
        let mut row = endpoint(&owner, "whep_1").await;
        // Until whenever the events are that accept meanwhile.
        let now = database_now(&owner).await.saturating_add(Duration::from_secs(60));
        let missed = row.enable(now).unwrap();
        assert!(store(&owner, "whep_1", &row).await.unwrap());
        let after = after_commit(&owner).await.unwrap();
        while !have_ended(&owner, &after).await.unwrap() {
            owner.batch_execute("SELECT pg_sleep(0.001)").await.unwrap();
        }
        redelivered += recover(&owner, "whep_1", &missed).await.unwrap();
    }
    for relay in relays {
        relay.await.unwrap();
    }
    assert!(redelivered > 25, "{redelivered}");
    let expected = [("waiting".to_owned(), 600)].into();
    assert_eq!(statuses(&owner).await, expected);
    let generation = i32::try_from(endpoint(&owner, "whep_1").await.generation()).unwrap();
    let sql = "SELECT count(*) FROM deliveries WHERE generation <> $1";
    let other: i64 = owner.query_one(sql, &[&generation]).await.unwrap().get(0);
    assert_eq!(other, 0);
}
