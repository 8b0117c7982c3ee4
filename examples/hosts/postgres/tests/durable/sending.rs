//! Senders over one database, from acceptance to what the receiver and the store have in the end.

use std::time::{Duration, Instant, SystemTime};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant_postgres::db::Session;
use call_assistant_postgres::queue::{Accepted, accept};
use deadpool_postgres::Transaction;
use serde_json::json;

use crate::alerts::limit_files;
use crate::support::Running;
use crate::support::receiver::Reply;
use crate::support::running;
use crate::support::service::Service;

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--time-scale", "0.001"];

fn start(service: &Service) -> Running {
    let sender = service.world.start("sender", &SENDER);
    assert_eq!(sender.first, json!({ "ready": true }));
    sender
}

pub(crate) const LEAST: &str = "SELECT coalesce(min(n), 0) FROM (
    SELECT count(*) AS n FROM shards WHERE owner IS NOT NULL GROUP BY owner) AS of";
const OWNERS: &str = "SELECT count(DISTINCT owner) FROM shards WHERE expires_at > now()";
const PENDING: &str = "SELECT count(*) FROM deliveries";
const DELIVERED: &str = "SELECT count(*) FROM ended WHERE status = 'delivered'";

// SEND-1, D-58: what is answered is stored, also at the end.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_flight_is_stored_before_the_end() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/held", &[Reply::Held(200)]);
    let mut sender = start(&service);
    service.ping(&endpoint);
    running::eventually("the request", || {
        (!service.receiver.got("/held").is_empty()).then_some(())
    });
    sender.ask_to_end();
    service.receiver.release();
    assert!(sender.ended().success());
    assert_eq!(service.count(DELIVERED).await, 1);
    assert_eq!(service.receiver.got("/held").len(), 1);
}

// D-57: a wait that no schedule has outlives the sender, and a shortage of this machine fills no log.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortage_of_files_has_one_line_and_no_row_for_each_try() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let sender = start(&service);
    limit_files(&sender, 3);
    for _ in 0..8 {
        service.ping(&endpoint);
    }
    // Each write of a wait is a version of its row.
    service.becomes("SELECT count(*) FROM deliveries WHERE version > 2", 8).await;
    let waits = "SELECT count(*) FROM deliveries WHERE at > event_created_at + interval '1 second'";
    assert_eq!(service.count(waits).await, 8, "the wait is stored");
    assert_eq!(service.count("SELECT count(*) FROM attempts").await, 0);
    let log = sender.log();
    assert_eq!(log.matches("attempts cannot be made").count(), 1, "{log}");
    assert_eq!(log.matches(" attempt ").count(), 0, "{log}");
    drop(sender);
    let _next = start(&service);
    service.becomes(DELIVERED, 8).await;
}

/// A transaction that has accepted an event of its own, and is held open.
async fn held_open<'a>(session: &'a mut Session, occurrence: &str) -> Transaction<'a> {
    let change = session.transaction().await.unwrap();
    // The test holds it for as long as a loaded machine takes.
    change.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    let event = event(occurrence, Timestamp::from(SystemTime::now()));
    let new = accept(&change, &event, None, None, event.created_at()).await.unwrap();
    assert!(matches!(new, Accepted::New(ids) if ids.len() == 1));
    change
}

/// Commits, and waits until its event is delivered, as this number: before all shards are read again, which
/// happens each minute.
async fn committed(service: &Service, change: Transaction<'_>, nth: i64) {
    change.commit().await.unwrap();
    let began = Instant::now();
    service.becomes(DELIVERED, nth).await;
    let took = began.elapsed();
    println!("event {nth} came {took:?} after its commit");
    assert!(took < Duration::from_secs(30), "event {nth}: {took:?}");
}

