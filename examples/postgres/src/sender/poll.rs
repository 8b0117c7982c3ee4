//! Finds what became pending in the shards that this sender owns.
//!
//! Each look begins where the previous one's snapshot ended: with the oldest transaction that was
//! still running then, so that nothing is missed, however late it is committed. A transaction that
//! is held open would make every look longer: while there is one, most looks begin with what was
//! running a second ago, and every fifth second one begins with all that was running then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use call_assistant::webhook::sender::Delivery;
use deadpool_postgres::Object;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::Message;
use super::history::History;
use super::owner::Owned;
use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, query};
use host::log;

/// The interval of polls.
const EVERY: Duration = Duration::from_millis(20);

/// How far most looks go back, and how often one goes back to everything that still runs.
const RECENT: Duration = Duration::from_secs(1);
const THOROUGH: Duration = Duration::from_secs(5);

/// The most rows of one shard that are read at once: what is new is found meanwhile, however much
/// there is.
const PAGE: i64 = 250;

const AFTER_ERROR: Duration = Duration::from_millis(200);

/// How often everything is read again, in case that this process has lost sight of something.
const AGAIN: Duration = Duration::from_secs(60);

/// A pending row.
#[derive(Debug)]
pub(super) struct PendingRow {
    pub(super) id: i64,
    pub(super) shard: i16,
    pub(super) endpoint: i32,
    /// 0 if the account is gone.
    pub(super) account: i32,
    pub(super) delivery: Delivery,
}

pub(super) struct Poller {
    pub(super) database: Database,
    pub(super) owned: watch::Receiver<Owned>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
    pub(super) history: History,
}

/// A snapshot: transactions from `xmin` on may have been running, those from `xmax` on had not begun.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    xmin: u64,
    xmax: u64,
}

/// The looks that later ones begin at. All of them had every shard that is owned now.
#[derive(Debug)]
struct Seen {
    last: Snapshot,
    /// The last that has missed nothing.
    complete: (Instant, Snapshot),
    recent: VecDeque<(Instant, Snapshot)>,
}

impl Seen {
    fn first(snapshot: Snapshot, now: Instant) -> Self {
        Self { last: snapshot, complete: (now, snapshot), recent: VecDeque::new() }
    }

    /// The transaction to look from, and whether that misses none.
    fn from(&mut self, now: Instant) -> (u64, bool) {
        if now.duration_since(self.complete.0) > THOROUGH {
            return (self.complete.1.xmin, true);
        }
        let is_old = |(at, _): &(Instant, Snapshot)| now.duration_since(*at) > RECENT;
        while self.recent.get(1).is_some_and(is_old) {
            self.recent.pop_front();
        }
        let old = self.recent.front().filter(|each| is_old(each)).unwrap_or(&self.complete);
        let from = self.last.xmin.max(old.1.xmax.min(self.last.xmax));
        (from, from <= self.complete.1.xmin)
    }

    fn saw(&mut self, snapshot: Snapshot, is_complete: bool, now: Instant) {
        self.last = snapshot;
        self.recent.push_back((now, snapshot));
        if is_complete {
            self.complete = (now, snapshot);
        }
    }
}

/// A place in the queue of a shard: a transaction, and a row that it made pending.
type Place = (u64, i64);

impl Poller {
    pub(super) async fn run(mut self) {
        let mut known: BTreeMap<i16, i64> = BTreeMap::new();
        let mut behind: BTreeMap<i16, Place> = BTreeMap::new();
        let mut seen: Option<Seen> = None;
        let mut everything = Instant::now();
        while !self.messages.is_closed() {
            let owned = self.owned.borrow_and_update().clone();
            let now = Instant::now();
            if now.duration_since(everything) > AGAIN {
                known.clear();
                everything = now;
            }
            for shard in
                owned.shards.iter().filter(|(shard, epoch)| known.get(shard) != Some(epoch))
            {
                behind.insert(*shard.0, (0, i64::MIN));
            }
            behind.retain(|shard, _| owned.shards.contains_key(shard));
            let looked = self.look_at(&owned.shards, &mut seen, &mut behind, now).await;
            known = owned.shards;
            if let Err(error) = looked {
                log::line(&format!("looking for deliveries: {error}"));
                tokio::time::sleep(AFTER_ERROR).await;
            }
            let pause = if behind.is_empty() { EVERY } else { Duration::ZERO };
            if timeout(pause, self.history.is_to_be_read_again()).await.is_ok() {
                self.history.wait().await;
                let _ = self.messages.send(Message::Forget);
                known.clear();
                seen = None;
            }
        }
    }

