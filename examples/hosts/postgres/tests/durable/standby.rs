//! A standby server that a COMMIT waits for, and that does not answer: writes wait, reads do not.

use std::time::{Duration, Instant};

use call_assistant::webhook::event::EventBody;
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{Database, DbError};
use call_assistant_postgres::queue::{self, Accepted};
use serde_json::json;

use crate::support::running::{eventually, request};
use crate::support::service::Service;
use crate::support::{Running, ping_of};

/// What `/readyz` says.
fn readyz(process: &Running) -> (u16, serde_json::Value) {
    let answer = process.readyz();
    (answer.status, answer.json())
}

async fn standby(service: &Service, name: &str) {
    service.run(&format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'")).await;
    service.run("SELECT pg_reload_conf()").await;
    let set = format!(
        "SELECT count(*) FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = '{name}'"
    );
    service.becomes(&set, 1).await;
}

async fn accept(database: &Database, event: &EventBody) -> Result<Accepted, DbError> {
    database
        .change(async |change| {
            let now = queue::started_at(change).await?;
            queue::accept(change, event, None, None, now).await
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_wait_for_a_standby_and_readiness_says_so() {
    let service = Service::new().await;
    let flags = ["--metrics", "127.0.0.1:0"];
    let (api, sender) = (service.world.start("api", &flags), service.world.start("sender", &flags));
    let stored = (200, json!({ "ready": true, "writes": "stored" }));
    for process in [&api, &sender] {
        assert_eq!(readyz(process), stored);
    }

    standby(&service, "nobody").await;
    // The server's own processes have read the setting by and by.
    let waiting = (200, json!({ "ready": true, "writes": "waiting" }));
    eventually("writes wait", || (readyz(&api) == waiting).then_some(()));
    let began = Instant::now();
    assert_eq!(readyz(&api), waiting);
    assert_eq!(readyz(&sender).0, 503);

    let call = request(api.dashboard(), "POST", "/accounts/acct_1/calls", "", b"{}");
    assert_eq!((call.status, call.header("retry-after")), (503, Some("1")), "{}", call.text());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    api.shows(&[("writes_waiting", 1.0)]);
    // What is counted for monitoring is stored all the same.
    let now = service.count("SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint").await;
    let counted =
        format!("SELECT count(*) FROM gauges WHERE counted_at > to_timestamp({now} / 1e6)");
    service.becomes(&counted, 1).await;
    // Nobody loses a shard meanwhile, for leases are renewed all the same.
    let others =
        "SELECT count(*) FROM shards WHERE owner IS NULL OR expires_at < clock_timestamp()";
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(service.count(others).await, 0);
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    // 23 of each `api`, 15 of a sender, those of this test.
    assert!(service.count(waiting).await <= 23 + 23 + 15 + 4);

    standby(&service, "").await;
    for process in [&api, &sender] {
        eventually("ready", || (readyz(process) == stored).then_some(()));
    }
    request(api.dashboard(), "POST", "/accounts/acct_1/calls", "", b"{}");
}

// A COMMIT that was given up has happened on the leader alone. Who repeats the event must not be told
// that it is accepted before a standby has it. The same for a call that the dashboard records: 409 says that it is
// stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_repeated_is_not_acknowledged_before_the_first_one_is() {
    let service = Service::new().await;
    let database = Database::new(&service.world.server.url(), 2).unwrap().answering();
    let event = ping_of("acct_1", "evt_1", clock::now());
    let record = || {
        let (path, json) = ("/accounts/acct_1/calls", "Content-Type: application/json\r\n");
        request(service.api.dashboard(), "POST", path, json, br#"{"id":"call_1"}"#).status
    };

    standby(&service, "nobody").await;
    for _ in 0..2 {
        let waited = accept(&database, &event).await.unwrap_err();
        assert!(matches!(waited, DbError::TimedOut), "{waited}");
        service.becomes("SELECT count(*) FROM events WHERE type LIKE '%ping'", 1).await;
        assert_eq!(record(), 503);
        service.becomes("SELECT count(*) FROM calls WHERE id = 'call_1'", 1).await;
    }
    standby(&service, "").await;
    assert_eq!(accept(&database, &event).await.unwrap(), Accepted::Again);
    assert_eq!(record(), 409);
}
