//! Makes the steps of recoveries: those of the shards that this sender owns.
//!
//! A process that ends in the middle of a step has done nothing, and whoever owns the shard makes it.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, Recovery, RecoveryStatus, RecoveryStep};
use deadpool_postgres::{Object, Transaction};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;

use super::owner::Owned;
use crate::clock::database as clock;
use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{
    At, Database, DbError, Fields as _, endpoint_of, execute, plan_of, query, query_opt,
};
use crate::queue::{self, Key, Search, Table, lock_recovery, recovery_text, write_recovery};
use host::log;
use host::sending::LIMITS;

/// How many redeliveries of one endpoint are pending at once: so many that those in flight are followed
/// by others from one step to the next. How many of them are in flight is [`Shares`](super::shares::Shares)'.
const AT_ONCE: u32 = 8 * LIMITS.per_endpoint;

/// How many deliveries a step looks at, whether they are to be redelivered or not.
const LOOKED_AT: i64 = 2_000;

/// How many recoveries make a step at a time.
const STEPS: usize = 4;

/// How long a recovery waits for transactions that had begun before it. Events of one that is held open
/// for longer stay missed, until the next recovery.
const OLDER: Duration = Duration::from_secs(60);

/// How often to look while a recovery runs, while none does, and after an error.
const RUNNING: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Makes steps, until this is dropped.
pub(super) async fn keep(database: Database, owned: watch::Receiver<Owned>, counted: Counted) {
    let mut failed = HashMap::new();
    loop {
        let mut wait = IDLE;
        if owned.borrow().is_valid() {
            let shards: Vec<i16> = owned.borrow().shards.keys().copied().collect();
            let done = step_all(&database, &shards, &mut failed, clock::now()).await;
            log::tried("recoveries", &done);
            wait = match done {
                Ok(more) => {
                    counted.round("recoveries");
                    if more { RUNNING } else { IDLE }
                }
                Err(_) => AFTER_ERROR,
            };
        }
        tokio::time::sleep(wait).await;
    }
}

/// Makes a step of each recovery that runs for an endpoint of these shards and waits for nobody, and
/// returns whether there is one that has not failed a moment ago.
async fn step_all(
    database: &Database,
    shards: &[i16],
    failed: &mut HashMap<i64, Instant>,
    now: Timestamp,
) -> Result<bool, DbError> {
    let waited = At(now.saturating_sub(OLDER));
    let running =
        async |client: &Object| query(client, sql::RECOVERIES_RUNNING, &[&shards, &waited]).await;
    let running: Vec<tokio_postgres::Row> = database.read(running).await?;
    failed.retain(|_, at| at.elapsed() < AFTER_ERROR);
    let ids = running.iter().map(|row| row.field("id")).collect::<Result<Vec<i64>, _>>()?;
    let ids: Vec<i64> = ids.into_iter().filter(|id| !failed.contains_key(id)).collect();
    for some in ids.chunks(STEPS) {
        let mut steps = JoinSet::new();
        for id in some.iter().copied() {
            let database = database.clone();
            steps.spawn(async move {
                (id, database.change(async |change| step(change, id, now).await).await)
            });
        }
        for (id, done) in steps.join_all().await {
            match done {
                Ok(Some(ended)) => ended.write(),
                Ok(None) => {}
                // The others go on.
                Err(error) => {
                    log::warn("a recovery makes no step")
                        .with("recovery", recovery_text(id))
                        .because(&error)
                        .write();
                    failed.insert(id, Instant::now());
                }
            }
        }
    }
    Ok(running.len() > failed.len())
}

