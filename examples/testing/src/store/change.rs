//! Transactions: each step as PostgreSQL does it at read committed.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::MutexGuard;
use std::task::Poll;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, DeliveryStatus, EndpointHealth, Recovery};
use host::rows::{
    Change, CountedPage, Done, Failure, Key, Lock, Locked, MissedPage, Names, Page, Progress,
    RunningRecovery, Search, Shards, Writes,
};

use super::locks::Asked;
use super::tables::{DeliveryRow, EndpointRow, PENDING, Place, RecoveryRow, Row, Tables, judged};
use super::{Fault, PATIENCE, Step, Store, refused};
use crate::judge;

/// The most rows of a page.
const PAGE: usize = 500;

/// How many deliveries are looked at for one page of a count.
const COUNTED: usize = 4_000;

/// A transaction. One that is dropped leaves nothing.
#[derive(Debug)]
pub struct Tx {
    pub(super) store: Store,
    pub(super) number: u64,
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.store.tables().roll_back(self.number);
        self.store.shared.time.stir();
    }
}

impl Tx {
    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.store.tables()
    }

    /// Begins a statement.
    pub(super) async fn step(&self, step: Step) -> Done<()> {
        let fault = self.store.step(step).await;
        let mut tables = self.tables();
        match tables.open.get(&self.number) {
            None => return Err(refused("the connection is lost")),
            Some(open) if open.has_failed => return Err(refused("the transaction has failed")),
            Some(_) => {}
        }
        match fault {
            Some(fault) if fault != Fault::Lost => {
                tables.fail(self.number);
                Err(refused(format!("{step:?} is refused")))
            }
            _ => Ok(()),
        }
    }

    /// Locks a row, once nobody else does.
    pub(super) async fn lock_row(&self, place: Place) -> Done<()> {
        let mut until = None;
        poll_fn(|context| {
            let (mut tables, time) = (self.tables(), &self.store.shared.time);
            if tables.open.get(&self.number).is_none_or(|open| open.has_failed) {
                return Poll::Ready(Err(refused("the connection is lost")));
            }
            let why = match tables.locks.lock(self.number, place, context.waker()) {
                Asked::Held => return Poll::Ready(Ok(())),
                Asked::Deadlock => "a deadlock",
                Asked::Waits if until.is_some_and(|until| until <= time.now()) => "lock timeout",
                Asked::Waits if until.is_none() && self.store.is_ended_by_deadlock() => {
                    "a deadlock"
                }
                Asked::Waits => {
                    let end = *until.get_or_insert_with(|| time.now() + PATIENCE);
                    time.wake_at(end, context.waker());
                    return Poll::Pending;
                }
            };
            tables.fail(self.number);
            Poll::Ready(Err(refused(why)))
        })
        .await
    }

    /// Locks rows that a statement has found, in their order, and keeps those that are still there and still fit.
    pub(super) async fn lock_found(
        &self,
        found: Vec<(Place, u64)>,
        fits: impl Fn(&DeliveryRow) -> bool,
    ) -> Done<Vec<DeliveryRow>> {
        let mut locked = Vec::new();
        for (place, born) in found {
            self.lock_row(place).await?;
            let mut tables = self.tables();
            match tables.delivery(self.number, place).filter(|row| row.born == born) {
                Some(row) if fits(row) => locked.push(row.clone()),
                Some(_) => {}
                None => tables.locks.unlock(place),
            }
        }
        Ok(locked)
    }

    /// Returns what a statement finds of these places.
    pub(super) fn found(&self, places: impl IntoIterator<Item = Place>) -> Vec<(Place, u64)> {
        let tables = self.tables();
        let born = |place| Some((place, tables.delivery(self.number, place)?.born));
        places.into_iter().filter_map(born).collect()
    }

    /// Accepts an event for each endpoint of its account: no endpoint is locked.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn accept(
        &mut self,
        account: u32,
        event: impl FnOnce(Timestamp) -> EventBody,
    ) -> Done<(EventBody, Vec<u64>)> {
        // The start of the transaction.
        let now = self.store.now();
        let event = event(now);
        self.step(Step::Accept).await?;
        let of_account = |row: &Row| match row {
            Row::Endpoint(row) if row.account == account => Some(row.clone()),
            _ => None,
        };
        let endpoints: Vec<EndpointRow> = {
            let tables = self.tables();
            let all = tables.rows.range(Place::Endpoint(0)..=Place::Endpoint(u32::MAX));
            all.filter_map(|(_, row)| of_account(row)).collect()
        };
        self.step(Step::Write).await?;
        let (mut tables, mut ids) = (self.tables(), Vec::new());
        for EndpointRow { health, account, opened } in endpoints {
            tables.next_delivery += 1;
            let id = tables.next_delivery;
            let delivery = Delivery::accept(&event, &health, now).with_id(id);
            let born = tables.number();
            let (event, shard) = (event.clone(), opened.names.shard);
            let row = DeliveryRow { born, queued: 0, delivery, shard, account, event };
            tables.note_place(&row);
            let (id, after) = (id.cast_signed(), Some(judged(&delivery)));
            let change = judge::Change::Delivery { id, before: None, after };
            self.store.note(&mut tables, self.number, change);
            tables.put(self.number, row);
            ids.push(delivery.id());
        }
        drop(tables);
        Ok((event, ids))
    }

    /// Writes the URL and the secrets of an endpoint that is locked.
    pub fn open(&mut self, number: u32, opened: std::sync::Arc<host::rows::Opened>) {
        let mut tables = self.tables();
        let Some(row) = tables.endpoint(self.number, number) else { return };
        let row = EndpointRow { opened, ..row.clone() };
        tables.write(self.number, Place::Endpoint(number), Some(Row::Endpoint(row)));
    }

    /// Starts a recovery, unless one runs.
    pub fn recover(&mut self, endpoint: u32, recovery: Recovery<u64>) {
        let (mut tables, tx) = (self.tables(), self.number);
        let id = tables.number();
        let progress = Progress { counted: 0, counted_to: Some(0), searched_to: None };
        let row = RecoveryRow { endpoint, recovery, is_paused: false, progress, tx };
        tables.write(tx, Place::Recovery(id), Some(Row::Recovery(row)));
    }
}

