//! The fleet: all accounts as operators see them, in plain values.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::SenderGauges;
use serde::Serialize;

/// The most endpoints that are listed: 100.
pub const MOST_TROUBLED: usize = 100;

/// The most deliveries of an endpoint that are counted: 1,000. One more stands for any number beyond it.
pub const MOST_WAITING: u64 = 1_000;

/// An endpoint that needs somebody: it fails, or was disabled since it failed.
#[derive(Clone, Debug, Serialize)]
pub struct TroubledRow {
    pub account_id: AccountId,
    pub business_name: Option<String>,
    pub endpoint_id: EndpointId,
    pub url: String,
    /// Why it is disabled, in a word; `None` while it is active.
    pub reason: Option<String>,
    /// Since when it has failed, or is disabled.
    pub since: Timestamp,
    /// The result of its latest attempt, or why there was no response, in a word; `None` if that is not known.
    pub outcome: Option<String>,
    /// Its pending deliveries, [`MOST_WAITING`] and one more at most.
    pub waiting: u64,
    /// The deliveries that it has missed, as many at most.
    pub missed: u64,
    /// The operator who has taken note of its latest alert, and when.
    pub acknowledged_by: Option<String>,
    pub acknowledged_at: Option<Timestamp>,
}

/// An hour of the last day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FleetHour {
    /// Its beginning.
    pub at: Timestamp,
    /// The most deliveries that were pending, of the counts of this hour.
    pub pending: u64,
    /// The longest time that a delivery was late, in milliseconds; `None` if that was not measured.
    pub late_ms: Option<u64>,
}

/// How all accounts stand.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Suspect and disabled ones first, the latest first; [`MOST_TROUBLED`] at most.
    pub troubled: Vec<TroubledRow>,
    /// Whether there are more.
    pub more: bool,
    /// Pending deliveries and the states of endpoints; `None` before the first count.
    pub gauges: Option<SenderGauges>,
    /// The hours of the last day that were counted, oldest first.
    pub hours: Vec<FleetHour>,
}
