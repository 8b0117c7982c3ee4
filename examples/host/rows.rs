//! What goes through the traits of `store.rs`: plain values, as they are stored and shown.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId, EventId};
use call_assistant::model::Call;
use call_assistant::rest::ApiKey;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::SigningSecret;
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::sender::{
    Delivery, Endpoint, Gauges, LogEntry, MissedDeliveries, Recovery, RecoveryStatus, Status,
    Tally, Target,
};

use super::plan::Plan;

/// One account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) business_name: Option<String>,
    pub(crate) timezone: String,
    pub(crate) plan: Plan,
    pub(crate) subscription_active: bool,
    pub(crate) closing: bool,
    /// How many live calls it has.
    pub(crate) calls: u64,
}

/// What changes of an account: the fields that are given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccountChange {
    pub(crate) plan: Option<Plan>,
    pub(crate) subscription_active: Option<bool>,
    pub(crate) closing: Option<bool>,
}

/// An account to begin with, of a `--data` file or the demonstration. It is consistent in itself:
/// no id or secret comes twice, and only plans with webhooks have endpoints.
#[derive(Debug)]
pub(crate) struct NewAccount {
    pub(crate) account: Account,
    /// With their secrets, for the first line that the host prints.
    pub(crate) keys: Vec<(StoredKey, ApiKey)>,
    pub(crate) endpoints: Vec<NewEndpoint>,
    pub(crate) calls: Vec<Call>,
    /// What test keys reach.
    pub(crate) test_calls: Vec<Call>,
}

/// An endpoint to register.
#[derive(Clone, Debug)]
pub(crate) struct NewEndpoint {
    pub(crate) id: EndpointId,
    pub(crate) account_id: AccountId,
    pub(crate) target: Target,
    pub(crate) secret: SigningSecret,
}

/// One endpoint. Its secrets are the store's alone.
#[derive(Clone, Debug)]
pub(crate) struct EndpointRow {
    pub(crate) id: EndpointId,
    pub(crate) account_id: AccountId,
    pub(crate) url: String,
    pub(crate) health: Endpoint,
    pub(crate) created_at: Timestamp,
    /// Until when replaced secrets still sign, the most recently replaced one first.
    pub(crate) previous_secrets: Vec<Timestamp>,
}

/// How an endpoint has answered in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastHour {
    /// Attempts that were made; those that were not sent are not among them.
    pub(crate) attempts: u64,
    /// How many were answered with 2xx.
    pub(crate) succeeded: u64,
    /// How long an attempt took, in milliseconds; `None` without attempts.
    pub(crate) p50_ms: Option<u64>,
    pub(crate) p99_ms: Option<u64>,
}

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRow {
    pub(crate) id: DeliveryId,
    pub(crate) account_id: AccountId,
    pub(crate) endpoint_id: EndpointId,
    pub(crate) url: String,
    pub(crate) event_id: EventId,
    pub(crate) event_type: EventType,
    pub(crate) state: Delivery,
    /// When the next attempt is due here, where `--time-scale` makes the waits shorter. `None`
    /// while one is in flight, and when there is none to come.
    pub(crate) next_at: Option<Timestamp>,
    /// Its attempts, oldest first.
    pub(crate) log: Vec<LogEntry>,
    /// The bytes that are signed. A list may leave them out where they are more than
    /// [`LISTED_BODY`].
    pub(crate) body: Option<EventBody>,
}

/// The longest body that a list shows, in bytes: a thousand of the longest are a gigabyte.
pub(crate) const LISTED_BODY: usize = 16 * 1024;

/// Which deliveries of an account to list. Each field that is given leaves some out.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryFilter {
    /// One of these; any, if there is none.
    pub(crate) statuses: Vec<Status>,
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) event_type: Option<String>,
    /// The event's id, or the delivery's, whole.
    pub(crate) id: Option<String>,
    /// The event's `created_at`: at or after, and before.
    pub(crate) from: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    /// [`DeliveryPage::next`] of the page before.
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// Deliveries, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryPage {
    pub(crate) rows: Vec<DeliveryRow>,
    /// Where the next page begins, in words of the store's own. `None` on the last page.
    pub(crate) next: Option<String>,
}

/// An endpoint that was enabled.
#[derive(Clone, Debug)]
pub(crate) struct Enabled {
    pub(crate) endpoint: EndpointRow,
    /// What it missed, newest first. None of it is sent by itself.
    pub(crate) missed: Vec<DeliveryId>,
}

/// How much there is to recover, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) by_type: BTreeMap<String, u64>,
}

impl Missed {
    pub(crate) fn total(&self) -> u64 {
        self.by_type.values().sum()
    }
}

/// A recovery, as far as it has come.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryRow {
    pub(crate) id: String,
    pub(crate) endpoint_id: EndpointId,
    pub(crate) missed: MissedDeliveries,
    pub(crate) status: RecoveryStatus,
    /// How many there were when it was started, how many of them it has redelivered, and how many
    /// it has found to be no longer missed.
    pub(crate) counted: u64,
    pub(crate) redelivered: u64,
    pub(crate) left_out: u64,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
}

impl RecoveryRow {
    /// A recovery of an endpoint. `ended_at` is when it was stored as ended.
    pub(crate) fn of<D>(
        id: String,
        endpoint_id: EndpointId,
        recovery: &Recovery<D>,
        ended_at: Option<Timestamp>,
    ) -> Self {
        Self {
            id,
            endpoint_id,
            missed: recovery.missed().clone(),
            status: recovery.status(),
            counted: recovery.counted(),
            redelivered: recovery.redelivered(),
            left_out: recovery.left_out(),
            started_at: recovery.started_at(),
            ended_at,
        }
    }
}

/// What a sender has counted since its process began, and what its store holds now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) sender: Tally,
    pub(crate) gauges: Gauges,
}

/// Something that an owner should be told.
#[derive(Clone, Debug)]
pub(crate) struct AlertRow {
    pub(crate) id: String,
    pub(crate) endpoint_id: EndpointId,
    pub(crate) url: String,
    pub(crate) at: Timestamp,
    /// A word that programs branch on.
    pub(crate) kind: String,
    /// A sentence for people.
    pub(crate) message: String,
}

/// A signing secret that replaces another.
#[derive(Clone, Debug)]
pub(crate) struct NewSecret {
    pub(crate) secret: SigningSecret,
    /// For how long the previous one signs, too.
    pub(crate) overlap: Duration,
}
