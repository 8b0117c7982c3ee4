//! The record of a run, in the database itself, and the judge over it.
//!
//! Triggers note each row before and after, each log entry and each lease, in the transaction that
//! makes them.

mod rows;

use call_assistant_postgres::db::{Database, Session};
use deadpool_postgres::GenericClient;
use testing::judge;

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

/// Records that are tampered with: the check has to find each.
pub const TAMPERED: [(&str, &str); 4] = [
    (
        "a failure stored over a row that was not read",
        "UPDATE transitions
         SET before = jsonb_set(before, '{attempts}', to_jsonb((before ->> 'attempts')::int + 1))
         WHERE seq = (
             SELECT min(seq) FROM transitions
             WHERE kind = 'delivery' AND before ->> 'status' = 'waiting'
                 AND after ->> 'status' = 'waiting' AND after ->> 'attempts' IN ('1', '2', '3'))",
    ),
    (
        "a result in the log, and not in the delivery",
        "DELETE FROM transitions AS t USING (
             SELECT tx, id FROM transitions
             WHERE kind = 'delivery' AND after ->> 'status' = 'delivered' ORDER BY seq LIMIT 1) AS one
         WHERE t.kind = 'delivery' AND t.tx = one.tx AND t.id = one.id",
    ),
    (
        "an endpoint that was not told of its last failure",
        "DELETE FROM transitions WHERE kind = 'endpoint' AND id = (
             SELECT id FROM transitions WHERE kind = 'endpoint' GROUP BY id
             HAVING count(*) FILTER (WHERE after ->> 'disabled' IS NOT NULL) = 1
                 AND bool_or(after ->> 'disabled' = 'failing')
             ORDER BY id LIMIT 1) AND after ->> 'disabled' = 'failing'",
    ),
    (
        "a delivery of a generation that its endpoint never had",
        "UPDATE transitions
         SET before = jsonb_set(before, '{generation}', '1000'),
             after = jsonb_set(after, '{generation}', '1000')
         WHERE kind = 'delivery' AND id = (
             SELECT id FROM transitions
             WHERE kind = 'delivery' AND after ->> 'status' = 'delivered' ORDER BY seq LIMIT 1)",
    ),
];

/// Returns how many of them the check finds, and those that it does not find.
pub async fn unseen(session: &mut Session) -> (usize, Vec<String>) {
    let (mut seen, mut unseen) = (0, Vec::new());
    for (what, sql) in TAMPERED {
        let change = session.transaction().await.unwrap();
        let tampered = change.execute(sql, &[]).await.unwrap();
        // A short run may have nothing of the kind.
        if tampered > 0 {
            match check(&change, &[]).await.1.is_empty() {
                true => unseen.push(format!("the check does not see {what}")),
                false => seen += 1,
            }
        }
        change.rollback().await.unwrap();
    }
    (seen, unseen)
}
