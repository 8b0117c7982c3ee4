//! Accounts with endpoints, and what happens to them: events, and owners who enable and redeliver.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::id::{AccountId, EndpointId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{At, Database, DbError};
use call_assistant_postgres::key_ring::KeyRing;
use call_assistant_postgres::queue::accept;
use call_assistant_postgres::queue::{self, Key, Locked};
use deadpool_postgres::{Object, Transaction};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::erasures::Erasures;
use super::receiver::KINDS;
use super::{Addresses, ask, record};

const ACCOUNTS: u32 = 6;
const PER_ACCOUNT: u32 = 8;

/// One key, as a file would have it.
const RING: &str = "1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[derive(Clone, Debug)]
pub struct Customers {
    database: Database,
    /// Accepted events, with their accounts: their COMMIT was answered.
    accepted: Arc<Mutex<BTreeMap<String, String>>>,
    /// Calls that an API process has said are stored, with their accounts.
    calls: Arc<Mutex<BTreeMap<String, String>>>,
    apis: Addresses,
    /// Held while something is accepted.
    accepting: Arc<tokio::sync::Mutex<()>>,
    /// Where the endpoints are.
    url: String,
    database_url: String,
    owned: Arc<Mutex<Owned>>,
    erasures: Erasures,
    seed: u64,
}

/// What owners have done in the dashboard.
#[derive(Clone, Copy, Debug, Default)]
struct Owned {
    moved: u32,
    recovered: u32,
}

/// What was done for customers, for the checks.
#[derive(Debug)]
pub struct DoneForCustomers {
    owned: Owned,
    redelivered: i64,
    erased: usize,
}

impl DoneForCustomers {
    /// Returns what should have been done and was not.
    pub fn missing(&self) -> Vec<String> {
        let Self { owned: Owned { moved, recovered }, redelivered, erased } = self;
        let kinds = [
            (*moved > 0, "endpoint was moved"),
            (*recovered > 0, "recovery was started"),
            (*redelivered > 0, "recovery redelivered anything"),
            (*erased > 0, "caller was erased"),
        ];
        kinds.iter().filter(|(done, _)| !done).map(|(_, what)| format!("no {what}")).collect()
    }
}

impl fmt::Display for DoneForCustomers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owned: Owned { moved, recovered }, redelivered, erased } = self;
        write!(
            f,
            "{moved} endpoints moved, {recovered} recoveries started, of which those that are kept have \
             redelivered {redelivered}; {erased} callers erased"
        )
    }
}