impl Change for Tx {
    async fn lock(&mut self, keys: &[Key]) -> Done<BTreeMap<u64, Locked>> {
        self.step(Step::LockPending).await?;
        let ids: BTreeSet<u64> = keys.iter().map(|key| key.delivery).collect();
        let places = self.found(ids.into_iter().map(Place::Pending));
        let mut found = BTreeMap::new();
        for row in self.lock_found(places, |_| true).await? {
            if keys.contains(&Key::of(&row.delivery)) {
                found.insert(row.delivery.id(), Locked::of(row.delivery));
            }
        }
        let others: BTreeMap<u64, &Key> = keys
            .iter()
            .filter(|key| !found.contains_key(&key.delivery))
            .map(|key| (key.delivery, key))
            .collect();
        if others.is_empty() {
            return Ok(found);
        }
        self.step(Step::LockEnded).await?;
        let is_it =
            |row: &DeliveryRow| others.get(&row.delivery.id()) == Some(&&Key::of(&row.delivery));
        let mut places = self.found(others.keys().copied().map(Place::Ended));
        let fits = |place: &Place| self.tables().delivery(self.number, *place).is_some_and(is_it);
        places.retain(|(place, _)| fits(place));
        for row in self.lock_found(places, is_it).await? {
            found.insert(row.delivery.id(), Locked::of(row.delivery));
        }
        Ok(found)
    }

    async fn endpoints(
        &mut self,
        numbers: &[u32],
        lock: Lock,
    ) -> Done<BTreeMap<u32, EndpointHealth>> {
        let step = match lock {
            Lock::Yes => Step::LockEndpoints,
            Lock::No => Step::ReadEndpoints,
        };
        self.step(step).await?;
        let mut found = BTreeMap::new();
        let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
        for number in numbers {
            let is_there = self.tables().endpoint(self.number, number).is_some();
            if is_there && lock == Lock::Yes {
                self.lock_row(Place::Endpoint(number)).await?;
            }
            let tables = self.tables();
            found.extend(tables.endpoint(self.number, number).map(|row| (number, row.health)));
        }
        Ok(found)
    }