    /// Looks at what is new, and at a page of what is behind.
    async fn look_at(
        &self,
        owned: &BTreeMap<i16, i64>,
        seen: &mut Option<Seen>,
        behind: &mut BTreeMap<i16, Place>,
        now: Instant,
    ) -> Result<(), DbError> {
        if let Some(seen) = seen {
            let (from, is_complete) = seen.from(now);
            let places = owned.keys().map(|shard| (*shard, (from, i64::MIN))).collect();
            let (snapshot, rest) = self.look(&places).await?;
            if snapshot.xmax < seen.last.xmax {
                let (was, is) = (seen.last.xmax, snapshot.xmax);
                self.history
                    .went_back(format_args!("transaction {was} was seen, and the next is {is}"));
                return Ok(());
            }
            for (shard, place) in rest {
                // What is behind an earlier place already comes to this one too.
                behind.entry(shard).or_insert(place);
            }
            seen.saw(snapshot, is_complete, now);
        }
        if seen.is_none() || !behind.is_empty() {
            // What becomes pending behind a snapshot's back is found by the looks above, which begin
            // at an earlier one.
            let (snapshot, rest) = self.look(behind).await?;
            *behind = rest;
            seen.get_or_insert_with(|| Seen::first(snapshot, now));
        }
        Ok(())
    }

    /// Hands in a page of each shard, from a place in it on. Returns where the page of a shard ended
    /// that had no room for all.
    async fn look(
        &self,
        places: &BTreeMap<i16, Place>,
    ) -> Result<(Snapshot, BTreeMap<i16, Place>), DbError> {
        let shards: Vec<i16> = places.keys().copied().collect();
        let transactions: Vec<String> = places.values().map(|(from, _)| from.to_string()).collect();
        let ids: Vec<i64> = places.values().map(|(_, id)| *id).collect();
        let poll = async |client: &Object| {
            query(client, sql::SENDER_POLL, &[&shards, &transactions, &ids, &PAGE]).await
        };
        let rows = self.database.read(poll).await?;
        let number = |row: &Row, name| -> Result<u64, DbError> {
            row.field::<&str>(name)?.parse().map_err(DbError::row)
        };
        let (bounds, rows) =
            rows.split_first().ok_or_else(|| DbError::row("a snapshot without a row"))?;
        let snapshot = Snapshot { xmin: number(bounds, "xmin")?, xmax: number(bounds, "xmax")? };
        let (mut found, mut pages) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let (id, shard) = (row.field("id")?, row.field("shard")?);
            let (len, last) = pages.entry(shard).or_insert((0_i64, row));
            (*len, *last) = (len.saturating_add(1), row);
            // A row of a later version is for a process of that version.
            let Ok(delivery) = delivery_of(row) else { continue };
            let (endpoint, account) = (row.field("endpoint")?, row.field("account")?);
            found.push(PendingRow { id, shard, endpoint, account, delivery });
        }
        if !found.is_empty() {
            let _ = self.messages.send(Message::Found(found));
        }
        let mut rest = BTreeMap::new();
        for (shard, (len, last)) in pages {
            if len >= PAGE {
                rest.insert(shard, (number(last, "queued_by")?, last.field("id")?));
            }
        }
        Ok((snapshot, rest))
    }
}
