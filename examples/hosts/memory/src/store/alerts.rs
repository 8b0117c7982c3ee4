//! Alerts for the owners of endpoints.

use std::collections::{BTreeMap, VecDeque};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::{Alert, RecoveryFilter};

use super::Tables;
use host::rows::{Acknowledged, AlertPage, AlertRow, missed_so_far};
use host::store::Refused;
use host::{clock, log};

/// The most alerts of an account.
const KEPT: usize = 100;

/// The reason why a page is refused.
const AFTER: &str = "after: this feed has not come as far; begin again without it";

/// The latest alerts of each account, newest first, each with its number in the feed of all.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// The number of the latest. Those of a process are greater than those of processes before it.
    last: u64,
    by_account: BTreeMap<AccountId, VecDeque<(u64, AlertRow)>>,
    /// Alerts of endpoints that had missed something, which is not counted yet.
    uncounted: Vec<(u64, EndpointId, RecoveryFilter)>,
}

impl Tables {
    /// Returns the latest alerts of an account, newest first.
    pub fn alerts(&self, account: &str) -> Vec<AlertRow> {
        let of_it = self.alerts.by_account.get(account);
        of_it.into_iter().flatten().map(|(_, alert)| alert.clone()).collect()
    }

    /// Returns the alerts behind a number, of all accounts.
    ///
    /// # Errors
    /// No alert has come as far as this number.
    pub fn alerts_after(&self, after: u64, limit: usize) -> Result<AlertPage, Refused> {
        if after > self.alerts.last.max(micros(clock::machine())) {
            return Err(Refused::Conflict(AFTER.into()));
        }
        let mut found: Vec<_> = self.alerts.by_account.values().flatten().collect();
        found.retain(|(number, _)| *number > after);
        found.sort_unstable_by_key(|(number, _)| *number);
        found.truncate(limit);
        let next = found.last().map_or(after, |(number, _)| *number);
        Ok(AlertPage { rows: found.into_iter().map(|(_, alert)| alert.clone()).collect(), next })
    }

    /// Notes who has taken note of an alert.
    ///
    /// # Errors
    /// It does not exist.
    pub fn acknowledge(&mut self, id: &str, by: &str, now: Timestamp) -> Result<AlertRow, Refused> {
        let mut all = self.alerts.by_account.values_mut().flatten();
        let found = all.find(|(_, alert)| alert.id == id).ok_or(Refused::NotFound("alert"))?;
        let note = || Acknowledged { by: by.to_owned(), at: now };
        found.1.acknowledged.get_or_insert_with(note);
        let shown = found.1.clone();
        self.changed();
        Ok(shown)
    }

    /// Tells the owner of an endpoint: an entry in the list, and a line on standard error.
    pub(super) fn alert(&mut self, endpoint: u32, alert: &Alert, now: Timestamp) {
        let Some(row) = self.endpoint_of(endpoint) else { return };
        let number = self.alerts.last.saturating_add(1).max(micros(clock::machine()));
        let uncounted = row.health.missed(now).map(|missed| (number, row.id.clone(), missed));
        let shown = AlertRow {
            id: format!("alrt_{number}"),
            account_id: row.account_id.clone(),
            endpoint_id: row.id.clone(),
            url: row.target.as_str().to_owned(),
            at: now,
            kind: alert.kind().to_owned(),
            message: alert.to_string(),
            acknowledged: None,
        };
        log::warn("the owner of an endpoint is told")
            .with("account", shown.account_id.as_str())
            .with("endpoint", shown.endpoint_id.as_str())
            .with("alert", alert.kind())
            .with("text", shown.message.as_str())
            .write();
        self.alerts.last = number;
        self.alerts.uncounted.extend(uncounted);
        let of_it = self.alerts.by_account.entry(shown.account_id.clone()).or_default();
        of_it.truncate(KEPT.saturating_sub(1));
        of_it.push_front((number, shown));
        self.changed();
    }

    /// Adds to alerts that are stored how much their endpoints had missed.
    pub fn count_alerts(&mut self) {
        for (number, endpoint, missed) in std::mem::take(&mut self.alerts.uncounted) {
            let Ok(counted) = self.count_missed(endpoint.as_str(), &missed) else { continue };
            let mut all = self.alerts.by_account.values_mut().flatten();
            if let Some((_, alert)) = all.find(|(of, _)| *of == number) {
                alert.message.push_str(&missed_so_far(counted.total()));
            }
            self.changed();
        }
    }

    /// Reminds the owners of endpoints that stay disabled.
    pub(super) fn remind(&mut self, now: Timestamp) {
        for number in 0.. {
            let Some(endpoint) = self.endpoint_mut(number) else { break };
            if let Some(alert) = endpoint.health.remind(now) {
                self.alert(number, &alert, now);
            }
        }
    }
}

/// Returns the machine's time as a number.
fn micros(now: Timestamp) -> u64 {
    u64::try_from(now.unix_micros()).unwrap_or_default()
}