/// Makes a step of a recovery: a transaction with the deliveries that it makes due. Says what came of it
/// if that is its last.
async fn step(
    change: &Transaction<'_>,
    id: i64,
    now: Timestamp,
) -> Result<Option<log::Line>, DbError> {
    let Some((row, mut recovery)) = lock_recovery(change, id).await? else { return Ok(None) };
    if row.field("paused")? || recovery.status() != RecoveryStatus::Running {
        return Ok(None);
    }
    let (endpoint, shard): (i32, i16) = (row.field("endpoint")?, row.field("shard")?);
    let missed = recovery.missed().clone();
    let search = Search::new(shard, endpoint, &missed);
    let mut progress = Progress::of(&row, &recovery)?;
    progress.count(change, &search).await?;

    let pending = query_opt(change, sql::RECOVERIES_PENDING, &[&shard, &endpoint]).await?;
    let pending = pending.map_or(Ok(0), |row| row.field::<i64>("count"))?;
    let room = recovery.room(u32::try_from(pending).unwrap_or(u32::MAX), AT_ONCE);
    if room == 0 {
        progress.write(change, id).await?;
        return Ok(None);
    }
    let after = recovery.after().copied().max(progress.searched_to).unwrap_or(i64::MIN);
    let window = search.window(change, after, LOOKED_AT).await?;
    // What is not counted would be missing from the count, once it is redelivered.
    let to = window.into_iter().chain(progress.counted_to).min();
    let found = search.lock(change, after, to.unwrap_or(i64::MAX), room).await?;
    let by_id: Vec<(i64, Delivery)> =
        found.iter().map(|(key, locked)| (key.id, locked.row)).collect();
    let (all, last) = (u32::try_from(found.len()).unwrap_or(u32::MAX), by_id.last());
    // There may be more behind them.
    let window_is_empty = to.is_some() && all < room;
    let room = if window_is_empty { all } else { room };
    let (endpoint, plan) = (endpoint_of(&row, "")?, plan_of(&row)?.webhooks);
    let step = RecoveryStep { room, found: &by_id, endpoint: &endpoint, plan };
    let writes = recovery.step(step, now).map_err(DbError::row)?;

    let writes: Vec<(Key, Table, Delivery)> = writes
        .into_iter()
        .filter_map(|(id, delivery)| {
            let (key, locked) = found.iter().find(|(key, _)| key.id == id)?;
            Some((*key, locked.table, delivery))
        })
        .collect();
    let again: Vec<i64> = writes
        .iter()
        .filter(|(_, table, _)| *table == Table::Pending)
        .map(|(key, ..)| key.id)
        .collect();
    queue::write_locked(change, writes).await?;
    if !again.is_empty() {
        execute(change, sql::QUEUE_AGAIN, &[&again]).await?;
    }
    write_recovery(change, id, &recovery, now).await?;
    if window_is_empty && last.is_none_or(|(last, _)| recovery.after() == Some(last)) {
        progress.searched(to);
    }
    progress.write(change, id).await?;
    if recovery.status() == RecoveryStatus::Running {
        return Ok(None);
    }
    let ended = log::info("a recovery has ended")
        .with("recovery", recovery_text(id))
        .with("account", row.field::<&str>("account_id")?)
        .with("endpoint", row.field::<&str>("endpoint_id")?)
        .with("status", recovery.status().as_str())
        .with("redelivered", recovery.redelivered())
        .with("of", progress.counted);
    Ok(Some(ended))
}

/// How far a recovery has come, beside what the library's has.
#[derive(Clone, Copy)]
struct Progress {
    counted: i64,
    /// The last delivery that is counted. `None`: all are.
    counted_to: Option<i64>,
    /// The delivery up to which nothing is left to find.
    searched_to: Option<i64>,
    /// Whether it has changed.
    is_new: bool,
}

impl Progress {
    fn of(row: &tokio_postgres::Row, recovery: &Recovery<i64>) -> Result<Self, DbError> {
        let counted: Option<i64> = row.field("counted")?;
        Ok(Self {
            counted: counted.unwrap_or_else(|| recovery.counted().cast_signed()),
            counted_to: row.field("counted_to")?,
            searched_to: row.field("searched_to")?,
            is_new: false,
        })
    }

    /// Counts a page, if there is more to count.
    async fn count(
        &mut self,
        change: &Transaction<'_>,
        search: &Search<'_>,
    ) -> Result<(), DbError> {
        let Some(after) = self.counted_to else { return Ok(()) };
        let page = search.count(change, after).await?;
        let counted = page.by_type.values().map(|count| count.cast_signed());
        self.counted = counted.fold(self.counted, i64::saturating_add);
        (self.counted_to, self.is_new) = (page.to, true);
        Ok(())
    }

    fn searched(&mut self, to: Option<i64>) {
        (self.searched_to, self.is_new) = (to, true);
    }

    /// Writes it where it has changed.
    async fn write(self, change: &Transaction<'_>, id: i64) -> Result<(), DbError> {
        if self.is_new {
            let parameters: [&(dyn ToSql + Sync); 4] =
                [&id, &self.counted, &self.counted_to, &self.searched_to];
            execute(change, sql::RECOVERIES_PROGRESS, &parameters).await?;
        }
        Ok(())
    }
}
