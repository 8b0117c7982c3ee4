//! Parking of pending deliveries.

use call_assistant::Timestamp;
use deadpool_postgres::Transaction;

use super::lock::{Key, Table, read_endpoints};
use super::write::write_locked;
use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, query};

/// Parks what is pending of an endpoint that is disabled, or was enabled since: call it when that is
/// committed. What others hold at this moment is parked when it is next begun.
///
/// # Errors
/// [`DbError`]. Call it again.
pub async fn park(database: &Database, endpoint: i32, now: Timestamp) -> Result<(), DbError> {
    let mut last = i64::MIN;
    let next =
        async |last| database.change(async |change| page(change, endpoint, last, now).await).await;
    while let Some(reached) = next(last).await? {
        last = reached;
    }
    Ok(())
}

/// Parks a page of it. Returns the last number of the page, or `None` if nothing was left.
async fn page(
    change: &Transaction<'_>,
    endpoint: i32,
    last: i64,
    now: Timestamp,
) -> Result<Option<i64>, DbError> {
    let rows = query(change, sql::QUEUE_PARK, &[&endpoint, &last]).await?;
    let Some(next) = rows.last() else { return Ok(None) };
    let next = next.field("id")?;
    let endpoints = read_endpoints(change, &[endpoint]).await?;
    let Some(health) = endpoints.get(&endpoint) else { return Ok(None) };
    let mut writes = Vec::new();
    for row in &rows {
        let Ok(mut delivery) = delivery_of(row) else { continue };
        let key =
            Key { id: row.field("id")?, endpoint, event_created_at: delivery.event_created_at() };
        if delivery.park(health, now) {
            writes.push((key, Table::Pending, delivery));
        }
    }
    write_locked(change, writes).await?;
    Ok(Some(next))
}
