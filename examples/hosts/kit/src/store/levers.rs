//! What operators set to stop sending or to slow it down, and which senders send: plain values, as they are
//! stored and shown.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use serde::{Deserialize, Serialize};

/// A lever that is set. Each of those that apply to a delivery has to allow its attempt, and is used up by it.
#[derive(Clone, Debug, Serialize)]
pub struct LeverRow {
    pub id: String,
    #[serde(flatten)]
    pub of: LeverOf,
    /// How many attempts begin in a second at most; 0 is a pause.
    pub per_second: u32,
    pub set_by: String,
    pub set_at: Timestamp,
}

/// What a lever holds back: an account, an endpoint, or everything where it names neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeverOf {
    pub account_id: Option<AccountId>,
    pub endpoint_id: Option<EndpointId>,
}

impl LeverRow {
    /// Returns what is set, by whom and when, in words.
    pub fn words(&self) -> String {
        let pace = match self.per_second {
            0 => "is paused".to_owned(),
            most => format!("is limited to {most} attempts per second and sender"),
        };
        let (of, by) = (self.of.words(), &self.set_by);
        format!("{of} {pace} (lever {}, set by {by} at {})", self.id, self.set_at)
    }
}

impl LeverOf {
    /// Returns what it is, in words.
    pub fn words(&self) -> String {
        match (&self.account_id, &self.endpoint_id) {
            (Some(account), _) => format!("account {account}"),
            (None, Some(endpoint)) => format!("endpoint {endpoint}"),
            (None, None) => "everything".to_owned(),
        }
    }
}

/// A sender that lives.
#[derive(Clone, Debug, Serialize)]
pub struct SenderRow {
    pub id: String,
    /// The name of the host on which it runs, and the number of its process; `None` where it has not told.
    pub host: Option<String>,
    pub pid: Option<i64>,
    /// How long its lease lasts if it is not renewed, in milliseconds.
    pub lease_ms: u64,
    /// The shards that it owns.
    pub shards: Vec<i16>,
}

/// A process that lives, as it tells of itself, and what it has a lease of.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ProcessRow {
    /// The name of its sender, if it has one.
    pub id: String,
    pub role: String,
    pub version: String,
    pub host: Option<String>,
    pub pid: u32,
    /// The numbers of the keys of its ring, the one that seals first.
    pub keys: String,
    /// By how much its clock is ahead of the database's, once that is known.
    pub clock_ahead_seconds: Option<f64>,
    /// For how long the oldest delivery has been due that its sender has not begun.
    pub late_seconds: f64,
    /// How many rows its sender cannot read.
    pub unreadable: usize,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// How long the lease of its sender lasts, in milliseconds; `None` without a lease.
    pub lease_ms: Option<i64>,
    /// The shards that its sender owns.
    pub shards: Vec<i16>,
}

/// Everything that is set, and the senders.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Levers {
    /// What is set, oldest first.
    pub levers: Vec<LeverRow>,
    pub senders: Vec<SenderRow>,
    pub processes: Vec<ProcessRow>,
}

/// What one step of cancelling has done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cancelled {
    /// How many deliveries it has ended.
    pub cancelled: u64,
    /// Where the next step begins. `None`: there is none.
    pub next: Option<String>,
}
