//! What is erased, and that nothing else is; and the keys that keep secrets from whoever reads the
//! database.

use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, ContactId, EventId};
use call_assistant::model::Call;
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{At, Database, DbError, Session};
use call_assistant_postgres::key_ring::{KeyRing, OpenError};
use call_assistant_postgres::ops::erase::{
    self, EraseError, Erased, Found, Left, Patience, Subject,
};
use call_assistant_postgres::ops::ring::{self, Rotated};
use call_assistant_postgres::queue::{Accepted, accept};
use host::store::scope::By;
use private_server::Settings;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::support::{self, ping_of};

/// The caller who is to be forgotten, and one who is not.
const INGRID: &str = "+4722334455";
const JONAS: &str = "+4798765432";

/// Nobody sends in these tests.
const PATIENCE: Patience = Patience { older: Duration::from_secs(30), in_flight: Duration::ZERO };

/// Who erases.
fn eve() -> By {
    By::person("eve").unwrap()
}

/// All of it, and nothing is left.
fn all(found: Found) -> Erased {
    Erased { found, left: None }
}

struct World {
    inner: support::World,
    database: Database,
    ring: KeyRing,
}

impl World {
    /// Two accounts with an endpoint each, and calls of two callers in both.
    async fn new() -> Self {
        let inner = support::World::new(Settings::default()).await;
        let database = Database::new(&inner.server.url(), 8).unwrap();
        let ring = KeyRing::parse(&inner.ring).unwrap();
        let world = Self { inner, database, ring };
        for account in ["acct_1", "acct_2"] {
            world.fill(account).await;
        }
        world
    }

    async fn session(&self) -> Session {
        self.database.session().await.unwrap()
    }

    async fn rows(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        let session = self.session().await;
        let rows = session.query(sql, parameters).await.unwrap_or_else(|error| {
            panic!("{sql}: {error:?}");
        });
        session.keep();
        rows
    }

    async fn count(&self, sql: &str) -> i64 {
        self.rows(sql, &[]).await[0].get(0)
    }

    async fn forget(&self, account: &str, subject: &Subject) -> Result<Erased, EraseError> {
        erase::caller(&self.database, account, subject, PATIENCE).await
    }

    async fn close(&self, account: &str) -> Result<Erased, EraseError> {
        erase::account(&self.database, eve(), account, PATIENCE).await
    }

    /// What each table has of an account. Nothing else tells whose entries of the log are.
    async fn of(&self, account: &str) -> Vec<i64> {
        let mut counts = Vec::new();
        for table in ["accounts", "keys", "endpoints", "calls", "events", "deliveries", "ended"] {
            let column = if table == "accounts" { "id" } else { "account_id" };
            let sql = format!("SELECT count(*) FROM {table} WHERE {column} = $1");
            counts.push(self.rows(&sql, &[&account]).await[0].get(0));
        }
        counts
    }

