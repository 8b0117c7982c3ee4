//! What an endpoint missed, and how it is sent again.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::{Recovery, RecoveryFilter, RecoveryStatus};

use crate::log;

/// How many of what an endpoint missed are listed when it is enabled.
pub const MOST_LISTED: usize = 1_000;

/// How much there is to recover, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    pub by_type: BTreeMap<String, u64>,
    /// Whether there are more, which were not counted.
    pub more: bool,
}

/// How far what was missed is counted while somebody waits for the answer.
pub const MOST_COUNTED: u64 = 100_000;

/// Returns what an alert says of so much that was missed, after its own words.
pub fn missed_so_far(missed: u64) -> String {
    match missed > MOST_COUNTED {
        true => format!("; more than {MOST_COUNTED} deliveries were missed so far"),
        false => format!("; deliveries missed so far: {missed}"),
    }
}

impl Missed {
    pub fn total(&self) -> u64 {
        self.by_type.values().sum()
    }
}

/// A recovery, as far as it has come.
#[derive(Clone, Debug)]
pub struct RecoveryRow {
    pub id: String,
    pub account_id: AccountId,
    pub endpoint_id: EndpointId,
    pub missed: RecoveryFilter,
    pub status: RecoveryStatus,
    /// Whether it rests until it is continued.
    pub paused: bool,
    /// Whether there are more than it has counted so far.
    pub more: bool,
    /// How many there were when it was started, how many of them it has redelivered, and how many
    /// it has found to be no longer missed.
    pub counted: u64,
    pub redelivered: u64,
    pub left_out: u64,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl RecoveryRow {
    /// Returns a recovery of an endpoint that was counted, and does not rest. `ended_at` is when it was stored as
    /// ended.
    pub fn of<D>(
        id: String,
        (account_id, endpoint_id): (AccountId, EndpointId),
        recovery: &Recovery<D>,
        ended_at: Option<Timestamp>,
    ) -> Self {
        Self {
            id,
            account_id,
            endpoint_id,
            missed: recovery.missed().clone(),
            status: recovery.status(),
            paused: false,
            more: false,
            counted: recovery.counted(),
            redelivered: recovery.redelivered(),
            left_out: recovery.left_out(),
            started_at: recovery.started_at(),
            ended_at,
        }
    }

    /// Says in the log that it has started.
    pub fn log_start(&self) {
        log::info!(
            recovery = self.id.as_str(),
            account = self.account_id.as_str(),
            endpoint = self.endpoint_id.as_str(),
            from = %self.missed.from(),
            until = %self.missed.until(),
            counted = self.counted,
            "a recovery has started",
        );
    }
}

/// Recoveries that were started together.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPage {
    pub started: Vec<RecoveryRow>,
    /// Where the next page of endpoints begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
}
