//! A database of its own, with one endpoint, and the senders of a scenario.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{self, At, Database, DbError};
use call_assistant_postgres::key_ring::{self, KeyRing};
use call_assistant_postgres::queue::{Accepted, Key, SHARDS, accept, shard_of};
use private_server::{PrivateServer, Settings};
use testing::running::{Service, request};

use crate::receiver::{PATIENCE, Receiver};
use crate::{Fault, patched};
use checker::{checks, record};

const RING: &str = "1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The waits of the schedule are short, and no attempt ends before the scenario says so.
const SCALE: [&str; 4] = ["--time-scale", record::TIME_SCALE, "--timeout-scale", "2.5"];

/// How long a broken host may have for what it will not do.
const GIVEN_UP: Duration = Duration::from_secs(3);

pub(crate) struct Host {
    fault: Option<Fault>,
    pub(crate) database: Database,
    url: String,
    pub(crate) receiver: Receiver,
    senders: BTreeMap<&'static str, Service>,
    accepted: BTreeMap<String, String>,
}

impl Host {
    /// A host with this fault. All tests have one server, each with a database of its own.
    pub(crate) async fn new(fault: Option<Fault>) -> Self {
        static SERVER: OnceLock<PrivateServer> = OnceLock::new();
        static MADE: AtomicU32 = AtomicU32::new(0);
        let settings = Settings { connections: 400, ..Settings::default() };
        let server = SERVER.get_or_init(|| PrivateServer::start(settings).unwrap());
        let name = format!("broken_{}", MADE.fetch_add(1, Ordering::Relaxed));
        let database = Database::new(&server.url(), 1).unwrap();
        let session = database.session().await.unwrap();
        session.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let url = format!("{}{name}", server.url().strip_suffix("postgres").unwrap());
        // Who has locked something may have to wait for a sender.
        let database = record::patient(&url);
        db::migrate(&database).await.unwrap();
        record::begin(&database).await;
        let receiver = Receiver::start().await;
        let (senders, accepted) = (BTreeMap::new(), BTreeMap::new());
        let host = Self { fault, database, url, receiver, senders, accepted };
        host.add_endpoint().await;
        host
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Has the senders that are started from here on no fault.
    pub(crate) fn mend(&mut self) {
        self.fault = None;
    }

    async fn add_endpoint(&self) {
        let session = self.database.session().await.unwrap();
        let account = "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
            VALUES ('acct_1', 'Europe/Oslo', 'business', true, false)";
        session.execute(account, &[]).await.unwrap();
        // Of two senders, each keeps the first half of the shards if it had them all.
        let half = i16::try_from(SHARDS.get() / 2).unwrap();
        let id = (1..).map(|nth| format!("whep_{nth}")).find(|id| shard_of(id) < half).unwrap();
        let shard = shard_of(&id);
        let now = clock::now();
        let secrets = Signer::new(SigningSecret::from_random([7; 32]));
        let sealed = KeyRing::parse(RING).unwrap().seal(&id, &secrets, now);
        let endpoint = "INSERT INTO endpoints
            (id, account_id, shard, created_at, url, allow_loopback, secrets,
             since, failures, generation, version)
            VALUES ($1, 'acct_1', $2, $3, $4, true, $5, $3, 0, 0, 0)";
        let url = self.receiver.url();
        session.execute(endpoint, &[&id, &shard, &At(now), &url, &sealed]).await.unwrap();
        session.keep();
    }

    /// Starts a sender of this name, and waits until it owns its share.
    pub(crate) fn sender(&mut self, name: &'static str) {
        let mut command = Command::new(patched::program());
        command
            .args(["sender", "--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"])
            .arg("--database")
            .arg(record::url_of(&self.url, name))
            .args(SCALE)
            .env(key_ring::VARIABLE, RING);
        if let Some(fault) = self.fault {
            command.env("BROKEN", format!("{fault:?}"));
        }
        let sender = Service::of(&mut command);
        assert_eq!(sender.first["ready"], true, "{name}: {}", sender.first);
        self.senders.insert(name, sender);
    }

    /// Whether a sender says that it is ready.
    pub(crate) fn is_ready(&self, name: &str) -> bool {
        let metrics = self.senders[name].address("metrics");
        request(metrics, "GET", "/readyz", "", b"").status == 200
    }

    /// Waits until a sender that still runs is not ready.
    pub(crate) async fn is_no_longer_ready(&mut self, name: &str) {
        let limit = Instant::now() + PATIENCE;
        while self.is_ready(name) {
            assert!(Instant::now() < limit, "{name} is ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a sender has ended by itself, which has written this to standard error.
    pub(crate) fn has_ended(&mut self, name: &str, words: &str) {
        self.senders.remove(name).unwrap().ended().is(1, words);
    }

    pub(crate) fn pause(&self, name: &str) {
        self.senders[name].signal("STOP");
    }

    pub(crate) fn resume(&self, name: &str) {
        self.senders[name].signal("CONT");
    }

    /// Accepts an event. Returns where its delivery is.
    pub(crate) async fn accept(&mut self, now: Timestamp) -> Key {
        let nth = self.accepted.len().to_string();
        let id = EventId::derived(&["acct_1", "ping", &nth]);
        let account = AccountId::parse("acct_1").unwrap();
        let version = ApiVersion::parse("2026-01-15").unwrap();
        let event = NewEvent::new(id, account, version, Origin::voice(), now).ping(nth).unwrap();
        let mut session = self.database.session().await.unwrap();
        let change = session.transaction().await.unwrap();
        let accepted = accept(&change, &event, None, None, now).await.unwrap();
        change.commit().await.unwrap();
        session.keep();
        self.accepted.insert(event.id().to_string(), "acct_1".to_owned());
        let Accepted::New(deliveries) = accepted else { panic!("{accepted:?}") };
        let (endpoint, id, delivery) = deliveries[0];
        let event_created_at = delivery.event_created_at();
        Key { delivery: id.cast_unsigned(), endpoint: endpoint.cast_unsigned(), event_created_at }
    }

    /// Notes what everybody sees by now.
    pub(crate) async fn look(&self) {
        let session = self.database.session().await.unwrap();
        let look = "INSERT INTO transitions (kind, id) VALUES ('look', 0)";
        session.execute(look, &[]).await.unwrap();
        session.keep();
    }

    /// Waits until this query gives this number.
    pub(crate) async fn becomes(&self, sql: &str, wanted: i64) {
        let limit = Instant::now() + PATIENCE;
        while self.count(sql).await != wanted {
            assert!(Instant::now() < limit, "{sql} is {}, not {wanted}", self.count(sql).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn count(&self, sql: &str) -> i64 {
        let count = self
            .database
            .read(async |client| Ok::<i64, DbError>(client.query_one(sql, &[]).await?.try_get(0)?));
        count.await.unwrap()
    }

    /// Lets what is pending end, and the senders. What the checker says.
    pub(crate) async fn end(mut self) -> Vec<String> {
        self.receiver.answer_all(204);
        let limit = Instant::now() + if self.fault.is_some() { GIVEN_UP } else { PATIENCE };
        while self.count("SELECT count(*) FROM deliveries").await > 0 && Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.senders.values().for_each(|sender| sender.signal("TERM"));
        self.senders.values().for_each(|sender| drop(sender.ended()));
        let answers = |_: &str, event: &str| self.receiver.answers(event);
        let (accepted, calls) = (std::mem::take(&mut self.accepted), BTreeMap::new());
        let (_, mut wrong) = checks::check(&self.database, accepted, calls, answers).await;
        // Nobody has died, so nothing is forgotten.
        let requests = self.receiver.requests();
        let logged = self.count("SELECT count(*) FROM attempts").await;
        if logged != requests {
            wrong.push(format!("{requests} requests, {logged} in the log"));
        }
        let mut session = self.database.session().await.unwrap();
        let change = session.transaction().await.unwrap();
        wrong.extend(record::check(&change, &[]).await.1);
        change.rollback().await.unwrap();
        session.keep();
        wrong
    }
}
