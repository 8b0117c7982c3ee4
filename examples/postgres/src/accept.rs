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

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns};
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::db::{At, DbError, endpoint_of};

/// The plans that have webhooks, as the column `accounts.plan` has them.
const PLANS: [&str; 2] = ["pro", "business"];

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, with these deliveries: the number of each one's endpoint, and its own.
    New(Vec<(i32, i64)>),
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
    for row in &endpoints {
        let delivery = Delivery::accept(event, &endpoint_of(row, "")?, now);
        let rows = if delivery.is_pending() { &mut pending } else { &mut skipped };
        rows.push(row.try_get("shard")?, row.try_get("number")?, delivery.into());
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
        let stored = change
            .query(
                &statement,
                &[
                    &account,
                    &id,
                    &created_at,
                    &rows.shards,
                    &rows.endpoints,
                    &rows.statuses,
                    &rows.ats,
                    &rows.attempts,
                    &rows.manuals,
                    &rows.generations,
                    &rows.versions,
                ],
            )
            .await?;
        for row in stored {
            ids.push((row.try_get(0)?, row.try_get(1)?));
        }
    }
    Ok(Accepted::New(ids))
}

/// Deliveries as columns.
#[derive(Default)]
struct Rows {
    shards: Vec<i16>,
    endpoints: Vec<i32>,
    statuses: Vec<&'static str>,
    ats: Vec<At>,
    attempts: Vec<i16>,
    manuals: Vec<bool>,
    generations: Vec<i32>,
    versions: Vec<i32>,
}

impl Rows {
    fn push(&mut self, shard: i16, endpoint: i32, columns: DeliveryColumns) {
        self.shards.push(shard);
        self.endpoints.push(endpoint);
        self.statuses.push(columns.status.as_str());
        self.ats.push(At(columns.at));
        self.attempts.push(columns.attempts);
        self.manuals.push(columns.manual);
        self.generations.push(columns.generation);
        self.versions.push(columns.version);
    }
}
