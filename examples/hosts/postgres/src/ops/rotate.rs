//! Sealing signing secrets again, with the newest key of the ring.
//!
//! Customers notice nothing: their secrets stay. Every process must have the new ring before this,
//! and needs the old keys until it has ended.

use call_assistant::Timestamp;
use deadpool_postgres::Transaction;
use serde::Serialize;

use crate::db::Database;
use crate::key_ring::{KeyRing, in_use};
use crate::sql::{ops as sql, store};
use host::log;
use host::store::Refused;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// Endpoints whose secrets are sealed with the newest key now.
    pub sealed: u64,
    /// Endpoints, but deleted ones, whose secrets do not open with any key of the ring. They stay as they are.
    pub unreadable: u64,
}

/// Seals again what is not sealed with the newest key, a few endpoints at a time. It may be called
/// again, and runs beside everything else.
///
/// # Errors
/// The database did not respond: call again. Or the ring does not have each key that is in use.
pub async fn keys(database: &Database, ring: &KeyRing, now: Timestamp) -> Result<Rotated, Refused> {
    let (mut rotated, mut last) = (Rotated::default(), -1);
    let free = async || database.change(async |change| in_use::free(change, ring).await).await;
    // Before, too: no key has to be in the ring that seals nothing.
    free().await?;
    database.change(async |change| in_use::seal(change, ring).await).await?;
    loop {
        let (next, page) =
            database.change(async |change| page(change, ring, last, now).await).await?;
        rotated.sealed = rotated.sealed.saturating_add(page.sealed);
        rotated.unreadable = rotated.unreadable.saturating_add(page.unreadable);
        match next {
            Some(next) => last = next,
            None => break,
        }
    }
    free().await?;
    Ok(rotated)
}

/// Seals a page of endpoints again. Returns the last number of the page, or `None` if it was empty.
async fn page(
    change: &Transaction<'_>,
    ring: &KeyRing,
    last: i32,
    now: Timestamp,
) -> Result<(Option<i32>, Rotated), Refused> {
    in_use::seal(change, ring).await?;
    // Locked, for a secret may be replaced at the same time.
    let rows = sql::rotate_read(change, last).await?;
    let mut page = Rotated::default();
    for sql::Locked { is_deleted, sealed: row } in &rows {
        let (id, sealed) = (row.id.as_str(), row.secrets.as_slice());
        if !ring.is_outdated(sealed) {
            continue;
        }
        match ring.open(id, sealed, now) {
            Ok(secrets) => {
                let sealed = ring.seal(id, &secrets, now);
                store::endpoints_secrets(change, row.number, &sealed).await?;
                page.sealed = page.sealed.saturating_add(1);
            }
            // It signs nothing any more.
            Err(_) if *is_deleted => {}
            Err(error) => {
                log::warn!(endpoint = id, %error, "its secrets are not sealed again");
                page.unreadable = page.unreadable.saturating_add(1);
            }
        }
    }
    Ok((rows.last().map(|row| row.sealed.number), page))
}