impl Customers {
    /// Adds their accounts. Callers are erased by processes of this program.
    pub async fn add(
        database: &Database,
        database_url: &str,
        program: &OsStr,
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
            accepting: Arc::default(),
            url: url.to_owned(),
            database_url: database_url.to_owned(),
            owned: Arc::default(),
            erasures: Erasures::new(program, database_url),
            seed,
        }
    }

    /// Returns what was done, and what is left of callers who were erased.
    pub async fn done(&self, database: &Database) -> (DoneForCustomers, Vec<String>) {
        let session = database.session().await.unwrap();
        let redelivered = "SELECT coalesce(sum((recovery::jsonb ->> 'redelivered')::bigint), 0)::bigint FROM recoveries";
        let redelivered = session.query_one(redelivered, &[]).await.unwrap().get(0);
        let (erased, wrong) = self.erasures.check(&*session).await;
        session.keep();
        let owned = *self.owned.lock().unwrap();
        (DoneForCustomers { owned, redelivered, erased }, wrong)
    }

    /// Waits for erasures that are under way, and ends recoveries that are: a large one takes its time, and
    /// nothing is pending between two of its steps.
    pub async fn settled(&self) {
        self.erasures.ended().await;
        let running = "SELECT 'rcv_' || id FROM recoveries WHERE ended_at IS NULL LIMIT 1";
        for nth in 0.. {
            let found = self
                .database
                .read(async |client| Ok::<_, DbError>(client.query_opt(running, &[]).await?));
            match found.await {
                Ok(None) => return,
                Ok(Some(row)) => {
                    let path = format!("/recoveries/{}/cancel", row.get::<_, String>(0));
                    if let Some(address) = self.apis.nth(nth) {
                        ask(address, Method::POST, &path, &json!({})).await;
                    }
                }
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Erases again who was erased: the database went back, and they may be there again.
    pub async fn erase_again(&self) {
        self.erasures.repeat().await;
    }

    pub fn ring(&self) -> &'static str {
        RING
    }

    pub fn accepted(&self) -> BTreeMap<String, String> {
        self.accepted.lock().unwrap().clone()
    }

    pub fn calls(&self) -> BTreeMap<String, String> {
        self.calls.lock().unwrap().clone()
    }

    /// Accepts events until it is told to stop. Each is relayed until the database says that it
    /// has it, and now and then once more.
    pub async fn live(&self, stopped: watch::Receiver<bool>) {
        let mut nth = 0_u64;
        while !*stopped.borrow() {
            nth += 1;
            let accepting = self.accepting.lock().await;
            let account = format!("acct_{}", nth % u64::from(ACCOUNTS));
            let occurrence = format!("{}-{nth}", self.seed);
            if nth.is_multiple_of(3) {
                let call = format!("call_{nth}");
                if self.record(&account, &json!({ "id": call }), &stopped).await {
                    self.calls.lock().unwrap().insert(call, account.clone());
                }
            }
            if nth % 40 == 20 {
                let number = format!("+47000{nth:06}");
                let caller = json!({
                    "contact_id": null, "phone_number": number, "display_name": null,
                });
                let call = json!({ "id": format!("call_erased_{nth}"), "caller": caller });
                if self.record(&account, &call, &stopped).await {
                    self.erasures.start(&account, &number);
                }
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
            drop(accepting);
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Loses what was accepted last, as a standby that lagged does: some events for an endpoint that is
    /// silent, once senders have planned them. Their numbers are given again, to others, before the
    /// events are repeated by who caused them. Whether it came to that.
    pub async fn lose(&self) -> bool {
        // Whoever accepts may wait for a process that nobody starts again meanwhile.
        let wait = Duration::from_secs(2);
        let Ok(accepting) = tokio::time::timeout(wait, self.accepting.lock()).await else {
            return false;
        };
        let accept = async |change: &Transaction<'_>| accept_backlog(change).await;
        let Ok(events) = self.database.change(accept).await else { return false };
        // Senders look fifty times a second.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let lose = async |change: &Transaction<'_>| lose_backlog(change, &events).await;
        let lost = self.database.change(lose).await;
        drop(accepting);
        tokio::time::sleep(Duration::from_secs(1)).await;
        for event in events {
            // Those that were not lost are accepted already.
            while self.relay(&event).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let account = event.account_id().to_string();
            self.accepted.lock().unwrap().insert(event.id().to_string(), account);
        }
        lost.is_ok_and(|lost| lost > 0)
    }

    /// Has an API process record a call, and asks again, whichever it is, until one says yes.
    async fn record(&self, account: &str, call: &Value, stopped: &watch::Receiver<bool>) -> bool {
        for nth in 0.. {
            let stored = match self.apis.nth(nth) {
                Some(address) => record(address, account, call).await,
                None => None,
            };
            if stored == Some(true) || *stopped.borrow() {
                return stored == Some(true);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Moves an endpoint as its owner, and recovers what one missed as another: by whichever API process answers.
    async fn own(&self, nth: u64) {
        let Some(address) = self.apis.nth(nth) else { return };
        let moves = nth / 30;
        let (account, endpoint) = (moves % u64::from(ACCOUNTS), moves % u64::from(PER_ACCOUNT));
        let id = format!("whep_acct_{account}_{endpoint}");
        let kind = KINDS[usize::try_from(endpoint).unwrap()];
        let asked = json!({ "url": format!("{}/{id}/{kind}?moved={nth}", self.url) });
        let path = format!("/endpoints/{id}");
        let moved = ask(address, Method::PATCH, &path, &asked).await;
        let recovered = match self.database.read(async |client| missed(client, nth).await).await {
            Ok(Some(id)) => {
                let path = format!("/endpoints/{id}/recover");
                ask(address, Method::POST, &path, &json!({})).await
            }
            _ => None,
        };
        let mut done = self.owned.lock().unwrap();
        done.moved += u32::from(moved == Some(StatusCode::OK));
        done.recovered += u32::from(recovered == Some(StatusCode::ACCEPTED));
    }

    /// Makes an outage before all this: one endpoint has missed so many events, and begins to recover them.
    pub async fn miss(&self, events: u32) {
        if events == 0 {
            return;
        }
        let database = crate::record::patient(&self.database_url);
        let session = database.session().await.unwrap();
        let fill = include_str!("../../../tests/missed.sql")
            .replace("{events}", &events.to_string())
            .replace("{endpoint}", "whep_acct_0_0")
            .replace("{status}", "skipped");
        session.batch_execute(&fill).await.unwrap();
        session.keep();
        let started = async |nth| match self.apis.nth(nth) {
            Some(address) => {
                let path = "/endpoints/whep_acct_0_0/recover";
                ask(address, Method::POST, path, &json!({})).await
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
        let relay = self
            .database
            .change(async |change| accept(change, event, None, None, clock::now()).await);
        relay.await.map(drop)
    }
}

/// Accepts events that nobody answers for a while.
async fn accept_backlog(change: &Transaction<'_>) -> Result<Vec<EventBody>, DbError> {
    let now = queue::started_at(change).await?;
    let silent = "SELECT number, account_id FROM endpoints
        WHERE url ~ '/silent' AND disabled IS NULL ORDER BY random() LIMIT 1";
    let Some(silent) = change.query_opt(silent, &[]).await? else { return Ok(Vec::new()) };
    let (number, account): (i32, &str) = (silent.get(0), silent.get(1));
    let mut events = Vec::new();
    for nth in 0..40 {
        // No two changes are of the same instant.
        let at = now.saturating_sub(Duration::from_micros(nth));
        let id = EventId::derived(&[account, "backlog", &now.to_string(), &nth.to_string()]);
        let account = AccountId::parse(account).unwrap();
        let version = ApiVersion::parse("2026-01-15").unwrap();
        let event = NewEvent::new(id, account, version, Origin::voice(), at);
        let event = event.ping(format!("backlog {nth}")).unwrap();
        accept(change, &event, Some(number), None, now).await?;
        events.push(event);
    }
    Ok(events)
}

/// Takes back those of them that nothing came of yet, and their numbers, if no number after them is
/// taken. Nothing of it was ever done, so nothing of it is noted. Returns how many.
async fn lose_backlog(change: &Transaction<'_>, events: &[EventBody]) -> Result<u64, DbError> {
    // Nobody is in the middle of accepting something.
    let alone = "LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE;
        SET LOCAL session_replication_role = replica; SET LOCAL enable_seqscan = on";
    change.batch_execute(alone).await?;
    let ids: Vec<&str> = events.iter().map(|event| event.id().as_str()).collect();
    let lost = "WITH others AS (
            SELECT coalesce(max(id), 0) AS last FROM (
                SELECT id FROM deliveries WHERE event_id <> ALL ($1) OR version > 0
                UNION ALL SELECT id FROM ended) AS o
        ), lost AS (
            DELETE FROM deliveries USING others
            WHERE event_id = ANY ($1) AND id > others.last RETURNING id, event_id
        ), noted AS (
            DELETE FROM transitions WHERE kind = 'delivery' AND id IN (SELECT id FROM lost)
        ), of_events AS (
            DELETE FROM events WHERE id IN (SELECT event_id FROM lost)
        )
        SELECT count(*), CASE WHEN count(*) > 0
            THEN setval(pg_get_serial_sequence('deliveries', 'id'), min(id), false) END FROM lost";
    let lost: i64 = change.query_one(lost, &[&ids]).await?.get(0);
    Ok(lost.unsigned_abs())
}

/// Finds an endpoint that is active and has missed something.
async fn missed(client: &Object, nth: u64) -> Result<Option<String>, DbError> {
    let missed = "SELECT e.id FROM endpoints AS e
        WHERE disabled IS NULL AND EXISTS (
            SELECT FROM ended AS d WHERE d.endpoint = e.number AND d.status IN ('failed', 'skipped', 'parked'))
        ORDER BY e.number";
    let ids: Vec<String> = client.query(missed, &[]).await?.iter().map(|row| row.get(0)).collect();
    let at = (nth / 30).checked_rem(u64::try_from(ids.len()).unwrap());
    Ok(at.map(|at| ids[usize::try_from(at).unwrap()].clone()))
}

/// Enables an endpoint that is disabled, as its owner.
async fn enable_one(change: &Transaction<'_>, nth: u64) -> Result<(), DbError> {
    let disabled = "SELECT number FROM endpoints WHERE disabled IS NOT NULL ORDER BY number";
    let numbers: Vec<i32> =
        change.query(disabled, &[]).await?.iter().map(|row| row.get(0)).collect();
    if let Some(number) = pick(&numbers, nth) {
        let number = number.cast_unsigned();
        let found = queue::lock_endpoints(change, &[number]).await?;
        let mut endpoint = found[&number];
        endpoint.enable(clock::now());
        assert!(queue::write_endpoints(change, &[(number, endpoint)]).await?);
    }
    Ok(())
}

/// Has a delivery made again, as an owner: its event is not erased, and is not erased meanwhile.
async fn redeliver_one(change: &Transaction<'_>, nth: u64) -> Result<(), DbError> {
    let missed = "SELECT d.id, d.endpoint, d.event_created_at
        FROM ended AS d JOIN endpoints AS e ON e.number = d.endpoint
            JOIN events AS v ON v.account_id = d.account_id AND v.id = d.event_id
                AND v.created_at = d.event_created_at
        WHERE d.status <> 'delivered' AND e.disabled IS NULL AND v.body IS NOT NULL
        ORDER BY d.id LIMIT 50 FOR SHARE OF v";
    let keys: Vec<Key> = change
        .query(missed, &[])
        .await?
        .iter()
        .map(|row| Key {
            delivery: row.get::<_, i64>(0).cast_unsigned(),
            endpoint: row.get::<_, i32>(1).cast_unsigned(),
            event_created_at: row.get::<_, At>(2).0,
        })
        .collect();
    if let Some(key) = pick(&keys, nth)
        && let Some(mut locked) = queue::lock(change, &[key]).await?.remove(&key.delivery)
        && !locked.is_pending
    {
        let endpoints = queue::read_endpoints(change, &[key.endpoint]).await?;
        if locked.row.redeliver(&endpoints[&key.endpoint], clock::now()).is_ok() {
            assert!(
                queue::write(change, [(Locked { is_pending: false, row: locked.row }, locked.row)])
                    .await?
            );
        }
    }
    Ok(())
}

fn pick<T: Copy>(from: &[T], nth: u64) -> Option<T> {
    let at = nth.checked_rem(u64::try_from(from.len()).unwrap())?;
    from.get(usize::try_from(at / 3).unwrap()).copied()
}
