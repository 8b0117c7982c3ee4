//! Migrations beside whoever uses the database, and the rights that its processes need.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use call_assistant_postgres::db::{self, Database, Session};
use private_server::{PrivateServer, Settings};
use serde_json::{Value, json};

use crate::support::running::{File, eventually};
use crate::support::{World, data};

/// A database from which this takes what migration 6 did.
async fn before_six() -> (PrivateServer, Database) {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 6).unwrap();
    db::migrate(&database).await.unwrap();
    let session = database.session().await.unwrap();
    let back = "DELETE FROM migrations WHERE number = 6; DROP INDEX calls_late_in_time;
        INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
        VALUES ('acct_1', 'UTC', 'call_and_book', true, false);";
    session.batch_execute(back).await.unwrap();
    session.keep();
    (server, database)
}

/// Writes a call, as those do who use the database meanwhile.
async fn write(session: &Session, number: u32) {
    let sql = format!(
        "INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
         VALUES ('acct_1', true, 'call_{number}', now(), now(), '{{}}')"
    );
    session.batch_execute(&sql).await.unwrap();
}

/// A transaction that is held open for as long as a loaded machine takes.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0";

async fn is_valid(session: &Session) -> bool {
    let sql = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'calls_late_in_time'::regclass";
    session.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn an_index_is_made_beside_those_who_write_and_a_second_migrate_waits() {
    let (_server, database) = before_six().await;
    let (slow, quick) = (database.session().await.unwrap(), database.session().await.unwrap());
    slow.batch_execute(BEGIN).await.unwrap();
    write(&slow, 1).await;
    // Nobody who writes waits in the queue behind a migration.
    quick.batch_execute("SET lock_timeout = '1s'").await.unwrap();

    let migrate = || {
        tokio::spawn({
            let database = database.clone();
            async move { db::migrate(&database).await }
        })
    };
    let (first, second) = (migrate(), migrate());
    // Longer than a session waits for a lock.
    let began = Instant::now();
    for number in 2.. {
        if began.elapsed() > Duration::from_secs(4) {
            break;
        }
        write(&quick, number).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!first.is_finished() && !second.is_finished());
    slow.batch_execute("COMMIT").await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert!(is_valid(&quick).await);
    db::check(&database).await.unwrap();
}

#[tokio::test]
async fn an_index_whose_making_was_ended_half_way_is_made_again() {
    let (_server, database) = before_six().await;
    let session = database.session().await.unwrap();
    // It is left behind as this, and `IF NOT EXISTS` finds it there.
    let broken = "CREATE INDEX calls_late_in_time ON calls (account_id, livemode, started_at, id, created_at);
        UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'calls_late_in_time'::regclass;";
    session.batch_execute(broken).await.unwrap();
    db::migrate(&database).await.unwrap();
    assert!(is_valid(&session).await);
}

#[tokio::test]
async fn a_migration_that_does_not_get_its_locks_tries_again() {
    let (_server, database) = before_six().await;
    let session = database.session().await.unwrap();
    session.batch_execute(BEGIN).await.unwrap();
    session.batch_execute("LOCK TABLE migrations IN EXCLUSIVE MODE").await.unwrap();
    let migrating = tokio::spawn({
        let database = database.clone();
        async move { db::migrate(&database).await }
    });
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!migrating.is_finished());
    session.batch_execute("COMMIT").await.unwrap();
    migrating.await.unwrap().unwrap();
    db::check(&database).await.unwrap();
}

#[tokio::test]
async fn what_is_not_applied_is_told_and_nothing_changes() {
    let (server, database) = before_six().await;
    let run = |flag: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
        command.args(["migrate", "--database", &server.url(), flag]).output().unwrap()
    };
    let text = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let status: Value = serde_json::from_str(&text(run("--status"))).unwrap();
    let of = |number: i32| {
        let mut all = status["migrations"].as_array().unwrap().iter();
        all.find(|migration| migration["number"] == number).unwrap().clone()
    };
    assert!(of(1)["applied_at"].is_string(), "{status}");
    assert_eq!(of(6), json!({ "number": 6, "applied_at": null, "changed": false }));
    let planned = text(run("--dry-run"));
    assert!(planned.contains("calls_late_in_time") && !planned.contains("accounts"), "{planned}");
    let error = db::check(&database).await.unwrap_err();
    assert!(error.to_string().starts_with("migration 6 is not applied"), "{error}");
}

