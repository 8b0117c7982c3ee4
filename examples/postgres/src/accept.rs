//! Accepting an event, in the transaction of the change that it reports.
//!
//! ```text
//! let change = session.transaction().await?;
//! change.execute("INSERT INTO calls ...", ...).await?;
//! accept(&change, &event, None, now).await?;
//! change.commit().await?;
//! ```
//!
//! Either both are stored or neither is. Where the change is stored elsewhere, an outbox relays it:
//! with `EventId::derived` and the change's own time as `created_at`, an event that is relayed twice
//! is accepted once.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::Delivery;
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::db::{At, DbError, endpoint_of};
use crate::deliveries::Columns;

/// The plans that have webhooks, as the column `accounts.plan` has them.
const PLANS: [&str; 2] = ["pro", "business"];

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, with these deliveries: the number of each one's endpoint, its own, and how it
    /// stands.
    New(Vec<(i32, i64, Delivery)>),
    /// It had been accepted before: nothing has changed.
    Again,
}

/// Accepts an event for each endpoint of its account, or for one of them. It is accepted when the
/// caller's transaction is committed.
///
/// No endpoint is locked. An account whose plan has no webhooks gets no delivery.
///
/// # Errors
/// [`DbError`]. The caller's transaction has failed.
pub async fn accept(
    change: &Transaction<'_>,
    event: &EventBody,
    only: Option<i32>,
    now: Timestamp,
) -> Result<Accepted, DbError> {
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let created_at = At(event.created_at());
    let endpoints = change.prepare_cached(include_str!("../sql/accept_endpoints.sql")).await?;
    let insert = change.prepare_cached(include_str!("../sql/accept_event.sql")).await?;
    let (event_type, body) = (event.event_type().as_str(), event.as_bytes());
    let plans = PLANS.as_slice();
    let of_event: [&(dyn ToSql + Sync); 5] = [&account, &id, &created_at, &event_type, &body];
    let of_endpoints: [&(dyn ToSql + Sync); 3] = [&account, &plans, &only];
    // One round trip for both.
    let (new, endpoints) = tokio::try_join!(
        change.execute(&insert, &of_event),
        change.query(&endpoints, &of_endpoints),
    )?;
    if new == 0 {
        return Ok(Accepted::Again);
    }
    let (mut pending, mut skipped) = (Rows::default(), Rows::default());
    let mut accepted = BTreeMap::new();
    for row in &endpoints {
        let delivery = Delivery::accept(event, &endpoint_of(row, "")?, now);
        let rows = if delivery.is_pending() { &mut pending } else { &mut skipped };
        let number: i32 = row.try_get("number")?;
        accepted.insert(number, delivery);
        rows.shards.push(row.try_get("shard")?);
        rows.endpoints.push(number);
        rows.columns.push(delivery.into());
    }
    let mut ids = Vec::new();
    for (sql, rows) in [
        (include_str!("../sql/accept_pending.sql"), pending),
        (include_str!("../sql/accept_skipped.sql"), skipped),
    ] {
        if rows.endpoints.is_empty() {
            continue;
        }
        let statement = change.prepare_cached(sql).await?;
        let [statuses, ats, attempts, manuals, generations, versions] = rows.columns.parameters();
        let stored = change
            .query(
                &statement,
                &[
                    &account,
                    &id,
                    &created_at,
                    &rows.shards,
                    &rows.endpoints,
                    statuses,
                    ats,
                    attempts,
                    manuals,
                    generations,
                    versions,
                ],
            )
            .await?;
        for row in stored {
            let endpoint: i32 = row.try_get(0)?;
            if let Some(delivery) = accepted.remove(&endpoint) {
                ids.push((endpoint, row.try_get(1)?, delivery));
            }
        }
    }
    Ok(Accepted::New(ids))
}

/// Deliveries to insert, as columns.
#[derive(Default)]
struct Rows {
    shards: Vec<i16>,
    endpoints: Vec<i32>,
    columns: Columns,
}
