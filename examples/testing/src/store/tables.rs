//! The rows, as committed transactions have left them, and the transactions that are open.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::Waker;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Alert, Delivery, DeliveryColumns, EndpointColumns, EndpointHealth, LogEntry, Recovery,
};
use host::rows::{Key, Opened, Progress, SetLimit};
use host::store::plan::Plan;

use super::leases::{LeaseRow, SenderRow};
use super::locks::Locks;
use crate::judge::{self, Entry, Noted, Snapshot};

/// The place of a row. A delivery that ends or becomes pending again moves, as between two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Pending(u64),
    Ended(u64),
    Endpoint(u32),
    Recovery(u64),
    /// By its endpoint and the endpoint's version.
    Alert(u32, u32),
    /// By its delivery, and a number of its own.
    Attempt(u64, u64),
    Shard(u16),
    /// By its process.
    Sender(usize),
}

/// All that is pending.
pub(super) const PENDING: (Place, Place) = (Place::Pending(0), Place::Pending(u64::MAX));

/// A row.
#[derive(Clone, Debug)]
pub enum Row {
    Delivery(DeliveryRow),
    Endpoint(EndpointRow),
    Recovery(RecoveryRow),
    Alert(Alert, Option<u64>),
    Attempt(Key, LogEntry),
    Shard(LeaseRow),
    Sender(SenderRow),
}

/// A delivery, with its event.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    /// Another for each row that was ever at a place.
    pub(super) born: u64,
    /// The commit that made it news.
    pub(super) queued: u64,
    pub delivery: Delivery,
    pub shard: u16,
    pub account: u32,
    pub event: EventBody,
}

/// An endpoint, with what is made of its URL and its secrets.
#[derive(Clone, Debug)]
pub struct EndpointRow {
    pub health: EndpointHealth,
    pub account: u32,
    pub opened: Arc<Opened>,
}

/// A recovery.
#[derive(Clone, Debug)]
pub struct RecoveryRow {
    pub endpoint: u32,
    pub recovery: Recovery<u64>,
    pub is_paused: bool,
    pub progress: Progress,
    /// The transaction that started it.
    pub(super) tx: u64,
}

/// All of a store.
#[derive(Debug, Default)]
pub struct Tables {
    pub(super) rows: BTreeMap<Place, Row>,
    pub(super) commits: Vec<Commit>,
    pub(super) open: BTreeMap<u64, Open>,
    pub(super) locks: Locks,
    pub(super) next_tx: u64,
    pub(super) next_delivery: u64,
    pub(super) next_other: u64,
    /// What became pending, by the commit that made it news.
    pub(super) queue: BTreeSet<(u64, u64)>,
    pub(super) looking: Vec<Waker>,
    /// How often those who look were to look again.
    pub(super) nudged: u64,
    pub(super) limits: Vec<SetLimit>,
    /// How often the store went back.
    pub(super) timeline: u32,
    /// The plans of accounts, by their numbers.
    pub(super) plans: BTreeMap<u32, Plan>,
    /// The endpoint and the shard of each delivery.
    places: HashMap<i64, (i64, i64)>,
}

/// What a transaction has changed: how its rows were before, and what the judge is told of it.
#[derive(Debug)]
pub(super) struct Commit {
    undo: Vec<(Place, Option<Row>)>,
    notes: Vec<Noted>,
}

impl Commit {
    fn is_of_leases(&self) -> bool {
        let is = |place: &Place| matches!(place, Place::Shard(_) | Place::Sender(_));
        self.undo.iter().all(|(place, _)| is(place))
    }
}

/// A transaction that is open.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) writes: BTreeMap<Place, Option<Row>>,
    pub(super) news: BTreeSet<u64>,
    notes: Vec<Noted>,
    /// Whether it has failed: nothing but its end is left.
    pub(super) has_failed: bool,
}

