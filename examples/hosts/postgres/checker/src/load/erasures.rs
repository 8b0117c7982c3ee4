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
    /// Accounts and numbers of callers of whom nothing is left, as the last process has said.
    erased: Arc<Mutex<Vec<(String, String)>>>,
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
        let (program, url) = (self.program.clone(), self.database_url.clone());
        let erased = Arc::clone(&self.erased);
        let (account, number) = (account.to_owned(), number.to_owned());
        running.spawn_blocking(move || {
            if erase(&program, &url, &account, &number) {
                erased.lock().unwrap().push((account, number));
            }
            drop(room);
        });
    }

    /// Erases each of them once more, as an operator does when the database went back.
    pub(super) async fn repeat(&self) {
        let (program, url) = (self.program.clone(), self.database_url.clone());
        let erased = self.erased.lock().unwrap().clone();
        let repeat = move || {
            for (account, number) in erased {
                assert!(erase(&program, &url, &account, &number), "{number} is not erased");
            }
        };
        tokio::task::spawn_blocking(repeat).await.unwrap();
    }

    /// Waits until none is under way.
    pub(super) async fn ended(&self) {
        let mut running = self.running.lock().await;
        while running.join_next().await.is_some() {}
    }

    /// Returns how many callers were erased, and each of whom something is left.
    pub(super) async fn check(&self, client: &impl GenericClient) -> (usize, Vec<String>) {
        let erased = self.erased.lock().unwrap().clone();
        let mut wrong = Vec::new();
        let left = "SELECT (SELECT count(*) FROM events WHERE position($1 IN convert_from(body, 'UTF8')) > 0)
                + (SELECT count(*) FROM calls WHERE position($1 IN body) > 0)
                + (SELECT count(*) FROM attempts WHERE position($1 IN response) > 0)";
        for (_, number) in &erased {
            let left: i64 = client.query_one(left, &[number]).await.unwrap().get(0);
            if left > 0 {
                wrong.push(format!("{left} rows mention {number}, who was erased"));
            }
        }
        (erased.len(), wrong)
    }
}

/// Erases a caller, in as many tries as it takes. Whether nothing is left.
fn erase(program: &OsStr, url: &str, account: &str, number: &str) -> bool {
    (0..TIMES).any(|nth| {
        if nth > 0 {
            std::thread::sleep(Duration::from_millis(500));
        }
        let mut erase = Command::new(program);
        erase.args(["erase", "--database", url, "--account", account, "--number", number]);
        erase.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        erase.status().unwrap().success()
    })
}
