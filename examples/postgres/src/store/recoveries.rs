//! Recoveries: what an endpoint missed, redelivered a few at a time by the sender of its shard.

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::{MissedDeliveries, RecoverError, Recovery, RecoveryBy};
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::endpoints::StoredEndpoint;
use super::{accounts, unreadable};
use crate::db::statements as sql;
use crate::db::{At, Fields as _, execute, query, query_opt};
use crate::queue::{
    Search, lock_recovery, recovery_json, recovery_of, recovery_text, write_recovery,
};
use host::rows::{Missed, RecoveryRow};
use host::store::{Done, Refused};

/// Counts what a recovery would redeliver.
pub(super) async fn count(
    client: &impl GenericClient,
    found: &StoredEndpoint,
    missed: &MissedDeliveries,
) -> Done<Missed> {
    let missed = missed.clone().with_endpoint(&found.shown.health);
    let search = Search::new(found.shard, found.number, &missed);
    Ok(Missed { by_type: search.count(client).await? })
}

/// Starts a recovery by a person in the dashboard.
pub(super) async fn start(
    change: &Transaction<'_>,
    found: &StoredEndpoint,
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
    execute(change, sql::RECOVERIES_FORGET, &[&found.number]).await?;
    let started = query_opt(
        change,
        sql::RECOVERIES_INSERT,
        &[
            &found.number,
            &found.shard,
            &recovery_json(&recovery)?,
            &recovery.version().cast_signed(),
            &At(now),
        ],
    )
    .await?;
    let row = started
        .ok_or_else(|| Refused::Conflict("a recovery of this endpoint is running".into()))?;
    Ok(RecoveryRow::of(recovery_text(row.field("id")?), found.shown.id.clone(), &recovery, None))
}

/// The recoveries of an account, newest first.
pub(super) async fn all(client: &impl GenericClient, account: &str) -> Done<Vec<RecoveryRow>> {
    query(client, sql::RECOVERIES_ALL, &[&account]).await?.iter().map(shown).collect()
}

/// One recovery.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<RecoveryRow> {
    let row = query_opt(client, sql::RECOVERIES_ONE, &[&number(id)?]).await?;
    shown(&row.ok_or(MISSING)?)
}

/// Ends a recovery, if it runs.
pub(super) async fn cancel(
    change: &Transaction<'_>,
    id: &str,
    now: Timestamp,
) -> Done<RecoveryRow> {
    let number = number(id)?;
    let (row, mut recovery) = lock_recovery(change, number).await?.ok_or(MISSING)?;
    if recovery.cancel() {
        write_recovery(change, number, &recovery, now).await?;
        return one(change, id).await;
    }
    shown(&row)
}

const MISSING: Refused = Refused::NotFound("recovery");

fn shown(row: &Row) -> Done<RecoveryRow> {
    let endpoint = EndpointId::parse(row.field("endpoint_id")?).map_err(unreadable)?;
    let id = recovery_text(row.field("id")?);
    Ok(RecoveryRow::of(id, endpoint, &recovery_of(row)?, row.instant_opt("ended_at")?))
}

/// The number in a public id.
fn number(id: &str) -> Done<i64> {
    let number = id.strip_prefix("rcv_").and_then(|number| number.parse().ok());
    // No two texts are one recovery.
    number.filter(|number| recovery_text(*number) == id).ok_or(MISSING)
}
