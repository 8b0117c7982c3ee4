//! Events that are accepted by transactions that began before their endpoint was enabled, and end late.

use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::DeliveryStatus;
use call_assistant_postgres::clock;
use call_assistant_postgres::queue::{Accepted, accept};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::levers::has_looked;
use crate::support::receiver::Reply;
use crate::support::running::{self, eventually};
use crate::support::service::Service;
use crate::support::{Running, ping_of};

fn event(change: &str) -> EventBody {
    ping_of("acct_1", change, clock::now())
}

// D-55, D-56: nobody waits for the transaction but the recovery, and that not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_waits_for_what_began_before_it() {
    let service = Service::new().await;
    let sender = service.sender();
    for (held_for_long, redelivered) in [(false, 1), (true, 0)] {
        let endpoint = service.endpoint(&format!("/{held_for_long}"), &[Reply::Nothing]);
        service.post(&format!("{endpoint}/pause"), 200);
        let mut relay = service.world.session().await;
        let change = relay.transaction().await.unwrap();
        // The test holds it open for as long as a loaded machine takes.
        change.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
        let late = event(&format!("{held_for_long}"));
        let accepted = accept(&change, &late, None, None, clock::now()).await.unwrap();
        assert!(matches!(accepted, Accepted::New(_)));

        let enabled = service.post(&format!("{endpoint}/enable"), 200);
        assert_eq!(enabled["missed_deliveries"], json!([]), "it is not committed");
        let started = service.post(&format!("{endpoint}/recover"), 202);
        let path = format!("/recoveries/{}", started["id"].as_str().unwrap());
        let shown = || service.show(&path);
        has_looked(&sender, "recoveries");
        assert_eq!(shown()["status"], "running");
        if held_for_long {
            service.run("UPDATE recoveries SET started_at = started_at - interval '1 hour'").await;
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
    service.post(&format!("{endpoint}/pause"), 200);
    service
        .run(
            "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END';
            CREATE TRIGGER waits BEFORE UPDATE ON endpoints FOR EACH ROW EXECUTE FUNCTION waits()",
        )
        .await;
    let gate = service.world.session().await;
    gate.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let mut relay = service.world.session().await;

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
    service.post(&format!("{endpoint}/pause"), 200);
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
    let _relay = service.world.held("SELECT pg_current_xact_id()").await;
    let enabled = api.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    assert_eq!(enabled["missed_count"], 0, "{enabled}");
}