/// A member of a role of `deploy/roles.sql`, and its URL.
async fn log_in(world: &World, role: &str) -> String {
    let session = world.database.session().await.unwrap();
    let sql = format!("CREATE ROLE {role}_1 LOGIN PASSWORD 'x' IN ROLE {role}");
    session.batch_execute(&sql).await.unwrap();
    session.keep();
    let mut url = url::Url::parse(&world.server.url()).unwrap();
    url.set_username(&format!("{role}_1")).unwrap();
    url.set_password(Some("x")).unwrap();
    url.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_rights_are_enough_and_are_all() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    let roles = include_str!("../../deploy/roles.sql");
    for _ in 0..2 {
        session.batch_execute(roles).await.unwrap();
    }
    let api_url = log_in(&world, "call_assistant_api").await;
    let sender_url = log_in(&world, "call_assistant_sender").await;
    let operator_url = log_in(&world, "call_assistant_operator").await;

    let file = File::new("rights.json", &data(3).to_string());
    let flags = ["--database", &api_url, "--allow-loopback-endpoints", "--data", file.path()];
    let api = world.start("api", &flags);
    let sender = world.start("sender", &["--database", &sender_url, "--allow-loopback-endpoints"]);
    assert_eq!(api.get("/v1/calls?limit=1").status, 200);
    let receiver = crate::schema::receiver();
    let asked = json!({ "url": receiver });
    let endpoint = api.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
    let id = endpoint["id"].as_str().unwrap();
    let accepted = json!({ "type": "note", "data": {} });
    api.ask("POST", "/accounts/acct_1/events", &accepted, 201);
    eventually("the event is delivered", || {
        let page = api.ask("GET", "/accounts/acct_1/deliveries", &json!(null), 200);
        page.to_string().contains("\"delivered\"").then_some(())
    });
    let rotate = json!({ "overlap_seconds": 3600 });
    api.ask("POST", &format!("/endpoints/{id}/rotate"), &rotate, 200);
    api.ask("POST", &format!("/endpoints/{id}/recover"), &json!({}), 202);
    // It has ended or failed.
    sender.logs(" a recovery ");
    // What a paused endpoint skips is stored, too.
    api.ask("POST", &format!("/endpoints/{id}/pause"), &json!({}), 200);
    api.ask("POST", "/accounts/acct_1/events", &accepted, 201);
    let doctor = world.command("doctor", &["--database", &operator_url]).output().unwrap();
    let said = String::from_utf8([doctor.stdout, doctor.stderr].concat()).unwrap();
    assert!(said.contains("leases") && !said.contains("permission denied"), "{said}");

    for role in [["rotate-keys"].as_slice(), &["recover", "--all-accounts"]] {
        let flags = [&role[1..], &["--database", &operator_url]].concat();
        let output = world.command(role[0], &flags).output().unwrap();
        assert!(output.status.success(), "{role:?}: {output:?}");
    }
    let erase = ["--account", "acct_1", "--whole-account", "--database", &operator_url];
    let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
    let output = command.arg("erase").args(erase).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for log in [api.log(), sender.log()] {
        assert!(!log.contains("permission denied"), "{log}");
    }

    for (url, forbidden) in [
        (&api_url, "DROP TABLE calls"),
        (&api_url, "UPDATE migrations SET number = 1"),
        (&api_url, "SELECT drop_day('2020-01-01')"),
        (&sender_url, "SELECT * FROM keys"),
        (&sender_url, "SELECT * FROM calls"),
        (&sender_url, "UPDATE accounts SET plan = plan"),
        (&operator_url, "ALTER TABLE calls ADD COLUMN more int"),
    ] {
        let member = Database::new(url, 1).unwrap();
        let error = member.session().await.unwrap().batch_execute(forbidden).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{forbidden}: {error}");
    }
}
