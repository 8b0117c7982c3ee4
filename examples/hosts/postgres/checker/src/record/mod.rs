//! The record of a run: each change of a row, replayed through the library.
//!
//! Triggers note each row before and after, each log entry and each lease, in the transaction that
//! makes them. The stored row before a change is what was really there: a host that wrote over a row
//! that it had not read has written what the machine does not give for that row.

mod deliveries;
mod endpoints;
mod owners;
mod rows;
mod tampered;

use call_assistant::Timestamp;
use call_assistant_postgres::db::Database;
use deadpool_postgres::GenericClient;

use self::rows::Record;
pub use self::tampered::{TAMPERED, unseen};

/// `--time-scale` of every sender whose rows are replayed: waits of the schedule are so much shorter.
pub const TIME_SCALE: &str = "0.0005";

/// The name of processes that erase callers: what is pending of them is parked, whatever its endpoint is.
pub const ERASURE: &str = "erasure";

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

/// From when until when what was written is lost.
pub type Lost = [Timestamp; 2];

/// Returns whether an instant is in one of these spans.
fn is_lost(lost: &[Lost], at: Timestamp) -> bool {
    lost.iter().any(|[from, until]| *from <= at && at <= *until)
}

/// Returns how many changes were replayed, and each that is wrong. Leases and lives of endpoints that were lost are
/// not asked for.
pub async fn check(client: &impl GenericClient, lost: &[Lost]) -> (usize, Vec<String>) {
    let record = Record::read(client).await;
    let states = endpoints::states(&record);
    let (outcomes, mut wrong) = deliveries::check(&record, &states);
    wrong.extend(endpoints::check(&record, &states, outcomes, lost));
    wrong.extend(owners::check(&record, lost));
    (record.rows.len(), wrong)
}
