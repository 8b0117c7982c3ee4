//! Migrations beside whoever uses the database, and the rights that its processes need.

use std::time::Duration;

use call_assistant_postgres::db::{self, Database};
use private_server::{PrivateServer, Settings};
use serde_json::{Value, json};

use crate::support::receiver::{Receiver, Reply};
use crate::support::running::{File, eventually};
use crate::support::{World, data, run_at};

/// A new server, and its database without a schema.
fn empty() -> (PrivateServer, Database) {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 4).unwrap();
    (server, database)
}

#[tokio::test]
async fn a_migration_that_does_not_get_its_locks_tries_again() {
    let (_server, database) = empty();
    let session = database.session().await.unwrap();
    // As an older version of this program has left it.
    let table = checker::sql::statement("migrate/begin");
    session.batch_execute(&table).await.unwrap();
    session.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    session.batch_execute("BEGIN; LOCK TABLE migrations IN EXCLUSIVE MODE").await.unwrap();
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
    let (server, database) = empty();
    let migrate = |flags: &[&str]| {
        run_at(&server.url(), "", &[&["migrate"], flags].concat()).is(0, "").stdout
    };
    let status = || serde_json::from_str::<Value>(&migrate(&["--status"])).unwrap();
    let missing = json!({ "number": 1, "applied_at": null, "changed": false });
    assert_eq!(status(), json!({ "migrations": [missing] }));
    assert!(migrate(&["--dry-run"]).contains("CREATE TABLE accounts"));
    let error = db::check(&database).await.unwrap_err();
    assert!(error.to_string().starts_with("migration 1 is not applied"), "{error}");

    assert_eq!(migrate(&[]), "applied 1 migration\n");
    assert_eq!(migrate(&[]), "the database already has this version\n");
    assert!(status()["migrations"][0]["applied_at"].is_string(), "{}", status());
    assert_eq!(migrate(&["--dry-run"]), "");
}

/// Each kind of process logs in as a user of its own, wherever it is deployed.
#[test]
fn no_two_roles_that_are_deployed_share_a_user() {
    let units = [
        ("api", include_str!("../../deploy/systemd/call-assistant-api.service")),
        ("sender", include_str!("../../deploy/systemd/call-assistant-sender.service")),
    ];
    let compose = include_str!("../../deploy/compose.yml");
    let manifests = include_str!("../../deploy/kubernetes.yml");
    for (role, unit) in units {
        assert!(
            unit.contains(&format!("EnvironmentFile=/etc/call-assistant/{role}.env\n")),
            "{role}"
        );
        assert!(unit.contains(&format!("postgresql://{role}_1@")), "{role}");
        assert_eq!(compose.matches(&format!("postgresql://{role}_1:")).count(), 1, "{role}");
        assert_eq!(manifests.matches(&format!("key: {role}-database-url }}")).count(), 1, "{role}");
    }
    assert_eq!(compose.matches("postgresql://service:").count(), 1, "who migrates");
    assert_eq!(manifests.matches("key: database-url }").count(), 2, "who migrates, and grants");
}

/// Status 2 does not mend itself; each other one may, and with the database away it takes any number of starts.
#[test]
fn a_unit_whose_command_line_is_wrong_is_not_started_again() {
    for unit in [
        include_str!("../../deploy/systemd/call-assistant-api.service"),
        include_str!("../../deploy/systemd/call-assistant-sender.service"),
    ] {
        for line in ["StartLimitIntervalSec=0", "Restart=on-failure", "RestartPreventExitStatus=2"]
        {
            assert!(unit.lines().any(|of| of == line), "{line}");
        }
    }
}

/// While the image of PostgreSQL makes the database, a server answers on its socket alone, and ends soon. `migrate`
/// must not take it for the one that stays.
#[test]
fn a_database_is_healthy_when_it_answers_at_its_address() {
    let compose = include_str!("../../deploy/compose.yml");
    let test = compose.lines().find_map(|line| line.trim().strip_prefix("test: ")).unwrap();
    let test: Vec<String> = serde_json::from_str(test).unwrap();
    assert_eq!(test[1], "pg_isready");
    assert!(test.windows(2).any(|flag| flag == ["-h", "127.0.0.1"]), "{test:?}");
}

/// A setting of Patroni without its reason would be changed by the next reader.
#[test]
fn each_setting_of_patroni_has_its_reason() {
    let page = include_str!("../../docs/failover.md");
    let lines = include_str!("../../deploy/patroni.yml").lines().map(str::trim);
    let settings: Vec<_> =
        lines.filter(|line| !line.starts_with('#') && !line.ends_with(':')).collect();
    assert!(settings.len() > 5, "{settings:?}");
    for setting in settings {
        let row = page
            .lines()
            .any(|line| line.starts_with('|') && line.contains(&format!("`{setting}`")));
        assert!(row, "{setting}");
    }
}

