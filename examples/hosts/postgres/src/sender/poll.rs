//! Finds what became pending in the shards that this sender owns.
//!
//! Each look is for what became visible since the previous one: the rows of transactions that ran then
//! and have ended, and of those that began later. So nothing is missed, however late it is committed, and
//! a transaction that is held open makes no look longer.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::webhook::sender::Delivery;
use deadpool_postgres::Object;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::Message;
use super::history::History;
use super::owner::Owned;
use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, query};
use host::log;

/// The interval of polls.
const EVERY: Duration = Duration::from_millis(20);

/// The most rows of one shard that are read at once: what is new is found meanwhile, however much
/// there is.
const PAGE: i64 = 250;

const AFTER_ERROR: Duration = Duration::from_millis(200);

/// How long after everything was read it is read again, in case that this process has lost sight of
/// something: at least, and in the time that it took. So it takes a twentieth of the time at most.
const AGAIN: Duration = Duration::from_secs(60);
const TIMES: u32 = 20;

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
    pub(super) counted: Counted,
}

/// A snapshot of the database, as the database writes it: which transactions it sees.
#[derive(Debug)]
struct Snapshot {
    text: String,
    /// The first transaction that had not begun.
    next: u64,
}

impl Snapshot {
    /// Reads `xmin:xmax:running`.
    fn parse(text: &str) -> Result<Self, DbError> {
        let next = text.split(':').nth(1).and_then(|next| next.parse().ok());
        let next = next.ok_or_else(|| DbError::row(format!("{text:?} is no snapshot")))?;
        Ok(Self { text: text.to_owned(), next })
    }
}

/// A place in the queue of a shard: a transaction, and a row that it made pending.
type Place = (u64, i64);

/// Returns how long after everything was read it is read again.
fn pause_after(took: Duration) -> Duration {
    took.saturating_mul(TIMES).max(AGAIN)
}

/// The place before all others.
const START: Place = (0, i64::MIN);

impl Poller {
    pub(super) async fn run(mut self) {
        let mut known: BTreeMap<i16, i64> = BTreeMap::new();
        let mut behind: BTreeMap<i16, Place> = BTreeMap::new();
        let mut seen: Option<Snapshot> = None;
        // When everything began to be read, until it is.
        let mut reading = Some(Instant::now());
        let mut again = None;
        while !self.messages.is_closed() {
            let owned = self.owned.borrow_and_update().clone();
            if again.is_some_and(|again| again < Instant::now()) {
                known.clear();
                (reading, again) = (Some(Instant::now()), None);
            }
            for shard in
                owned.shards.iter().filter(|(shard, epoch)| known.get(shard) != Some(epoch))
            {
                behind.insert(*shard.0, START);
            }
            behind.retain(|shard, _| owned.shards.contains_key(shard));
            let looked = self.look_at(&owned.shards, &mut seen, &mut behind).await;
            known = owned.shards;
            log::tried("looking for deliveries", &looked);
            match looked {
                Ok(()) => self.counted.round("looks"),
                Err(_) => tokio::time::sleep(AFTER_ERROR).await,
            }
            if behind.is_empty()
                && let Some(began) = reading.take()
            {
                again = Instant::now().checked_add(pause_after(began.elapsed()));
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
        seen: &mut Option<Snapshot>,
        behind: &mut BTreeMap<i16, Place>,
    ) -> Result<(), DbError> {
        if let Some(last) = seen {
            let places = owned.keys().map(|shard| (*shard, START)).collect();
            let (snapshot, rest) = self.look(&places, Some(last)).await?;
            if snapshot.next < last.next {
                let (was, is) = (&last.text, &snapshot.text);
                self.history.went_back(format_args!("snapshot {was} was seen, and now {is}"));
                return Ok(());
            }
            for (shard, place) in rest {
                // What is behind an earlier place already comes to this one too.
                behind.entry(shard).or_insert(place);
            }
            *last = snapshot;
        }
        if seen.is_none() || !behind.is_empty() {
            // What becomes pending behind a snapshot's back is found by the looks above, which have an
            // earlier one.
            let (snapshot, rest) = self.look(behind, None).await?;
            *behind = rest;
            seen.get_or_insert(snapshot);
        }
        Ok(())
    }

    /// Hands in a page of each shard, from a place in it on: of all that is pending, or of what was not
    /// visible to an earlier snapshot. Returns where the page of a shard ended that had no room for all.
    async fn look(
        &self,
        places: &BTreeMap<i16, Place>,
        since: Option<&Snapshot>,
    ) -> Result<(Snapshot, BTreeMap<i16, Place>), DbError> {
        let shards: Vec<i16> = places.keys().copied().collect();
        let transactions: Vec<String> = places.values().map(|(from, _)| from.to_string()).collect();
        let ids: Vec<i64> = places.values().map(|(_, id)| *id).collect();
        let since = since.map(|since| since.text.as_str());
        let poll = async |client: &Object| {
            query(client, sql::SENDER_POLL, &[&shards, &transactions, &ids, &since, &PAGE]).await
        };
        let rows = self.database.read(poll).await?;
        let (first, rows) =
            rows.split_first().ok_or_else(|| DbError::row("a snapshot without a row"))?;
        let snapshot = Snapshot::parse(first.field("snapshot")?)?;
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
                let queued_by = last.field::<&str>("queued_by")?.parse().map_err(DbError::row)?;
                rest.insert(shard, (queued_by, last.field("id")?));
            }
        }
        Ok((snapshot, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_everything_takes_a_twentieth_of_the_time() {
        let seconds = Duration::from_secs;
        for (took, pause) in [(0, 60), (3, 60), (4, 80), (21, 420)] {
            assert_eq!(pause_after(seconds(took)), seconds(pause), "{took} s");
        }
        assert_eq!(pause_after(Duration::MAX), Duration::MAX);
    }
}
