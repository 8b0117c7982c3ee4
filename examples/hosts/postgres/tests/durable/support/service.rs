//! A database with an account, a process that answers for it, and its customer's receiver.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant_postgres::queue::{Accepted, accept};
use private_server::Settings;
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;

use super::receiver::{Receiver, Reply};
use super::running::{self, File};
use super::{Running, World, data};

/// The flags of most senders.
pub(crate) const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];

/// The flags of senders with short waits between attempts.
pub(crate) const QUICK: [&str; 3] = ["--allow-loopback-endpoints", "--time-scale", "0.001"];

pub(crate) const PENDING: &str = "SELECT count(*) FROM deliveries";
pub(crate) const DELIVERED: &str = "SELECT count(*) FROM ended WHERE status = 'delivered'";

/// Changes a byte of the sealed secrets of the endpoint whose path is `/hurt`.
pub(crate) const DAMAGE: &str =
    "UPDATE endpoints SET secrets = set_byte(secrets, 40, get_byte(secrets, 40) # 1)
    WHERE url LIKE '%/hurt'";

pub(crate) struct Service {
    pub(crate) world: World,
    pub(crate) api: Running,
    pub(crate) receiver: Receiver,
}

impl Service {
    pub(crate) async fn new() -> Self {
        Self::with_calls(0).await
    }

    /// Has calls of the first account.
    pub(crate) async fn with_calls(calls: u64) -> Self {
        let mut accounts = data(calls);
        // Three more tenants, who have no key.
        let more = accounts["accounts"].as_array_mut().unwrap();
        more.extend((2..=4).map(|n| json!({ "id": format!("acct_{n}"), "timezone": "UTC" })));
        Self::of(&accounts, Settings::default()).await
    }

    pub(crate) async fn of(accounts: &Value, settings: Settings) -> Self {
        let world = World::new(settings).await;
        // One for each test: they run at the same time, and each removes its own.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("service-{}.json", MADE.fetch_add(1, Ordering::Relaxed));
        let file = File::new(&name, &accounts.to_string());
        let api = world.start("api", &["--data", file.path(), "--allow-loopback-endpoints"]);
        Self { world, api, receiver: Receiver::start() }
    }

    pub(crate) fn sender(&self) -> Running {
        self.world.start("sender", &SENDER)
    }

    pub(crate) fn quick_sender(&self) -> Running {
        self.world.start("sender", &QUICK)
    }

    /// Accepts an event in a transaction of its own.
    pub(crate) async fn accept(&self, event: &EventBody, now: Timestamp) -> Accepted {
        let database = &self.world.database;
        database.change(async |change| accept(change, event, None, None, now).await).await.unwrap()
    }

    /// Reads JSON of the dashboard.
    #[track_caller]
    pub(crate) fn show(&self, path: &str) -> Value {
        self.api.ask("GET", path, &Value::Null, 200)
    }

    /// Does something by the dashboard.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, status: u16) -> Value {
        self.api.ask("POST", path, &json!({}), status)
    }

    /// Registers an endpoint whose receiver answers with these. Returns its path.
    #[track_caller]
    pub(crate) fn endpoint(&self, path: &str, replies: &[Reply]) -> String {
        self.endpoint_of("acct_1", path, replies)
    }

    /// As [`endpoint`](Self::endpoint), of another account.
    #[track_caller]
    pub(crate) fn endpoint_of(&self, account: &str, path: &str, replies: &[Reply]) -> String {
        let url = self.receiver.url(path, replies);
        let asked = json!({ "url": url });
        let made = self.api.ask("POST", &format!("/accounts/{account}/endpoints"), &asked, 201);
        format!("/endpoints/{}", made["id"].as_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn ping(&self, endpoint: &str) {
        self.post(&format!("{endpoint}/ping"), 201);
    }

    /// The first column of the first row.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.ask(sql, &[]).await
    }

    pub(crate) async fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> i64 {
        let session = self.world.session().await;
        let row = session.query_one(sql, parameters).await.unwrap();
        session.keep();
        row.get(0)
    }

    pub(crate) async fn becomes(&self, sql: &str, wanted: i64) {
        let limit = Instant::now() + running::PATIENCE;
        loop {
            let n = self.count(sql).await;
            if n == wanted {
                return;
            }
            assert!(Instant::now() < limit, "{n}, not {wanted}: {sql}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn run(&self, sql: &str) {
        let session = self.world.session().await;
        session.batch_execute(sql).await.unwrap();
        session.keep();
    }
}
