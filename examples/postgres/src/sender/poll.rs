//! Finds what became pending in the shards that this sender owns.
//!
//! Each look begins where the previous one's snapshot ended: with the oldest transaction that was
//! still running then, so that nothing is missed, however late it is committed. A transaction that
//! is held open would make every look longer, so most looks begin with what was running a second
//! ago, and every fifth second one begins with all that is still running.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use call_assistant::webhook::sender::Delivery;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Message;
use super::owner::Owned;
use crate::db::{Database, DbError, delivery_of, within};
use crate::support::log;

/// How often to look.
const EVERY: Duration = Duration::from_millis(20);

/// How far most looks go back, and how often one goes back to everything that still runs.
const RECENT: Duration = Duration::from_secs(1);
const THOROUGH: Duration = Duration::from_secs(5);

const AFTER_ERROR: Duration = Duration::from_millis(200);

/// How often everything is read again, in case that this process has lost sight of something.
const AGAIN: Duration = Duration::from_secs(60);

/// A pending row.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: i64,
    pub(super) shard: i16,
    pub(super) endpoint: i32,
    pub(super) delivery: Delivery,
}

pub(super) struct Poller {
    pub(super) database: Database,
    pub(super) owned: watch::Receiver<Owned>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
}

/// How far the table was seen: transactions from `xmin` on may have been running, those from `xmax`
/// on had not begun.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    xmin: u64,
    xmax: u64,
}

/// The looks that later ones begin at. All of them had every shard that is owned now.
#[derive(Debug)]
struct Seen {
    last: Snapshot,
    thorough: (Instant, Snapshot),
    recent: VecDeque<(Instant, Snapshot)>,
}

impl Seen {
    fn first(snapshot: Snapshot, now: Instant) -> Self {
        Self { last: snapshot, thorough: (now, snapshot), recent: VecDeque::new() }
    }

    /// The transaction to look from, and whether that misses none.
    fn from(&mut self, now: Instant) -> (u64, bool) {
        if now.duration_since(self.thorough.0) > THOROUGH {
            return (self.thorough.1.xmin, true);
        }
        let is_old = |(at, _): &(Instant, Snapshot)| now.duration_since(*at) > RECENT;
        while self.recent.get(1).is_some_and(is_old) {
            self.recent.pop_front();
        }
        let old = self.recent.front().filter(|each| is_old(each)).unwrap_or(&self.thorough);
        (self.last.xmin.max(old.1.xmax.min(self.last.xmax)), false)
    }

    fn saw(&mut self, snapshot: Snapshot, is_thorough: bool, now: Instant) {
        self.last = snapshot;
        self.recent.push_back((now, snapshot));
        if is_thorough {
            self.thorough = (now, snapshot);
        }
    }
}

impl Poller {
    pub(super) async fn run(mut self) {
        let mut known: BTreeMap<i16, i64> = BTreeMap::new();
        let mut seen: Option<Seen> = None;
        let mut everything = Instant::now();
        while !self.messages.is_closed() {
            let owned = self.owned.borrow_and_update().clone();
            let now = Instant::now();
            if now.duration_since(everything) > AGAIN {
                known.clear();
                everything = now;
            }
            known.retain(|shard, epoch| owned.shards.get(shard) == Some(epoch));
            let new: Vec<i16> =
                owned.shards.keys().copied().filter(|shard| !known.contains_key(shard)).collect();
            let looked = match &mut seen {
                Some(seen) if new.is_empty() => {
                    let shards: Vec<i16> = owned.shards.keys().copied().collect();
                    let (from, is_thorough) = seen.from(now);
                    let looked = within(self.look(&shards, from)).await;
                    looked.map(|snapshot| seen.saw(snapshot, is_thorough, now))
                }
                // What follows looks at the new shards from where the others are, which is earlier.
                _ => within(self.look(&new, 0)).await.map(|snapshot| {
                    seen.get_or_insert_with(|| Seen::first(snapshot, now));
                    known = owned.shards;
                }),
            };
            if let Err(error) = looked {
                log::line(&format!("looking for deliveries: {error}"));
                tokio::time::sleep(AFTER_ERROR).await;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn look(&self, shards: &[i16], from: u64) -> Result<Snapshot, DbError> {
        let session = self.database.session().await?;
        let statement = session.prepare_cached(include_str!("../../sql/sender_poll.sql")).await?;
        let rows = session.query(&statement, &[&shards, &from.to_string()]).await?;
        session.keep();
        let bound = |name| -> Result<u64, DbError> {
            let row = rows.first().ok_or_else(|| DbError::row("a snapshot without a row"))?;
            row.try_get::<_, &str>(name)?.parse().map_err(DbError::row)
        };
        let snapshot = Snapshot { xmin: bound("xmin")?, xmax: bound("xmax")? };
        let mut found = Vec::new();
        for row in &rows {
            let Some(id) = row.try_get::<_, Option<i64>>("id")? else { continue };
            // A row of a later version is for a process of that version.
            let Ok(delivery) = delivery_of(row) else { continue };
            let (shard, endpoint) = (row.try_get("shard")?, row.try_get("endpoint")?);
            found.push(Found { id, shard, endpoint, delivery });
        }
        if !found.is_empty() {
            let _ = self.messages.send(Message::Found(found));
        }
        Ok(snapshot)
    }
}
