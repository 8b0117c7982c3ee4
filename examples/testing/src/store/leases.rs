//! Leases of shards, and the senders that live.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use host::rows::{Done, Shards};
use host::sender::leases::{Claim, LEASE, LeaseRows, Renewal};

use super::tables::{Place, Row, Tables};
use super::{Step, Store};
use crate::judge;

/// The lease of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseRow {
    pub owner: Option<usize>,
    epoch: i64,
    until: Duration,
}

/// A sender that lives until then, unless it is there again.
#[derive(Clone, Copy, Debug)]
pub struct SenderRow {
    until: Duration,
    renewals: i64,
}

/// The leases of a process.
#[derive(Debug)]
pub struct Leased {
    pub store: Store,
    pub shards: u16,
    /// Whether its clock agrees with the store's.
    pub agrees: Arc<AtomicBool>,
    /// By how many milliseconds the store's clock was ahead when the process has last asked.
    pub heard: Arc<AtomicI64>,
}

impl LeaseRows for Leased {
    async fn agrees(&mut self) -> Done<bool> {
        self.heard.store(self.store.ahead(), Ordering::Relaxed);
        Ok(self.agrees.load(Ordering::Relaxed))
    }

    async fn renew(&mut self, held: &Shards) -> Done<Renewal> {
        self.store.read(Step::Renew).await?;
        let (now, process) = (self.store.since_start(), self.store.process);
        let mut kept = Vec::new();
        {
            let mut tables = self.store.tables();
            let tx = tables.begin();
            for (shard, epoch) in held {
                let Some(lease) = tables.lease(*shard) else { continue };
                if lease.owner == Some(process) && lease.epoch == *epoch {
                    let lease = LeaseRow { until: now + LEASE, ..lease };
                    self.store.write_lease(&mut tables, tx, *shard, lease, false);
                    kept.push(*shard);
                }
            }
            tables.commit(tx);
        }
        self.store.read(Step::Live).await?;
        let (now, mut tables) = (self.store.since_start(), self.store.tables());
        let tx = tables.begin();
        let renewals = tables.sender(process).map_or(0, |row| row.renewals) + 1;
        let row = SenderRow { until: now + LEASE, renewals };
        tables.write(tx, Place::Sender(process), Some(Row::Sender(row)));
        tables.commit(tx);
        let others = tables.living(now).into_iter().filter(|other| *other != process);
        let others: Vec<String> = others.map(|other| format!("sender-{other}")).collect();
        Ok(Renewal {
            kept,
            live: others.len() + 1,
            count: renewals,
            timeline: tables.timeline.to_string(),
            at: self.store.now(),
            others,
        })
    }

    async fn claim(&mut self, wanted: usize) -> Done<Vec<Claim>> {
        self.store.read(Step::Claim).await?;
        let (now, process) = (self.store.since_start(), self.store.process);
        let (mut tables, mut claims) = (self.store.tables(), Vec::new());
        let tx = tables.begin();
        for shard in 0..self.shards {
            let lease = tables.lease(shard).unwrap_or_default();
            if claims.len() == wanted || lease.owner.is_some() && now <= lease.until {
                continue;
            }
            let (epoch, until) = (lease.epoch + 1, now + LEASE);
            let taken = LeaseRow { owner: Some(process), epoch, until };
            self.store.write_lease(&mut tables, tx, shard, taken, true);
            let before = lease.owner.map(|before| format!("sender-{before}"));
            claims.push(Claim { shard, epoch, before });
        }
        tables.commit(tx);
        Ok(claims)
    }

    async fn release(&mut self, shards: &Shards, leaves: bool) -> Done<()> {
        self.store.read(Step::Release).await?;
        let process = self.store.process;
        let mut tables = self.store.tables();
        let tx = tables.begin();
        for (shard, epoch) in shards {
            let Some(lease) = tables.lease(*shard) else { continue };
            if lease.owner == Some(process) && lease.epoch == *epoch {
                let lease = LeaseRow { owner: None, ..lease };
                self.store.write_lease(&mut tables, tx, *shard, lease, false);
            }
        }
        if let Some(row) = tables.sender(process).filter(|_| leaves) {
            let row = SenderRow { until: Duration::ZERO, ..row };
            tables.write(tx, Place::Sender(process), Some(Row::Sender(row)));
        }
        tables.commit(tx);
        Ok(())
    }
}

impl Store {
    fn write_lease(&self, tables: &mut Tables, tx: u64, shard: u16, row: LeaseRow, is_new: bool) {
        let until = self.shared.start.saturating_add(row.until);
        let lease = row.owner.map(|owner| judge::Lease { owner: format!("sender-{owner}"), until });
        let change = judge::Change::Shard { shard: shard.into(), lease, is_new };
        self.note(tables, tx, change);
        tables.write(tx, Place::Shard(shard), Some(Row::Shard(row)));
    }
}

impl Tables {
    fn lease(&self, shard: u16) -> Option<LeaseRow> {
        match self.rows.get(&Place::Shard(shard)) {
            Some(Row::Shard(row)) => Some(*row),
            _ => None,
        }
    }

    fn sender(&self, process: usize) -> Option<SenderRow> {
        match self.rows.get(&Place::Sender(process)) {
            Some(Row::Sender(row)) => Some(*row),
            _ => None,
        }
    }

    fn living(&self, now: Duration) -> BTreeSet<usize> {
        let all = self.rows.range(Place::Sender(0)..=Place::Sender(usize::MAX));
        let lives = all.filter_map(|(place, row)| match (place, row) {
            (Place::Sender(process), Row::Sender(row)) if now < row.until => Some(*process),
            _ => None,
        });
        lives.collect()
    }

    /// Tells whether these senders, and nobody else, share all shards: then they would renew their leases, again and
    /// again, and nothing else.
    pub fn is_shared(&self, shards: u16, senders: &BTreeSet<usize>, now: Duration) -> bool {
        let most = usize::from(shards).div_ceil(senders.len().max(1));
        let owners: Vec<usize> = (0..shards)
            .filter_map(|shard| self.lease(shard).filter(|lease| now < lease.until)?.owner)
            .collect();
        let is_share = |process| owners.iter().filter(|owner| *owner == process).count() <= most;
        owners.len() == usize::from(shards)
            && senders.iter().all(is_share)
            && self.living(now) == *senders
    }

    /// Has all leases that last at this moment last longer, as if each had been renewed for so long.
    pub fn renew_for(&mut self, time: Duration) {
        self.ends().for_each(|until| *until += time);
    }

    /// Has leases that came back with a store that went back last as those do that were renewed just before.
    pub(super) fn keep_leases(&mut self, now: Duration) {
        self.ends().for_each(|until| *until = (*until).max(now + LEASE / 2));
    }

    /// Returns when each lease ends, and when each sender is no longer there.
    fn ends(&mut self) -> impl Iterator<Item = &mut Duration> {
        self.rows.range_mut(Place::Shard(0)..).filter_map(|(_, row)| match row {
            Row::Shard(LeaseRow { until, .. }) | Row::Sender(SenderRow { until, .. }) => {
                Some(until)
            }
            _ => None,
        })
    }
}
