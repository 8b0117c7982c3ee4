//! Alerts for the owners of endpoints.

use std::collections::{BTreeMap, VecDeque};

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::webhook::sender::Alert;

use super::Tables;
use host::log;
use host::rows::AlertRow;

/// The most alerts of an account.
const KEPT: usize = 100;

/// The latest alerts of each account, newest first.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    next: u64,
    by_account: BTreeMap<AccountId, VecDeque<AlertRow>>,
}

impl Tables {
    /// Returns the latest alerts of an account, newest first.
    pub fn alerts(&self, account: &str) -> Vec<AlertRow> {
        let of_it = self.alerts.by_account.get(account);
        of_it.into_iter().flatten().cloned().collect()
    }

    /// Tells the owner of an endpoint: an entry in the list, and a line on standard error.
    pub(super) fn alert(&mut self, endpoint: u32, alert: Alert, now: Timestamp) {
        let Some(row) = self.endpoint_of(endpoint) else { return };
        let missed = row.health.missed(now).and_then(|missed| {
            let counted = self.count_missed(row.id.as_str(), &missed).ok()?;
            Some(format!("; it has missed {} so far", counted.total()))
        });
        let (id, account_id) = (row.id.clone(), row.account_id.clone());
        let shown = AlertRow {
            id: format!("alrt_{}", self.alerts.next),
            endpoint_id: id.clone(),
            url: row.target.as_str().to_owned(),
            at: now,
            kind: alert.kind().to_owned(),
            message: format!("{alert}{}", missed.unwrap_or_default()),
        };
        // That it is disabled is said where it is disabled, whoever did it.
        if !matches!(alert, Alert::Disabled { .. }) {
            log::line(&format!("endpoint {id} of {account_id}: {}", shown.message));
        }
        self.alerts.next = self.alerts.next.saturating_add(1);
        let of_it = self.alerts.by_account.entry(account_id).or_default();
        of_it.truncate(KEPT.saturating_sub(1));
        of_it.push_front(shown);
        self.changed();
    }

    /// Reminds the owners of endpoints that stay disabled.
    pub(super) fn remind(&mut self, now: Timestamp) {
        for number in 0.. {
            let Some(endpoint) = self.endpoint_mut(number) else { break };
            if let Some(alert) = endpoint.health.remind(now) {
                self.alert(number, alert, now);
            }
        }
    }
}