/// Expects that the login lacks a right for this.
async fn refused(url: &str, forbidden: &str) {
    let member = Database::new(url, 1).unwrap();
    let error = member.session().await.unwrap().batch_execute(forbidden).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42501", "{forbidden}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_rights_are_enough_and_are_all() {
    let world = World::new(Settings::default()).await;
    let session = world.session().await;
    let roles = include_str!("../../deploy/roles.sql");
    for _ in 0..2 {
        session.batch_execute(roles).await.unwrap();
    }
    let api_url = world.log_in("call_assistant_api").await;
    let sender_url = world.log_in("call_assistant_sender").await;
    let operator_url = world.log_in("call_assistant_operator").await;

    let file = File::new("rights.json", &data(3).to_string());
    let flags = ["--database", &api_url, "--allow-loopback-endpoints", "--data", file.path()];
    let api = world.start("api", &flags);
    let sender = world.start("sender", &["--database", &sender_url, "--allow-loopback-endpoints"]);
    // The roles are made again beside them, and the script is in the middle: nobody lacks a right.
    let (revoked, granted) = roles.split_at(roles.find("-- `api`:").unwrap());
    session.batch_execute(revoked).await.unwrap();
    assert_eq!(api.get("/v1/calls?limit=1").status, 200);
    session.batch_execute(granted).await.unwrap();
    let receiver = Receiver::start();
    let asked = json!({ "url": receiver.url("/", &[Reply::Status(204)]) });
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
    sender.logged(" a recovery ");
    // What a paused endpoint skips is stored, too.
    api.ask("POST", &format!("/endpoints/{id}/pause"), &json!({}), 200);
    api.ask("POST", "/accounts/acct_1/events", &accepted, 201);
    let doctor = run_at(&operator_url, &world.ring, &["doctor"]);
    let said = doctor.stdout + &doctor.stderr;
    assert!(said.contains("leases") && !said.contains("permission denied"), "{said}");
    // It counts the connections of all, whatever it may see of them.
    let clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
        AND usename <> 'call_assistant_operator_1'";
    let clients: i64 = session.query_one(clients, &[]).await.unwrap().get(0);
    let (_, counted) = said.split_once("connections").unwrap();
    let counted: i64 = counted.split_whitespace().next().unwrap().parse().unwrap();
    assert!(counted >= clients / 2 && clients > 6, "{counted}, and {clients} of others: {said}");

    // As operators' commands, and as the dashboard.
    api.ask("GET", "/levers", &json!({}), 200);
    api.ask("GET", "/fleet", &json!({}), 200);
    for arguments in [
        &["rotate-keys"][..],
        &["recover", "--all-accounts"],
        &["levers", "set", "--account", "acct_1", "--per-second", "0"],
        &["levers", "list"],
        &["senders", "list"],
        &["accounts", "change", "acct_1", "--timezone", "Europe/Oslo"],
        &["endpoints", "enable", id],
        &["deliveries", "cancel", "acct_1", "--type", "note"],
        &["journal"],
        &["fleet"],
        &["alerts", "list"],
        &["accounts", "portal", "acct_1"],
        &["erase", "--account", "acct_1", "--whole-account"],
    ] {
        let said = run_at(&operator_url, &world.ring, arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
    }
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
        (&operator_url, "UPDATE journal SET by = 'bob'"),
        (&operator_url, "UPDATE journal SET at = '2020-01-01'"),
        (&operator_url, "UPDATE journal SET target = 'another', before = NULL"),
        (&operator_url, "SELECT setval('journal_id_seq', 1)"),
        (&operator_url, "DELETE FROM erased_accounts"),
        (&operator_url, "UPDATE erased_accounts SET id = 'another'"),
        (&operator_url, "TRUNCATE erased_accounts"),
        (&operator_url, "UPDATE alerts SET number = NULL"),
        (&operator_url, "SELECT FROM alerts FOR UPDATE"),
        (&operator_url, "SELECT FROM alert_turn FOR UPDATE"),
        (&operator_url, "BEGIN; LOCK TABLE alert_turn IN ACCESS EXCLUSIVE MODE"),
        (&sender_url, "SELECT FROM alert_turn FOR UPDATE"),
        (&api_url, "UPDATE journal SET before = NULL"),
        (&api_url, "DELETE FROM erased_accounts"),
        (&api_url, "INSERT INTO erased_accounts VALUES ('acct_2')"),
        (&api_url, "SELECT setval('alert_numbers', 1)"),
    ] {
        refused(url, forbidden).await;
    }
    // A line of the journal is written now, at its end, and for good.
    for url in [&api_url, &operator_url] {
        for forbidden in [
            "INSERT INTO journal (at, by, action, target) VALUES ('2020-01-01', 'ada', 'x', 'y')",
            "INSERT INTO journal (writer, by, action, target) VALUES ('1', 'ada', 'x', 'y')",
            "INSERT INTO journal (id, by, action, target) OVERRIDING SYSTEM VALUE VALUES (1, 'ada', 'x', 'y')",
            "DELETE FROM journal",
            "TRUNCATE journal",
            "BEGIN; LOCK TABLE journal IN ACCESS EXCLUSIVE MODE",
            "BEGIN; LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE",
        ] {
            refused(url, forbidden).await;
        }
    }
    // Nobody stops the feed of alerts by the locks that a login has: of a number, of the rows that it may change.
    let account =
        json!({ "id": "acct_2", "business_name": "B", "timezone": "UTC", "plan": "business" });
    api.ask("POST", "/accounts", &account, 201);
    let endpoint = api.ask("POST", "/accounts/acct_2/endpoints", &asked, 201);
    let alert = format!(
        "INSERT INTO alerts (endpoint, version, at, alert)
         SELECT number, 1, now(), '{{\"kind\":\"recovered\"}}' FROM endpoints WHERE id = '{}'",
        endpoint["id"].as_str().unwrap()
    );
    session.batch_execute(&alert).await.unwrap();
    for (url, lock) in [
        (&operator_url, "SELECT pg_advisory_lock(7235911)"),
        (&sender_url, "SELECT pg_advisory_lock_shared(7235911)"),
        (&sender_url, "BEGIN; SELECT FROM alerts FOR UPDATE"),
    ] {
        let member = Database::new(url, 1).unwrap();
        let held = member.session().await.unwrap();
        held.batch_execute(lock).await.unwrap();
        api.ask("GET", "/alerts?wait=0", &json!({}), 200);
        drop(held);
    }
    eventually("the alert has its number", || {
        let page = api.ask("GET", "/alerts?wait=0", &json!({}), 200);
        (page["next"] != "0").then_some(())
    });
}
