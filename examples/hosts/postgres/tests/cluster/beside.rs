//! What is asked meanwhile: a bare client of the database, and the host from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use call_assistant_postgres::db::{Database, DbError};
use serde_json::json;
use testing::running::{Answer, exchange};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config, NoTls};

use crate::sync;

/// The time between two tries of each: 100 ms.
const PACE: Duration = Duration::from_millis(100);

/// How long the bare client waits for a connection to one server: 1 s.
const CONNECT: Duration = Duration::from_secs(1);

/// How long the bare client waits for a statement: 2 s, as the host does.
const STATEMENT: Duration = Duration::from_secs(2);

/// How often what is stored is asked for: a leader may be lost again.
const PATIENT: usize = 300;

/// How far apart the bare client and the host may be told of what is lost together: 3 s.
const NEAR: Duration = Duration::from_secs(3);

/// The account that is asked about.
pub(crate) const ACCOUNT: &str = "acct_probe";

/// Its keys: so many that their quotas are never used up.
const KEYS: usize = 20;

/// When each try of something ended, and whether it succeeded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tries(Arc<Mutex<Vec<(Instant, bool)>>>);

impl Tries {
    fn note(&self, succeeded: bool) {
        self.0.lock().unwrap().push((Instant::now(), succeeded));
    }

    /// The longest time without a success.
    pub(crate) fn refused(&self, from: Instant, until: Instant) -> Duration {
        let tries = self.0.lock().unwrap();
        let successes = tries.iter().filter(|(at, succeeded)| *succeeded && *at < until);
        let (mut last, mut longest) = (from, Duration::ZERO);
        for (at, _) in successes.filter(|(at, _)| *at >= from) {
            longest = longest.max(at.duration_since(last));
            last = *at;
        }
        longest.max(until.duration_since(last))
    }

    /// The longest time for which each of these said what none of the others said within two seconds.
    pub(crate) fn unlike(&self, others: &Self, from: Instant) -> Duration {
        let within = Duration::from_secs(2);
        let others = others.0.lock().unwrap();
        let is_alone = |at: Instant, said: bool| {
            let mut near = others.iter().filter(|(other, _)| {
                at.checked_duration_since(*other)
                    .or_else(|| other.checked_duration_since(at))
                    .is_some_and(|apart| apart < within)
            });
            near.clone().next().is_some() && near.all(|(_, other)| *other != said)
        };
        let (mut since, mut longest) = (None, Duration::ZERO);
        for (at, said) in self.0.lock().unwrap().iter().filter(|(at, _)| *at >= from) {
            since = match is_alone(*at, *said) {
                true => Some(since.unwrap_or(*at)),
                false => None,
            };
            longest = longest.max(since.map_or(Duration::ZERO, |since| at.duration_since(since)));
        }
        longest
    }
}

/// Everything that is asked, until it is told to end.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) psql: Tries,
    pub(crate) writes: Tries,
    pub(crate) reads: Tries,
    pub(crate) ready: Tries,
    inserted: Arc<Mutex<BTreeMap<i64, Instant>>>,
    recorded: Arc<Mutex<Recorded>>,
    over: Arc<AtomicBool>,
    all_recorded: Arc<AtomicBool>,
    inserting: tokio::task::JoinHandle<()>,
    asking: Vec<JoinHandle<()>>,
    syncing: JoinHandle<sync::Copy>,
}

/// Calls that the host has said are stored.
#[derive(Debug, Default)]
struct Recorded {
    ids: BTreeMap<String, Instant>,
    /// Those of which it said so before anybody had asked a second time.
    known_before: BTreeSet<String>,
}

/// What was acknowledged, and is not there.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Rows of the bare client: the cluster has lost them.
    pub(crate) rows: usize,
    pub(crate) calls: usize,
    /// Calls of a time of which the bare client has lost nothing.
    alone: Vec<String>,
}

/// The file of accounts for the host that is asked.
pub(crate) fn accounts() -> serde_json::Value {
    let keys: Vec<_> = (0..=KEYS)
        .map(|nth| json!({ "id": format!("cred_{nth}"), "name": "one", "secret": key(nth) }))
        .collect();
    json!({ "accounts": [{ "id": ACCOUNT, "timezone": "UTC", "keys": keys }] })
}

/// The secret of a key.
fn key(nth: usize) -> String {
    format!("service_live_0123456789abcdef0123456789{nth:06x}")
}

