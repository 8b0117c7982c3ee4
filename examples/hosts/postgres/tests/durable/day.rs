//! Three stores, asked by the same sender through the same day.

use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{EndpointHealth, LimitOf, SignedDestination};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{At, Database};
use call_assistant_postgres::key_ring::KeyRing;
use call_assistant_postgres::queue::{self, SHARDS, accept};
use call_assistant_postgres::sender::Rows;
use call_assistant_service::store;
use host::data;
use host::rows::{Names, Opened, SetLimit, Shards};
use host::store::{EndpointLimit, NewEndpoint};
use private_server::Settings;
use testing::day::{self, Lever, Stage};
use testing::store::{Calm, EndpointRow, Time};

use crate::support::World;
use crate::support::running::File;

/// The host in memory, which has no levers.
struct Memory(Arc<store::Store>);

impl Memory {
    fn new(start: Timestamp) -> Self {
        let store = store::Store::new(EndpointLimit::default());
        for account in data::read(&day::data(), false, start).unwrap() {
            store.lock().load(account, start).unwrap();
        }
        Self(Arc::new(store))
    }
}

impl Stage for Memory {
    type Rows = store::Rows;

    fn rows(&self) -> store::Rows {
        store::Rows(Arc::clone(&self.0))
    }

    fn shards(&self) -> Shards {
        [(0, 0)].into()
    }

    async fn accept(&self, event: &EventBody, now: Timestamp) {
        self.0.lock().accept(event, None, now).unwrap();
    }

    async fn number(&self, endpoint: &str) -> u32 {
        self.0.lock().endpoint(endpoint).unwrap().0
    }

    async fn limit(&self, levers: &[Lever]) -> Vec<SetLimit> {
        let tables = self.0.lock();
        let set = |lever: &Lever| {
            let of = match (lever.account, lever.endpoint) {
                (Some(account), _) => {
                    let row = tables.account(account).unwrap();
                    let id = tables.endpoints(row).next().unwrap().id.clone();
                    LimitOf::Account(tables.account_of(tables.endpoint(id.as_str()).unwrap().0))
                }
                (None, Some(id)) => LimitOf::Endpoint(tables.endpoint(id).unwrap().0),
                (None, None) => LimitOf::All,
            };
            SetLimit { of, per_second: lever.per_second }
        };
        levers.iter().map(set).collect()
    }
}

/// The durable host.
struct Durable(World);

impl Durable {
    async fn new(start: Timestamp) -> Self {
        let world = World::new(Settings::default()).await;
        let file = File::new("day.json", &day::data().to_string());
        drop(world.start("api", &["--data", file.path()]));
        let own = Self(world);
        own.run("UPDATE endpoints SET since = $1", &[&At(start)]).await;
        own
    }

    fn database(&self) -> &Database {
        &self.0.database
    }

    async fn run(&self, sql: &str, values: &[&(dyn tokio_postgres::types::ToSql + Sync)]) {
        let session = self.database().session().await.unwrap();
        session.execute(sql, values).await.unwrap();
        session.keep();
    }
}

impl Stage for Durable {
    type Rows = Rows;

    fn rows(&self) -> Rows {
        let ring = KeyRing::parse(&self.0.ring).unwrap();
        Rows::new(self.database().clone(), ring, false, Default::default())
    }

    fn shards(&self) -> Shards {
        (0..SHARDS.get()).map(|shard| (shard, 1)).collect()
    }

    async fn accept(&self, event: &EventBody, now: Timestamp) {
        let accepted =
            self.database().change(async |change| accept(change, event, None, None, now).await);
        assert!(matches!(accepted.await.unwrap(), queue::Accepted::New(_)));
    }

    async fn number(&self, endpoint: &str) -> u32 {
        let session = self.database().session().await.unwrap();
        let sql = "SELECT number FROM endpoints WHERE id = $1";
        let row = session.query_one(sql, &[&endpoint]).await.unwrap();
        session.keep();
        row.get::<_, i32>(0).cast_unsigned()
    }

