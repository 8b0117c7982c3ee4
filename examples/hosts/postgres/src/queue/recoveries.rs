//! Rows of recoveries.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Recovery, RecoveryStatus};
use deadpool_postgres::GenericClient;

use crate::db::statements as sql;
use crate::db::{At, DbError, Fields as _, execute, query_opt};
use host::rows::Progress;

/// Locks a recovery. Its row has its endpoint's health and its account's plan, too.
pub(crate) async fn lock_recovery(
    change: &impl GenericClient,
    id: i64,
) -> Result<Option<(tokio_postgres::Row, Recovery<u64>)>, DbError> {
    let row = query_opt(change, sql::RECOVERIES_LOCK, &[&id]).await?;
    row.map(|row| recovery_of(&row).map(|recovery| (row, recovery))).transpose()
}

/// Writes a locked recovery where it has changed.
pub(crate) async fn write_recovery(
    change: &impl GenericClient,
    id: i64,
    recovery: &Recovery<u64>,
    now: Timestamp,
) -> Result<(), DbError> {
    let Some(if_version) = recovery.if_version() else { return Ok(()) };
    let (text, version) = (recovery_json(recovery)?, recovery.version().cast_signed());
    let ended_at = (recovery.status() != RecoveryStatus::Running).then_some(At(now));
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&id, &if_version, &text, &version, &ended_at];
    match execute(change, sql::RECOVERIES_WRITE, &parameters).await? {
        1 => Ok(()),
        _ => Err(DbError::row("a locked recovery has changed")),
    }
}

/// Writes how far a locked recovery has come.
pub(crate) async fn write_progress(
    change: &impl GenericClient,
    id: i64,
    progress: &Progress,
) -> Result<(), DbError> {
    let Progress { counted, counted_to, searched_to } = progress;
    let signed = |number: &Option<u64>| number.map(u64::cast_signed);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&id, &counted.cast_signed(), &signed(counted_to), &signed(searched_to)];
    execute(change, sql::RECOVERIES_PROGRESS, &parameters).await?;
    Ok(())
}

/// Reads a row's recovery.
pub(crate) fn recovery_of(row: &tokio_postgres::Row) -> Result<Recovery<u64>, DbError> {
    serde_json::from_str(row.field("recovery")?).map_err(DbError::row)
}

/// Returns a recovery as it is stored.
pub(crate) fn recovery_json(recovery: &Recovery<u64>) -> Result<String, DbError> {
    serde_json::to_string(recovery).map_err(DbError::row)
}

/// Returns the public id of a recovery.
pub(crate) fn recovery_text(number: i64) -> String {
    format!("rcv_{number}")
}
