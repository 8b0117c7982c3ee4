//! Recoveries: what an endpoint missed, redelivered a few at a time.
//!
//! A step is one transaction: the deliveries that it makes due, and how far the recovery is. A process
//! that ends in the middle of it has done nothing, and whoever owns the shard makes the step.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::{
    Delivery, MissedDeliveries, RecoverError, Recovery, RecoveryBy, RecoveryStatus, Row as Read,
    Write,
};
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::endpoints::Found;
use super::{accounts, sql, unreadable};
use crate::db::{At, Database, DbError, endpoint_of, execute, query, query_opt, within};
use crate::deliveries::{self, Key, Table};
use crate::host::rows::{Missed, RecoveryRow};
use crate::host::store::{Done, Refused};
use crate::missed::Search;
use crate::support::log;

/// How many redeliveries of one endpoint are pending at once: half of what may be in flight to it, so
/// that new events find room.
const AT_ONCE: u32 = 4;

/// How long a recovery waits for transactions that had begun before it. Events of one that is held open
/// for longer stay missed, until the next recovery.
const OLDER: Duration = Duration::from_secs(60);

/// Counts what a recovery would redeliver.
pub(super) async fn count(
    client: &impl GenericClient,
    found: &Found,
    missed: &MissedDeliveries,
) -> Done<Missed> {
    let missed = missed.clone().of_endpoint(&found.shown.health);
    let search = Search::new(found.shard, found.number, &missed);
    Ok(Missed { by_type: search.count(client).await? })
}

/// Starts a recovery by a person in the dashboard.
pub(super) async fn start(
    change: &Transaction<'_>,
    found: &Found,
    missed: MissedDeliveries,
    now: Timestamp,
) -> Done<RecoveryRow> {
    let plan = accounts::one(change, found.shown.account_id.as_str()).await?.plan.webhooks;
    let counted = count(change, found, &missed).await?.total();
    let recovery: Recovery<i64> = missed
        .recover(counted, RecoveryBy::Dashboard, plan, &found.shown.health, now)
        .map_err(|error| match error {
            RecoverError::Plan(error) => Refused::Plan(error),
            error => Refused::Conflict(error.to_string()),
        })?;
    execute(change, sql!("recovery_forget"), &[&found.number]).await?;
    let started = query_opt(
        change,
        sql!("recovery_insert"),
        &[
            &found.number,
            &found.shard,
            &json(&recovery)?,
            &recovery.version().cast_signed(),
            &At(now),
        ],
    )
    .await?;
    let row = started
        .ok_or_else(|| Refused::Conflict("a recovery of this endpoint is running".into()))?;
    Ok(RecoveryRow::of(public(row.try_get(0)?), found.shown.id.clone(), &recovery, None))
}

/// The recoveries of an account, newest first.
pub(super) async fn all(client: &impl GenericClient, account: &str) -> Done<Vec<RecoveryRow>> {
    query(client, sql!("recoveries"), &[&account]).await?.iter().map(shown).collect()
}

/// One recovery.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<RecoveryRow> {
    let row = query_opt(client, sql!("recovery"), &[&number(id)?]).await?;
    shown(&row.ok_or(MISSING)?)
}

/// Ends a recovery, if it runs.
pub(super) async fn cancel(
    change: &Transaction<'_>,
    id: &str,
    now: Timestamp,
) -> Done<RecoveryRow> {
    let row = query_opt(change, sql!("recovery_lock"), &[&number(id)?]).await?;
    let row = row.ok_or(MISSING)?;
    let mut recovery = Read::from(recovery_of(&row)?);
    if recovery.cancel() {
        write(change, &row, &recovery, now).await?;
        return one(change, id).await;
    }
    shown(&row)
}

const MISSING: Refused = Refused::NotFound("recovery");

/// Makes a step of each recovery that runs for an endpoint of these shards and waits for nobody, and
/// returns whether there is one.
///
/// # Errors
/// [`Refused::Unavailable`]: a step that failed is made again.
pub(crate) async fn step_all(database: &Database, shards: &[i16], now: Timestamp) -> Done<bool> {
    let waited = At(now.saturating_sub(OLDER));
    let running = within(async {
        let session = database.session().await?;
        let rows = query(&*session, sql!("recoveries_running"), &[&shards, &waited]).await?;
        session.keep();
        Ok::<_, DbError>(rows)
    });
    let running = running.await?;
    for row in &running {
        let id: i64 = row.try_get(0)?;
        let stepped = within(async {
            let mut session = database.session().await?;
            let change = session.transaction().await?;
            let ended = step(&change, id, now).await?;
            change.commit().await?;
            session.keep();
            Ok::<_, Refused>(ended)
        });
        match stepped.await {
            Ok(Some(ended)) => log::line(&ended),
            Ok(None) => {}
            // The others go on.
            Err(error) => log::line(&format!("{}: {error:?}", public(id))),
        }
    }
    Ok(!running.is_empty())
}

