//! The shards of this sender: leases in the database, renewed every second.
//!
//! Every sender counts how many live, and takes its share of the shards: what nobody has, or what
//! somebody has not renewed in time. Who has more than its share lets go of the rest, once nothing
//! of it is in flight, or after a second. All of this is economy. If two senders both believe that they
//! own a shard, an event may be sent twice, and the versions of the rows decide which result counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::Object;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::vanished::Absent;
use crate::clock::HostClock;
use crate::clocks::Clocks;
use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, execute, query, query_opt};
use crate::queue::SHARDS;
use host::log;
use host::program::process;
use host::rows::Shards;
use host::sender::{History, Owned};

/// How long a lease lasts by the database's clock. The owner trusts it for a second less.
const LEASE: Duration = Duration::from_secs(4);
const TRUSTED: Duration = Duration::from_secs(3);

/// How often leases are renewed.
const RENEW: Duration = Duration::from_secs(1);

/// How long a standby may take to know of a renewal: 1.5 s. The next one comes while the leases last.
const PROMPT: Duration = Duration::from_millis(1500);

/// How often to look, at the end, whether anything of a shard is still in flight.
const FREED: Duration = Duration::from_millis(50);

/// How long a shard that is to be let go waits for what is in flight. Nothing of it begins meanwhile,
/// so an endpoint that is silent must not hold up the others of its shard: what is still in flight
/// then is sent again by the next owner, and the first result that is stored counts.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many deliveries of each shard are in this process's hands, from when they are taken until
/// their attempt is stored.
#[derive(Debug)]
pub(super) struct InHand(Vec<AtomicU32>);

impl Default for InHand {
    fn default() -> Self {
        Self((0..SHARDS.get()).map(|_| AtomicU32::new(0)).collect())
    }
}

impl InHand {
    /// Notes how many there are of each shard.
    pub(super) fn note(&self, in_hand: impl Fn(u16) -> usize) {
        for (shard, count) in (0..).zip(&self.0) {
            let now = u32::try_from(in_hand(shard)).unwrap_or(u32::MAX);
            count.store(now, Ordering::Relaxed);
        }
    }

    fn is_empty(&self, shard: u16) -> bool {
        self.of(shard).is_none_or(|count| count.load(Ordering::Relaxed) == 0)
    }

    fn of(&self, shard: u16) -> Option<&AtomicU32> {
        self.0.get(usize::from(shard))
    }
}

/// The result of a renewal of the leases.
#[derive(Debug)]
struct Renewal {
    /// How many senders live, this one included.
    live: usize,
    /// How often this sender has renewed its leases.
    count: i64,
    /// The history of the server: another after each promotion.
    timeline: String,
    /// The database's clock.
    at: Timestamp,
    /// The other senders that live.
    others: Vec<String>,
}

/// How a renewal follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    Well,
    /// The sender was away for so long that others have removed its row, so its count is gone.
    Late,
    /// Another server leads.
    AtAnotherServer,
    /// What this sender had written is not there: the database went back.
    NotAtAll,
}

impl Renewal {
    fn following(&self, last: &Self) -> Follows {
        match self.count {
            1 if self.at.since(last.at) >= FORGOTTEN => Follows::Late,
            count if count <= last.count => Follows::NotAtAll,
            _ if self.timeline != last.timeline => Follows::AtAnotherServer,
            _ => Follows::Well,
        }
    }
}

/// How long after its lease a sender's row stays: one hour. Who was away for longer finds none.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The task that renews the leases.
#[derive(Debug)]
pub(super) struct Owner {
    database: Database,
    clocks: Clocks,
    counted: Counted,
    id: String,
    /// The host's name.
    host: Option<String>,
    owned: watch::Sender<Owned>,
    in_hand: Arc<InHand>,
    history: History,
    /// What the last renewal found.
    last: Option<Renewal>,
    /// Shards that are to be let go, with their epochs, and until when that can wait.
    leaving: BTreeMap<u16, (i64, Option<Instant>)>,
    /// Senders that lost shards to this one.
    absent: Absent,
}

