//! Recoveries: what an endpoint missed, redelivered a few at a time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::{
    Delivery, RecoverError, Recovery, RecoveryBy, RecoveryFilter, RecoveryStatus,
};

use super::{DeliveryRow, Tables};
use host::rows::{Progress, RunningRecovery, Search};
use host::store::{Done, Missed, RecoveryPage, RecoveryRow, Refused, place};

/// How many endpoints a page of many recoveries looks at.
const ENDPOINTS: usize = 100;

/// How many that have ended are kept of one endpoint.
const KEPT: usize = 10;

/// One recovery. Its number is its place in the list of all.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    endpoint: u32,
    endpoint_id: EndpointId,
    account_id: AccountId,
    recovery: Recovery<u64>,
    paused: bool,
    ended_at: Option<Timestamp>,
}

/// All recoveries, by number.
#[derive(Debug, Default)]
pub(super) struct Recoveries {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

/// The place of a running recovery in a list is its number and this bit.
const RUNS: u64 = 1 << 62;

impl Tables {
    /// Counts what a recovery would redeliver.
    ///
    /// # Errors
    /// The endpoint does not exist.
    pub fn count_missed(&self, endpoint: &str, missed: &RecoveryFilter) -> Done<Missed> {
        let (number, row) = self.endpoint(endpoint)?;
        let missed = missed.clone().with_endpoint(&row.health);
        let mut counted = Missed::default();
        for (_, row) in self.missed(row.account_id.as_str(), number, &missed, None)? {
            let of_type = counted.by_type.entry(row.body.event_type().as_str().to_owned());
            let count = of_type.or_default();
            *count = count.saturating_add(1);
        }
        Ok(counted)
    }

    /// Starts a recovery by a person in the dashboard.
    ///
    /// # Errors
    /// There is no such endpoint, it is disabled or has one, or the plan lacks webhooks.
    pub fn recover(
        &mut self,
        endpoint: &str,
        missed: RecoveryFilter,
        now: Timestamp,
    ) -> Done<RecoveryRow> {
        let counted = self.count_missed(endpoint, &missed)?.total();
        let (number, row) = self.endpoint(endpoint)?;
        let (health, endpoint_id, account_id) =
            (row.health, row.id.clone(), row.account_id.clone());
        let plan = self.account(account_id.as_str())?.account.plan.webhooks;
        let recovery = missed.recover(RecoveryBy::Dashboard, plan, &health, now).map_err(
            |error| match error {
                RecoverError::Plan(error) => Refused::Plan(error),
                error => Refused::Conflict(error.to_string()),
            },
        )?;
        let recovery = recovery.with_counted(counted);
        let of_it = self.recoveries.entries.iter().filter(|(_, entry)| entry.endpoint == number);
        let of_it: Vec<(u64, bool)> = of_it.map(|(id, e)| (*id, e.ended_at.is_none())).collect();
        if of_it.iter().any(|(_, running)| *running) {
            return Err(Refused::Conflict("a recovery of this endpoint is already running".into()));
        }
        for (old, _) in of_it.iter().take(of_it.len().saturating_sub(KEPT)) {
            self.recoveries.entries.remove(old);
        }
        let id = self.recoveries.next;
        self.recoveries.next = id.saturating_add(1);
        let entry = Entry {
            endpoint: number,
            endpoint_id,
            account_id,
            recovery,
            paused: false,
            ended_at: None,
        };
        let shown = entry.shown(id);
        self.recoveries.entries.insert(id, entry);
        self.changed();
        Ok(shown)
    }

    /// Starts a recovery of each endpoint that is active and has missed something: those of a page.
    ///
    /// # Errors
    /// There is no such account, or no such page.
    pub fn recover_all(
        &mut self,
        account: Option<&str>,
        missed: &RecoveryFilter,
        after: Option<&str>,
        now: Timestamp,
    ) -> Done<RecoveryPage> {
        let account = account.map(|id| self.account(id).map(|row| row.account.id.clone()));
        let account = account.transpose()?;
        let from = place(after, 0)?;
        let of_it = self.endpoints.iter().enumerate().skip(from).filter(|(_, row)| {
            row.health.is_active() && account.as_ref().is_none_or(|of| row.account_id == *of)
        });
        let of_it: Vec<(usize, EndpointId)> =
            of_it.take(ENDPOINTS).map(|(number, row)| (number, row.id.clone())).collect();
        let mut page = RecoveryPage::default();
        for (_, id) in &of_it {
            if self.count_missed(id.as_str(), missed)?.total() > 0
                && let Ok(started) = self.recover(id.as_str(), missed.clone(), now)
            {
                page.started.push(started);
            }
        }
        let last = of_it.last().filter(|_| of_it.len() == ENDPOINTS);
        page.next = last.map(|(number, _)| number.saturating_add(1).to_string());
        Ok(page)
    }

    /// Has a recovery rest, or go on.
    ///
    /// # Errors
    /// It does not exist, or it has ended.
    pub fn pause_recovery(&mut self, id: &str, paused: bool) -> Done<RecoveryRow> {
        let (id, entry) = self.recovery_mut(id)?;
        if entry.ended_at.is_some() {
            return Err(Refused::Conflict("the recovery has ended".into()));
        }
        entry.paused = paused;
        let shown = entry.shown(id);
        self.changed();
        Ok(shown)
    }

