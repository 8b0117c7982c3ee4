//! A database with an account, a process that answers for it, and its customer's receiver.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use private_server::Settings;
use serde_json::json;
use tokio_postgres::types::ToSql;

use super::receiver::{Receiver, Reply};
use super::running::{self, File};
use super::{Running, World, data};

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
        let world = World::new(Settings::default()).await;
        // One for each test: they run at the same time, and each removes its own.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("service-{}.json", MADE.fetch_add(1, Ordering::Relaxed));
        // Three more tenants, who have no key.
        let mut accounts = data(0);
        for n in 2..=4 {
            let tenant = json!({ "id": format!("acct_{n}"), "timezone": "UTC" });
            accounts["accounts"].as_array_mut().unwrap().push(tenant);
        }
        let file = File::new(&name, &accounts.to_string());
        let api = world.start("api", &["--data", file.path(), "--allow-loopback-endpoints"]);
        Self { world, api, receiver: Receiver::start() }
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
        self.api.ask("POST", &format!("{endpoint}/ping"), &json!({}), 201);
    }

    /// The first column of the first row.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.ask(sql, &[]).await
    }

    pub(crate) async fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> i64 {
        let session = self.world.database.session().await.unwrap();
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
        let session = self.world.database.session().await.unwrap();
        session.batch_execute(sql).await.unwrap();
        session.keep();
    }
}
