//! Locked rows. All code locks in one order.

use std::collections::{BTreeMap, BTreeSet};

use call_assistant::webhook::sender::EndpointHealth;
use deadpool_postgres::GenericClient;

use crate::db::{At, DbError};
use crate::sql::queue as sql;
pub use host::rows::{Key, Locked};

/// Locks deliveries, pending ones first, each by ascending number. One that cannot be read by this
/// version, or is not there, is left out; so is a row whose number alone is the same.
///
/// # Errors
/// [`DbError`]
pub async fn lock(
    change: &impl GenericClient,
    keys: &[Key],
) -> Result<BTreeMap<u64, Locked>, DbError> {
    let mut found = BTreeMap::new();
    let ids: BTreeSet<i64> = keys.iter().map(|key| key.delivery.cast_signed()).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    // One that this version cannot read is for another version.
    for row in sql::lock_pending(change, &ids).await?.into_iter().flatten() {
        let locked = Locked::of(row);
        if keys.contains(&Key::of(&row)) {
            found.insert(row.id(), locked);
        }
    }
    let others: Vec<&Key> = keys.iter().filter(|key| !found.contains_key(&key.delivery)).collect();
    if others.is_empty() {
        return Ok(found);
    }
    let endpoints: Vec<i32> = others.iter().map(|key| key.endpoint.cast_signed()).collect();
    let ids: Vec<i64> = others.iter().map(|key| key.delivery.cast_signed()).collect();
    let created: Vec<At> = others.iter().map(|key| At(key.event_created_at)).collect();
    let ended = sql::lock_ended(change, &endpoints, &ids, &created).await?.into_iter().flatten();
    found.extend(ended.map(|row| (row.id(), Locked::of(row))));
    Ok(found)
}

/// Reads endpoints by their numbers, without a lock.
///
/// # Errors
/// [`DbError`]
pub async fn read_endpoints(
    change: &impl GenericClient,
    numbers: &[u32],
) -> Result<BTreeMap<u32, EndpointHealth>, DbError> {
    let numbers: Vec<i32> = numbers.iter().copied().map(u32::cast_signed).collect();
    Ok(readable(sql::endpoints(change, &numbers).await?))
}

/// Reads endpoints with a lock on each, by ascending number.
///
/// # Errors
/// [`DbError`]
pub async fn lock_endpoints(
    change: &impl GenericClient,
    numbers: &[u32],
) -> Result<BTreeMap<u32, EndpointHealth>, DbError> {
    let numbers: Vec<i32> = numbers.iter().copied().map(u32::cast_signed).collect();
    Ok(readable(sql::lock_endpoints(change, &numbers).await?))
}

/// Leaves out the endpoints that this version cannot read.
fn readable(rows: Vec<sql::Health>) -> BTreeMap<u32, EndpointHealth> {
    rows.into_iter().filter_map(|row| Some((row.number.cast_unsigned(), row.read.ok()?))).collect()
}
