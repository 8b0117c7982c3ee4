//! The rows of the sender: tables behind the port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, Delivery, EndpointHealth, LogEntry, Recovery, SenderMetrics,
};
use host::post::signed::Signed;
use host::rows::{
    Change, Changes, CountedPage, Done, Failure, Key, Lock, Locked, MissedPage, Names, News,
    Opened, Page, PendingRow, Rows as Port, RunningRecovery, Search, SetLimit, Shards, ToBegin,
    Writes,
};
use tokio::time::timeout;

use super::{EndpointRow, Store, Tables};

/// How long to wait for news, at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many rows a page has.
const PAGE: usize = 500;

/// The rows of the sender. Clones share them.
#[derive(Clone, Debug)]
pub struct Rows(pub Arc<Store>);

impl Changes for Rows {
    type Change = Transaction;

    async fn change(&self) -> Done<Transaction> {
        Ok(Transaction { store: Arc::clone(&self.0), read: None, writes: None })
    }
}

impl Port for Rows {
    /// Whether everything was told.
    type Seen = bool;

    async fn news(&self, _: &Shards, seen: &mut bool) -> Done<News> {
        let news = self.0.news(!std::mem::replace(seen, true));
        if news.again || !news.rows.is_empty() {
            return Ok(news);
        }
        let _ = timeout(PATIENCE, self.0.told()).await;
        Ok(self.0.news(false))
    }

    async fn limits(&self) -> Done<Vec<SetLimit>> {
        Ok(Vec::new())
    }

    async fn to_begin(&self, keys: &[Key], _: Timestamp) -> Done<Vec<Option<ToBegin>>> {
        let tables = self.0.lock();
        Ok(keys.iter().map(|key| tables.to_begin(key)).collect())
    }

    async fn recoveries(&self, _: &Shards, _: Timestamp) -> Done<Vec<u64>> {
        Ok(self.0.lock().running())
    }
}

impl Store {
    /// Returns what became pending since the last call, or all that is pending.
    fn news(&self, again: bool) -> News {
        let mut tables = self.lock();
        let told = std::mem::take(&mut tables.told);
        tables.is_telling = !told.is_empty();
        let rows = match again {
            true => tables.pending().filter_map(|number| tables.found(number)).collect(),
            false => told.into_iter().filter_map(|number| tables.found(number)).collect(),
        };
        News { rows, again, ..News::default() }
    }
}

impl Tables {
    /// Tells whether something is on its way to the sender: it became pending, or is about to.
    pub fn has_news(&self) -> bool {
        self.is_telling || !self.told.is_empty() || !self.running().is_empty()
    }

    /// Changes the counters.
    pub fn count(&mut self, change: impl FnOnce(&mut SenderMetrics)) {
        change(&mut self.tally);
    }

    fn found(&self, number: u64) -> Option<PendingRow> {
        let row = self.deliveries.get(&number).filter(|row| row.state.is_pending())?;
        let account = self.account_of(row.endpoint);
        Some(PendingRow { shard: 0, account, delivery: row.state.into_stored() })
    }

    fn to_begin(&self, key: &Key) -> Option<ToBegin> {
        let row = self.deliveries.get(&key.delivery)?;
        let endpoint = self.endpoint_of(row.endpoint)?;
        let opened = Opened {
            names: endpoint.names(),
            destination: Some(endpoint.destination()),
            signer: endpoint.signer.clone(),
        };
        Some(ToBegin {
            delivery: row.state.into_stored(),
            name: row.id.as_str().to_owned(),
            health: endpoint.health.into_stored(),
            opened: Arc::new(opened),
            body: row.body.clone(),
            traceparent: None,
        })
    }
}

impl EndpointRow {
    pub(super) fn names(&self) -> Names {
        let (account, endpoint) = (&self.account_id, &self.id);
        let text = (account.as_str().to_owned(), endpoint.as_str().to_owned());
        Names { account: text.0, endpoint: text.1, shard: 0 }
    }
}

/// A transaction. Nothing is locked: what is committed fits what is stored then, or nothing of it is.
#[derive(Debug)]
pub struct Transaction {
    store: Arc<Store>,
    /// The version of the recovery that was read.
    read: Option<u32>,
    writes: Option<Collected>,
}

/// The writes of a transaction, until it commits.
#[derive(Debug)]
struct Collected {
    deliveries: Vec<Delivery>,
    endpoints: Vec<(u32, EndpointHealth)>,
    alerts: Vec<(u32, Alert)>,
    attempts: Vec<(Key, LogEntry, Option<Signed>)>,
    recovery: Option<(u64, Recovery<u64>)>,
    missed: Option<(u32, u32, u64)>,
    are_news: bool,
    now: Timestamp,
}

impl Change for Transaction {
    async fn lock(&mut self, keys: &[Key]) -> Done<BTreeMap<u64, Locked>> {
        let tables = self.store.lock();
        let found =
            keys.iter().filter_map(|key| Some((key, tables.deliveries.get(&key.delivery)?)));
        let rows = found.map(|(key, row)| (key, row.state.into_stored()));
        let rows = rows.filter(|(key, row)| **key == Key::of(row));
        Ok(rows.map(|(_, row)| (row.id(), Locked::of(row))).collect())
    }

    async fn endpoints(&mut self, numbers: &[u32], _: Lock) -> Done<BTreeMap<u32, EndpointHealth>> {
        let tables = self.store.lock();
        let health =
            |number: &u32| Some((*number, tables.endpoint_of(*number)?.health.into_stored()));
        Ok(numbers.iter().filter_map(health).collect())
    }

