//! Makes the steps of recoveries: those of the shards that this sender owns.
//!
//! A process that ends in the middle of a step has done nothing, and whoever owns the shard makes it.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, RecoveryStatus};
use deadpool_postgres::{Object, Transaction};
use tokio::sync::watch;
use tokio::time::Instant;

use super::owner::Owned;
use crate::clock::database as clock;
use crate::db::statements as sql;
use crate::db::{
    At, Database, DbError, Fields as _, endpoint_of, execute, plan_of, query, query_opt,
};
use crate::queue::{self, Key, Search, Table, lock_recovery, recovery_text, write_recovery};
use host::log;
use host::sending::LIMITS;

/// How many redeliveries of one endpoint are pending at once: half of what may be in flight to it, so
/// that new events find room.
const AT_ONCE: u32 = LIMITS.per_endpoint / 2;

/// How long a recovery waits for transactions that had begun before it. Events of one that is held open
/// for longer stay missed, until the next recovery.
const OLDER: Duration = Duration::from_secs(60);

/// How often to look while a recovery runs, while none does, and after an error.
const RUNNING: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Steps, until this is dropped.
pub(super) async fn keep(database: Database, owned: watch::Receiver<Owned>) {
    let mut failed = HashMap::new();
    loop {
        let mut wait = IDLE;
        if owned.borrow().is_valid() {
            let shards: Vec<i16> = owned.borrow().shards.keys().copied().collect();
            match step_all(&database, &shards, &mut failed, clock::now()).await {
                Ok(true) => wait = RUNNING,
                Ok(false) => {}
                Err(error) => {
                    log::line(&format!("recoveries: {error}"));
                    wait = AFTER_ERROR;
                }
            }
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
    for row in &running {
        let id: i64 = row.field("id")?;
        if failed.contains_key(&id) {
            continue;
        }
        match database.change(async |change| step(change, id, now).await).await {
            Ok(Some(ended)) => log::line(&ended),
            Ok(None) => {}
            // The others go on.
            Err(error) => {
                log::line(&format!("{}: {error}", recovery_text(id)));
                failed.insert(id, Instant::now());
            }
        }
    }
    Ok(running.len() > failed.len())
}

/// One step of a recovery: a transaction with the deliveries that it makes due. Says what came of it
/// if that is its last.
async fn step(
    change: &Transaction<'_>,
    id: i64,
    now: Timestamp,
) -> Result<Option<String>, DbError> {
    let Some((row, mut recovery)) = lock_recovery(change, id).await? else { return Ok(None) };
    let (endpoint, shard): (i32, i16) = (row.field("endpoint")?, row.field("shard")?);
    let pending = query_opt(change, sql::RECOVERIES_PENDING, &[&shard, &endpoint]).await?;
    let pending = pending.map_or(Ok(0), |row| row.field::<i64>("count"))?;
    let room = recovery.room(u32::try_from(pending).unwrap_or(u32::MAX), AT_ONCE);
    if room == 0 {
        return Ok(None);
    }
    let after = recovery.after().copied().unwrap_or(i64::MIN);
    let found = Search::new(shard, endpoint, recovery.missed()).lock(change, after, room).await?;
    let by_id: Vec<(i64, Delivery)> =
        found.iter().map(|(key, locked)| (key.id, locked.row)).collect();
    let writes = recovery.step(room, &by_id, &endpoint_of(&row, "")?, plan_of(&row)?.webhooks, now);

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
    if recovery.status() == RecoveryStatus::Running {
        return Ok(None);
    }
    Ok(Some(format!(
        "recovery of {} {}: {} of {} redelivered",
        row.field::<&str>("endpoint_id")?,
        recovery.status().as_str(),
        recovery.redelivered(),
        recovery.counted(),
    )))
}
