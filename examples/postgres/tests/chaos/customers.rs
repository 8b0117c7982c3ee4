//! Accounts with endpoints, and what happens to them: events, and owners who enable and redeliver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::id::{AccountId, EndpointId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{At, Database, DbError};
use call_assistant_postgres::key_ring::KeyRing;
use call_assistant_postgres::queue::accept;
use call_assistant_postgres::queue::{self, Key, Table};
use deadpool_postgres::Transaction;
use http::{Method, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use crate::api::{self, Addresses};
use crate::receiver::KINDS;

const ACCOUNTS: u32 = 6;
const PER_ACCOUNT: u32 = 8;

/// One key, as a file would have it.
const RING: &str = "1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[derive(Clone, Debug)]
pub(crate) struct Customers {
    database: Database,
    /// Accepted events, with their accounts: their COMMIT was answered.
    accepted: Arc<Mutex<BTreeMap<String, String>>>,
    /// Calls that an API process has said are stored, with their accounts.
    calls: Arc<Mutex<BTreeMap<String, String>>>,
    apis: Addresses,
    /// Where the endpoints are.
    url: String,
    database_url: String,
    owned: Arc<Mutex<Owned>>,
    seed: u64,
}

/// What owners have done in the dashboard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owned {
    pub(crate) moved: u32,
    pub(crate) recovered: u32,
}

impl Customers {
    pub(crate) async fn add(
        database: &Database,
        database_url: &str,
        url: &str,
        apis: Addresses,
        seed: u64,
    ) -> Self {
        let ring = KeyRing::parse(RING).unwrap();
        let now = clock::now();
        let session = database.session().await.unwrap();
        for account in 0..ACCOUNTS {
            let account = format!("acct_{account}");
            let insert = "INSERT INTO accounts
                (id, timezone, plan, subscription_active, closing)
                VALUES ($1, 'Europe/Oslo', 'business', true, false)";
            session.execute(insert, &[&account]).await.unwrap();
            for nth in 0..PER_ACCOUNT {
                let id = format!("whep_{account}_{nth}");
                let secret = SigningSecret::from_random([7; 32]);
                let sealed = ring.seal(&id, &Signer::new(secret), now);
                let shard = queue::shard_of(&id);
                let kind = KINDS[usize::try_from(nth).unwrap() % KINDS.len()];
                let insert = "INSERT INTO endpoints
                    (id, account_id, shard, created_at, url, allow_loopback, secrets,
                     since, failures, generation, version)
                    VALUES ($1, $2, $3, $4, $5, true, $6, $4, 0, 0, 0)";
                let url = format!("{url}/{id}/{kind}");
                session
                    .execute(insert, &[&id, &account, &shard, &At(now), &url, &sealed])
                    .await
                    .unwrap();
                EndpointId::parse(&id).unwrap();
            }
        }
        session.keep();
        Self {
            database: database.clone(),
            accepted: Arc::default(),
            calls: Arc::default(),
            apis,
            url: url.to_owned(),
            database_url: database_url.to_owned(),
            owned: Arc::default(),
            seed,
        }
    }

    pub(crate) fn owned(&self) -> Owned {
        *self.owned.lock().unwrap()
    }