impl Owner {
    /// Creates a sender with this name, without shards.
    pub(super) fn new(
        database: Database,
        id: String,
        in_hand: Arc<InHand>,
        history: History,
        counted: Counted,
    ) -> (Self, watch::Receiver<Owned>) {
        let (owned, receiver) = watch::channel(Owned::default());
        let clocks = Clocks::new(database.clone(), counted.clone());
        let (leaving, absent, last) = (BTreeMap::new(), Absent::default(), None);
        let host = process::host_name();
        let owner = Self {
            database,
            clocks,
            counted,
            id,
            host,
            owned,
            in_hand,
            history,
            last,
            leaving,
            absent,
        };
        (owner, receiver)
    }

    /// Renews, takes and releases leases until shutdown, and then gives all back.
    pub(super) async fn run(mut self, stop: &host::program::shutdown::Shutdown) -> Self {
        let mut ticks = tokio::time::interval(RENEW);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.requested() => break,
            }
            log::tried("leases", &self.tick().await);
        }
        // What is in flight would be sent again by the next owner: its shards stay until their leases end.
        loop {
            let gone = self.let_all_go(LEASE).await;
            log::tried("leases", &gone);
            if gone.is_ok() {
                break;
            }
            if closed_within(&self.owned, RENEW).await {
                return self;
            }
        }
        while !self.leaving.is_empty() && !closed_within(&self.owned, FREED).await {
            log::tried("leases", &self.release_free(Instant::now()).await);
        }
        self
    }

    /// Renews once, or gives all back if this process's clock differs from the database's.
    pub(super) async fn tick(&mut self) -> Result<(), DbError> {
        if !self.clocks.look().await? {
            return self.stand_down().await;
        }
        self.counted.idles(None);
        let began = Instant::now();
        let mine = self.owned.borrow().shards.clone();
        let before: BTreeSet<u16> = mine.keys().copied().collect();
        let mut held = mine.clone();
        held.extend(self.leaving.iter().map(|(shard, (epoch, _))| (*shard, *epoch)));
        let kept = self.renew(&held).await?;
        let renewal = self.live().await?;
        self.compare(&renewal);
        let vanished = self.vanished(&renewal.others);

        let share = usize::from(SHARDS.get()).div_ceil(renewal.live.max(1));
        let mut shards: Shards = mine
            .into_iter()
            .filter(|(shard, _)| kept.contains(shard) && !self.leaving.contains_key(shard))
            .collect();
        self.leaving.retain(|shard, _| kept.contains(shard));
        while shards.len() > share
            && let Some((shard, epoch)) = shards.pop_last()
        {
            self.leaving.insert(shard, (epoch, began.checked_add(PATIENCE)));
        }
        let wanted = share.saturating_sub(shards.len());
        self.last = Some(renewal);
        let mut taken = 0_usize;
        if wanted > 0 {
            let wanted = i64::try_from(wanted).unwrap_or(0);
            for (shard, epoch, before) in self.claim(wanted).await? {
                shards.insert(shard, epoch);
                if let Some(other) = before.filter(|other| *other != self.id) {
                    taken = taken.saturating_add(1);
                    self.absent.lost(other);
                }
            }
        }
        self.counted.owns(shards.len(), vanished);
        self.tell(&before, &shards.keys().copied().collect(), taken);
        self.counted.round("leases");
        let until = HostClock::steady(began).saturating_add(TRUSTED);
        self.owned.send_replace(Owned { shards, until });
        self.release_free(began).await
    }

    /// Logs which senders that lost shards to this one have vanished, and returns how many shards they lost.
    fn vanished(&mut self, living: &[String]) -> usize {
        let vanished = self.absent.renewed(living);
        for (other, shards) in &vanished {
            let line = log::warn("a sender has vanished").with("sender", other.as_str());
            line.with("shards", *shards).write();
        }
        vanished.iter().map(|(_, shards)| shards).sum()
    }

    /// Logs which shards have come and gone, and how many of them another had not given back.
    fn tell(&self, before: &BTreeSet<u16>, now: &BTreeSet<u16>, taken: usize) {
        if before == now {
            return;
        }
        let listed = |shards: Vec<String>| (!shards.is_empty()).then(|| shards.join(","));
        let text = |shard: &u16| shard.to_string();
        log::info("shards")
            .with("sender", self.id.as_str())
            .with("owned", now.len())
            .with("gained", listed(now.difference(before).map(text).collect()))
            .with("lost", listed(before.difference(now).map(text).collect()))
            .with("taken_over", taken)
            .write();
    }

    /// Gives the shards back, because this process's clock differs from the database's.
    async fn stand_down(&mut self) -> Result<(), DbError> {
        let why = "this process's clock and the database's differ: its sender begins nothing";
        self.counted.idles(Some(why));
        self.let_all_go(PATIENCE).await?;
        self.counted.round("leases");
        Ok(())
    }

    /// Begins nothing more and gives the shards back, those of what is in flight after `patience` at the
    /// latest. The others do not count on this sender.
    async fn let_all_go(&mut self, patience: Duration) -> Result<(), DbError> {
        let began = Instant::now();
        let mine = self.owned.send_replace(Owned::default()).shards;
        self.tell(&mine.keys().copied().collect(), &BTreeSet::new(), 0);
        self.counted.owns(0, 0);
        let patience = began.checked_add(patience);
        self.leaving.extend(mine.into_iter().map(|(shard, epoch)| (shard, (epoch, patience))));
        self.release_free(began).await?;
        if self.last.is_some() {
            let leave =
                async |client: &Object| execute(client, sql::OWNERS_LEAVE, &[&self.id]).await;
            self.database.read(leave).await?;
            self.last = None;
        }
        Ok(())
    }

    /// Releases what is to be let go, where it has waited for long enough.
    async fn release_free(&mut self, began: Instant) -> Result<(), DbError> {
        let free: Shards = self
            .leaving
            .iter()
            .filter(|(shard, (_, until))| self.in_hand.is_empty(**shard) || *until < Some(began))
            .map(|(shard, (epoch, _))| (*shard, *epoch))
            .collect();
        if !free.is_empty() {
            self.release(&free).await?;
            self.leaving.retain(|shard, _| !free.contains_key(shard));
        }
        Ok(())
    }

    /// Releases all shards: at the end, when nothing is in flight.
    pub(super) async fn leave(self) {
        let mut held = self.owned.borrow().shards.clone();
        held.extend(self.leaving.iter().map(|(shard, (epoch, _))| (*shard, *epoch)));
        self.owned.send_replace(Owned::default());
        let (shards, epochs) = columns(&held);
        let gone = self.database.change(async |change| {
            execute(change, sql::OWNERS_RELEASE, &[&self.id, &shards, &epochs]).await?;
            execute(change, sql::OWNERS_LEAVE, &[&self.id]).await
        });
        // If they are not given back, its leases end by themselves.
        log::tried("leases", &gone.await);
    }

    /// Compares a renewal with the one before, and has everything read again where they are not of one
    /// history.
    fn compare(&self, now: &Renewal) {
        let Some(last) = &self.last else { return };
        match now.following(last) {
            Follows::Well => return,
            Follows::NotAtAll => self.history.went_back(format_args!(
                "this sender had renewed its leases {} times, last at {}, and now {} times at {}",
                last.count, last.at, now.count, now.at
            )),
            Follows::Late => {
                log::warn(format!("this sender was away since {}", last.at)).write();
            }
            Follows::AtAnotherServer => {
                let (is, was) = (&now.timeline, &last.timeline);
                log::warn(format!("another server leads: timeline {is} after {was}")).write();
            }
        }
        self.history.look_again();
    }

    /// Renews leases, and returns their shards. No standby is waited for, so nobody else gets them meanwhile.
    async fn renew(&self, held: &Shards) -> Result<Vec<u16>, DbError> {
        let (seconds, (shards, epochs)) = (LEASE.as_secs_f64(), columns(held));
        let lease: [&(dyn ToSql + Sync); 4] = [&self.id, &shards, &epochs, &seconds];
        let renew = async |client: &Object| query(client, sql::OWNERS_RENEW, &lease).await;
        let kept: Vec<Row> = self.database.read(renew).await?;
        kept.iter().map(shard_of).collect()
    }

    /// Counts the senders, once a standby knows of this one, too: by its count, one history is told from
    /// another. While that waits, no result is stored either, so nothing begins.
    async fn live(&self) -> Result<Renewal, DbError> {
        let (seconds, pid) = (LEASE.as_secs_f64(), i64::from(std::process::id()));
        let me: [&(dyn ToSql + Sync); 4] = [&self.id, &seconds, &self.host, &pid];
        let live = async |client: &Object| query_opt(client, sql::OWNERS_LIVE, &me).await;
        let live = tokio::time::timeout(PROMPT, self.database.read(live)).await;
        let live: Row = live
            .map_err(|_| DbError::TimedOut)??
            .ok_or_else(|| DbError::row("a renewal without a row"))?;
        Ok(Renewal {
            live: usize::try_from(live.field::<i64>("live")?).unwrap_or(1),
            count: live.field("renewals")?,
            timeline: live.field("timeline")?,
            at: live.field::<At>("at")?.0,
            others: live.field("others")?,
        })
    }

    /// Takes so many shards, if as many are free. Each comes with its epoch, and with the owner that has not given it back.
    async fn claim(&self, wanted: i64) -> Result<Vec<(u16, i64, Option<String>)>, DbError> {
        let seconds = LEASE.as_secs_f64();
        let claim = async |client: &Object| {
            query(client, sql::OWNERS_CLAIM, &[&self.id, &wanted, &seconds]).await
        };
        let claimed: Vec<Row> = self.database.read(claim).await?;
        let claimed = claimed
            .iter()
            .map(|row| Ok((shard_of(row)?, row.field("epoch")?, row.field("before")?)));
        claimed.collect()
    }

    async fn release(&self, free: &Shards) -> Result<(), DbError> {
        let (shards, epochs) = columns(free);
        let release = async |client: &Object| {
            execute(client, sql::OWNERS_RELEASE, &[&self.id, &shards, &epochs]).await
        };
        self.database.read(release).await.map(drop)
    }
}