/// The secret of the key that nobody else uses.
pub(crate) fn sync_key() -> String {
    key(KEYS)
}

impl Beside {
    pub(crate) async fn start(database: &Database, url: &str, api: &str, dashboard: &str) -> Self {
        let create = "CREATE TABLE beside (number bigint)";
        let create =
            database.change(async |change| Ok::<_, DbError>(change.batch_execute(create).await?));
        create.await.unwrap();
        let over = Arc::<AtomicBool>::default();
        let [psql, writes, reads, ready] = std::array::from_fn(|_| Tries::default());
        let inserted = Arc::<Mutex<BTreeMap<i64, Instant>>>::default();
        let recorded = Arc::<Mutex<Recorded>>::default();
        let inserting =
            insert(url.to_owned(), psql.clone(), Arc::clone(&inserted), Arc::clone(&over));
        let inserting = tokio::spawn(inserting);
        let asking = vec![
            repeat(&over, &writes, record(dashboard, &recorded)),
            repeat(&over, &reads, {
                let (api, mut nth) = (api.to_owned(), 0);
                move || {
                    nth += 1;
                    let key = format!("Authorization: Bearer {}\r\n", key(nth % KEYS));
                    let page = ask(&api, "GET", "/v1/calls?limit=1", &key, "");
                    page.is_some_and(|page| page.status == 200)
                }
            }),
            repeat(&over, &ready, {
                let dashboard = dashboard.to_owned();
                move || {
                    let ready = ask(&dashboard, "GET", "/readyz", "", "");
                    ready.is_some_and(|ready| ready.status == 200)
                }
            }),
        ];
        let all_recorded = Arc::<AtomicBool>::default();
        let syncing = thread::spawn({
            let (all_recorded, api) = (Arc::clone(&all_recorded), api.to_owned());
            move || sync::run(&api, &all_recorded)
        });
        Self {
            psql,
            writes,
            reads,
            ready,
            inserted,
            recorded,
            over,
            all_recorded,
            inserting,
            asking,
            syncing,
        }
    }

    /// What was acknowledged so far, and is not there now.
    pub(crate) async fn lost(&self, database: &Database) -> Lost {
        // Before what is stored is read: more is acknowledged meanwhile.
        let inserted = self.inserted.lock().unwrap().clone();
        let recorded = self.recorded.lock().unwrap().ids.clone();
        Lost::of(&stored(database).await, &inserted, &recorded)
    }

    /// Ends, and returns what is lost, and what is wrong.
    pub(crate) async fn end(self, database: &Database) -> (Lost, Vec<String>) {
        self.over.store(true, Ordering::Relaxed);
        self.inserting.await.unwrap();
        self.asking.into_iter().for_each(|asking| asking.join().unwrap());
        self.all_recorded.store(true, Ordering::Relaxed);
        let copy = self.syncing.join().unwrap();
        let stored = stored(database).await;
        let (inserted, recorded) = (self.inserted.lock().unwrap(), self.recorded.lock().unwrap());
        let (lost, calls) = (Lost::of(&stored, &inserted, &recorded.ids), &stored.1);
        let alone = lost.alone.clone().into_iter();
        let known = recorded.known_before.iter();
        let known = known.map(|id| format!("call {id} was there before anybody had asked twice"));
        let missed = calls.iter().filter(|id| !copy.contains_key(*id));
        let missed = missed.map(|id| format!("call {id} is missed by the sync"));
        let twice = copy.iter().filter(|(_, times)| **times > 1);
        let twice = twice.map(|(id, _)| format!("call {id} is returned twice by the sync"));
        let (rows, of_host) = (inserted.len(), recorded.ids.len());
        println!("{rows} rows of the bare client, {of_host} calls of the host");
        (lost, alone.chain(known).chain(missed).chain(twice).collect())
    }
}

impl Lost {
    fn of(
        stored: &Stored,
        inserted: &BTreeMap<i64, Instant>,
        recorded: &BTreeMap<String, Instant>,
    ) -> Self {
        let rows = inserted.iter().filter(|(number, _)| !stored.0.contains(number));
        let rows: Vec<Instant> = rows.map(|(_, at)| *at).collect();
        let calls = recorded.iter().filter(|(id, _)| !stored.1.contains(*id));
        let calls: Vec<(&String, &Instant)> = calls.collect();
        let is_alone = |at: Instant| !rows.iter().any(|row| apart(*row, at) < NEAR);
        let alone = calls.iter().filter(|(_, at)| is_alone(**at));
        let alone = alone.map(|(id, _)| format!("call {id} is lost, and no row beside it"));
        Self { alone: alone.collect(), rows: rows.len(), calls: calls.len() }
    }
}

