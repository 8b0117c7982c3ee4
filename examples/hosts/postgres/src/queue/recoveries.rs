//! Rows of recoveries.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Recovery, RecoveryStatus};
use deadpool_postgres::GenericClient;

use crate::db::{At, DbError};
use crate::sql::queue as sql;
use host::rows::Progress;

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
    match sql::write_recovery(change, id, if_version, &text, version, ended_at).await? {
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
    let counted = counted.cast_signed();
    sql::write_progress(change, id, counted, signed(counted_to), signed(searched_to)).await?;
    Ok(())
}

/// Returns a recovery as it is stored.
pub(crate) fn recovery_json(recovery: &Recovery<u64>) -> Result<String, DbError> {
    serde_json::to_string(recovery).map_err(DbError::row)
}

/// Returns the public id of a recovery.
pub(crate) fn recovery_text(number: i64) -> String {
    format!("rcv_{number}")
}
