//! The durable host: its senders are processes, as an operator runs them.

use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::db::{self, At};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use call_assistant_postgres::queue::{accept, shard_of};
use tokio_postgres::Client;

use super::{ACCOUNTS, event, now};
use crate::server::{Database, connect};

const RING: &str = "1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[derive(Debug)]
pub(crate) struct Ours {
    client: Client,
    url: String,
    database: db::Database,
    senders: u8,
    processes: Vec<Child>,
    number: u64,
    /// Of the first endpoint: they follow each other.
    first: i32,
}

impl Ours {
    pub(super) async fn prepare(database: &Database, urls: &[&str], senders: u8) -> Self {
        let url = database.url.clone();
        let database = db::Database::new(&url, 4).expect("a URL");
        db::migrate(&database).await.expect("migrated");
        let client = connect(&url).await;
        for nth in 0..ACCOUNTS {
            let account = "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
                VALUES ($1, 'Europe/Oslo', 'business', true, false)";
            client.execute(account, &[&account_of(nth)]).await.expect("an account");
        }
        let (ring, now) = (KeyRing::parse(RING).expect("a ring"), now());
        let mut first = None;
        for (nth, address) in (0_u32..).zip(urls) {
            let id = format!("whep_{nth}");
            let secret = Signer::new(SigningSecret::from_random([7; 32]));
            let sealed = ring.seal(&id, &secret, now);
            let shard = shard_of(&id);
            let insert = "INSERT INTO endpoints
                    (id, account_id, shard, created_at, url, allow_loopback, secrets,
                     since, failures, generation, version)
                VALUES ($1, $2, $3, $4, $5, true, $6, $4, 0, 0, 0) RETURNING number";
            let row = client
                .query_one(insert, &[&id, &account_of(nth), &shard, &At(now), address, &sealed])
                .await
                .expect("an endpoint");
            first.get_or_insert(row.get(0));
        }
        Self {
            client,
            url,
            database,
            senders,
            processes: Vec::new(),
            number: 0,
            first: first.expect("endpoints"),
        }
    }

    /// As the host accepts: by its own function, in the transaction of the change.
    pub(super) async fn insert(&mut self, count: u32, endpoints: Range<u32>) {
        let numbers: Vec<u32> = (0..count).zip(endpoints.cycle()).map(|(_, n)| n).collect();
        for chunk in numbers.chunks(200) {
            let mut session = self.database.session().await.expect("a session");
            let change = session.transaction().await.expect("begun");
            for endpoint in chunk {
                self.number += 1;
                let event = event(&account_of(*endpoint), self.number);
                let endpoint = self.first + i32::try_from(*endpoint).expect("a few");
                accept(&change, &event, Some(endpoint), None, now()).await.expect("accepted");
            }
            change.commit().await.expect("committed");
            session.keep();
        }
    }

    /// Takes what is accepted out of the senders' sight: they share their shards before there is
    /// anything to send.
    pub(super) async fn hold_back(&self) {
        let hold = "CREATE TABLE held_back AS SELECT * FROM deliveries;
            ALTER TABLE held_back DROP COLUMN queued_by; DELETE FROM deliveries";
        self.client.batch_execute(hold).await.expect("held back");
    }

    /// Puts it back at once, as one acceptance would.
    pub(super) async fn let_go(&self) {
        let columns = "id, shard, endpoint, account_id, event_id, event_created_at, status, at,
            attempts, manual, generation, version";
        let insert = format!("INSERT INTO deliveries ({columns}) SELECT {columns} FROM held_back");
        self.client.batch_execute(&insert).await.expect("put back");
    }

    /// Starts the senders, and waits until each has its share of the shards.
    pub(super) async fn start(&mut self) {
        for _ in 0..self.senders {
            let own = std::env::current_exe().expect("this program");
            let mut process = Command::new(own)
                .args(["sender", "--database", &self.url, "--allow-loopback-endpoints"])
                .env(VARIABLE, RING)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("a sender");
            let mut line = String::new();
            let stdout = process.stdout.take().expect("a pipe");
            BufReader::new(stdout).read_line(&mut line).expect("its first line");
            assert!(line.contains("\"ready\":true"), "{line}");
            self.processes.push(process);
        }
        let shares = "SELECT count(*) FROM (
                SELECT owner FROM shards WHERE owner IS NOT NULL GROUP BY owner
                HAVING count(*) >= 64 / $1::bigint) AS shares";
        let senders = i64::from(self.senders);
        while self.client.query_one(shares, &[&senders]).await.expect("read").get::<_, i64>(0)
            < senders
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn pending(&self) -> i64 {
        let pending = "SELECT count(*) FROM deliveries";
        self.client.query_one(pending, &[]).await.expect("counted").get(0)
    }

    pub(super) fn stop(mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The account of an endpoint, in the order in which they are added.
fn account_of(endpoint: u32) -> String {
    format!("acct_{}", endpoint % ACCOUNTS)
}
