//! What goes through the traits of `store.rs`: plain values, as they are stored and shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId, EventId};
use call_assistant::metrics::OpenMetrics;
use call_assistant::model::Call;
use call_assistant::rest::ApiKey;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::sender::{
    Delivery, DeliveryStatus, EndpointHealth, EndpointUrl, LogEntry, Outlook, Recovery,
    RecoveryFilter, RecoveryStatus, SenderGauges, SenderMetrics,
};
use call_assistant::webhook::{Signer, SigningSecret};

use serde::Serialize;
use serde_json::Value;

use super::log;
use super::plan::Plan;
use super::signed::{ShownRequest, Signed};

/// A row of a list, or the id of one that cannot be read.
pub type Listed<T> = Result<T, Unreadable>;

/// The id of a row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    pub id: AccountId,
    pub business_name: Option<String>,
    pub timezone: String,
    pub plan: Plan,
    pub subscription_active: bool,
    pub closing: bool,
    /// How many live calls it has.
    pub calls: u64,
}

/// What changes of an account: the fields that are given.
#[derive(Clone, Debug, Default)]
pub struct AccountChange {
    pub timezone: Option<String>,
    pub plan: Option<Plan>,
    pub subscription_active: Option<bool>,
    pub closing: Option<bool>,
}

/// An account to begin with, of a `--data` file or the demonstration. It is consistent in itself:
/// no id or secret comes twice, and only plans with webhooks have endpoints.
#[derive(Debug)]
pub struct NewAccount {
    pub account: Account,
    /// With their secrets, for the first line that the host prints.
    pub keys: Vec<(StoredKey, ApiKey)>,
    pub endpoints: Vec<NewEndpoint>,
    pub calls: Vec<Call>,
    /// What test keys reach.
    pub test_calls: Vec<Call>,
}

/// An endpoint to register.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    pub id: EndpointId,
    pub account_id: AccountId,
    pub target: EndpointUrl,
    pub secret: SigningSecret,
    pub description: Option<String>,
}

/// What changes of an endpoint: the fields that are given.
#[derive(Clone, Debug, Default)]
pub struct EndpointEdit {
    pub target: Option<EndpointUrl>,
    /// `None` in it takes the description away.
    pub description: Option<Option<String>>,
}

/// One endpoint. Its secrets are the store's alone.
#[derive(Clone, Debug)]
pub struct EndpointRow {
    pub id: EndpointId,
    pub account_id: AccountId,
    pub url: String,
    /// What its owner calls it.
    pub description: Option<String>,
    pub health: EndpointHealth,
    pub created_at: Timestamp,
    /// Until when replaced secrets still sign, the most recently replaced one first.
    pub previous_secrets: Vec<Timestamp>,
}

/// How an endpoint has answered in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastHour {
    /// Attempts that were made; those that were not sent are not among them.
    pub attempts: u64,
    /// Whether only the latest were looked at, and there may be more.
    pub more: bool,
    /// How many were answered with 2xx.
    pub succeeded: u64,
    /// How long an attempt took, in milliseconds; `None` without attempts.
    pub p50_ms: Option<u64>,
    pub p99_ms: Option<u64>,
}

/// How the events of a day stand at an endpoint, by the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Day {
    /// Oldest first.
    pub hours: [Hour; 24],
    /// How many are in them.
    pub counted: u64,
    /// The instant of the oldest event that was counted. `None`: all of the day were.
    pub since: Option<Timestamp>,
}

/// How the events of an hour stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hour {
    pub delivered: u64,
    /// An attempt has failed, and another is to come.
    pub failing: u64,
    /// It has ended without being delivered.
    pub missed: u64,
    /// No attempt has ended yet.
    pub waiting: u64,
}

impl Day {
    /// Returns how many events are counted of each of so many endpoints: 20,000 in all, from 200 to 2,000 of each.
    pub fn most(endpoints: usize) -> u64 {
        let endpoints = u64::try_from(endpoints).unwrap_or(u64::MAX);
        20_000_u64.checked_div(endpoints).unwrap_or_default().clamp(200, 2_000)
    }