impl Tables {
    /// Begins a transaction.
    pub(super) fn begin(&mut self) -> u64 {
        self.next_tx += 1;
        self.open.insert(self.next_tx, Open::default());
        self.next_tx
    }

    /// Returns a row as a transaction sees it: as it has written it, else as it is committed.
    pub(super) fn visible(&self, tx: u64, place: Place) -> Option<&Row> {
        let own = self.open.get(&tx).and_then(|open| open.writes.get(&place));
        own.map_or_else(|| self.rows.get(&place), Option::as_ref)
    }

    pub(super) fn delivery(&self, tx: u64, place: Place) -> Option<&DeliveryRow> {
        match self.visible(tx, place)? {
            Row::Delivery(row) => Some(row),
            _ => None,
        }
    }

    pub(super) fn endpoint(&self, tx: u64, number: u32) -> Option<&EndpointRow> {
        match self.visible(tx, Place::Endpoint(number))? {
            Row::Endpoint(row) => Some(row),
            _ => None,
        }
    }

    pub(super) fn recovery(&self, tx: u64, id: u64) -> Option<&RecoveryRow> {
        match self.visible(tx, Place::Recovery(id))? {
            Row::Recovery(row) => Some(row),
            _ => None,
        }
    }

    /// Returns the deliveries between two places, as a transaction sees them: its own come last.
    pub(super) fn deliveries(
        &self,
        tx: u64,
        (from, to): (Place, Place),
    ) -> impl Iterator<Item = (Place, &DeliveryRow)> {
        let own = self.open.get(&tx).map(|open| &open.writes);
        let is_own = move |place: &Place| own.is_some_and(|own| own.contains_key(place));
        let others = self.rows.range(from..=to).filter(move |(place, _)| !is_own(place));
        let own = own.into_iter().flat_map(move |own| own.range(from..=to));
        let own = own.filter_map(|(place, row)| Some((place, row.as_ref()?)));
        others.chain(own).filter_map(|(place, row)| match row {
            Row::Delivery(row) => Some((*place, row)),
            _ => None,
        })
    }

    /// Returns the transactions that wait, each with the row and who has it.
    pub fn waits(&self) -> Vec<(u64, Place, u64)> {
        self.locks.waits()
    }

    /// Returns the rows of a committed kind.
    pub fn rows(&self) -> impl Iterator<Item = (&Place, &Row)> {
        self.rows.iter()
    }

    /// Returns the recoveries that are committed.
    pub fn recoveries(&self) -> impl Iterator<Item = (u64, &RecoveryRow)> {
        let all = self.rows.range(Place::Recovery(0)..=Place::Recovery(u64::MAX));
        all.filter_map(|(place, row)| match (place, row) {
            (Place::Recovery(id), Row::Recovery(row)) => Some((*id, row)),
            _ => None,
        })
    }

