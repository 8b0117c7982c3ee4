//! Events that are accepted by transactions that began before their endpoint was enabled, and end late.

use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::DeliveryStatus;
use call_assistant_postgres::clock;
use call_assistant_postgres::queue::{Accepted, accept};
use private_server::Settings;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::levers::has_looked;
use crate::support::receiver::Reply;
use crate::support::running::{self, File, eventually};
use crate::support::service::Service;
use crate::support::{Running, World, data};

fn event(change: &str) -> EventBody {
    let account = AccountId::parse("acct_1").unwrap();
    let id = EventId::derived(&[account.as_str(), "ping", change]);
    let version = ApiVersion::parse("2026-01-15").unwrap();
    let now = clock::now().floor_to_micros();
    NewEvent::new(id, account, version, Origin::voice(), now).ping(change).unwrap()
}

fn recovery(api: &Running, endpoint: &str) -> impl Fn() -> Value {
    let started = api.ask("POST", &format!("{endpoint}/recover"), &json!({}), 202);
    let path = format!("/recoveries/{}", started["id"].as_str().unwrap());
    move || api.ask("GET", &path, &json!({}), 200)
}

// D-55, D-56: nobody waits for the transaction but the recovery, and that not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_waits_for_what_began_before_it() {
    let world = World::new(Settings::default()).await;
    let file = File::new("late.json", &data(0).to_string());
    let api = world.start("api", &["--data", file.path(), "--allow-loopback-endpoints"]);
    let flags = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];
    let sender = world.start("sender", &flags);
    let session = world.database.session().await.unwrap();

    for (held_for_long, redelivered) in [(false, 1), (true, 0)] {
        let made = json!({ "url": "http://127.0.0.1:9/" });
        let made = api.ask("POST", "/accounts/acct_1/endpoints", &made, 201);
        let endpoint = format!("/endpoints/{}", made["id"].as_str().unwrap());
        api.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
        let mut relay = world.database.session().await.unwrap();
        let change = relay.transaction().await.unwrap();
        // The test holds it open for as long as a loaded machine takes.
        change.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
        let late = event(&format!("{held_for_long}"));
        let accepted = accept(&change, &late, None, None, clock::now()).await.unwrap();
        assert!(matches!(accepted, Accepted::New(_)));

        let enabled = api.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
        assert_eq!(enabled["missed_deliveries"], json!([]), "it is not committed");
        let shown = recovery(&api, &endpoint);
        has_looked(&sender, "recoveries");
        assert_eq!(shown()["status"], "running", "{made}");
        if held_for_long {
            let hour = "UPDATE recoveries SET started_at = started_at - interval '1 hour'";
            session.batch_execute(hour).await.unwrap();
        } else {
            change.commit().await.unwrap();
        }
        let ended = eventually("it ends", || Some(shown()).filter(|at| at["status"] != "running"));
        assert_eq!(ended["status"], "completed", "{ended}");
        assert_eq!(ended["redelivered"], redelivered, "{ended}");
    }
}

// D-55: an event that was skipped because enabling was not committed yet is among what was missed, though its
// transaction began after that of the enabling.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_while_an_endpoint_is_enabled_is_told() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/late", &[Reply::Status(204)]);
    service.api.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    service
        .run(
            "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END';
            CREATE TRIGGER waits BEFORE UPDATE ON endpoints FOR EACH ROW EXECUTE FUNCTION waits()",
        )
        .await;
    let gate = service.world.database.session().await.unwrap();
    gate.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let mut relay = service.world.database.session().await.unwrap();

    let (address, path) = (service.api.dashboard().to_owned(), format!("{endpoint}/enable"));
    let enabling = spawn_blocking(move || running::request(&address, "POST", &path, "", b"{}"));
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    service.becomes(waits, 1).await;
    let change = relay.transaction().await.unwrap();
    let accepted = accept(&change, &event("meanwhile"), None, None, clock::now()).await.unwrap();
    let Accepted::New(deliveries) = accepted else { panic!("{accepted:?}") };
    assert_eq!(deliveries[0].2.status(), DeliveryStatus::Skipped);
    gate.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    service.becomes("SELECT count(*) FROM endpoints WHERE disabled IS NULL", 1).await;
    change.commit().await.unwrap();
    let enabled = enabling.await.unwrap().json();
    assert_eq!(enabled["missed_count"], 1, "{enabled}");
    assert_eq!(enabled["missed_deliveries"].as_array().unwrap().len(), 1, "{enabled}");
}

// D-55: what was missed is counted within the time of an answer, though each look for older transactions is slow.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_look_for_older_transactions_ends_in_time() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/slow", &[Reply::Status(204)]);
    service.api.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    service
        .run(
            "CREATE SCHEMA slow;
            CREATE FUNCTION slow.pg_snapshot_xmin(pg_snapshot) RETURNS xid8 LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_sleep(0.1); RETURN pg_catalog.pg_snapshot_xmin($1); END'",
        )
        .await;
    let mut command = service.world.command("api", &[]);
    let slow = "options=-c%20search_path%3Dslow,pg_catalog,public";
    command.env("DATABASE_URL", format!("{}?{slow}", service.world.server.url()));
    let api = Running::of(command);
    let mut relay = service.world.database.session().await.unwrap();
    let change = relay.transaction().await.unwrap();
    change.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    change.query("SELECT pg_current_xact_id()", &[]).await.unwrap();
    let enabled = api.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    assert_eq!(enabled["missed_count"], 0, "{enabled}");
    change.rollback().await.unwrap();
}