    async fn lock_pending(&mut self, endpoint: u32, after: u64) -> Done<Page<Delivery>> {
        self.step(Step::LockDue).await?;
        let mut page: Vec<(Place, u64)> = {
            let tables = self.tables();
            let pending = (Place::Pending(after.saturating_add(1)), PENDING.1);
            let own = tables.deliveries(self.number, pending).filter(|(place, row)| {
                row.delivery.endpoint() == u64::from(endpoint)
                    && !tables.locks.is_anothers(self.number, *place)
            });
            own.map(|(place, row)| (place, row.born)).collect()
        };
        page.sort_unstable();
        page.truncate(PAGE);
        let rows = self.lock_found(page, |_| true).await?;
        let rows: Vec<Delivery> = rows.iter().map(|row| row.delivery).collect();
        let last = rows.last().map(Delivery::id);
        Ok(Page { rows, last })
    }

    async fn lock_disabled(
        &mut self,
        shards: &Shards,
        after: Option<u64>,
        now: Timestamp,
    ) -> Done<Page<(EndpointHealth, Names)>> {
        self.step(Step::LockDisabled).await?;
        let after = after.map_or(0, |after| u32::try_from(after).unwrap() + 1);
        let found: Vec<(EndpointHealth, Names)> = {
            let tables = self.tables();
            let all = tables.rows.range(Place::Endpoint(after)..=Place::Endpoint(u32::MAX));
            let due = all.filter_map(|(place, _)| match tables.visible(self.number, *place)? {
                Row::Endpoint(row) => {
                    let is_due = { row.health }.remind(now).is_some();
                    let is_free = !tables.locks.is_anothers(self.number, *place);
                    let names = &row.opened.names;
                    (is_due && is_free && shards.contains_key(&names.shard))
                        .then(|| (row.health, names.clone()))
                }
                _ => None,
            });
            due.take(100).collect()
        };
        for (health, _) in &found {
            self.lock_row(Place::Endpoint(u32::try_from(health.id()).unwrap())).await?;
        }
        let last = found.last().map(|(health, _)| health.id());
        Ok(Page { rows: found, last })
    }

    async fn lock_recovery(&mut self, id: u64) -> Done<Option<RunningRecovery>> {
        self.step(Step::LockRecovery).await?;
        // What is joined is as it was when the statement began.
        let joined = {
            let tables = self.tables();
            let Some(row) = tables.recovery(self.number, id) else { return Ok(None) };
            let Some(endpoint) = tables.endpoint(self.number, row.endpoint) else {
                return Ok(None);
            };
            (endpoint.clone(), tables.plans[&endpoint.account])
        };
        self.lock_row(Place::Recovery(id)).await?;
        self.step(Step::Count).await?;
        let tables = self.tables();
        let Some(row) = tables.recovery(self.number, id) else { return Ok(None) };
        let pending = tables.deliveries(self.number, PENDING);
        let manual = pending.filter(|(_, pending)| {
            pending.delivery.endpoint() == u64::from(row.endpoint) && pending.delivery.is_manual()
        });
        let (endpoint, plan) = joined;
        Ok(Some(RunningRecovery {
            is_paused: row.is_paused,
            endpoint: endpoint.health,
            names: endpoint.opened.names.clone(),
            plan,
            pending: u32::try_from(manual.count()).unwrap(),
            progress: row.progress,
            recovery: row.recovery.clone(),
        }))
    }

    async fn count(&mut self, search: &Search, after: u64) -> Done<CountedPage> {
        self.step(Step::Count).await?;
        let to = self.window(search, after, COUNTED);
        let until = to.unwrap_or(u64::MAX);
        let counted = self.missed(search, after, until).len();
        Ok(CountedPage { counted: counted as u64, to })
    }