    async fn has_nothing_of(&self, account: &str) {
        assert_eq!(self.of(account).await, [0; 7]);
        let orphans = "SELECT count(*) FROM attempts WHERE delivery NOT IN (
            SELECT id FROM deliveries UNION ALL SELECT id FROM ended)";
        assert_eq!(self.count(orphans).await, 0);
    }

    async fn has_all_of(&self, account: &str) {
        assert_eq!(self.of(account).await, [1, 1, 1, 4, 3, 3, 0]);
        let log = "SELECT count(*) FROM attempts AS a JOIN deliveries AS d ON d.id = a.delivery
            WHERE d.account_id = $1 AND a.response IS NOT NULL";
        assert_eq!(self.rows(log, &[&account]).await[0].get::<_, i64>(0), 3);
    }

    async fn fill(&self, account: &str) {
        self.rows(
            "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
             VALUES ($1, 'UTC', 'pro', true, false)",
            &[&account],
        )
        .await;
        self.rows(
            "INSERT INTO keys (id, account_id, digest, livemode, name, hint, scopes, created_at)
             VALUES ('cred_' || $1, $1, sha256($1::text::bytea), true, '', '', '{}', now())",
            &[&account],
        )
        .await;
        let endpoint = format!("we_{account}");
        let secrets = Signer::new(SigningSecret::parse("whsec_first").unwrap());
        self.rows(
            "INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
                disabled, since, failures, generation, version)
             VALUES ($1, $2, 5, now(), 'https://hooks.example.com/', false, $3,
                NULL, now(), 0, 0, 0)",
            &[&endpoint, &account, &self.ring.seal(&endpoint, &secrets, clock::now())],
        )
        .await;
        for (at, (number, summary)) in [
            (Some(INGRID), Some("Booked a check-up.")),
            (Some(JONAS), Some("Asked about opening hours.")),
            (Some(JONAS), Some("Wants us to call back on (47) 22-33-44-55.")),
            (None, None),
        ]
        .into_iter()
        .enumerate()
        {
            self.record(account, at, number, summary).await;
        }
    }

    async fn record(&self, account: &str, at: usize, number: Option<&str>, summary: Option<&str>) {
        let now = clock::now();
        let mut call = Call::new(CallId::parse(&format!("call_{at}")).unwrap(), now, now);
        call.ended_at = Some(now);
        call.caller.phone_number = number.map(str::to_owned);
        let contact = number.map(|number| format!("contact_{}", number.trim_start_matches('+')));
        call.caller.contact_id = contact.map(|id| ContactId::parse(&id).unwrap());
        call.caller.display_name = number.map(|number| format!("Name of {number}"));
        call.summary = summary.map(str::to_owned);
        let body = serde_json::to_string(&call).unwrap();
        let (id, version) =
            (EventId::derived(&[account, &at.to_string()]), ApiVersion::parse("2026-01-15"));
        let of = AccountId::parse(account).unwrap();
        let event = NewEvent::new(id, of, version.unwrap(), Origin::voice(), now).call_ended(&call);
        let recorded = self.database.change(async |change| {
            let insert =
                "INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
                VALUES ($1, true, $2, $3, $3, $4)";
            change.execute(insert, &[&account, &call.id.as_str(), &At(now), &body]).await?;
            if let Ok(event) = &event {
                let accepted = accept(change, event, None, None, now).await?;
                let Accepted::New(deliveries) = accepted else { panic!("{accepted:?}") };
                log(change, deliveries[0].1, now).await;
            }
            Ok::<_, DbError>(())
        });
        recorded.await.unwrap();
    }
}

/// An attempt that failed, and an answer that repeats what it got.
async fn log(change: &deadpool_postgres::Transaction<'_>, delivery: i64, now: Timestamp) {
    change
        .execute(
            "INSERT INTO attempts (delivery, event_created_at, number, manual, began_at, took_ms,
                outcome, late, status, next_at, response, response_cut, headers, headers_cut)
             VALUES ($1, $2, 1, false, $2, 5, '500', false, 'waiting', NULL,
                (SELECT 'cannot store ' || convert_from(body, 'UTF8') FROM events AS e
                 JOIN deliveries AS d ON d.event_id = e.id WHERE d.id = $1), true,
                'x-request: 1', false)",
            &[&delivery, &At(now)],
        )
        .await
        .unwrap();
}

// D-96: where no sender has lived for as long as an attempt may last, nothing is in flight.
#[tokio::test]
async fn an_erasure_waits_for_attempts_in_flight_where_a_sender_has_lived() {
    let world = World::new().await;
    world.fill("acct_3").await;
    let ingrid = Subject::from_number(INGRID).unwrap();
    let patience = Patience { in_flight: Duration::from_secs(3), ..PATIENCE };
    for (account, leases, waits) in [
        (
            "acct_1",
            "INSERT INTO senders (id, expires_at) VALUES ('s', now() - interval '1 day')",
            false,
        ),
        ("acct_2", "UPDATE senders SET expires_at = clock_timestamp() - interval '1 s'", true),
        (
            "acct_3",
            "WITH ended AS (DELETE FROM senders)
             UPDATE shards SET expires_at = clock_timestamp() - interval '1 s' WHERE shard = 7",
            true,
        ),
    ] {
        world.rows(leases, &[]).await;
        let began = Instant::now();
        let erased = erase::caller(&world.database, account, &ingrid, patience).await.unwrap();
        assert_eq!(erased.found.deliveries, 2, "{account}");
        assert_eq!(began.elapsed() >= patience.in_flight, waits, "{account}");
    }
}

