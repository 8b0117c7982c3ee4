//! Alerts for the owners of endpoints.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::webhook::sender::Alert;

use super::{EndpointRow, Tables};
use host::clock;
use host::store::{Acknowledged, AlertPage, AlertRow, Done, Place, Refused, missed_so_far, place};

/// The most alerts of an account.
const KEPT: usize = 100;

/// The reason why a page is refused.
const AFTER: &str = "after: this feed has not reached this place yet: begin again without `after`";

/// The endpoint of an alert, and the version that it is of.
pub(super) type Of = (u32, u32);

/// The latest alerts of each account, newest first, each with its number in the feed of all.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// The number of the latest. Those of a process are greater than those of processes before it.
    last: u64,
    by_account: BTreeMap<AccountId, VecDeque<(u64, Of, AlertRow)>>,
}

impl Tables {
    /// Returns the latest alerts of an account with their numbers, newest first.
    pub fn alerts(&self, account: &str) -> impl Iterator<Item = (u64, &AlertRow)> {
        let of_it = self.alerts.by_account.get(account);
        of_it.into_iter().flatten().map(|(number, _, alert)| (*number, alert))
    }

    /// Returns one alert.
    ///
    /// # Errors
    /// It does not exist.
    pub fn one_alert(&self, id: &str) -> Done<AlertRow> {
        let mut all = self.alerts.by_account.values().flatten().map(|(_, _, alert)| alert);
        all.find(|alert| alert.id == id).cloned().ok_or(Refused::NotFound("alert"))
    }

    /// Returns alerts of all accounts: those that were stored after a place, or the newest before the alert with this
    /// id.
    ///
    /// # Errors
    /// This feed has no such place yet, or no alert can have this id.
    pub fn all_alerts(&self, of: Place<'_>, limit: usize) -> Done<AlertPage> {
        let mut found: Vec<_> = self.alerts.by_account.values().flatten().collect();
        let rows = |found: Vec<&(u64, Of, AlertRow)>| {
            found.into_iter().take(limit).map(|(_, _, alert)| alert.clone()).collect::<Vec<_>>()
        };
        match of {
            Place::After(after) => {
                let after = place(after, 0)?;
                if after > self.alerts.last.max(micros(clock::now())) {
                    return Err(Refused::Conflict(AFTER.into()));
                }
                found.retain(|(number, ..)| *number > after);
                found.sort_unstable_by_key(|(number, ..)| *number);
                found.truncate(limit);
                let next = found.last().map_or(after, |(number, ..)| *number);
                Ok(AlertPage { rows: rows(found), next: Some(next.to_string()) })
            }
            Place::Before(before) => {
                let number = |id: &str| id.strip_prefix("alrt_")?.parse().ok();
                let before: u64 = before
                    .map_or(Some(u64::MAX), number)
                    .ok_or_else(|| Refused::Conflict("before: not an id of an alert".into()))?;
                found.retain(|(number, ..)| *number < before);
                found.sort_unstable_by_key(|(number, ..)| Reverse(*number));
                Ok(AlertPage::newest(rows(found), limit))
            }
        }
    }

    /// Returns the latest alert of an endpoint.
    pub(super) fn latest_of(&self, row: &EndpointRow) -> Option<&AlertRow> {
        let of_account = self.alerts.by_account.get(&row.account_id)?;
        of_account.iter().map(|(_, _, alert)| alert).find(|alert| alert.endpoint_id == row.id)
    }

    /// Notes which operator has taken note of an alert, or that its owner has.
    ///
    /// # Errors
    /// It does not exist.
    pub fn acknowledge(&mut self, id: &str, by: Option<&str>, now: Timestamp) -> Done<AlertRow> {
        let mut all = self.alerts.by_account.values_mut().flatten().map(|(_, _, alert)| alert);
        let alert = all.find(|alert| alert.id == id).ok_or(Refused::NotFound("alert"))?;
        match by.map(str::to_owned) {
            Some(by) => _ = alert.acknowledged.get_or_insert(Acknowledged { by, at: now }),
            None => _ = alert.owner_acknowledged_at.get_or_insert(now),
        }
        let shown = alert.clone();
        self.changed();
        Ok(shown)
    }

    /// Tells the owner of an endpoint.
    pub(super) fn alert(&mut self, endpoint: u32, alert: &Alert, now: Timestamp) {
        let Some(row) = self.endpoint_of(endpoint) else { return };
        let number = self.alerts.last.saturating_add(1).max(micros(clock::now()));
        let (of, account_id) = ((endpoint, row.health.version()), row.account_id.clone());
        let shown = AlertRow {
            id: format!("alrt_{number}"),
            account_id: account_id.clone(),
            endpoint_id: row.id.clone(),
            url: row.target.as_str().to_owned(),
            at: now,
            kind: alert.kind().to_owned(),
            message: alert.to_string(),
            acknowledged: None,
            owner_acknowledged_at: None,
        };
        self.alerts.last = number;
        let of_it = self.alerts.by_account.entry(account_id).or_default();
        of_it.truncate(KEPT.saturating_sub(1));
        of_it.push_front((number, of, shown));
        self.changed();
    }

    /// Adds to the alerts of a version of an endpoint how much it had missed.
    pub(super) fn add_missed(&mut self, of: Of, missed: u64) {
        for (_, about, alert) in self.alerts.by_account.values_mut().flatten() {
            if *about == of {
                alert.message.push_str(&missed_so_far(missed));
            }
        }
    }
}

/// Returns the machine's time as a number.
fn micros(now: Timestamp) -> u64 {
    u64::try_from(now.unix_micros()).unwrap_or_default()
}
