//! Senders over one database, from acceptance to what the receiver and the store have in the end.

use std::time::{Duration, Instant, SystemTime};

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant_postgres::db::{DbError, Session};
use call_assistant_postgres::queue::{Accepted, accept};
use deadpool_postgres::Transaction;
use serde_json::json;

use crate::alerts::limit_files;
use crate::support::receiver::Reply;
use crate::support::service::{DELIVERED, PENDING, Service};
use crate::support::{Running, ping_of};

fn start(service: &Service) -> Running {
    let sender = service.quick_sender();
    assert_eq!(sender.first, json!({ "ready": true }));
    sender
}

pub(crate) const LEAST: &str = "SELECT coalesce(min(n), 0) FROM (
    SELECT count(*) AS n FROM shards WHERE owner IS NOT NULL GROUP BY owner) AS of";
const OWNERS: &str = "SELECT count(DISTINCT owner) FROM shards WHERE expires_at > now()";

// D-57: a wait that no schedule has outlives the sender, and a shortage of this machine fills no log.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortage_of_files_has_one_line_and_no_row_for_each_try() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let sender = start(&service);
    limit_files(&sender, 3);
    (0..8).for_each(|_| service.ping(&endpoint));
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
    let (mut long, mut short) = (service.world.session().await, service.world.session().await);
    let before = held_open(&mut long, "long").await;
    let at_start = held_open(&mut short, "short").await;
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

// More than is read of one shard at once, made pending by one transaction: before a sender starts,
// and while it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_read_in_pages() {
    const EACH: i64 = 600;
    let service = Service::new().await;
    service.endpoint("/many", &[Reply::Status(204)]);
    let accept_many = async |batch: &str| {
        let now = Timestamp::from(SystemTime::now());
        let accepted = service.world.database.change(async |change| {
            for nth in 0..EACH {
                accept(change, &event(&format!("{batch} {nth}"), now), None, None, now).await?;
            }
            Ok::<_, DbError>(())
        });
        accepted.await.unwrap();
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
    let relay = async |now| service.accept(&event("once", before), now).await;
    assert!(matches!(relay(before).await, Accepted::New(ids) if ids.len() == 2));
    assert_eq!(relay(after).await, Accepted::Again);
    assert_eq!(service.count("SELECT count(*) FROM events").await, 1);

    let _sender = start(&service);
    service.becomes(PENDING, 0).await;
    assert_eq!(relay(after).await, Accepted::Again);
    assert_eq!(service.count(DELIVERED).await, 2);
}

// What comes next is the library's outlook: nothing is due of what is being sent, or will be parked.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_next_is_shown() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    service.ping(&endpoint);
    let shown = || {
        let list = service.show("/accounts/acct_1/deliveries");
        let one = service.show(&format!("/deliveries/{}", list["data"][0]["id"].as_str().unwrap()));
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

    service.post(&format!("{endpoint}/pause"), 200);
    assert_eq!(shown().1["parks"], true);
    service.run("UPDATE deliveries SET status = 'waiting'").await;
    let (next_at, outlook) = shown();
    assert_eq!((&outlook["is"], &outlook["reason"]), (&json!("parks"), &json!("paused")));
    assert_eq!(next_at, json!(null));
}

fn event(occurrence: &str, created_at: Timestamp) -> EventBody {
    ping_of("acct_1", occurrence, created_at)
}