    async fn limit(&self, levers: &[Lever]) -> Vec<SetLimit> {
        self.run("DELETE FROM levers", &[]).await;
        for Lever { account, endpoint, per_second } in levers {
            let sql = "INSERT INTO levers (account_id, endpoint_id, per_second, set_by, set_at)
                VALUES ($1, $2, $3, 'somebody', now())";
            self.run(sql, &[account, endpoint, &per_second.cast_signed()]).await;
        }
        Vec::new()
    }
}

/// The store of the simulation, with the time that it has of its own, and the ids of endpoints by their numbers.
struct Simulated(testing::store::Store, (Time, Timestamp), Vec<String>);

impl Simulated {
    fn new(start: Timestamp) -> Self {
        let time = Time::default();
        let store = testing::store::Store::new(time.clone(), Arc::new(Calm), start, 16);
        let mut endpoints = Vec::new();
        for (account, new) in (0..).zip(data::read(&day::data(), false, start).unwrap()) {
            for NewEndpoint { id, account_id, target, secret, .. } in new.endpoints {
                let number = u32::try_from(endpoints.len()).unwrap();
                let (account_id, endpoint) = (account_id.to_string(), id.to_string());
                let names = Names { account: account_id, endpoint, shard: 0 };
                let (health, signer) =
                    (EndpointHealth::new(number.into(), start), Signer::new(secret));
                let destination = Some(SignedDestination::new(&health, target, signer.clone()));
                let opened = Arc::new(Opened { names, destination, signer });
                store.add_endpoint(number, EndpointRow { health, account, opened });
                endpoints.push(id.to_string());
            }
        }
        Self(store, (time, start), endpoints)
    }
}

impl Stage for Simulated {
    type Rows = testing::store::Store;

    fn rows(&self) -> testing::store::Store {
        self.0.clone()
    }

    fn shards(&self) -> Shards {
        [(0, 0)].into()
    }

    async fn accept(&self, event: &EventBody, now: Timestamp) {
        let (time, start) = &self.1;
        time.move_to(now.since(*start));
        let account = event.account_id().as_str().trim_start_matches("acct_").parse().unwrap();
        self.0.accept(account, |_| event.clone()).await.unwrap();
        self.0.nudge();
    }

    async fn number(&self, endpoint: &str) -> u32 {
        u32::try_from(self.2.iter().position(|id| id == endpoint).unwrap()).unwrap()
    }

    async fn limit(&self, levers: &[Lever]) -> Vec<SetLimit> {
        let mut limits = Vec::new();
        for Lever { account, endpoint, per_second } in levers {
            let of = match (account, endpoint) {
                (Some(id), _) => LimitOf::Account(id.trim_start_matches("acct_").parse().unwrap()),
                (None, Some(id)) => LimitOf::Endpoint(self.number(id).await),
                (None, None) => LimitOf::All,
            };
            limits.push(SetLimit { of, per_second: *per_second });
        }
        self.0.set_limits(limits);
        Vec::new()
    }
}

/// Compares call by call, and shows what was called before the first that differs.
#[track_caller]
fn is_asked_the_same(name: &str, calls: &[String], durable: &[String]) {
    let same = calls.iter().zip(durable).take_while(|(one, other)| one == other).count();
    let [one, other] = [calls, durable].map(|of| of.get(same));
    let before = durable[same.saturating_sub(5)..same].join("\n");
    assert!(one == other, "after {same} calls:\n{before}\n\n{name}: {one:?}\ndurable: {other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_store_is_asked_the_same_through_a_day_and_answers_the_same() {
    let start = Timestamp::from_unix(clock::now().unix_micros() / 1_000_000).unwrap();
    let durable = day::passes(&Durable::new(start).await, start).await;
    for call in
        ["outdated", "lock d", "lock_pending", "lock_disabled", "count", "\n  alert", "limits\n"]
    {
        assert!(durable.iter().any(|line| line.contains(call)), "nobody asked for {call:?}");
    }
    let memory = day::passes(&Memory::new(start), start).await;
    is_asked_the_same("memory", &memory, &durable);
    let simulated = day::passes(&Simulated::new(start), start).await;
    is_asked_the_same("simulated", &simulated, &durable);
}