/// One step of a recovery. Says what came of it if that is its last.
async fn step(change: &Transaction<'_>, id: i64, now: Timestamp) -> Done<Option<String>> {
    let Some(row) = query_opt(change, sql!("recovery_lock"), &[&id]).await? else {
        return Ok(None);
    };
    let (endpoint, shard): (i32, i16) = (row.try_get("endpoint")?, row.try_get("shard")?);
    let mut recovery = Read::from(recovery_of(&row)?);
    let pending = query_opt(change, sql!("recovery_pending"), &[&shard, &endpoint]).await?;
    let pending = pending.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    let room = recovery.room(u32::try_from(pending).unwrap_or(u32::MAX), AT_ONCE);
    if room == 0 {
        return Ok(None);
    }
    let after = recovery.after().copied().unwrap_or(i64::MIN);
    let found = Search::new(shard, endpoint, recovery.missed()).lock(change, after, room).await?;
    let rows: Vec<((Key, Table), Read<Delivery>)> =
        found.into_iter().map(|(key, locked)| ((key, locked.table), locked.row)).collect();
    let by_id: Vec<(i64, Read<Delivery>)> =
        rows.iter().map(|((key, _), row)| (key.id, *row)).collect();
    let plan = accounts::plan_of(&row)?.webhooks;
    let writes = recovery.step(room, &by_id, &endpoint_of(&row, "")?, plan, now);

    let writes: Vec<(Key, Table, Write<Delivery>)> = writes
        .into_iter()
        .filter_map(|(id, write)| {
            let ((key, table), _) = rows.iter().find(|((key, _), _)| key.id == id)?;
            Some((*key, *table, write))
        })
        .collect();
    let again: Vec<i64> = writes
        .iter()
        .filter(|(_, table, _)| *table == Table::Pending)
        .map(|(key, ..)| key.id)
        .collect();
    if !deliveries::write(change, writes).await? {
        return Err(unreadable("a locked delivery has changed"));
    }
    if !again.is_empty() {
        execute(change, sql!("recovery_queue"), &[&again]).await?;
    }
    write(change, &row, &recovery, now).await?;
    if recovery.status() == RecoveryStatus::Running {
        return Ok(None);
    }
    Ok(Some(format!(
        "recovery of {} {}: {} of {} redelivered",
        row.try_get::<_, &str>("endpoint_id")?,
        recovery.status().as_str(),
        recovery.redelivered(),
        recovery.counted(),
    )))
}

/// Writes a locked recovery where it has changed.
async fn write(
    change: &Transaction<'_>,
    row: &Row,
    recovery: &Read<Recovery<i64>>,
    now: Timestamp,
) -> Done<()> {
    let Some(write) = recovery.write() else { return Ok(()) };
    let id: i64 = row.try_get("id")?;
    let ended_at = (write.value.status() != RecoveryStatus::Running).then_some(At(now));
    let written = execute(
        change,
        sql!("recovery_write"),
        &[
            &id,
            &write.if_version,
            &json(&write.value)?,
            &write.value.version().cast_signed(),
            &ended_at,
        ],
    )
    .await?;
    match written {
        1 => Ok(()),
        _ => Err(unreadable("a locked recovery has changed")),
    }
}

fn json(recovery: &Recovery<i64>) -> Done<String> {
    serde_json::to_string(recovery).map_err(unreadable)
}

fn recovery_of(row: &Row) -> Done<Recovery<i64>> {
    serde_json::from_str(row.try_get("recovery")?).map_err(unreadable)
}

fn shown(row: &Row) -> Done<RecoveryRow> {
    let endpoint = EndpointId::parse(row.try_get("endpoint_id")?).map_err(unreadable)?;
    let ended_at: Option<At> = row.try_get("ended_at")?;
    let id = public(row.try_get("id")?);
    Ok(RecoveryRow::of(id, endpoint, &recovery_of(row)?, ended_at.map(|at| at.0)))
}

const PREFIX: &str = "rcv_";

fn public(number: i64) -> String {
    format!("{PREFIX}{number}")
}

fn number(id: &str) -> Done<i64> {
    let number = id.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
    // No two texts are one recovery.
    number.filter(|number| public(*number) == id).ok_or(MISSING)
}
