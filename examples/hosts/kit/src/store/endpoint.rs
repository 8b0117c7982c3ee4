//! Endpoints, how they have answered, and what their owners should be told.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::webhook::sender::{EndpointHealth, EndpointUrl};
use call_assistant::webhook::{Signer, SigningSecret};
use serde::Serialize;

use super::{Done, Missed, Refused};

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
    /// Until when replaced secrets still sign, the most recently replaced one first. `None` if they cannot be opened.
    pub previous_secrets: Option<Vec<Timestamp>>,
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

/// An endpoint that was enabled.
#[derive(Clone, Debug)]
pub struct Enabled {
    pub endpoint: EndpointRow,
    /// What it missed, newest first, and of very much the newest. None of it is sent by itself.
    pub missed: Vec<DeliveryId>,
    /// How much that is. `None` if the store could not say: the endpoint is enabled all the same.
    pub counted: Option<Missed>,
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

/// Alerts of all accounts.
#[derive(Clone, Debug, Default)]
pub struct AlertPage {
    pub rows: Vec<AlertRow>,
    /// Where the next page begins. Onwards there is always one: what is stored later is behind it.
    pub next: Option<String>,
}

impl AlertPage {
    /// Returns a page of the newest: there is another one where it is full.
    pub fn newest(rows: Vec<AlertRow>, limit: usize) -> Self {
        let next = rows.last().filter(|_| rows.len() == limit).map(|last| last.id.clone());
        Self { rows, next }
    }
}

/// A signing secret that replaces another.
#[derive(Clone, Debug)]
pub struct NewSecret {
    pub secret: SigningSecret,
    /// For how long the previous one signs, too. Zero after a leak: then no earlier one does.
    pub overlap: Duration,
}

impl NewSecret {
    /// Replaces a signer's secret. After a leak all earlier secrets stop: two rotations do not tell which one has
    /// leaked.
    ///
    /// # Errors
    /// Too many secrets would sign.
    pub fn replace(self, signer: &mut Signer, now: Timestamp) -> Done<()> {
        if self.overlap.is_zero() {
            *signer = Signer::new(self.secret);
            return Ok(());
        }
        signer
            .rotate(self.secret, self.overlap, now)
            .map_err(|error| Refused::Conflict(error.to_string()))
    }
}