// A transaction that is held open does not hide what others accept, and what it accepts itself comes as
// soon as it ends, whenever it began.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_committed_late_is_found() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/late", &[Reply::Status(204)]);
    let (mut long, mut short) = (session(&service).await, session(&service).await);
    let (before, at_start) =
        (held_open(&mut long, "long").await, held_open(&mut short, "short").await);
    let first = start(&service);
    service.ping(&endpoint);
    service.becomes(DELIVERED, 1).await;
    let others = async |delivered: &mut i64| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            service.ping(&endpoint);
            *delivered += 1;
            service.becomes(DELIVERED, *delivered).await;
        }
    };
    let mut delivered = 1;
    others(&mut delivered).await;
    delivered += 1;
    committed(&service, at_start, delivered).await;
    others(&mut delivered).await;
    delivered += 1;
    committed(&service, before, delivered).await;

    // And where the shards get another owner meanwhile.
    let taken = held_open(&mut long, "taken").await;
    let _second = start(&service);
    service.becomes(OWNERS, 2).await;
    service.becomes(LEAST, 32).await;
    drop(first);
    service.becomes("SELECT count(*) FROM senders WHERE expires_at > now()", 1).await;
    service.becomes(LEAST, 64).await;
    others(&mut delivered).await;
    committed(&service, taken, delivered + 1).await;
}

async fn session(service: &Service) -> Session {
    service.world.database.session().await.unwrap()
}

// More than is read of one shard at once, made pending by one transaction: before a sender starts,
// and while it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_read_in_pages() {
    const EACH: i64 = 600;
    let service = Service::new().await;
    service.endpoint("/many", &[Reply::Status(204)]);
    let accept_many = async |batch: &str| {
        let now = Timestamp::from(SystemTime::now());
        let mut session = service.world.database.session().await.unwrap();
        let change = session.transaction().await.unwrap();
        for nth in 0..EACH {
            accept(&change, &event(&format!("{batch} {nth}"), now), None, None, now).await.unwrap();
        }
        change.commit().await.unwrap();
        session.keep();
    };
    accept_many("before").await;
    let _sender = start(&service);
    service.becomes(DELIVERED, EACH).await;
    accept_many("while it runs").await;
    service.becomes(DELIVERED, 2 * EACH).await;
    assert_eq!(service.count(PENDING).await, 0);
}

// EVT-1, D-60: a relay that dies after its commit relays again, on the next day.
#[tokio::test(flavor = "multi_thread")]
async fn an_outbox_may_relay_a_change_twice_across_midnight() {
    let service = Service::new().await;
    service.endpoint("/a", &[Reply::Status(204)]);
    service.endpoint("/b", &[Reply::Status(204)]);
    let today = Timestamp::from(SystemTime::now()).unix_seconds() / 86_400 * 86_400;
    let [before, after] = [-1, 1].map(|second| Timestamp::from_unix(today + second).unwrap());
    let relay = async |now| {
        let event = event("once", before);
        let mut session = service.world.database.session().await.unwrap();
        let change = session.transaction().await.unwrap();
        let accepted = accept(&change, &event, None, None, now).await.unwrap();
        change.commit().await.unwrap();
        session.keep();
        accepted
    };
    assert!(matches!(relay(before).await, Accepted::New(ids) if ids.len() == 2));
    assert_eq!(relay(after).await, Accepted::Again);
    assert_eq!(service.count("SELECT count(*) FROM events").await, 1);

    let _sender = start(&service);
    service.becomes(PENDING, 0).await;
    assert_eq!(relay(after).await, Accepted::Again);
    assert_eq!(service.count(DELIVERED).await, 2);
}