// D-96. D-62 says how long a body is kept; the person in it may ask for less.
#[tokio::test]
async fn a_callers_number_is_erased_and_nothing_else() {
    let world = World::new().await;
    assert!(matches!(Subject::from_number("+47 22"), Err(EraseError::ShortNumber { fewest: 6 })));
    let nobody = world.forget("acct_9", &Subject::from_number(INGRID).unwrap()).await;
    assert!(matches!(nobody, Err(EraseError::NoAccount)));

    let erase = async |number| {
        world.forget("acct_1", &Subject::from_number(number).unwrap()).await.unwrap()
    };
    let expected = Found { calls: 2, events: 2, deliveries: 2, attempts: 2, ..Found::default() };
    assert_eq!(erase("+47 22 33 44 55").await, all(expected));
    assert_eq!(erase(INGRID).await, all(Found::default()), "nothing is left");

    // Nowhere in this account; everywhere in the other.
    for (table, column) in
        [("calls", "body"), ("events", "convert_from(body, 'UTF8')"), ("attempts", "response")]
    {
        let of = match table {
            "attempts" => {
                "delivery IN (SELECT id FROM deliveries WHERE account_id = $1
                           UNION ALL SELECT id FROM ended WHERE account_id = $1)"
            }
            _ => "account_id = $1",
        };
        for (account, expected) in [("acct_1", 0), ("acct_2", 2)] {
            let sql = format!(
                "SELECT count(*) FROM {table}
                 WHERE {of} AND {column} ~ '22.?.?33.?44.?55|Name of .4722334455'"
            );
            let count: i64 = world.rows(&sql, &[&account]).await[0].get(0);
            assert_eq!(count, expected, "{table} of {account}");
        }
    }

    let calls = "SELECT body FROM calls WHERE account_id = 'acct_1' ORDER BY id";
    let calls = world.rows(calls, &[]).await;
    let call = |row: &Row| Call::from_json(row.get::<_, &str>(0).as_bytes()).unwrap();
    let calls: Vec<Call> = calls.iter().map(call).collect();
    let left = |call: &Call| (call.caller.phone_number.clone(), call.summary.is_some());
    let left: Vec<_> = calls.iter().map(left).collect();
    // Another caller's call that mentions the number loses its summary, and keeps its caller.
    let jonas = Some(JONAS.to_owned());
    assert_eq!(left, [(None, false), (jonas.clone(), true), (jonas, false), (None, false)]);
    assert!(calls[0].caller.display_name.is_none() && calls[0].ended_at.is_some());

    // What was pending of them has ended, and is not written over by an attempt in flight.
    let pending = "SELECT count(*) FROM deliveries WHERE account_id = 'acct_1'";
    assert_eq!(world.count(pending).await, 1);
    let parked =
        "SELECT count(*) FROM ended WHERE status = 'parked' AND version = 1 AND NOT manual";
    assert_eq!(world.count(parked).await, 2);
    assert_eq!(world.count("SELECT count(*) FROM ended").await, 2);
}

// D-96
#[tokio::test]
async fn an_account_is_erased_and_no_other() {
    let world = World::new().await;
    let one = Found { keys: 1, endpoints: 1, accounts: 1, ..Found::default() };
    let expected = Found { calls: 4, events: 3, deliveries: 3, attempts: 3, ..one };
    assert_eq!(world.close("acct_1").await.unwrap(), all(expected));
    let again = world.close("acct_1").await.unwrap();
    assert_eq!(again, all(Found::default()), "it may be called again");
    assert!(matches!(world.close("acct_9").await, Err(EraseError::NoAccount)));
    world.has_nothing_of("acct_1").await;
    world.has_all_of("acct_2").await;
}

/// Columns of text and bytes whose values the planner may keep: ids, words of this program, digests, names of operators.
const SAMPLED: &str = "\
    account_id acknowledged_by action alert by check_value credential_id digest disabled \
    endpoint_id event_id host id outcome owner plan quota reason recovery scopes set_by \
    signed_by status target timezone told type";