    /// Counts events of an instant of the day that begins at `from`. Others are left out.
    pub fn add(&mut self, from: Timestamp, at: Timestamp, standing: &Hour) {
        let hour = usize::try_from(at.since(from).as_secs() / 3600).ok().filter(|_| at >= from);
        let Some(hour) = hour.and_then(|hour| self.hours.get_mut(hour)) else { return };
        hour.delivered = hour.delivered.saturating_add(standing.delivered);
        hour.failing = hour.failing.saturating_add(standing.failing);
        hour.missed = hour.missed.saturating_add(standing.missed);
        hour.waiting = hour.waiting.saturating_add(standing.waiting);
        self.counted = self.counted.saturating_add(standing.total());
    }
}

impl Hour {
    pub fn total(&self) -> u64 {
        let ended = self.delivered.saturating_add(self.missed);
        ended.saturating_add(self.failing).saturating_add(self.waiting)
    }
}

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    pub id: DeliveryId,
    pub account_id: AccountId,
    pub endpoint_id: EndpointId,
    pub url: String,
    pub event_id: EventId,
    pub event_type: EventType,
    pub state: Delivery,
    /// The outlook: its next attempt, or why there is none.
    pub outlook: Outlook,
    /// Its attempts, oldest first.
    pub log: Vec<AttemptRow>,
    /// The bytes that are signed. A list may leave them out where they are more than
    /// [`LISTED_BODY`].
    pub body: Option<EventBody>,
}

/// One attempt of a delivery.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub entry: LogEntry,
    /// What signed its request, if that was noted.
    pub signed: Option<Signed>,
    /// Its request, where one delivery is shown.
    pub request: Option<ShownRequest>,
}

impl DeliveryRow {
    /// Adds the request of each attempt, with the secrets that its endpoint still has.
    pub fn with_requests(mut self, signer: Option<&Signer>, now: Timestamp) -> Self {
        if let Some(body) = &self.body {
            for attempt in &mut self.log {
                attempt.request = attempt.signed.as_ref().map(|it| it.show(body, signer, now));
            }
        }
        self
    }
}

/// The longest body that a list shows, in bytes: a thousand of the longest are a gigabyte.
pub const LISTED_BODY: usize = 16 * 1024;

/// Accounts, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct AccountPage {
    pub rows: Vec<Listed<Account>>,
    /// Where the next page begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
}

/// Which deliveries of an account to list. Each field that is given leaves some out.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// One of these; any, if there is none.
    pub statuses: Vec<DeliveryStatus>,
    /// Those alone of which an attempt has failed, and which are not delivered.
    pub failing: bool,
    pub endpoint: Option<EndpointId>,
    pub event_type: Option<String>,
    /// The event's id, or the delivery's, whole.
    pub id: Option<String>,
    /// The event's `created_at`: at or after, and before.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// [`DeliveryPage::next`] of the page before.
    pub after: Option<String>,
    pub limit: usize,
}

/// Deliveries, newest first.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    pub rows: Vec<Listed<DeliveryRow>>,
    /// Where the next page begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
}

/// An endpoint that was enabled.
#[derive(Clone, Debug)]
pub struct Enabled {
    pub endpoint: EndpointRow,
    /// What it missed, newest first, and of very much the newest. None of it is sent by itself.
    pub missed: Vec<DeliveryId>,
    /// How much that is. `None` if the store could not say: the endpoint is enabled all the same.
    pub counted: Option<Missed>,
}

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
        true => format!("; it has missed more than {MOST_COUNTED} so far"),
        false => format!("; it has missed {missed} so far"),
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
        log::info("a recovery has started")
            .with("recovery", self.id.as_str())
            .with("account", self.account_id.as_str())
            .with("endpoint", self.endpoint_id.as_str())
            .with("from", self.missed.from().to_string())
            .with("until", self.missed.until().to_string())
            .with("counted", self.counted)
            .write();
    }
}

/// Recoveries that were started together.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPage {
    pub started: Vec<RecoveryRow>,
    /// Where the next page of endpoints begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
}

/// What a process has counted since it began, and what its store holds now.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub sender: SenderMetrics,
    /// What this process's sender has to send; `None` where it has none.
    pub load: Option<LoadRow>,
    /// Whether the store has answered, a few seconds ago at most.
    pub is_up: bool,
    /// What the store holds; `None` where it has not answered.
    pub gauges: Option<SenderGauges>,
    /// What only this host has.
    pub others: Vec<Family>,
}

/// How a store that answers takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They are acknowledged.
    Stored,
    /// They wait for a standby server.
    Waiting,
}

/// What a sender's planner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadRow {
    /// Attempts in flight.
    pub in_flight: u32,
    /// Deliveries that are not in flight.
    pub planned: usize,
    /// Deliveries among these that are due, and wait for a limit.
    pub limited: usize,
    /// For how long something that may start was never begun at once.
    pub behind: Duration,
}