    /// Returns the recoveries that run.
    pub(super) fn running(&self) -> Vec<u64> {
        let running = self.recoveries.entries.iter().filter(|(_, entry)| entry.goes_on());
        running.map(|(id, _)| *id).collect()
    }

    /// Returns a recovery, and what its step rests on.
    pub(super) fn running_recovery(&self, id: u64) -> Option<RunningRecovery> {
        let entry = self.recoveries.entries.get(&id)?;
        let endpoint = self.endpoint_of(entry.endpoint)?;
        let recovery = entry.recovery.clone();
        let counted = recovery.counted();
        Some(RunningRecovery {
            recovery,
            is_paused: entry.paused,
            endpoint: endpoint.health.into_stored(),
            names: endpoint.names(),
            plan: self.account(entry.account_id.as_str()).ok()?.account.plan,
            pending: u32::try_from(endpoint.manual.len()).unwrap_or(u32::MAX),
            // All is counted when it starts.
            progress: Progress { counted, counted_to: None, searched_to: None },
        })
    }

    /// Returns the version of a recovery.
    pub(super) fn recovery_version(&self, id: u64) -> Option<u32> {
        Some(self.recoveries.entries.get(&id)?.recovery.version())
    }

    /// Writes a recovery.
    pub(super) fn write_recovery(&mut self, id: u64, recovery: Recovery<u64>, now: Timestamp) {
        if let Some(entry) = self.recoveries.entries.get_mut(&id) {
            entry.ended_at = (recovery.status() != RecoveryStatus::Running).then_some(now);
            entry.recovery = recovery;
        }
    }

    /// Returns what an endpoint missed, oldest first, after a delivery.
    pub(super) fn found_missed<'a>(
        &'a self,
        search: &'a Search,
        after: u64,
    ) -> impl Iterator<Item = Delivery> + use<'a> {
        let account = self.endpoint_of(search.endpoint).map(|row| row.account_id.as_str());
        let found = account.and_then(|account| {
            self.missed(account, search.endpoint, &search.missed, Some(after)).ok()
        });
        found.into_iter().flatten().map(|(_, row)| row.state.into_stored())
    }

    /// Returns the recoveries of an account below a place, each with its place: those that run, then those that have
    /// ended, newest first.
    pub fn recoveries(&self, account: &str, below: u64) -> Vec<(u64, RecoveryRow)> {
        let place = |id: u64, entry: &Entry| if entry.ended_at.is_none() { id | RUNS } else { id };
        let of_it = self.recoveries.entries.iter().map(|(id, entry)| (place(*id, entry), entry));
        let of_it = of_it.filter(|(_, entry)| entry.account_id.as_str() == account);
        let mut rows: Vec<_> = of_it.filter(|(place, _)| *place < below).collect();
        rows.sort_unstable_by_key(|(place, _)| Reverse(*place));
        rows.into_iter().map(|(place, entry)| (place, entry.shown(place & !RUNS))).collect()
    }

    /// Returns one recovery, cancelled if that is asked for.
    ///
    /// # Errors
    /// It does not exist.
    pub fn recovery(&mut self, id: &str, cancel: bool, now: Timestamp) -> Done<RecoveryRow> {
        let (id, entry) = self.recovery_mut(id)?;
        let cancelled = cancel && entry.recovery.cancel();
        if cancelled {
            entry.ended_at = Some(now);
        }
        let shown = entry.shown(id);
        if cancelled {
            self.changed();
        }
        Ok(shown)
    }

    fn recovery_mut(&mut self, id: &str) -> Done<(u64, &mut Entry)> {
        let missing = Refused::NotFound("recovery");
        let id = id.strip_prefix(PREFIX).and_then(|id| id.parse().ok()).ok_or(missing.clone())?;
        Ok((id, self.recoveries.entries.get_mut(&id).ok_or(missing)?))
    }

    /// Returns what an endpoint missed, oldest first, after a delivery.
    fn missed<'a>(
        &'a self,
        account: &str,
        endpoint: u32,
        missed: &'a RecoveryFilter,
        after: Option<u64>,
    ) -> Done<impl Iterator<Item = (u64, &'a DeliveryRow)> + use<'a>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let numbers = self.account(account)?.deliveries.range((from, Bound::Unbounded));
        let rows = numbers.filter_map(|number| Some((*number, self.deliveries.get(number)?)));
        Ok(rows.filter(move |(_, row)| {
            row.endpoint == endpoint
                && missed.includes(&row.state)
                && missed.includes_type(row.body.event_type())
        }))
    }
}

const PREFIX: &str = "rcv_";

impl Entry {
    fn goes_on(&self) -> bool {
        self.ended_at.is_none() && !self.paused
    }

    fn shown(&self, id: u64) -> RecoveryRow {
        let id = format!("{PREFIX}{id}");
        let of = (self.account_id.clone(), self.endpoint_id.clone());
        let shown = RecoveryRow::of(id, of, &self.recovery, self.ended_at);
        RecoveryRow { paused: self.paused, ..shown }
    }
}