/// D-96: `ANALYZE` keeps what it has read of a table, and shows it to whoever may read the table.
#[tokio::test]
async fn nothing_that_was_erased_is_in_what_any_role_may_read() {
    let world = World::new().await;
    let owner = world.session().await;
    owner.batch_execute(include_str!("../../deploy/roles.sql")).await.unwrap();
    let own = "UPDATE accounts SET business_name = 'Zebulon of ' || id;
        UPDATE keys SET name = 'Zebulon of ' || id;
        UPDATE endpoints SET url = 'https://zebulon.example/' || id, description = 'Zebulon of ' || id;
        INSERT INTO journal (by, action, account_id, target, before, after)
        SELECT 'eve', 'x', id, id, to_jsonb('Zebulon of ' || id),
            to_jsonb('Zebulon and ' || id) FROM accounts;
        UPDATE attempts SET headers = 'x-zebulon: ' || delivery;
        UPDATE events SET traceparent = 'Zebulon ' || id";
    owner.batch_execute(own).await.unwrap();
    // A partition that is made later is as the others are.
    owner.batch_execute("SELECT add_day('2020-01-01')").await.unwrap();
    owner.batch_execute("ANALYZE").await.unwrap();
    let sampled = "SELECT string_agg(DISTINCT attname::text, ' ' ORDER BY attname::text)
        FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
            AND attstattarget <> 0
            AND atttypid IN ('text'::regtype, 'text[]'::regtype, 'bytea'::regtype, 'jsonb'::regtype)";
    let sampled: String = world.rows(sampled, &[]).await[0].get(0);
    assert_eq!(sampled, SAMPLED, "columns that a caller or a customer writes have no statistics");

    let ingrid = Subject::from_number(INGRID).unwrap();
    assert_eq!(world.forget("acct_1", &ingrid).await.unwrap().left, None);
    assert_eq!(world.close("acct_2").await.unwrap().left, None);
    let read_by_all = "DO $$ BEGIN
        CREATE ROLE reader_1 LOGIN PASSWORD 'x'
            IN ROLE call_assistant_api, call_assistant_sender, call_assistant_operator;
    END $$";
    owner.batch_execute(read_by_all).await.unwrap();
    owner.keep();
    let reader = Database::new(&world.inner.url_of("reader_1"), 1).unwrap();
    let reader = reader.session().await.unwrap();
    let readable = "SELECT c.oid::regclass::text FROM pg_class AS c
        WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND has_schema_privilege(relnamespace, 'USAGE')
            AND has_table_privilege(c.oid, 'SELECT')";
    let readable: Vec<String> =
        reader.query(readable, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(readable.len() > 100, "{readable:?}");
    for what in ["calls", "attempts", "journal", "pg_stats", "pg_stat_activity"] {
        assert!(readable.iter().any(|name| name == what), "{what}");
    }
    // Bytes are shown as digits.
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let found = async |table: &str, words: &str| {
        let sql = format!("SELECT count(*) FROM {table} AS t WHERE t::text ~* $1");
        let row = reader.query_one(&sql, &[&words]).await;
        row.unwrap_or_else(|error| panic!("{table}: {error:?}")).get::<_, i64>(0)
    };
    for table in &readable {
        // What was written of the account that is left is in its tables alone.
        let is_catalog = table.starts_with("pg_") || table.contains('.');
        let own = if is_catalog { "zebulon" } else { "zebulon.{1,20}acct_2" };
        let number = format!("4722334455|22-33-44-55|{}|{}", hex("4722334455"), hex("22-33-44-55"));
        let words = format!("{own}|{number}");
        assert_eq!(found(table, &words).await, 0, "{table}");
    }
    assert!(found("pg_stats", "^.public,calls,").await > 4, "ANALYZE has run");
}

// D-96: a whole account may be erased although its row is gone, and a caller may.
#[tokio::test]
async fn an_account_without_a_row_is_erased() {
    let world = World::new().await;
    world.rows("DELETE FROM accounts WHERE id = 'acct_1'", &[]).await;
    let ended = "WITH gone AS (DELETE FROM deliveries WHERE id = (
            SELECT max(id) FROM deliveries WHERE account_id = 'acct_1') RETURNING *)
        INSERT INTO ended SELECT id, shard, endpoint, account_id, event_id, event_created_at,
            'failed', at, 6, manual, generation, version FROM gone";
    world.rows(ended, &[]).await;
    let subject = Subject::from_number(INGRID).unwrap();
    let caller = Found { events: 2, deliveries: 1, attempts: 2, ..Found::default() };
    assert_eq!(world.forget("acct_1", &subject).await.unwrap(), all(caller));
    let rest = Found { events: 3, deliveries: 3, attempts: 3, ..Found::default() };
    assert_eq!(world.close("acct_1").await.unwrap(), all(rest));
    world.has_nothing_of("acct_1").await;
    world.has_all_of("acct_2").await;
}

