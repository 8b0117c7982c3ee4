//! Rows written under the version that was read, and what is stored beside them: alerts for the owners of endpoints,
//! each in the transaction that makes it true, and recoveries.
//!
//! A delivery is pending, in `deliveries`, or has ended, in `ended`. A write that changes which moves
//! the row.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, Delivery, DeliveryColumns, DisabledReason, EndpointColumns, EndpointHealth, Recovery,
    RecoveryStatus,
};
use deadpool_postgres::GenericClient;

use super::lock::{Key, Locked};
use crate::db::{At, DbError};
use crate::sql::queue::{self as sql, Changed, ChangedDelivery, ChangedEndpoint, ChangedEndpoints};
use host::rows::Progress;

/// Writes deliveries, each as it was read and as it is now. Returns whether each stored row had the version that was read: if not, roll
/// back and read again. A delivery that has not changed has no such version, and fits no row.
///
/// Pending rows that wait and those that end are written by two statements. Where there are both, all are locked
/// first, by number: two that write the same deliveries, each with another outcome, wait for each other in one order.
///
/// # Errors
/// [`DbError`]
pub async fn write(
    change: &impl GenericClient,
    writes: impl IntoIterator<Item = (Locked, Delivery)>,
) -> Result<bool, DbError> {
    let [mut wait, mut retire, mut amend, mut revive] = [(); 4].map(|()| Changed::default());
    for (locked, delivery) in writes {
        let rows = match (locked.is_pending, delivery.is_pending()) {
            (true, true) => &mut wait,
            (true, false) => &mut retire,
            (false, false) => &mut amend,
            (false, true) => &mut revive,
        };
        let (key, columns) = (Key::of(&delivery), DeliveryColumns::from(delivery));
        rows.push(ChangedDelivery {
            endpoint: key.endpoint.cast_signed(),
            id: key.delivery.cast_signed(),
            event_created_at: At(key.event_created_at),
            if_version: delivery.if_version(),
            status: columns.status.as_str(),
            at: At(columns.at),
            attempts: columns.attempts,
            manual: columns.manual,
            generation: columns.generation,
            version: columns.version,
        });
    }
    if !wait.id.is_empty() && !retire.id.is_empty() {
        let ids = [wait.id.as_slice(), &retire.id].concat();
        sql::lock_pending(change, &ids).await?;
    }
    let (wait, retire, amend, revive) = tokio::try_join!(
        store(wait, async |rows| sql::wait(change, rows).await),
        store(retire, async |rows| sql::retire(change, rows).await),
        store(amend, async |rows| sql::amend(change, rows).await),
        store(revive, async |rows| sql::revive(change, rows).await),
    )?;
    Ok(wait && retire && amend && revive)
}

/// Writes deliveries that are locked.
///
/// # Errors
/// [`DbError`], also if one has changed all the same.
pub(crate) async fn write_locked(
    change: &impl GenericClient,
    writes: impl IntoIterator<Item = (Locked, Delivery)>,
) -> Result<(), DbError> {
    match write(change, writes).await? {
        true => Ok(()),
        false => Err(DbError::row("a locked delivery has changed")),
    }
}

/// Writes rows, and tells whether each was there.
async fn store(
    rows: Changed,
    write: impl AsyncFnOnce(&Changed) -> Result<u64, DbError>,
) -> Result<bool, DbError> {
    if rows.id.is_empty() {
        return Ok(true);
    }
    let affected = write(&rows).await?;
    Ok(usize::try_from(affected).is_ok_and(|affected| affected == rows.id.len()))
}

/// Tells senders of pending deliveries that they did not make due themselves.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn tell_again(
    change: &impl GenericClient,
    writes: &[(Locked, Delivery)],
) -> Result<(), DbError> {
    let again = writes.iter().filter(|(locked, now)| locked.is_pending && now.is_pending());
    let again: Vec<i64> = again.map(|(locked, _)| locked.row.id().cast_signed()).collect();
    if !again.is_empty() {
        sql::again(change, &again).await?;
    }
    Ok(())
}

/// Writes endpoints. Returns whether each stored row had the version that was read.
///
/// # Errors
/// [`DbError`]
pub async fn write_endpoints(
    change: &impl GenericClient,
    writes: &[(u32, EndpointHealth)],
) -> Result<bool, DbError> {
    if writes.is_empty() {
        return Ok(true);
    }
    let mut rows = ChangedEndpoints::default();
    for (number, endpoint) in writes {
        let columns = EndpointColumns::from(*endpoint);
        rows.push(ChangedEndpoint {
            number: number.cast_signed(),
            if_version: endpoint.if_version(),
            disabled: columns.disabled.map(DisabledReason::as_str),
            since: At(columns.since),
            failures: columns.failures,
            generation: columns.generation,
            version: columns.version,
            first_failures: columns.first_failures,
            first_failed_at: columns.first_failed_at.map(At),
            reminders: columns.reminders,
        });
    }
    let affected = sql::write_endpoints(change, &rows).await?;
    Ok(usize::try_from(affected).is_ok_and(|affected| affected == writes.len()))
}

/// Writes endpoints that are locked.
///
/// # Errors
/// [`DbError`], also if one has changed all the same.
pub(crate) async fn write_locked_endpoints(
    change: &impl GenericClient,
    writes: &[(u32, EndpointHealth)],
) -> Result<(), DbError> {
    match write_endpoints(change, writes).await? {
        true => Ok(()),
        false => Err(DbError::row("a locked endpoint has changed")),
    }
}

/// Stores what owners are told by these changes of their endpoints.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn store_alerts(
    change: &impl GenericClient,
    alerts: &[(u32, Alert)],
    endpoints: &[(u32, EndpointHealth)],
    now: Timestamp,
) -> Result<(), DbError> {
    let (mut numbers, mut versions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (number, alert) in alerts {
        // An alert comes of a change, so its endpoint is among those that are written.
        let Some((_, endpoint)) = endpoints.iter().find(|(of, _)| of == number) else { continue };
        numbers.push(number.cast_signed());
        versions.push(EndpointColumns::from(*endpoint).version);
        texts.push(serde_json::to_string(alert).map_err(DbError::row)?);
    }
    if !numbers.is_empty() {
        sql::insert_alerts(change, &numbers, &versions, At(now), &texts).await?;
    }
    Ok(())
}

/// Writes how much an endpoint had missed beside its alert of this version.
pub(crate) async fn write_missed(
    client: &impl GenericClient,
    endpoint: &EndpointHealth,
    missed: u64,
) -> Result<(), DbError> {
    let number = i32::try_from(endpoint.id()).map_err(DbError::row)?;
    let (version, missed) = (endpoint.version().cast_signed(), missed.cast_signed());
    sql::write_alert_missed(client, number, version, missed).await?;
    Ok(())
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