// D-62: thirty days from the event, and longer while something of it is pending.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_dropped_when_nothing_pending_needs_it() {
    let service = Service::new().await;
    service.endpoint("/old", &[Reply::Status(204)]);
    let now = Timestamp::from(SystemTime::now()).unix_seconds();
    let old = Timestamp::from_unix(now - 32 * 86_400).unwrap();
    service.run("SELECT add_day(((now() AT TIME ZONE 'UTC')::date - 32))").await;
    let mut session = service.world.database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    accept(&change, &event("old", old), None, None, old).await.unwrap();
    change.commit().await.unwrap();
    session.keep();
    let drop = "SELECT drop_day(((now() AT TIME ZONE 'UTC')::date - 32))::int::bigint";
    assert_eq!(service.count(drop).await, 0, "it is pending");
    assert_eq!(service.count("SELECT count(*) FROM events").await, 1);

    // Its bytes are there to be sent, and a sender drops the day when it next starts.
    let sender = start(&service);
    service.becomes(PENDING, 0).await;
    assert_eq!(service.receiver.got("/old").len(), 1);
    std::mem::drop(sender);
    let _sender = start(&service);
    service.becomes("SELECT count(*) FROM events", 0).await;
    assert_eq!(service.count(DELIVERED).await, 0);
    assert_eq!(service.count("SELECT count(*) FROM attempts").await, 0);
}

// What comes next is the library's outlook: nothing is due of what is being sent, or will be parked.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_next_is_shown() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    service.ping(&endpoint);
    let shown = || {
        let list = service.api.ask("GET", "/accounts/acct_1/deliveries", &json!(null), 200);
        let path = format!("/deliveries/{}", list["data"][0]["id"].as_str().unwrap());
        let one = service.api.ask("GET", &path, &json!(null), 200);
        assert_eq!(one["outlook"], list["data"][0]["outlook"]);
        (one["next_at"].clone(), one["outlook"].clone())
    };
    let (next_at, outlook) = shown();
    assert_eq!((&outlook["is"], &outlook["due"]), (&json!("waiting"), &next_at));

    service
        .run("UPDATE deliveries SET status = 'sending', at = now() + interval '20 seconds'")
        .await;
    let (next_at, outlook) = shown();
    assert_eq!((&outlook["is"], &outlook["parks"]), (&json!("in_flight"), &json!(false)));
    assert_eq!(next_at, json!(null));

    service.api.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    assert_eq!(shown().1["parks"], true);
    service.run("UPDATE deliveries SET status = 'waiting'").await;
    let (next_at, outlook) = shown();
    assert_eq!((&outlook["is"], &outlook["reason"]), (&json!("parks"), &json!("paused")));
    assert_eq!(next_at, json!(null));
}

// A deployment: a later version migrates and writes a status of its own while this one runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_a_later_version_is_left_alone() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/both", &[Reply::Status(204)]);
    let _sender = start(&service);
    service
        .run(
            "ALTER TABLE deliveries ADD COLUMN held_until timestamptz;
             INSERT INTO migrations (number, digest) VALUES (1000, 'later');",
        )
        .await;
    // Accepted and held back in one transaction, as the later version would.
    let mut session = service.world.database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    let now = Timestamp::from(SystemTime::now());
    accept(&change, &event("held", now), None, None, now).await.unwrap();
    change
        .batch_execute("UPDATE deliveries SET status = 'held', held_until = now()")
        .await
        .unwrap();
    change.commit().await.unwrap();
    session.keep();

    service.ping(&endpoint);
    service.becomes(DELIVERED, 1).await;
    let _another = start(&service);
    service.ping(&endpoint);
    service.becomes(DELIVERED, 2).await;
    let held = "SELECT count(*) FROM deliveries WHERE status = 'held' AND version = 0";
    assert_eq!(service.count(held).await, 1);
    let shown = service.api.ask("GET", "/accounts/acct_1/deliveries", &json!(null), 200);
    let shown = shown["data"].as_array().unwrap();
    let unreadable = shown.iter().filter(|row| row["unreadable"] == true);
    assert_eq!((shown.len(), unreadable.count()), (3, 1));

    // The later version lets it go.
    service.run("UPDATE deliveries SET status = 'waiting', queued_by = pg_current_xact_id()").await;
    service.becomes(DELIVERED, 3).await;
}

fn event(occurrence: &str, created_at: Timestamp) -> EventBody {
    let created_at = created_at.floor_to_micros();
    let id = EventId::derived(&["acct_1", "ping", occurrence]);
    let account = AccountId::parse("acct_1").unwrap();
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), created_at).ping("Hello.").unwrap()
}
