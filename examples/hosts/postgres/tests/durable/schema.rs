//! A later version of the schema disturbs nobody.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use private_server::Settings;
use serde_json::{Value, json};

use crate::support::running::{File, eventually};
use crate::support::{World, data};

/// Answers every request with 204, until the test ends.
pub(crate) fn receiver() -> String {
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
    let marked = |row: &&Value| row["unreadable"] == true;
    let (unknown, known): (Vec<&Value>, _) =
        listed["data"].as_array().unwrap().iter().partition(marked);
    assert_eq!((unknown.len(), known.len()), (2, 2), "what this version knows is shown: {listed}");
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
