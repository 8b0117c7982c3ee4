//! The record of a run, in the database itself, and the judge over it.
//!
//! Triggers note each row before and after, each log entry and each lease, in the transaction that
//! makes them.

mod rows;
mod tampered;

use call_assistant_postgres::db::Database;
use deadpool_postgres::GenericClient;
use testing::judge;

pub use self::tampered::{TAMPERED, unseen};
pub use testing::judge::{ERASURE, Lost};

/// `--time-scale` of every sender whose rows are replayed: waits of the schedule are so much shorter.
pub const TIME_SCALE: &str = "0.0005";

/// Notes all that happens from now on.
pub async fn begin(database: &Database) {
    let session = database.session().await.unwrap();
    session.batch_execute(include_str!("record.sql")).await.unwrap();
    session.keep();
}

/// Returns where a process connects to, so that the record tells it from the others.
pub fn url_of(url: &str, process: &str) -> String {
    format!("{url}?options=-c%20record.process%3D{process}")
}

/// Makes a connection for the checks, which may take their time.
pub fn patient(url: &str) -> Database {
    let options = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
        .map(|limit| format!("-c%20{limit}%3D0"));
    Database::new(&format!("{url}?options={}", options.join("%20")), 4).unwrap()
}

/// Returns how many changes were replayed, and each that is wrong. Leases and lives of endpoints that were lost are
/// not asked for.
pub async fn check(client: &impl GenericClient, lost: &[Lost]) -> (usize, Vec<String>) {
    let record = rows::read(client).await;
    (record.rows.len(), judge::check(&record, lost))
}