impl LoadRow {
    /// Returns it as metrics of this process.
    pub fn families(self) -> Vec<Family> {
        let Self { in_flight, planned, limited, behind } = self;
        vec![
            Family::gauge(
                "call_assistant_sender_in_flight",
                "Attempts of this process that are in flight.",
                in_flight,
            ),
            Family::gauge(
                "call_assistant_sender_planned",
                "Deliveries that this process is to send.",
                planned,
            ),
            Family::gauge(
                "call_assistant_sender_limited",
                "Deliveries of this process that are due, and wait for a limit.",
                limited,
            ),
            Family::gauge(
                "call_assistant_sender_behind_seconds",
                "For how long this process has not begun all that may start.",
                behind.as_secs_f64(),
            ),
        ]
    }
}

/// The name and the value of a label.
pub type Label = (&'static str, Cow<'static, str>);

/// A metric and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub name: &'static str,
    pub help: &'static str,
    /// Whether it only grows: then `_total` is added to its name.
    pub is_counter: bool,
    /// Each with the name and the value of a label, if there is one.
    pub values: Vec<(Option<Label>, String)>,
}

impl Family {
    /// Creates a gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: impl Display) -> Self {
        Self { name, help, is_counter: false, values: vec![(None, value.to_string())] }
    }

    /// Creates a counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: impl Display) -> Self {
        Self { is_counter: true, ..Self::gauge(name, help, value) }
    }

    /// Writes it.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        let Self { name, help, is_counter, values } = self;
        let labelled = values
            .iter()
            .filter_map(|(label, value)| label.as_ref().map(|(of, is)| ([(*of, &**is)], value)));
        let plain = || values.iter().map(|(_, value)| ([], value));
        match (values.iter().any(|(label, _)| label.is_some()), is_counter) {
            (true, true) => text.counter(name, help, labelled),
            (true, false) => text.gauge(name, help, labelled),
            (false, true) => text.counter(name, help, plain()),
            (false, false) => text.gauge(name, help, plain()),
        }
    }
}

/// A login that is stored: an owner's link, or an operator's login that has ended.
#[derive(Clone, Debug)]
pub struct LoginRow {
    /// The account that it is bound to; `None` for an operator's.
    pub account: Option<AccountId>,
    pub expires_at: Timestamp,
    pub ended: bool,
}

/// Something that an operator or an owner has done.
#[derive(Clone, Debug, Serialize)]
pub struct JournalRow {
    /// Its place, in words of the store's own.
    pub position: String,
    pub at: Timestamp,
    pub by: String,
    /// A word that programs branch on, such as `key.revoked`.
    pub action: String,
    pub account_id: Option<String>,
    /// The id of what it was done to.
    pub target: String,
    /// What was changed, as it was and as it became. No secret is in it.
    pub before: Value,
    pub after: Value,
}

/// Something that an owner should be told.
#[derive(Clone, Debug, Serialize)]
pub struct AlertRow {
    pub id: String,
    pub account_id: AccountId,
    pub endpoint_id: EndpointId,
    pub url: String,
    pub at: Timestamp,
    /// A word that programs branch on.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
    /// The operator who has taken note of it.
    pub acknowledged: Option<Acknowledged>,
    /// When its owner has.
    pub owner_acknowledged_at: Option<Timestamp>,
}

impl AlertRow {
    /// Returns one word for how bad it is: `info`, `warning` or `critical`.
    pub fn severity(&self) -> &'static str {
        match self.kind.as_str() {
            "recovered" => "info",
            "suspect" | "failing" => "warning",
            // Of these, and of what a later version tells, nothing more is sent by itself.
            _ => "critical",
        }
    }
}

/// Which operator has taken note of an alert, and when.
#[derive(Clone, Debug, Serialize)]
pub struct Acknowledged {
    pub by: String,
    pub at: Timestamp,
}

/// Alerts of all accounts, in the order in which they were stored.
#[derive(Clone, Debug, Default)]
pub struct AlertPage {
    pub rows: Vec<AlertRow>,
    /// Where the next page begins. What is stored later is behind it.
    pub next: u64,
}

/// A signing secret that replaces another.
#[derive(Clone, Debug)]
pub struct NewSecret {
    pub secret: SigningSecret,
    /// For how long the previous one signs, too.
    pub overlap: Duration,
}
