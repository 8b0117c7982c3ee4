//! What must hold in the end, whatever has failed: each accepted event has ended once for each endpoint, as its
//! receiver has answered, and nothing is counted twice.

use std::collections::{BTreeMap, HashMap};

/// What is stored in the end.
#[derive(Debug, Default)]
pub struct Ends {
    /// The account of each accepted event.
    pub accepted: BTreeMap<String, String>,
    /// The endpoints of each account.
    pub endpoints: BTreeMap<String, Vec<String>>,
    pub pending: Vec<i64>,
    pub ended: Vec<Ended>,
    /// The log of each delivery.
    pub log: HashMap<i64, Vec<Logged>>,
}

/// A delivery that has ended.
#[derive(Debug)]
pub struct Ended {
    pub id: i64,
    pub endpoint: String,
    pub event: String,
    pub status: String,
    pub attempts: i16,
}

/// An entry of the log.
#[derive(Debug)]
pub struct Logged {
    pub number: i16,
    pub manual: bool,
    pub outcome: String,
    pub late: bool,
}

/// What was answered to the requests of an event at an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    pub requests: u32,
    pub good: u32,
    pub gone: u32,
}

impl Ends {
    /// Returns each thing that is wrong.
    pub fn check(mut self, answers: impl Fn(&str, &str) -> Answers) -> Vec<String> {
        let mut wrong = Vec::new();
        for id in &self.pending {
            wrong.push(format!("delivery {id} is still pending"));
        }
        let mut ends: HashMap<(&str, &str), u32> = HashMap::new();
        for row in &self.ended {
            *ends.entry((&row.event, &row.endpoint)).or_default() += 1;
            let entries = self.log.remove(&row.id).unwrap_or_default();
            let faults = row.check(&entries, answers(&row.endpoint, &row.event));
            let fault = |what| format!("delivery {} ({}): {what}", row.id, row.status);
            wrong.extend(faults.into_iter().map(fault));
        }
        for id in self.log.keys() {
            wrong.push(format!("delivery {id} has a log and no row"));
        }
        for (event, account) in &self.accepted {
            for endpoint in self.endpoints.get(account).into_iter().flatten() {
                let n = ends.remove(&(event.as_str(), endpoint.as_str())).unwrap_or(0);
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
        wrong
    }
}

impl Ended {
    fn check(&self, entries: &[Logged], answers: Answers) -> Vec<String> {
        let (mut wrong, status) = (Vec::new(), self.status.as_str());
        let good = |entry: &&Logged| entry.outcome.len() == 3 && entry.outcome.starts_with('2');
        let good = u32::try_from(entries.iter().filter(good).count()).unwrap();
        if good > answers.good {
            wrong.push(format!("{good} good answers in the log, {} given", answers.good));
        }
        if status == "delivered" && (answers.good == 0 || good == 0) {
            wrong.push(format!("{} good answers given, {good} in the log", answers.good));
        }
        if status != "delivered" && good > 0 {
            wrong.push("a good answer is in the log".to_owned());
        }
        if status == "gone" && answers.gone == 0 {
            wrong.push("nobody answered 410".to_owned());
        }
        // A 2xx delivers and a 410 disables whenever they come; a failure counts once.
        let fails = |entry: &&Logged| {
            let stands = entry.outcome.starts_with('2') || entry.outcome == "410";
            !entry.manual && !entry.late && !stands && entry.outcome != "unsent"
        };
        let mut counted: Vec<i16> =
            entries.iter().filter(fails).map(|entry| entry.number).collect();
        counted.sort_unstable();
        let expected: Vec<i16> = (1..=i16::try_from(counted.len()).unwrap()).collect();
        if counted != expected {
            wrong.push(format!("the failures of the attempts {counted:?} are counted"));
        }
        if self.attempts < i16::try_from(counted.len()).unwrap() {
            wrong.push(format!("{} attempts in the row, {counted:?} in the log", self.attempts));
        }
        let manual = entries.iter().any(|entry| entry.manual);
        if status == "failed" && counted.len() != 6 && !manual {
            wrong.push(format!("failed after the attempts {counted:?}"));
        }
        if u32::try_from(entries.len()).unwrap() > answers.requests + unsent(entries) {
            wrong.push(format!("{} attempts, {} requests", entries.len(), answers.requests));
        }
        wrong
    }
}

/// Counts attempts without a request: nobody listened, or the time was up before it was read.
fn unsent(entries: &[Logged]) -> u32 {
    let unseen = ["unsent", "timeout", "refused", "reset"];
    let unseen = entries.iter().filter(|entry| unseen.contains(&entry.outcome.as_str()));
    u32::try_from(unseen.count()).unwrap()
}
