//! What an owner does to endpoints, over senders and several processes.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::request;
use crate::support::service::Service;

// A filter that leaves out nearly all of many deliveries is answered in steps, each of a bounded number of rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_matches_little_is_answered_in_steps() {
    let service = Service::new().await;
    let [busy, idle] = ["/busy", "/idle"].map(|path| service.endpoint(path, &[Reply::Status(204)]));
    let fill = |endpoint: &str, from: i64, to: i64, each: i64| {
        let id = endpoint.strip_prefix("/endpoints/").unwrap();
        format!(
            "INSERT INTO events (account_id, id, created_at, type, body)
             SELECT 'acct_1', 'evt_' || n, now(), 'call.ended', '{{}}'
             FROM generate_series({from}, {to}) AS n;
             INSERT INTO ended (id, shard, endpoint, account_id, event_id, event_created_at, status, at, attempts,
                manual, generation, version)
             SELECT n, e.shard, e.number, 'acct_1', 'evt_' || n, now(),
                CASE WHEN n % {each} = 0 THEN 'failed' ELSE 'delivered' END, now(), 1, false, 1, 1
             FROM generate_series({from}, {to}) AS n, endpoints AS e WHERE e.id = '{id}';"
        )
    };
    // In one transaction: an event and its delivery have one instant.
    let (old, new) = (fill(&idle, 1, 3_000, 1_000), fill(&busy, 3_001, 63_000, 30_000));
    service.run(&format!("BEGIN; {old} {new} COMMIT; ANALYZE;")).await;
    let walk = |query: &str| {
        let (mut found, mut steps, mut after) = (Vec::new(), 0, String::new());
        loop {
            let began = Instant::now();
            let path = format!("/accounts/acct_1/deliveries?{query}&after={after}");
            let page = service.show(&path);
            assert!(began.elapsed() < Duration::from_secs(2), "{query}, step {steps}");
            let rows = page["data"].as_array().unwrap();
            // Their bodies are no events: each has its id alone.
            let number =
                |row: &Value| row["id"].as_str().unwrap().rsplit('_').next().map(str::to_owned);
            found.extend(rows.iter().filter_map(number));
            steps += 1;
            let Some(next) = page["next"].as_str() else {
                assert_eq!(page["looked_to"], json!(null));
                return (found, steps);
            };
            assert!(rows.len() == 1000 || page["looked_to"].is_string(), "{page}");
            after = next.to_owned();
        }
    };
    let failed = [60_000, 30_000, 3_000, 2_000, 1_000].map(|number| format!("{number:x}"));
    for (query, expected, most) in [
        ("status=failed", &failed[..], 30),
        ("type=ping", &[], 30),
        ("status=failed&until=2020-01-01T00:00:00Z", &[], 1),
        ("id=evt_30000", &failed[1..2], 30),
    ] {
        let (found, steps) = walk(query);
        assert_eq!(found, expected, "{query}");
        assert!(steps <= most, "{query}: {steps}");
    }
    // An operator's list goes on by itself.
    let list = ["deliveries", "list", "acct_1", "--status", "failed"];
    let listed = service.world.json_of(&list).to_string();
    assert!(failed.iter().all(|number| listed.contains(&format!("_{number}\""))), "{listed}");
}

// D-84: a lease that ended long ago is an outage's or a backup's, which NoSender tells of.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_sender_that_has_just_gone_has_vanished() {
    let service = Service::new().await;
    let leases = "UPDATE shards SET owner = 'gone-long', expires_at = now() - interval '2 min';
        UPDATE shards SET owner = 'just-gone', expires_at = now() WHERE shard < 8";
    service.run(leases).await;
    let sender = service.world.start("sender", &[]);
    sender.logged("just-gone");
    assert!(!sender.log().contains("gone-long"), "{}", sender.log());
}

// D-84: whatever waits for the database, no lease waits with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_used_up_costs_no_lease() {
    let service = Service::new().await;
    let replies = [500, 410].map(Reply::Status);
    let endpoints: Vec<String> = (0..24)
        .map(|nth| {
            let account = format!("acct_{}", nth % 4 + 1);
            service.endpoint_of(&account, &format!("/{nth}"), &replies)
        })
        .collect();
    let sender = service.sender();
    endpoints.iter().for_each(|endpoint| service.ping(endpoint));
    service.becomes("SELECT count(*) FROM attempts", 24).await;
    // What waits for its second attempt is parked when its endpoint is gone, and that takes long.
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(4); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON ended FOR EACH ROW WHEN (NEW.status = 'parked')
            EXECUTE FUNCTION slow();";
    service.run(slow).await;
    endpoints.iter().for_each(|endpoint| service.ping(endpoint));
    sender.shows(&[("pool_connections{pool=\"sender\"}", 11.0)]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(6) {
        let lapsed = "SELECT count(*) FROM shards WHERE expires_at < clock_timestamp()";
        assert_eq!(service.count(lapsed).await, 0, "after {:?}", began.elapsed());
    }
    assert!(!sender.log().contains("leases error="), "{}", sender.log());
}

// D-92: also where two processes add endpoints at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_so_many_endpoints_and_no_more() {
    let service = Service::new().await;
    let second = service.world.start("api", &["--max-endpoints", "100"]);
    let body = json!({ "url": "https://hooks.example.com/" }).to_string();
    let start = Barrier::new(8);
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let add = |nth: usize| {
            let (service, second, body, start) = (&service, &second, &body, &start);
            scope.spawn(move || {
                let process = if nth.is_multiple_of(2) { &service.api } else { second };
                start.wait();
                let add = || {
                    let path = "/accounts/acct_1/endpoints";
                    let added = request(process.dashboard(), "POST", path, "", body.as_bytes());
                    if added.status == 409 {
                        let said = added.json()["error"]["message"].to_string();
                        let expected = "\"the account has 100 endpoints, and the limit is 100\"";
                        assert_eq!(said, expected);
                    }
                    added.status
                };
                (0..15).map(|_| add()).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..8).map(add).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status| answers.iter().filter(|each| **each == status).count();
    assert_eq!((count(201), count(409)), (100, 20));
    assert_eq!(service.count("SELECT count(*) FROM endpoints").await, 100);

    // Another account has its own hundred, and this one has room for each that is deleted.
    service.endpoint_of("acct_2", "/other", &[Reply::Status(204)]);
    let listed = service.show("/accounts/acct_1/endpoints");
    let id = listed["data"][0]["id"].as_str().unwrap();
    service.api.ask("DELETE", &format!("/endpoints/{id}"), &json!({}), 200);
    service.endpoint("/again", &[Reply::Status(204)]);

    let raised = service.world.start("api", &["--max-endpoints", "101"]);
    let asked = json!({ "url": "https://hooks.example.com/" });
    raised.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
}