/// For a transaction that is held open for as long as a loaded machine takes.
const HELD_OPEN: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

// D-96: what a transaction accepts that had begun before is found when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_waits_for_older_transactions() {
    let world = World::new().await;
    let subject = Subject::from_number(INGRID).unwrap();
    let now = clock::now();
    let mut sessions = [world.session().await, world.session().await];
    let [one, two] = &mut sessions;
    let (one, two) = (one.transaction().await.unwrap(), two.transaction().await.unwrap());
    for (change, account) in [(&one, "acct_1"), (&two, "acct_2")] {
        change.batch_execute(HELD_OPEN).await.unwrap();
        let accepted = accept(change, &ping_of(account, INGRID, now), None, None, now).await;
        assert!(matches!(accepted, Ok(Accepted::New(_))), "{account}");
    }
    // Who has no patience is told so.
    let hasty = Patience { older: Duration::from_millis(200), ..PATIENCE };
    let caller = erase::caller(&world.database, "acct_1", &subject, hasty).await.unwrap();
    assert_eq!((caller.left, caller.found.events), (Some(Left::OlderTransactions), 2));
    let account = erase::account(&world.database, eve(), "acct_2", hasty).await.unwrap();
    assert_eq!((account.left, account.found.events), (Some(Left::OlderTransactions), 3));
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 2, "its row goes last");

    let began = Instant::now();
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        one.commit().await.unwrap();
        two.commit().await.unwrap();
    };
    let (caller, account, ()) =
        tokio::join!(world.forget("acct_1", &subject), world.close("acct_2"), late);
    assert!(began.elapsed() >= Duration::from_secs(3));
    let event = Found { events: 1, deliveries: 1, ..Found::default() };
    assert_eq!(caller.unwrap(), all(event));
    let row = Found { keys: 1, endpoints: 1, accounts: 1, ..event };
    assert_eq!(account.unwrap(), all(row));
    world.has_nothing_of("acct_2").await;
    let left = "SELECT count(*) FROM events WHERE convert_from(body, 'UTF8') ~ '22334455'";
    assert_eq!(world.count(left).await, 0);

    // What comes later is accepted, and found by the next one.
    let later = ping_of("acct_1", &format!("{INGRID} again"), now);
    let accepting =
        world.database.change(async |change| accept(change, &later, None, None, now).await);
    accepting.await.unwrap();
    assert_eq!(world.forget("acct_1", &subject).await.unwrap(), all(event));
}

// D-96: an erased account's id is refused for good, whatever a transaction has seen before.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_accepted_for_an_erased_account() {
    let world = World::new().await;
    let mut sessions = [world.session().await, world.session().await, world.session().await];
    let mut open = Vec::new();
    for (session, isolation) in
        sessions.iter_mut().zip(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
    {
        let change = session.transaction().await.unwrap();
        let begin = format!("SET TRANSACTION ISOLATION LEVEL {isolation}; {HELD_OPEN}");
        change.batch_execute(&begin).await.unwrap();
        // It has no number yet, so nobody waits for it.
        let seen = "SELECT count(*) FROM accounts WHERE id = 'acct_1'";
        assert_eq!(change.query_one(seen, &[]).await.unwrap().get::<_, i64>(0), 1);
        open.push((change, isolation));
    }
    assert_eq!(world.close("acct_1").await.unwrap().left, None);
    for (change, isolation) in open {
        let now = clock::now();
        let refused = accept(&change, &ping_of("acct_1", INGRID, now), None, None, now).await;
        let refused = refused.expect_err(isolation);
        assert_eq!(refused.is_erased(), isolation == "READ COMMITTED", "{isolation}: {refused}");
        assert!(change.commit().await.is_err() || world.count(EVENTS).await == 0, "{isolation}");
    }
    assert_eq!(world.count(EVENTS).await, 0);
}

const EVENTS: &str = "SELECT count(*) FROM events WHERE account_id = 'acct_1'";

