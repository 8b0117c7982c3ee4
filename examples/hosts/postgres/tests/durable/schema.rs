//! A later version of the schema disturbs nobody.

use call_assistant_postgres::clock;
use call_assistant_postgres::db::DbError;
use call_assistant_postgres::queue::accept;
use serde_json::{Value, json};

use crate::support::ping_of;
use crate::support::receiver::Reply;
use crate::support::running::eventually;
use crate::support::service::{DELIVERED, Service};

// A rolling deployment: the schema of the next version comes first, and its processes beside those of
// this one. What they write in a word of their own is theirs.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_versions_schema_comes_while_this_one_runs() {
    let service = Service::with_calls(3).await;
    let flags = ["--allow-loopback-endpoints"];
    let before = service.world.start("all", &flags);
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let next = "BEGIN;
        ALTER TABLE deliveries ADD COLUMN held_by text;
        ALTER TABLE ended ADD COLUMN held_by text;
        CREATE TABLE holds (id bigint PRIMARY KEY);
        INSERT INTO migrations (number, digest) VALUES (1000, '\\x00');
        COMMIT;";
    service.run(next).await;
    // A process of the next version accepts two deliveries. One has ended in its way, and one is held back.
    let refuse = "WITH gone AS (DELETE FROM deliveries RETURNING *)
        INSERT INTO ended SELECT id, shard, endpoint, account_id, event_id, event_created_at,
            'refused', at, attempts, manual, generation, 7, 'somebody' FROM gone";
    let hold = "UPDATE deliveries SET status = 'held', version = 7, held_by = 'somebody'";
    let accepted = service.world.database.change(async |change| {
        for (occurrence, then) in [("refused", refuse), ("held", hold)] {
            let now = clock::now();
            accept(change, &ping_of("acct_1", occurrence, now), None, None, now).await?;
            change.batch_execute(then).await?;
        }
        Ok::<_, DbError>(())
    });
    accepted.await.unwrap();

    // Both the process that was there and one that starts now go on with all else.
    let after = service.world.start("all", &flags);
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
    let marked = |row: &&Value| row["unreadable"] == true;
    let (unknown, known): (Vec<&Value>, _) =
        listed["data"].as_array().unwrap().iter().partition(marked);
    assert_eq!((unknown.len(), known.len()), (2, 2), "what this version knows is shown: {listed}");
    let paused = after.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    assert_eq!(paused["reason"], "paused");
    let enabled = after.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    assert_eq!(enabled["missed_deliveries"], json!([]));
    for (table, status) in [("deliveries", "held"), ("ended", "refused")] {
        let left = format!(
            "SELECT count(*) FROM {table}
             WHERE status = '{status}' AND version = 7 AND held_by = 'somebody'"
        );
        assert_eq!(service.count(&left).await, 1, "{table}");
    }

    // The later version lets it go.
    let let_go = "UPDATE deliveries SET status = 'waiting', queued_by = pg_current_xact_id(),
        generation = (SELECT generation FROM endpoints)";
    service.run(let_go).await;
    service.becomes(DELIVERED, 3).await;
}
