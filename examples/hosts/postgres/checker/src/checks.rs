//! What must hold in the end, whatever was killed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::Value;

use call_assistant_postgres::db::{Database, DbError};

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

/// What was answered to the requests of an event at an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub requests: u32,
    pub good: u32,
    pub gone: u32,
}

struct Entry {
    number: i16,
    manual: bool,
    outcome: String,
    late: bool,
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

    let mut log: HashMap<i64, Vec<Entry>> = HashMap::new();
    let entries = "SELECT delivery, number, manual, outcome, late FROM attempts";
    for row in session.query(entries, &[]).await.unwrap() {
        figures.attempts += 1;
        let entry =
            Entry { number: row.get(1), manual: row.get(2), outcome: row.get(3), late: row.get(4) };
        figures.late += usize::from(entry.late);
        log.entry(row.get(0)).or_default().push(entry);
    }

    let pending = session.query("SELECT id, endpoint FROM deliveries", &[]).await.unwrap();
    for row in pending {
        wrong.push(format!("delivery {} is still pending", row.get::<_, i64>(0)));
    }

    let ended = "SELECT d.id, e.id, d.event_id, d.status, d.attempts, d.account_id
        FROM ended AS d JOIN endpoints AS e ON e.number = d.endpoint";
    let mut ends: HashMap<(String, String), u32> = HashMap::new();
    for row in session.query(ended, &[]).await.unwrap() {
        let (id, endpoint, event): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
        let (status, attempts): (String, i16) = (row.get(3), row.get(4));
        *figures.statuses.entry(status.clone()).or_default() += 1;
        *ends.entry((event.clone(), endpoint.clone())).or_default() += 1;
        let answers = answers(&endpoint, &event);
        figures.requests += answers.requests;
        let entries = log.remove(&id).unwrap_or_default();
        let mut fault = |what: String| wrong.push(format!("delivery {id} ({status}): {what}"));

        let good = |entry: &&Entry| entry.outcome.len() == 3 && entry.outcome.starts_with('2');
        let good = u32::try_from(entries.iter().filter(good).count()).unwrap();
        if good > answers.good {
            fault(format!("{good} good answers in the log, {} given", answers.good));
        }
        if status == "delivered" && (answers.good == 0 || good == 0) {
            fault(format!("{} good answers given, {good} in the log", answers.good));
        }
        if status != "delivered" && good > 0 {
            fault("a good answer is in the log".to_owned());
        }
        if status == "gone" && answers.gone == 0 {
            fault("nobody answered 410".to_owned());
        }
        // A 2xx delivers and a 410 disables whenever they come; a failure counts once.
        let fails = |entry: &&Entry| {
            let stands = entry.outcome.starts_with('2') || entry.outcome == "410";
            !entry.manual && !entry.late && !stands && entry.outcome != "unsent"
        };
        let mut counted: Vec<i16> =
            entries.iter().filter(fails).map(|entry| entry.number).collect();
        counted.sort_unstable();
        let expected: Vec<i16> = (1..=i16::try_from(counted.len()).unwrap()).collect();
        if counted != expected {
            fault(format!("the failures of the attempts {counted:?} are counted"));
        }
        if attempts < i16::try_from(counted.len()).unwrap() {
            fault(format!("{attempts} attempts in the row, {counted:?} in the log"));
        }
        let manual = entries.iter().any(|entry| entry.manual);
        if status == "failed" && counted.len() != 6 && !manual {
            fault(format!("failed after the attempts {counted:?}"));
        }
        if u32::try_from(entries.len()).unwrap() > answers.requests + unsent(&entries) {
            fault(format!("{} attempts, {} requests", entries.len(), answers.requests));
        }
    }
    for id in log.keys() {
        wrong.push(format!("delivery {id} has a log and no row"));
    }

    let mut endpoints: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let of_accounts = "SELECT account_id, id, disabled FROM endpoints";
    for row in session.query(of_accounts, &[]).await.unwrap() {
        endpoints.entry(row.get(0)).or_default().push(row.get(1));
        if let Some(reason) = row.get::<_, Option<String>>(2) {
            *figures.disabled.entry(reason).or_default() += 1;
        }
    }
    for (event, account) in &accepted {
        for endpoint in &endpoints[account] {
            let n = ends.remove(&(event.clone(), endpoint.clone())).unwrap_or(0);
            if n != 1 {
                wrong.push(format!("event {event} has {n} ends for {endpoint}"));
            }
        }
    }
    // Accepted without an answer that says so: one end as well.
    for ((event, endpoint), n) in ends {
        if n != 1 {
            wrong.push(format!("event {event} has {n} ends for {endpoint}"));
        }
    }
    (figures, wrong)
}

/// Counts attempts without a request: nobody listened, or the time was up before it was read.
fn unsent(entries: &[Entry]) -> u32 {
    let unseen = ["unsent", "timeout", "refused", "reset"];
    let unseen = entries.iter().filter(|entry| unseen.contains(&entry.outcome.as_str()));
    u32::try_from(unseen.count()).unwrap()
}