// D-96: by whom a call was, and by the call alone.
#[tokio::test]
async fn a_contact_and_a_call_are_erased_and_nothing_else() {
    let world = World::new().await;
    assert!(matches!(Subject::from_id("c_1"), Err(EraseError::ShortId { fewest: 6 })));
    let contact = Subject::from_id("contact_4722334455").unwrap();
    let expected = Found { calls: 1, events: 1, deliveries: 1, attempts: 1, ..Found::default() };
    assert_eq!(world.forget("acct_1", &contact).await.unwrap(), all(expected));
    assert_eq!(world.forget("acct_1", &contact).await.unwrap(), all(Found::default()));
    let call = Subject::from_id("call_1").unwrap();
    assert_eq!(world.forget("acct_1", &call).await.unwrap(), all(expected));
    assert_eq!(world.forget("acct_1", &call).await.unwrap(), all(Found::default()));
    let left = "SELECT count(*) FROM calls WHERE account_id = 'acct_1' AND body LIKE '%Name of%'";
    assert_eq!(world.count(left).await, 1, "call_2");
    let left = "SELECT count(*) FROM events WHERE account_id = 'acct_1' AND body IS NOT NULL";
    assert_eq!(world.count(left).await, 1, "of call_2");
    world.has_all_of("acct_2").await;
}

// D-96: a recovery locks events in the order of its deliveries, and an erasure in that of their ids.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_and_a_recovery_do_not_wait_for_each_other() {
    let world = World::new().await;
    let subject = Subject::from_number(INGRID).unwrap();
    let sql = "SELECT id FROM events WHERE account_id = 'acct_1'
        AND convert_from(body, 'UTF8') ~ '22.?.?33.?44.?55' ORDER BY id";
    let ids: Vec<String> = world.rows(sql, &[]).await.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids.len(), 2);
    let mut session = world.session().await;
    let recovery = session.transaction().await.unwrap();
    let lock = "SELECT FROM events WHERE account_id = 'acct_1' AND id = $1 FOR SHARE";
    recovery.execute(lock, &[&ids[1]]).await.unwrap();
    let step = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        recovery.execute(lock, &[&ids[0]]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        recovery.commit().await.unwrap();
    };
    let (erased, ()) = tokio::join!(world.forget("acct_1", &subject), step);
    let expected = Found { calls: 2, events: 2, deliveries: 2, attempts: 2, ..Found::default() };
    assert_eq!(erased.unwrap(), all(expected));
}

// KEY-2, DEL-11, D-83, and the operator's half of it: the keys under which secrets are kept.
#[tokio::test]
async fn a_key_of_the_ring_is_replaced() {
    let world = World::new().await;
    let (one, two) = (KeyRing::new_line(1), KeyRing::new_line(2));
    let (old, new) = (KeyRing::parse(&one).unwrap(), KeyRing::parse(&two).unwrap());
    let both = KeyRing::parse(&format!("{two}\n{one}")).unwrap();
    let now = clock::now();
    let seal = |ring: &KeyRing, secret: &str| {
        let secrets = Signer::new(SigningSecret::parse(secret).unwrap());
        ring.seal("we_acct_1", &secrets, now)
    };
    let write = "UPDATE endpoints SET secrets = $1 WHERE id = 'we_acct_1'";
    world.rows(write, &[&seal(&old, "whsec_kept")]).await;

    // The other endpoint's secret is sealed with a key that nobody here has.
    let rotated = ring::rotate(&world.database, &both, now).await.unwrap();
    assert_eq!(rotated, Rotated { sealed: 1, unreadable: 1 });
    let rotated = ring::rotate(&world.database, &both, now).await.unwrap();
    assert_eq!(rotated, Rotated { sealed: 0, unreadable: 1 });
    let read = "SELECT secrets FROM endpoints WHERE id = 'we_acct_1'";
    let sealed: Vec<u8> = world.rows(read, &[]).await[0].get(0);
    assert_eq!(new.open("we_acct_1", &sealed, now).unwrap().newest().reveal(), "whsec_kept");
    assert_eq!(old.open("we_acct_1", &sealed, now).unwrap_err(), OpenError::NoKey(2));

    // A copy of the database has no secret in it.
    let found = "SELECT count(*) FROM endpoints WHERE position('whsec_'::bytea IN secrets) > 0";
    assert_eq!(world.count(found).await, 0);
    let columns = "SELECT string_agg(column_name, ' ') FROM information_schema.columns
        WHERE table_name = 'keys'";
    let columns: String = world.rows(columns, &[]).await[0].get(0);
    assert!(columns.contains("digest") && !columns.contains("secret"), "{columns}");
}