/// Returns whether all who use the shards end within this time.
async fn closed_within(owned: &watch::Sender<Owned>, time: Duration) -> bool {
    tokio::time::timeout(time, owned.closed()).await.is_ok()
}

fn shard_of(row: &Row) -> Result<u16, DbError> {
    Ok(row.field::<i16>("shard")?.cast_unsigned())
}

fn columns(shards: &Shards) -> (Vec<i16>, Vec<i64>) {
    shards.iter().map(|(shard, epoch)| (shard.cast_signed(), *epoch)).unzip()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

    use super::*;

    // D-97
    #[test]
    fn who_was_away_for_long_reports_nothing() {
        let renewal = |count, seconds: i64, timeline: &str| Renewal {
            live: 1,
            count,
            timeline: timeline.to_owned(),
            at: Timestamp::from_unix(1_767_225_600 + seconds).unwrap(),
            others: Vec::new(),
        };
        for (last, now, expected) in [
            ((1, 0, "1"), (2, 1, "1"), Follows::Well),
            ((7, 0, "1"), (8, 9_999, "1"), Follows::Well),
            ((7, 0, "1"), (8, 1, "2"), Follows::AtAnotherServer),
            ((7, 0, "1"), (7, 1, "2"), Follows::NotAtAll),
            ((7, 0, "1"), (1, 3_599, "1"), Follows::NotAtAll),
            ((1, 0, "1"), (1, 1, "1"), Follows::NotAtAll),
            ((7, 0, "1"), (1, 3_600, "1"), Follows::Late),
            ((7, 0, "1"), (2, 9_999, "1"), Follows::NotAtAll),
        ] {
            let [last, now] = [last, now].map(|(count, at, of)| renewal(count, at, of));
            assert_eq!(now.following(&last), expected, "{now:?} after {last:?}");
        }
    }
}
