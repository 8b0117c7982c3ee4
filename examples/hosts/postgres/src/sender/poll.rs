//! Finds what became pending in the shards that a sender owns.
//!
//! Each look is for what became visible since the previous one: the rows of transactions that ran then
//! and have ended, and of those that began later. So nothing is missed, however late it is committed, and
//! a transaction that is held open makes no look longer.

use std::collections::BTreeMap;
use std::time::Duration;

use deadpool_postgres::Object;
use host::rows::{News, PendingRow, Shards};
use tokio::time::{Instant, sleep};

use crate::db::{Database, DbError};
use crate::health::{Counted, Kind};
use crate::queue;
use crate::sql::sender::{self as sql, Polled};
use host::log;

/// The interval of looks.
const EVERY: Duration = Duration::from_millis(20);

/// The most rows of one shard that are read at once: what is new is found meanwhile, however much
/// there is.
const PAGE: i64 = 250;

/// How long after everything was read it is read again, in case that this process has lost sight of
/// something: at least, and in the time that it took. So it takes a twentieth of the time at most.
const AGAIN: Duration = Duration::from_secs(60);
const TIMES: u32 = 20;

/// How far a sender has seen what became pending.
#[derive(Debug, Default)]
pub struct Seen {
    /// The shards that were asked for last.
    shards: Shards,
    /// Those of which more is to be read, each from a place on.
    behind: BTreeMap<u16, Place>,
    last: Option<Snapshot>,
    /// Since when everything is being read, until it is.
    reading: Option<Instant>,
    /// When to read everything again.
    again: Option<Instant>,
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

/// The place before all others.
const START: Place = (0, i64::MIN);

/// Returns how long after everything was read it is read again.
fn pause_after(took: Duration) -> Duration {
    took.saturating_mul(TIMES).max(AGAIN)
}

impl Seen {
    /// Returns what became pending in these shards since the last look.
    pub(super) async fn look(
        &mut self,
        (database, counted): (&Database, &Counted),
        shards: &Shards,
    ) -> Result<News, DbError> {
        if self.last.is_some() && self.behind.is_empty() {
            sleep(EVERY).await;
        }
        if self.again.is_some_and(|again| again < Instant::now()) {
            (self.shards, self.again) = (Shards::new(), None);
            counted.reads_again();
        }
        if self.shards.is_empty() {
            self.reading.get_or_insert_with(Instant::now);
        }
        for (shard, _) in shards.iter().filter(|(of, epoch)| self.shards.get(of) != Some(epoch)) {
            self.behind.insert(*shard, START);
        }
        self.behind.retain(|shard, _| shards.contains_key(shard));
        self.shards.clone_from(shards);
        let news = self.read((database, counted)).await?;
        if self.behind.is_empty()
            && let Some(began) = self.reading.take()
        {
            self.again = Instant::now().checked_add(pause_after(began.elapsed()));
        }
        Ok(news)
    }

    /// Reads what is new, and a page of what is behind.
    async fn read(&mut self, of: (&Database, &Counted)) -> Result<News, DbError> {
        let mut rows = Vec::new();
        if let Some(last) = &self.last {
            let places = self.shards.keys().map(|shard| (*shard, START)).collect();
            let (snapshot, rest) = page(of, &places, Some(last), &mut rows).await?;
            if snapshot.next < last.next {
                let (was, is) = (&last.text, &snapshot.text);
                let went_back = Some(format!("snapshot {was} was seen, and now {is}"));
                return Ok(News { went_back, ..News::default() });
            }
            for (shard, place) in rest {
                // What is behind an earlier place already comes to this one too.
                self.behind.entry(shard).or_insert(place);
            }
            self.last = Some(snapshot);
        }
        if self.last.is_none() || !self.behind.is_empty() {
            // What becomes pending behind a snapshot's back is found by the looks above, which have an
            // earlier one.
            let (snapshot, rest) = page(of, &self.behind, None, &mut rows).await?;
            self.behind = rest;
            self.last.get_or_insert(snapshot);
        }
        Ok(News { rows, ..News::default() })
    }
}

/// Reads a page of each shard, from a place in it on: of all that is pending, or of what was not
/// visible to an earlier snapshot. Returns where the page of a shard ended that had no room for all.
async fn page(
    (database, counted): (&Database, &Counted),
    places: &BTreeMap<u16, Place>,
    since: Option<&Snapshot>,
    found: &mut Vec<PendingRow>,
) -> Result<(Snapshot, BTreeMap<u16, Place>), DbError> {
    let shards: Vec<i16> = places.keys().map(|shard| shard.cast_signed()).collect();
    let transactions: Vec<String> = places.values().map(|(from, _)| from.to_string()).collect();
    let ids: Vec<i64> = places.values().map(|(_, id)| *id).collect();
    let since = since.map(|since| since.text.as_str());
    let poll =
        async |client: &Object| sql::poll(client, &shards, &transactions, &ids, since, PAGE).await;
    let mut rows = database.read(poll).await?.into_iter();
    let snapshot = rows.next().and_then(|first| first.snapshot);
    let snapshot = snapshot.ok_or_else(|| DbError::row("no row with a snapshot"))?;
    let snapshot = Snapshot::parse(&snapshot)?;
    let mut pages = BTreeMap::new();
    for row in rows {
        let Polled { queued_by: Some(queued_by), id: Some(id), shard: Some(shard), .. } = row
        else {
            return Err(DbError::row("a row without its place in the queue"));
        };
        let shard = shard.cast_unsigned();
        let (len, last) = pages.entry(shard).or_insert((0_i64, START));
        (*len, *last) = (len.saturating_add(1), (queued_by, id));
        match row.delivery {
            Ok(delivery) => {
                // 0 if the account is gone.
                let account = row.account.unwrap_or_default().cast_unsigned();
                found.push(PendingRow { shard, account, delivery });
            }
            // A row of a later version is for a process of that version.
            Err(error) => {
                counted.cannot_read(Kind::Delivery, id, row.at.unwrap_or_else(|| database.now()));
                log::warn!(
                    delivery = queue::delivery_text(row.endpoint.unwrap_or_default(), id),
                    %error,
                    "a delivery or its event cannot be read",
                );
            }
        }
    }
    let rest = pages.into_iter().filter(|(_, (len, _))| *len >= PAGE);
    let rest = rest.map(|(shard, (_, last))| (shard, last)).collect();
    Ok((snapshot, rest))
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