    async fn lock_missed(
        &mut self,
        search: &Search,
        after: u64,
        to: Option<u64>,
        most: u32,
    ) -> Done<MissedPage> {
        self.step(Step::LockMissed).await?;
        let window = self.window(search, after, self.store.shared.window);
        let to = window.into_iter().chain(to).min();
        let (until, most) = (to.unwrap_or(u64::MAX), usize::try_from(most).unwrap());
        let mut rows = Vec::new();
        // A statement for what is pending, and one for what has ended.
        for is_pending in [true, false] {
            self.step(Step::LockMissed).await?;
            let mut found = self.missed(search, after, until);
            found.retain(|(place, _)| matches!(place, Place::Pending(_)) == is_pending);
            let fits = |row: &DeliveryRow| search.missed.includes(&row.delivery);
            let mut left = most;
            for each in found {
                if left == 0 {
                    break;
                }
                // In the place of one that is missed no longer comes the next.
                let locked = self.lock_found(vec![each], fits).await?;
                left -= locked.len();
                rows.extend(locked.iter().map(|row| Locked::of(row.delivery)));
            }
        }
        rows.sort_unstable_by_key(|locked| locked.row.id());
        rows.truncate(most);
        Ok(MissedPage { rows, to })
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Done<()> {
        self.write_all(writes).await
    }

    async fn commit(self) -> Done<()> {
        let fault = self.store.step(Step::Commit).await;
        let mut tables = self.tables();
        let is_open = tables.open.get(&self.number).is_some_and(|open| !open.has_failed);
        if !is_open || fault.is_some_and(|fault| fault != Fault::Lost) {
            tables.roll_back(self.number);
            return Err(Failure::Unknown("the commit was not answered".into()));
        }
        if tables.commit(self.number) {
            self.store.shared.time.stir();
        }
        match fault {
            Some(_) => Err(Failure::Unknown("the answer to the commit is lost".into())),
            None => Ok(()),
        }
    }

    async fn roll_back(self) {}
}

impl Tx {
    /// Returns the last of the next deliveries of an endpoint that may be missed. `None` if there are fewer.
    fn window(&self, search: &Search, after: u64, most: usize) -> Option<u64> {
        let may_be_missed = |row: &DeliveryRow| row.delivery.status() != DeliveryStatus::Delivered;
        let found = self.of_endpoint(search, (after, u64::MAX), may_be_missed);
        let mut ids: Vec<u64> = found.into_iter().map(|(id, ..)| id).collect();
        ids.sort_unstable();
        ids.get(most - 1).copied()
    }

    /// Returns what an endpoint missed after a delivery and up to another one, by ascending number.
    fn missed(&self, search: &Search, after: u64, to: u64) -> Vec<(Place, u64)> {
        let is_missed = |row: &DeliveryRow| {
            search.missed.includes(&row.delivery)
                && search.missed.includes_type(row.event.event_type())
        };
        let found = self.of_endpoint(search, (after, to), is_missed).into_iter();
        let mut found: Vec<(Place, u64)> = found.map(|(_, place, born)| (place, born)).collect();
        found.sort_unstable();
        found
    }

    fn of_endpoint(
        &self,
        search: &Search,
        (after, to): (u64, u64),
        fits: impl Fn(&DeliveryRow) -> bool,
    ) -> Vec<(u64, Place, u64)> {
        let tables = self.tables();
        let all = both(after, to).into_iter();
        all.flat_map(|places| tables.deliveries(self.number, places))
            .filter(|(_, row)| row.delivery.endpoint() == u64::from(search.endpoint) && fits(row))
            .map(|(place, row)| (row.delivery.id(), place, row.born))
            .collect()
    }
}

fn both(after: u64, to: u64) -> [(Place, Place); 2] {
    // A range that begins behind its end is none.
    let from = after.saturating_add(1).min(to.saturating_add(1));
    let to = to.max(from);
    [(Place::Pending(from), Place::Pending(to)), (Place::Ended(from), Place::Ended(to))]
}