    async fn lock_pending(&mut self, endpoint: u32, after: u64) -> Done<Page<Delivery>> {
        let tables = self.store.lock();
        let pending = tables.endpoint_of(endpoint).map(|row| &row.pending);
        let numbers = pending.into_iter().flat_map(|it| it.range(after.saturating_add(1)..));
        let rows = numbers.take(PAGE).filter_map(|number| tables.deliveries.get(number));
        let rows: Vec<Delivery> = rows.map(|row| row.state.into_stored()).collect();
        let last = rows.last().map(Delivery::id);
        Ok(Page { rows, last })
    }

    async fn lock_disabled(
        &mut self,
        _: &Shards,
        after: Option<u64>,
        now: Timestamp,
    ) -> Done<Page<(EndpointHealth, Names)>> {
        let tables = self.store.lock();
        let from = after.and_then(|after| u32::try_from(after.saturating_add(1)).ok());
        let endpoints = (from.unwrap_or(0)..).map_while(|number| tables.endpoint_of(number));
        let due = endpoints.filter(|row| { row.health }.remind(now).is_some());
        let rows = due.take(PAGE).map(|row| (row.health.into_stored(), row.names()));
        let rows: Vec<_> = rows.collect();
        let last = rows.last().map(|(health, _)| health.id());
        Ok(Page { rows, last })
    }

    async fn lock_recovery(&mut self, id: u64) -> Done<Option<RunningRecovery>> {
        let running = self.store.lock().running_recovery(id);
        self.read = running.as_ref().map(|running| running.recovery.version());
        Ok(running)
    }

    async fn count(&mut self, search: &Search, after: u64) -> Done<CountedPage> {
        let tables = self.store.lock();
        let counted = tables.found_missed(search, after).count();
        Ok(CountedPage { counted: u64::try_from(counted).unwrap_or(u64::MAX), to: None })
    }

    async fn lock_missed(
        &mut self,
        search: &Search,
        after: u64,
        to: Option<u64>,
        most: u32,
    ) -> Done<MissedPage> {
        let tables = self.store.lock();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let rows = tables.found_missed(search, after).take(most).map(Locked::of);
        Ok(MissedPage { rows: rows.collect(), to })
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Done<()> {
        let attempts = writes.attempts.iter();
        let writes = Collected {
            deliveries: writes.deliveries.iter().map(|(_, delivery)| *delivery).collect(),
            endpoints: writes.endpoints.to_vec(),
            alerts: writes.alerts.to_vec(),
            attempts: attempts
                .map(|(key, entry, signed)| (*key, (*entry).clone(), signed.cloned()))
                .collect(),
            recovery: writes.recovery.map(|(id, recovery, _)| (id, recovery.clone())),
            missed: writes.missed.map(|(health, missed)| {
                (u32::try_from(health.id()).unwrap_or(u32::MAX), health.version(), missed)
            }),
            are_news: writes.are_news,
            now: writes.now,
        };
        let fits = self.store.lock().fits(&writes, self.read);
        self.writes = Some(writes);
        if fits { Ok(()) } else { Err(Failure::Outdated) }
    }

    async fn commit(self) -> Done<()> {
        let Some(writes) = self.writes else { return Ok(()) };
        let mut tables = self.store.lock();
        if !tables.fits(&writes, self.read) {
            return Err(Failure::Outdated);
        }
        if tables.apply(writes) {
            self.store.tell();
        }
        Ok(())
    }

    async fn roll_back(self) {}
}

impl Tables {
    /// Tells whether each stored row has the version that was read.
    fn fits(&self, writes: &Collected, recovery: Option<u32>) -> bool {
        let is_read = |stored: Option<u32>, read: Option<i32>| {
            stored.is_some() && stored.map(u32::cast_signed) == read
        };
        let delivery = |id| self.deliveries.get(&id).map(|row| row.state.version());
        writes.deliveries.iter().all(|it| is_read(delivery(it.id()), it.if_version()))
            && writes.endpoints.iter().all(|(number, it)| {
                is_read(self.endpoint_of(*number).map(|row| row.health.version()), it.if_version())
            })
            && writes.recovery.iter().all(|(id, _)| self.recovery_version(*id) == recovery)
    }

    /// Writes all of it. Returns whether the sender is to be told.
    fn apply(&mut self, writes: Collected) -> bool {
        let Collected { deliveries, endpoints, alerts, attempts, recovery, missed, .. } = writes;
        let mut is_told = false;
        for delivery in deliveries {
            let number = delivery.id();
            if let Some(row) = self.deliveries.get_mut(&number) {
                row.state = delivery.into_stored();
            }
            self.index(number);
            is_told |= writes.are_news && self.told.insert(number);
        }
        for (number, health) in endpoints {
            if let Some(row) = self.endpoint_mut(number) {
                row.health = health.into_stored();
            }
        }
        for (key, entry, signed) in attempts {
            if let Some(row) = self.endpoint_mut(key.endpoint) {
                row.hour.add(&entry);
            }
            if let Some(row) = self.deliveries.get_mut(&key.delivery) {
                row.add_to_log(entry, signed);
            }
        }
        for (number, alert) in alerts {
            self.alert(number, &alert, writes.now);
        }
        if let Some((id, recovery)) = recovery {
            self.write_recovery(id, recovery, writes.now);
        }
        if let Some((number, version, missed)) = missed {
            self.add_missed((number, version), missed);
        }
        self.changed();
        is_told
    }
}
