//! All accounts on one screen.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Outcome;

use super::{EndpointRow, Tables};
use host::store::{Fleet, FleetHour, LoadRow, MOST_TROUBLED, MOST_WAITING, TroubledRow};

/// The hours before the current one: 23.
const BEFORE: i64 = 23;

impl Tables {
    /// Returns how all accounts stand.
    pub fn fleet(&self, load: LoadRow, now: Timestamp) -> Fleet {
        let mut troubled: Vec<(Timestamp, &EndpointRow)> = Vec::new();
        for row in &self.endpoints {
            let health = &row.health;
            let reason = health.disabled().map(|reason| reason.as_str());
            if health.first_failed_at().is_some() || matches!(reason, Some("gone" | "failing")) {
                troubled.push((health.first_failed_at().unwrap_or(health.since()), row));
            }
        }
        troubled.sort_by_key(|(since, row)| {
            let is_young = row.health.is_active() && !row.health.is_suspect();
            (is_young, std::cmp::Reverse(*since))
        });
        let more = troubled.len() > MOST_TROUBLED;
        troubled.truncate(MOST_TROUBLED);
        let troubled = troubled.into_iter().map(|(since, row)| self.troubled(row, since)).collect();
        let gauges = self.metrics(load, now).gauges;
        Fleet { troubled, more, gauges, hours: self.hours(now) }
    }

    fn troubled(&self, row: &EndpointRow, since: Timestamp) -> TroubledRow {
        let most = usize::try_from(MOST_WAITING).unwrap_or(usize::MAX).saturating_add(1);
        let count = |rows: usize| u64::try_from(rows.min(most)).unwrap_or(u64::MAX);
        let account = self.accounts.get(&row.account_id);
        let own = account.into_iter().flat_map(|account| self.deliveries(account));
        let own = own.filter(|delivery| {
            self.endpoint_of(delivery.endpoint).is_some_and(|of| of.id == row.id)
        });
        let own: Vec<_> = own.collect();
        let attempts = own.iter().flat_map(|delivery| &delivery.log).map(|attempt| &attempt.entry);
        let sent = attempts.filter(|entry| entry.outcome != Outcome::Unsent);
        let latest = sent.max_by_key(|entry| entry.began_at);
        let missed = own.iter().filter(|delivery| delivery.state.status().is_missed());
        let acknowledged = self.latest_of(row).and_then(|alert| alert.acknowledged.clone());
        let (acknowledged_by, acknowledged_at) =
            acknowledged.map(|noted| (noted.by, noted.at)).unzip();
        TroubledRow {
            account_id: row.account_id.clone(),
            business_name: account.and_then(|account| account.account.business_name.clone()),
            endpoint_id: row.id.clone(),
            url: row.target.as_str().to_owned(),
            reason: row.health.disabled().map(|reason| reason.as_str().to_owned()),
            since,
            outcome: latest.map(|entry| match &entry.reason {
                Some(reason) => reason.to_string(),
                None => entry.outcome.to_string(),
            }),
            waiting: count(row.pending.len()),
            missed: count(missed.count()),
            acknowledged_by,
            acknowledged_at,
        }
    }

    /// Returns how many deliveries were pending at the end of each hour of the last day.
    fn hours(&self, now: Timestamp) -> Vec<FleetHour> {
        let hour_of = |at: Timestamp| at.unix_seconds().div_euclid(3600);
        let first = hour_of(now).saturating_sub(BEFORE);
        let mut changes = [0_i64; 24];
        let mut add = |at: Timestamp, by: i64| {
            let hour = usize::try_from(hour_of(at).saturating_sub(first)).unwrap_or(0);
            if let Some(change) = changes.get_mut(hour) {
                *change = change.saturating_add(by);
            }
        };
        for row in self.deliveries.values() {
            add(row.state.event_created_at(), 1);
            row.state.ended_at().into_iter().for_each(|ended| add(ended, -1));
        }
        let pending = changes.iter().scan(0_i64, |pending, change| {
            *pending = pending.saturating_add(*change);
            Some(pending.unsigned_abs())
        });
        let hour = |(hour, pending): (i64, u64)| {
            let at = Timestamp::from_unix(hour.saturating_mul(3600))?;
            Some(FleetHour { at, pending, late_ms: None })
        };
        (first..).zip(pending).filter_map(hour).collect()
    }
}
