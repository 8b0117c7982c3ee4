//! Rows written under the version that was read.
//!
//! A delivery is pending, in `deliveries`, or has ended, in `ended`. A write that changes which moves
//! the row.

use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, DisabledReason, EndpointColumns, EndpointHealth,
};
use deadpool_postgres::GenericClient;

use super::lock::{Key, Locked};
use crate::db::{At, DbError};
use crate::sql::queue::{self as sql, Changed, ChangedDelivery, ChangedEndpoint, ChangedEndpoints};

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
