//! What is erased, and that nothing else is; and the keys that keep secrets from whoever reads the
//! database.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, EventId};
use call_assistant::model::Call;
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{self, At, Database, DbError, Session};
use call_assistant_postgres::key_ring::{KeyRing, OpenError};
use call_assistant_postgres::ops::erase::{self, EraseError, Erased};
use call_assistant_postgres::ops::rotate::{self, Rotated};
use call_assistant_postgres::queue::{Accepted, accept};
use private_server::{PrivateServer, Settings};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// The caller who is to be forgotten, and one who is not.
const INGRID: &str = "+4722334455";
const JONAS: &str = "+4798765432";

struct World {
    _server: PrivateServer,
    database: Database,
    ring: KeyRing,
}

impl World {
    /// Two accounts with an endpoint each, and calls of two callers in both.
    async fn new() -> Self {
        let server = PrivateServer::start(Settings::default()).unwrap();
        let database = Database::new(&server.url(), 4).unwrap();
        db::migrate(&database).await.unwrap();
        let world = Self { _server: server, database, ring: KeyRing::random() };
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
        call.caller.display_name = number.map(|number| format!("Name of {number}"));
        call.summary = summary.map(str::to_owned);
        let body = serde_json::to_string(&call).unwrap();
        let event = new_event(account, now).call_ended(&call).ok();
        let mut session = self.session().await;
        let change = session.transaction().await.unwrap();
        change
            .execute(
                "INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
                 VALUES ($1, true, $2, $3, $3, $4)",
                &[&account, &call.id.as_str(), &At(now), &body],
            )
            .await
            .unwrap();
        if let Some(event) = event {
            let Accepted::New(deliveries) = accept(&change, &event, None, now).await.unwrap()
            else {
                panic!("an event is new")
            };
            log(&change, deliveries[0].1, now).await;
        }
        change.commit().await.unwrap();
        session.keep();
    }
}

fn new_event(account: &str, now: Timestamp) -> NewEvent {
    let id = EventId::from_random(rand());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, AccountId::parse(account).unwrap(), version, Origin::voice(), now)
}

fn rand() -> [u8; 16] {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let number = || RandomState::new().build_hasher().finish().to_be_bytes();
    [number(), number()].concat().try_into().unwrap()
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

// D-62 says how long a body is kept; the person in it may ask for less.
#[tokio::test]
async fn a_callers_number_is_erased_and_nothing_else() {
    let world = World::new().await;
    let erase =
        |number: &'static str| erase::number(&world.database, "acct_1", number, Duration::ZERO);
    assert!(matches!(erase("+47 22").await, Err(EraseError::Short)));
    let nobody = erase::number(&world.database, "acct_9", INGRID, Duration::ZERO).await;
    assert!(matches!(nobody, Err(EraseError::NoAccount)));

    let erased = erase("+47 22 33 44 55").await.unwrap();
    assert_eq!(erased, Erased { calls: 2, events: 2, pending: 2, responses: 2 });
    assert_eq!(erase(INGRID).await.unwrap(), Erased::default(), "nothing is left");

    // Nowhere in this account; everywhere in the other.
    for (table, column) in
        [("calls", "body"), ("events", "convert_from(body, 'UTF8')"), ("attempts", "response")]
    {
        for (account, expected) in [("acct_1", 0), ("acct_2", 2)] {
            let of = match table {
                "attempts" => {
                    "delivery IN (SELECT id FROM deliveries WHERE account_id = $1
                               UNION ALL SELECT id FROM ended WHERE account_id = $1)"
                }
                _ => "account_id = $1",
            };
            let sql = format!(
                "SELECT count(*) FROM {table}
                 WHERE {of} AND {column} ~ '22.?.?33.?44.?55|Name of .4722334455'"
            );
            let count: i64 = world.rows(&sql, &[&account]).await[0].get(0);
            assert_eq!(count, expected, "{table} of {account}");
        }
    }

    let calls = world.rows("SELECT body FROM calls WHERE account_id = 'acct_1' ORDER BY id", &[]);
    let calls: Vec<Call> = calls
        .await
        .iter()
        .map(|row| Call::from_json(row.get::<_, &str>(0).as_bytes()).unwrap())
        .collect();
    let left: Vec<(Option<&str>, bool)> = calls
        .iter()
        .map(|call| (call.caller.phone_number.as_deref(), call.summary.is_some()))
        .collect();
    // Another caller's call that mentions the number loses its summary, and keeps its caller.
    let expected = [(None, false), (Some(JONAS), true), (Some(JONAS), false), (None, false)];
    assert_eq!(left, expected);
    assert!(calls[0].caller.display_name.is_none() && calls[0].ended_at.is_some());

    // What was pending of them has ended, and is not written over by an attempt in flight.
    let pending = "SELECT count(*) FROM deliveries WHERE account_id = 'acct_1'";
    assert_eq!(world.count(pending).await, 1);
    let ended = world.rows("SELECT status, version, manual FROM ended", &[]).await;
    let ended: Vec<(String, i32, bool)> =
        ended.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(ended, [("parked".to_owned(), 1, false), ("parked".to_owned(), 1, false)]);
}

#[tokio::test]
async fn an_account_is_erased_and_no_other() {
    let world = World::new().await;
    let erased = erase::account(&world.database, "acct_1").await.unwrap();
    assert_eq!(erased, Erased { calls: 4, events: 3, pending: 3, responses: 0 });
    let again = erase::account(&world.database, "acct_1").await;
    assert!(matches!(again, Err(EraseError::NoAccount)));
    for (sql, left) in [
        ("SELECT count(*) FROM accounts", 1),
        ("SELECT count(*) FROM keys", 1),
        ("SELECT count(*) FROM endpoints", 1),
        ("SELECT count(*) FROM calls", 4),
        ("SELECT count(*) FROM events", 3),
        ("SELECT count(*) FROM deliveries", 3),
        ("SELECT count(*) FROM ended", 0),
        ("SELECT count(*) FROM attempts", 3),
    ] {
        assert_eq!(world.count(sql).await, left, "{sql}");
    }
}

// D-83, and the operator's half of it: the keys under which secrets are kept.
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
    let rotated = rotate::keys(&world.database, &both, now).await.unwrap();
    assert_eq!(rotated, Rotated { sealed: 1, unreadable: 1 });
    let rotated = rotate::keys(&world.database, &both, now).await.unwrap();
    assert_eq!(rotated, Rotated { sealed: 0, unreadable: 1 });
    let read = "SELECT secrets FROM endpoints WHERE id = 'we_acct_1'";
    let sealed: Vec<u8> = world.rows(read, &[]).await[0].get(0);
    assert_eq!(new.open("we_acct_1", &sealed, now).unwrap().newest().reveal(), "whsec_kept");
    assert_eq!(old.open("we_acct_1", &sealed, now).unwrap_err(), OpenError::NoKey(2));
}

// KEY-2, DEL-11: a copy of the database has no secret in it.
#[tokio::test]
async fn a_dump_shows_no_secret() {
    let world = World::new().await;
    let found = "SELECT count(*) FROM endpoints WHERE position('whsec_'::bytea IN secrets) > 0";
    let found = world
        .database
        .read(async |client| Ok::<i64, DbError>(client.query_one(found, &[]).await?.get(0)));
    assert_eq!(found.await.unwrap(), 0);
    let columns = world.rows(
        "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'keys'",
        &[],
    );
    let columns: Vec<String> = columns.await.iter().map(|row| row.get(0)).collect();
    assert!(columns.contains(&"digest".to_owned()) && !columns.contains(&"secret".to_owned()));
}