fn apart(one: Instant, other: Instant) -> Duration {
    one.max(other).duration_since(one.min(other))
}

/// The rows and the calls that are there.
type Stored = (BTreeSet<i64>, BTreeSet<String>);

async fn stored(database: &Database) -> Stored {
    let numbers = "SELECT number FROM beside";
    let calls = "SELECT id FROM calls WHERE account_id = $1";
    for _ in 0..PATIENT {
        let read = database.read(async |client| {
            let numbers = client.query(numbers, &[]).await?;
            Ok::<_, DbError>((numbers, client.query(calls, &[&ACCOUNT]).await?))
        });
        if let Ok((numbers, calls)) = read.await {
            let numbers = numbers.iter().map(|row| row.get(0)).collect();
            return (numbers, calls.iter().map(|row| row.get(0)).collect());
        }
        tokio::time::sleep(PACE).await;
    }
    panic!("the database does not say what is stored");
}

/// Inserts rows as a program does that knows nothing of clusters but their addresses.
async fn insert(
    url: String,
    tries: Tries,
    inserted: Arc<Mutex<BTreeMap<i64, Instant>>>,
    over: Arc<AtomicBool>,
) {
    let mut kept: Option<Client> = None;
    let mut number = 0_i64;
    while !over.load(Ordering::Relaxed) {
        number += 1;
        if kept.is_none() {
            kept = connect(&url).await;
        }
        let succeeded = match &kept {
            Some(client) => {
                let insert = format!("INSERT INTO beside VALUES ({number})");
                let insert = client.batch_execute(&insert);
                tokio::time::timeout(STATEMENT, insert).await.is_ok_and(|done| done.is_ok())
            }
            None => false,
        };
        if succeeded {
            inserted.lock().unwrap().insert(number, Instant::now());
        } else {
            kept = None;
        }
        tries.note(succeeded);
        tokio::time::sleep(PACE).await;
    }
}

/// Connects to the first server that accepts writes: one after the other, as libpq does.
async fn connect(url: &str) -> Option<Client> {
    let all: Config = url.parse().unwrap();
    for port in all.get_ports() {
        let mut one = Config::new();
        one.host("127.0.0.1").port(*port).user("postgres").dbname("postgres");
        one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if let Ok(Ok((client, connection))) =
            tokio::time::timeout(CONNECT, one.connect(NoTls)).await
        {
            tokio::spawn(connection);
            return Some(client);
        }
    }
    None
}

/// Has calls recorded: each is repeated with its id until somebody says that it is stored.
fn record(dashboard: &str, recorded: &Arc<Mutex<Recorded>>) -> impl FnMut() -> bool + use<> {
    let (dashboard, recorded) = (dashboard.to_owned(), Arc::clone(recorded));
    let (mut number, mut is_first) = (0, true);
    move || {
        let id = format!("call_probe_{number}");
        let call = json!({ "id": id }).to_string();
        let path = format!("/accounts/{ACCOUNT}/calls");
        let json = "Content-Type: application/json\r\n";
        let status = ask(&dashboard, "POST", &path, json, &call).map(|answer| answer.status);
        let succeeded = matches!(status, Some(201 | 409));
        if succeeded {
            let mut recorded = recorded.lock().unwrap();
            if is_first && status == Some(409) {
                recorded.known_before.insert(id.clone());
            }
            recorded.ids.insert(id, Instant::now());
            number += 1;
        }
        is_first = succeeded;
        succeeded
    }
}

fn repeat(
    over: &Arc<AtomicBool>,
    tries: &Tries,
    mut succeeds: impl FnMut() -> bool + Send + 'static,
) -> JoinHandle<()> {
    let (over, tries) = (Arc::clone(over), tries.clone());
    thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            tries.note(succeeds());
            thread::sleep(PACE);
        }
    })
}

pub(crate) fn ask(
    address: &str,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> Option<Answer> {
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    exchange(address, head.as_bytes())
}