    /// Writes a row in a transaction, which has its lock.
    pub(super) fn write(&mut self, tx: u64, place: Place, row: Option<Row>) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.writes.insert(place, row);
        }
    }

    /// Returns the number of a new row.
    pub(super) fn number(&mut self) -> u64 {
        self.next_other += 1;
        self.next_other
    }

    /// Tells the judge of a change.
    pub(super) fn note(
        &mut self,
        tx: u64,
        process: Option<String>,
        at: Timestamp,
        change: judge::Change,
    ) {
        let xmin = self.open.keys().next().copied().unwrap_or(tx);
        let running = self.open.keys().copied().collect();
        let snapshot = Snapshot { xmin, xmax: self.next_tx + 1, running };
        let Some(open) = self.open.get_mut(&tx) else { return };
        open.notes.push(Noted { tx, snapshot, at, process, change });
    }

    pub(super) fn note_place(&mut self, row: &DeliveryRow) {
        let place = (row.delivery.endpoint().cast_signed(), row.shard.into());
        self.places.insert(row.delivery.id().cast_signed(), place);
    }

    /// Commits a transaction. Returns whether it has changed anything.
    pub(super) fn commit(&mut self, tx: u64) -> bool {
        let Some(open) = self.open.remove(&tx) else { return false };
        let (number, mut undo) = (self.commits.len() as u64 + 1, Vec::new());
        for (place, mut row) in open.writes {
            if let (Place::Pending(id), Some(Row::Delivery(row))) = (place, &mut row)
                && open.news.contains(&id)
            {
                row.queued = number;
                self.queue.insert((number, id));
            }
            let before = match row {
                Some(row) => self.rows.insert(place, row),
                None => self.rows.remove(&place),
            };
            undo.push((place, before));
        }
        self.locks.release(tx);
        let has_changed = !undo.is_empty() || !open.notes.is_empty();
        if has_changed {
            self.commits.push(Commit { undo, notes: open.notes });
        }
        if !open.news.is_empty() {
            self.looking.drain(..).for_each(Waker::wake);
        }
        has_changed
    }

    /// Ends a transaction that leaves nothing.
    pub(super) fn roll_back(&mut self, tx: u64) {
        self.open.remove(&tx);
        self.locks.release(tx);
    }

    /// Has a transaction fail: its locks are free, and its end is all that is left.
    pub(super) fn fail(&mut self, tx: u64) {
        if let Some(open) = self.open.get_mut(&tx) {
            *open = Open { has_failed: true, ..Open::default() };
        }
        self.locks.release(tx);
    }

    /// Goes back to what was before the last commits, those of leases not counted. Open transactions are gone, and
    /// numbers are given again.
    pub(super) fn go_back(&mut self, commits: usize, now: std::time::Duration) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|tx| self.roll_back(tx));
        let counts =
            self.commits.iter().enumerate().rev().filter(|(_, commit)| !commit.is_of_leases());
        let left = match commits.checked_sub(1) {
            Some(before) => counts.map(|(nth, _)| nth).nth(before).unwrap_or(0),
            None => self.commits.len(),
        };
        self.timeline += 1;
        for commit in self.commits.split_off(left).iter().rev() {
            for (place, before) in &commit.undo {
                match before {
                    Some(row) => _ = self.rows.insert(*place, row.clone()),
                    None => _ = self.rows.remove(place),
                }
            }
        }
        let ids = self.rows.keys().filter_map(|place| match place {
            Place::Pending(id) | Place::Ended(id) => Some(*id),
            _ => None,
        });
        self.next_delivery = ids.max().unwrap_or(0);
        let all = self.deliveries(0, PENDING);
        self.queue = all.map(|(_, row)| (row.queued, row.delivery.id())).collect();
        self.keep_leases(now);
        self.nudge();
    }

    /// Has everybody look again.
    pub(super) fn nudge(&mut self) {
        self.nudged += 1;
        self.looking.drain(..).for_each(Waker::wake);
    }

    /// Returns the record of what is committed, for the judge.
    #[must_use]
    pub fn record(&self) -> judge::Record {
        let rows = self.commits.iter().flat_map(|commit| commit.notes.iter().cloned()).collect();
        judge::Record { rows, places: self.places.clone(), time_scale: 1.0 }
    }
}

/// Returns a delivery as the judge takes it.
pub(super) fn judged(delivery: &Delivery) -> Delivery {
    Delivery::from_columns(1, 1, DeliveryColumns::from(*delivery)).unwrap()
}

/// Returns an endpoint as the judge takes it.
pub(super) fn judged_endpoint(health: &EndpointHealth) -> EndpointHealth {
    EndpointHealth::from_columns(1, EndpointColumns::from(*health)).unwrap()
}

/// Returns a log entry as the judge takes it.
pub(super) fn judged_entry(entry: &LogEntry) -> Entry {
    Entry {
        number: entry.attempt,
        manual: entry.manual,
        outcome: entry.outcome,
        late: entry.late,
        began_at: entry.began_at,
        took: std::time::Duration::from_millis(entry.took_ms),
    }
}
