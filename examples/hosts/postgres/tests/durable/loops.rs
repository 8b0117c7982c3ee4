//! No loop without a wait: what cannot be done now is not tried again at once.

use std::time::Duration;

use crate::support::Running;
use crate::support::receiver::Reply;
use crate::support::service::{DELIVERED, PENDING, Service};

/// No metrics: it would count whole tables for them.
const SENDER: [&str; 1] = ["--allow-loopback-endpoints"];

/// How long to count.
const WHILE: Duration = Duration::from_secs(4);

/// When every session has told what it has counted: one that became idle within a second of its last
/// report does so ten seconds later.
const TOLD: Duration = Duration::from_secs(11);

/// So many transactions and lines a second may come on top of what a sender does without a fault. A
/// sender looks for news fifty times a second, and less often while the machine is busy with others;
/// one that tries again at once makes hundreds of transactions.
const TRANSACTIONS: i64 = 100;
const LINES: usize = 5;

/// How many transactions a second end.
pub(crate) async fn transactions(service: &Service) -> i64 {
    let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database
        WHERE datname = current_database()";
    tokio::time::sleep(TOLD).await;
    let before = service.count(sql).await;
    tokio::time::sleep(WHILE).await;
    (service.count(sql).await - before) / i64::try_from(WHILE.as_secs()).unwrap()
}

fn lines(sender: &Running) -> usize {
    sender.log().lines().count()
}

/// Checks that a fault leaves a sender almost as quiet as it was.
async fn is_quiet(service: &Service, sender: &Running, quiet: i64) {
    let before = lines(sender);
    let busy = transactions(service).await;
    let a_second = (lines(sender) - before) / usize::try_from((TOLD + WHILE).as_secs()).unwrap();
    println!("{quiet} transactions a second, then {busy} with {a_second} lines");
    assert!(busy <= quiet + TRANSACTIONS, "{quiet}, then {busy}");
    assert!(a_second <= LINES, "{a_second} lines a second: {}", sender.log());
}

// While a transaction that is older than all of it is held open.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_not_read_again_at_once() {
    let service = Service::new().await;
    let unread = service.endpoint("/unread", &[Reply::Status(204)]);
    let locked = service.endpoint_of("acct_2", "/locked", &[Reply::Status(204)]);
    let sender = service.world.start("sender", &SENDER);
    let quiet = transactions(&service).await;

    let held = service.world.held("SELECT pg_current_xact_id()").await;
    // A key that is not in the ring; bodies and a recovery that nobody can have written.
    service
        .run(
            "UPDATE endpoints SET secrets = '\\x01ff' WHERE account_id = 'acct_2';
             CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN NEW.body := 'no JSON'; RETURN NEW; END $$;
             CREATE TRIGGER spoil BEFORE INSERT ON events FOR EACH ROW
                 WHEN (NEW.account_id = 'acct_1') EXECUTE FUNCTION spoil();
             INSERT INTO recoveries (endpoint, shard, recovery, version, started_at)
                 SELECT number, shard, '{}', 1, now() - interval '2 minutes' FROM endpoints;",
        )
        .await;
    for _ in 0..20 {
        service.ping(&unread);
        service.ping(&locked);
    }
    is_quiet(&service, &sender, quiet).await;
    assert_eq!(service.count(PENDING).await, 40);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_is_not_asked_at_once() {
    let mut service = Service::new().await;
    let endpoint = service.endpoint("/refused", &[Reply::Status(204)]);
    let sender = service.world.start("sender", &SENDER);
    service.ping(&endpoint);
    service.becomes(PENDING, 0).await;
    service.world.server.stop();
    let before = lines(&sender);
    tokio::time::sleep(WHILE).await;
    let a_second = (lines(&sender) - before) / usize::try_from(WHILE.as_secs()).unwrap();
    println!("{a_second} lines a second");
    // One for each look, and one for each renewal.
    assert!(a_second <= 10, "{a_second} lines a second");
    service.world.server.launch().unwrap();
    service.api.becomes("/v1/account", 200);
    service.ping(&endpoint);
    service.becomes("SELECT count(*) FROM ended", 2).await;
}

// Rows that came from another cluster, whose transactions have numbers that are not reached here.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_cluster_queued_is_read_once() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/restored", &[Reply::Status(204)]);
    service.ping(&endpoint);
    service
        .run(
            "INSERT INTO deliveries (shard, endpoint, account_id, event_id, event_created_at, status,
                 at, attempts, manual, generation, version, queued_by)
             SELECT shard, endpoint, account_id, event_id, event_created_at, 'waiting',
                 now() + interval '1 hour', 0, false, generation, 0, '9000000000'
             FROM deliveries, generate_series(1, 5000)",
        )
        .await;
    let sender = service.world.start("sender", &SENDER);
    // One that is due is sent, and one that comes now.
    service.becomes(DELIVERED, 1).await;
    service.ping(&endpoint);
    service.becomes(DELIVERED, 2).await;
    let read = "SELECT (coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint
        FROM pg_stat_user_tables WHERE relname = 'deliveries'";
    // They are found.
    service.becomes(&format!("SELECT (({read}) >= 5000)::int::bigint"), 1).await;
    // It counts the whole table for its metrics.
    service.api.end();
    tokio::time::sleep(TOLD).await;
    let before = service.count(read).await;
    tokio::time::sleep(WHILE).await;
    let more = service.count(read).await - before;
    println!("{before} rows read, then {more}");
    assert!(more < 500, "{more} rows read again");
    drop(sender);
}