    pub(crate) fn ring(&self) -> &'static str {
        RING
    }

    pub(crate) fn accepted(&self) -> BTreeMap<String, String> {
        self.accepted.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> BTreeMap<String, String> {
        self.calls.lock().unwrap().clone()
    }

    /// Accepts events until it is told to stop. Each is relayed until the database says that it
    /// has it, and now and then once more.
    pub(crate) async fn live(&self, stopped: watch::Receiver<bool>) {
        let mut nth = 0_u64;
        while !*stopped.borrow() {
            nth += 1;
            let account = format!("acct_{}", nth % u64::from(ACCOUNTS));
            let occurrence = format!("{}-{nth}", self.seed);
            if nth.is_multiple_of(3) {
                self.record(&account, &format!("call_{nth}"), &stopped).await;
            }
            let id = EventId::derived(&[&account, "ping", &occurrence]);
            let event = NewEvent::new(
                id,
                AccountId::parse(&account).unwrap(),
                ApiVersion::parse("2026-01-15").unwrap(),
                Origin::voice(),
                clock::now(),
            );
            let event = event.ping(occurrence).unwrap();
            let mut times = if nth.is_multiple_of(7) { 2 } else { 1 };
            while times > 0 && !*stopped.borrow() {
                match self.relay(&event).await {
                    Ok(()) => {
                        times -= 1;
                        let mut accepted = self.accepted.lock().unwrap();
                        accepted.insert(event.id().to_string(), account.clone());
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
            if nth.is_multiple_of(100) {
                let enable = async |change: &Transaction<'_>| enable_one(change, nth).await;
                let _ = self.database.change(enable).await;
            }
            if nth.is_multiple_of(30) {
                self.own(nth).await;
            }
            if nth.is_multiple_of(20) {
                let redeliver = async |change: &Transaction<'_>| redeliver_one(change, nth).await;
                let _ = self.database.change(redeliver).await;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Has an API process record a call, and asks again, whichever it is, until one says yes.
    async fn record(&self, account: &str, call: &str, stopped: &watch::Receiver<bool>) {
        for nth in 0.. {
            let stored = match self.apis.nth(nth) {
                Some(address) => api::record(address, account, call).await,
                None => None,
            };
            if stored == Some(true) {
                self.calls.lock().unwrap().insert(call.to_owned(), account.to_owned());
            }
            if stored == Some(true) || *stopped.borrow() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// An owner moves an endpoint, and another recovers what one missed: by whichever API process answers.
    async fn own(&self, nth: u64) {
        let Some(address) = self.apis.nth(nth) else { return };
        let [moves, recovers] = [nth / 30, nth / 30 + 3].map(|nth| {
            let (account, endpoint) = (nth % u64::from(ACCOUNTS), nth % u64::from(PER_ACCOUNT));
            (format!("whep_acct_{account}_{endpoint}"), endpoint)
        });
        let (id, endpoint) = moves;
        let kind = KINDS[usize::try_from(endpoint).unwrap()];
        let asked = json!({ "url": format!("{}/{id}/{kind}?moved={nth}", self.url) });
        let path = format!("/endpoints/{id}");
        let moved = api::ask(address, Method::PATCH, &path, &asked).await;
        let path = format!("/endpoints/{}/recover", recovers.0);
        let recovered = api::ask(address, Method::POST, &path, &json!({})).await;
        let mut done = self.owned.lock().unwrap();
        done.moved += u32::from(moved == Some(StatusCode::OK));
        done.recovered += u32::from(recovered == Some(StatusCode::ACCEPTED));
    }

    /// An outage before all this: one endpoint has missed so many events, and begins to recover them.
    pub(crate) async fn miss(&self, events: u32) {
        if events == 0 {
            return;
        }
        let database = checker::record::patient(&self.database_url);
        let session = database.session().await.unwrap();
        let fill = include_str!("../missed.sql")
            .replace("{events}", &events.to_string())
            .replace("{endpoint}", "whep_acct_0_0")
            .replace("{status}", "skipped");
        session.batch_execute(&fill).await.unwrap();
        session.keep();
        let started = async |nth| match self.apis.nth(nth) {
            Some(address) => {
                let path = "/endpoints/whep_acct_0_0/recover";
                api::ask(address, Method::POST, path, &json!({})).await
            }
            None => None,
        };
        for nth in 0.. {
            if started(nth).await == Some(StatusCode::ACCEPTED) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn relay(&self, event: &EventBody) -> Result<(), DbError> {
        let relay =
            self.database.change(async |change| accept(change, event, None, clock::now()).await);
        relay.await.map(drop)
    }
}

/// An owner enables an endpoint that is disabled.
async fn enable_one(change: &Transaction<'_>, nth: u64) -> Result<(), DbError> {
    let disabled = "SELECT number FROM endpoints WHERE disabled IS NOT NULL ORDER BY number";
    let numbers: Vec<i32> =
        change.query(disabled, &[]).await?.iter().map(|row| row.get(0)).collect();
    if let Some(number) = pick(&numbers, nth) {
        let found = queue::lock_endpoints(change, &[number]).await?;
        let mut endpoint = found[&number];
        endpoint.enable(clock::now());
        assert!(queue::write_endpoints(change, &[(number, endpoint)]).await?);
    }
    Ok(())
}

/// An owner has a delivery made again.
async fn redeliver_one(change: &Transaction<'_>, nth: u64) -> Result<(), DbError> {
    let missed = "SELECT d.id, d.endpoint, d.event_created_at
        FROM ended AS d JOIN endpoints AS e ON e.number = d.endpoint
        WHERE d.status <> 'delivered' AND e.disabled IS NULL ORDER BY d.id LIMIT 50";
    let keys: Vec<Key> = change
        .query(missed, &[])
        .await?
        .iter()
        .map(|row| Key {
            id: row.get(0),
            endpoint: row.get(1),
            event_created_at: row.get::<_, At>(2).0,
        })
        .collect();
    if let Some(key) = pick(&keys, nth)
        && let Some(mut locked) = queue::lock(change, &[key]).await?.remove(&key.id)
        && locked.table == Table::Ended
    {
        let endpoints = queue::read_endpoints(change, &[key.endpoint]).await?;
        if locked.row.redeliver(&endpoints[&key.endpoint], clock::now()).is_ok() {
            assert!(queue::write(change, [(key, Table::Ended, locked.row)]).await?);
        }
    }
    Ok(())
}

fn pick<T: Copy>(from: &[T], nth: u64) -> Option<T> {
    let at = nth.checked_rem(u64::try_from(from.len()).unwrap())?;
    from.get(usize::try_from(at / 3).unwrap()).copied()
}
