//! Erasures of callers, by processes of their own, while everything else goes on.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::GenericClient;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::JoinSet;

use crate::record;

/// How many run at a time, and how often one is repeated that has left something or found no database: what it
/// had begun is left half done otherwise.
const AT_ONCE: usize = 3;
const TIMES: u32 = 100;

#[derive(Clone, Debug)]
pub(super) struct Erasures {
    program: OsString,
    database_url: String,
    room: Arc<Semaphore>,
    running: Arc<AsyncMutex<JoinSet<()>>>,
    /// The numbers of callers of whom nothing is left, as the last process has said.
    erased: Arc<Mutex<Vec<String>>>,
}

impl Erasures {
    pub(super) fn new(program: &OsStr, database_url: &str) -> Self {
        Self {
            program: program.to_owned(),
            // The record has to tell what is parked by these.
            database_url: record::url_of(database_url, record::ERASURE),
            room: Arc::new(Semaphore::new(AT_ONCE)),
            running: Arc::default(),
            erased: Arc::default(),
        }
    }

    /// Begins to erase a caller, unless others are being erased.
    pub(super) fn start(&self, account: &str, number: &str) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return };
        let Ok(mut running) = self.running.try_lock() else { return };
        let (url, erased) = (self.database_url.clone(), Arc::clone(&self.erased));
        let program = self.program.clone();
        let (account, number) = (account.to_owned(), number.to_owned());
        running.spawn_blocking(move || {
            for _ in 0..TIMES {
                let mut erase = Command::new(&program);
                erase.args(["erase", "--database", &url, "--account", &account]);
                erase.args(["--number", &number]);
                erase.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                if erase.status().unwrap().success() {
                    erased.lock().unwrap().push(number);
                    break;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            drop(room);
        });
    }

    /// Waits until none is under way.
    pub(super) async fn ended(&self) {
        let mut running = self.running.lock().await;
        while running.join_next().await.is_some() {}
    }

    /// How many callers were erased, and each of whom something is left.
    pub(super) async fn check(&self, client: &impl GenericClient) -> (usize, Vec<String>) {
        let erased = self.erased.lock().unwrap().clone();
        let mut wrong = Vec::new();
        let left = "SELECT (SELECT count(*) FROM events WHERE position($1 IN convert_from(body, 'UTF8')) > 0)
                + (SELECT count(*) FROM calls WHERE position($1 IN body) > 0)
                + (SELECT count(*) FROM attempts WHERE position($1 IN response) > 0)";
        for number in &erased {
            let left: i64 = client.query_one(left, &[number]).await.unwrap().get(0);
            if left > 0 {
                wrong.push(format!("{left} rows mention {number}, who was erased"));
            }
        }
        (erased.len(), wrong)
    }
}
