//! What must hold in the end, whatever was killed.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use testing::judge::{Ended, Ends, Logged};

use call_assistant_postgres::db::{Database, DbError};

pub use testing::judge::Answers;

/// Returns how many deliveries are pending. `None` if the database does not say.
pub async fn pending(database: &Database) -> Option<i64> {
    let asked = database.read(async |client| {
        let row = client.query_one("SELECT count(*) FROM deliveries", &[]).await?;
        Ok::<i64, DbError>(row.try_get(0)?)
    });
    asked.await.ok()
}

#[derive(Debug, Default)]
pub struct Figures {
    events: usize,
    calls: usize,
    statuses: BTreeMap<String, u32>,
    attempts: u32,
    late: usize,
    requests: u32,
    disabled: BTreeMap<String, u32>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses: Vec<String> =
            self.statuses.iter().map(|(status, n)| format!("{n} {status}")).collect();
        let disabled: Vec<String> =
            self.disabled.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        write!(
            f,
            "{} events accepted, {} of them of calls that an API process recorded; deliveries: {}; endpoints disabled in the end: {}\n\
             {} attempts in the log, {} of them late; {} requests, {} more than attempts",
            self.events,
            self.calls,
            statuses.join(", "),
            disabled.join(", "),
            self.attempts,
            self.late,
            self.requests,
            self.requests.saturating_sub(self.attempts),
        )
    }
}

/// Returns the figures, and each thing that is wrong. Accepted events and recorded calls have their accounts.
pub async fn check(
    database: &Database,
    mut accepted: BTreeMap<String, String>,
    calls: BTreeMap<String, String>,
    answers: impl Fn(&str, &str) -> Answers,
) -> (Figures, Vec<String>) {
    let session = database.session().await.unwrap();
    let mut wrong = Vec::new();
    let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let of_calls = "SELECT id, body FROM events WHERE type = 'call.ended' AND body IS NOT NULL";
    for row in session.query(of_calls, &[]).await.unwrap() {
        let body: Value = serde_json::from_slice(row.get(1)).unwrap();
        let call = body["data"]["object"]["id"].as_str().unwrap().to_owned();
        events.entry(call).or_default().push(row.get(0));
    }
    for (call, account) in &calls {
        match events.get(call).map(Vec::as_slice) {
            Some([event]) => {
                accepted.insert(event.clone(), account.clone());
            }
            events => wrong.push(format!("call {call} has the events {events:?}")),
        }
    }
    let mut figures = Figures { events: accepted.len(), calls: calls.len(), ..Figures::default() };

    let mut ends = Ends { accepted, ..Ends::default() };
    let entries = "SELECT delivery, number, manual, outcome, late FROM attempts";
    for row in session.query(entries, &[]).await.unwrap() {
        figures.attempts += 1;
        let entry = Logged {
            number: row.get(1),
            manual: row.get(2),
            outcome: row.get(3),
            late: row.get(4),
        };
        figures.late += usize::from(entry.late);
        ends.log.entry(row.get(0)).or_default().push(entry);
    }
    let pending = session.query("SELECT id FROM deliveries", &[]).await.unwrap();
    ends.pending = pending.iter().map(|row| row.get(0)).collect();
    let ended = "SELECT d.id, e.id, d.event_id, d.status, d.attempts
        FROM ended AS d JOIN endpoints AS e ON e.number = d.endpoint";
    for row in session.query(ended, &[]).await.unwrap() {
        let (endpoint, event): (String, String) = (row.get(1), row.get(2));
        let (id, status, attempts) = (row.get(0), row.get::<_, String>(3), row.get(4));
        *figures.statuses.entry(status.clone()).or_default() += 1;
        figures.requests += answers(&endpoint, &event).requests;
        ends.ended.push(Ended { id, endpoint, event, status, attempts });
    }
    let of_accounts = "SELECT account_id, id, disabled FROM endpoints";
    for row in session.query(of_accounts, &[]).await.unwrap() {
        ends.endpoints.entry(row.get(0)).or_default().push(row.get(1));
        if let Some(reason) = row.get::<_, Option<String>>(2) {
            *figures.disabled.entry(reason).or_default() += 1;
        }
    }
    wrong.extend(ends.check(answers));
    (figures, wrong)
}
