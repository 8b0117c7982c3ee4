//! Locked rows. All code locks in one order.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, EndpointHealth};
use deadpool_postgres::GenericClient;

use crate::db::statements as sql;
use crate::db::{At, DbError, Fields as _, delivery_of, endpoint_of, query};

/// The place of a delivery: its number alone is not enough after it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its number.
    pub id: i64,
    /// Its endpoint's number.
    pub endpoint: i32,
    /// Its event's `created_at`, which says the day.
    pub event_created_at: Timestamp,
}

/// The table of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `deliveries`.
    Pending,
    /// `ended`.
    Ended,
}

/// A locked row.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    /// The place of the row.
    pub table: Table,
    /// The content of the row.
    pub row: Delivery,
}

/// Locks deliveries, pending ones first, each by ascending number. One that cannot be read by this
/// version, or is not there, is left out; so is a row whose number alone is the same.
///
/// # Errors
/// [`DbError`]
pub async fn lock(
    change: &impl GenericClient,
    keys: &[Key],
) -> Result<BTreeMap<i64, Locked>, DbError> {
    let mut found = BTreeMap::new();
    let wanted: BTreeMap<i64, &Key> = keys.iter().map(|key| (key.id, key)).collect();
    let ids: Vec<i64> = wanted.keys().copied().collect();
    for row in query(change, sql::QUEUE_LOCK_PENDING, &[&ids]).await? {
        let endpoint = row.field("endpoint")?;
        if let Some((id, locked)) = locked(&row, Table::Pending)? {
            let event_created_at = locked.row.event_created_at();
            if wanted.get(&id).is_some_and(|key| **key == Key { id, endpoint, event_created_at }) {
                found.insert(id, locked);
            }
        }
    }
    let others: Vec<&Key> = keys.iter().filter(|key| !found.contains_key(&key.id)).collect();
    if others.is_empty() {
        return Ok(found);
    }
    let endpoints: Vec<i32> = others.iter().map(|key| key.endpoint).collect();
    let ids: Vec<i64> = others.iter().map(|key| key.id).collect();
    let created: Vec<At> = others.iter().map(|key| At(key.event_created_at)).collect();
    for row in query(change, sql::QUEUE_LOCK_ENDED, &[&endpoints, &ids, &created]).await? {
        found.extend(locked(&row, Table::Ended)?);
    }
    Ok(found)
}

/// Reads a row by its number, if this version can read it.
fn locked(row: &tokio_postgres::Row, table: Table) -> Result<Option<(i64, Locked)>, DbError> {
    let id = row.field("id")?;
    Ok(delivery_of(row).ok().map(|delivery| (id, Locked { table, row: delivery })))
}

/// Reads endpoints by their numbers, without a lock.
///
/// # Errors
/// [`DbError`]
pub async fn read_endpoints(
    change: &impl GenericClient,
    numbers: &[i32],
) -> Result<BTreeMap<i32, EndpointHealth>, DbError> {
    endpoints(query(change, sql::QUEUE_ENDPOINTS, &[&numbers]).await?)
}

/// Reads endpoints with a lock on each, by ascending number.
///
/// # Errors
/// [`DbError`]
pub async fn lock_endpoints(
    change: &impl GenericClient,
    numbers: &[i32],
) -> Result<BTreeMap<i32, EndpointHealth>, DbError> {
    endpoints(query(change, sql::QUEUE_LOCK_ENDPOINTS, &[&numbers]).await?)
}

/// Reads endpoints, and leaves out what this version cannot read.
fn endpoints(rows: Vec<tokio_postgres::Row>) -> Result<BTreeMap<i32, EndpointHealth>, DbError> {
    let mut found = BTreeMap::new();
    for row in rows {
        if let Ok(endpoint) = endpoint_of(&row, "") {
            found.insert(row.field("number")?, endpoint);
        }
    }
    Ok(found)
}
