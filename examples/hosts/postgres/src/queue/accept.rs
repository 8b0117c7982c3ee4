//! Accepting an event, in the transaction of the change that it reports.
//!
//! ```text
//! database.change(async |change| {
//!     let now = started_at(change).await?;
//!     let event = compose(now)?;
//!     change.execute("INSERT INTO calls ...", ...).await?;
//!     accept(change, &event, None, trace.as_ref(), now).await
//! }).await?;
//! ```
//!
//! Either both are stored or neither is. Where the change is stored elsewhere, an outbox relays it:
//! with `EventId::derived` and the change's own time as `created_at`, an event that is relayed twice
//! is accepted once.
//!
//! No process's clock decides the `created_at` of a call or an event: a sync that looks one minute back
//! would lose what a slow clock has written.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns};
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::db::statements as sql;
use crate::db::{At, DbError, Fields as _, columns, endpoint_of, execute, query, query_opt};
use host::store::plan::PLANS;
use host::trace::TraceParent;

/// The result of accepting an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, with these deliveries: the number of each one's endpoint, its own, and how it
    /// stands.
    New(Vec<(i32, i64, Delivery)>),
    /// It had been accepted before: nothing has changed.
    Again,
}

/// Returns the start of a transaction by the database's clock: `created_at` of the call and the event that
/// it writes.
///
/// # Errors
/// [`DbError`]
pub async fn started_at(change: &Transaction<'_>) -> Result<Timestamp, DbError> {
    let row = query_opt(change, sql::CLOCKS_NOW, &[]).await?;
    row.ok_or_else(|| DbError::row("a transaction without a start"))?.instant("started_at")
}

/// Accepts an event for each endpoint of its account, or for one of them. It is accepted when the
/// caller's transaction is committed.
///
/// `trace` is the caller's. It is stored, and stands in the log of the event's attempts; endpoints do not get it.
/// `now` is [`started_at`]. No endpoint is locked. An account whose plan has no webhooks gets no delivery.
///
/// # Errors
/// [`DbError`]. The caller's transaction has failed. For an account that was erased
/// ([`DbError::is_erased`]), it fails each time. If the one endpoint is none of those, the caller rolls back.
pub async fn accept(
    change: &Transaction<'_>,
    event: &EventBody,
    only: Option<i32>,
    trace: Option<&TraceParent>,
    now: Timestamp,
) -> Result<Accepted, DbError> {
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let created_at = At(event.created_at());
    let (event_type, body) = (event.event_type().as_str(), event.as_bytes());
    let with_webhooks = PLANS.iter().filter(|plan| plan.webhooks.check_webhooks().is_ok());
    let plans: Vec<&str> = with_webhooks.map(|plan| plan.name).collect();
    let trace = trace.map(TraceParent::as_str);
    let of_event: [&(dyn ToSql + Sync); 6] =
        [&account, &id, &created_at, &event_type, &body, &trace];
    let of_endpoints: [&(dyn ToSql + Sync); 3] = [&account, &plans, &only];
    // One round trip for both. Where both fail, the first is the cause.
    let (new, endpoints) = tokio::join!(
        execute(change, sql::ACCEPT_EVENT, &of_event),
        query(change, sql::ACCEPT_ENDPOINTS, &of_endpoints),
    );
    let (new, endpoints) = (new?, endpoints?);
    if only.is_some() && endpoints.is_empty() {
        return Err(DbError::row("the event's account has no such endpoint"));
    }
    if new == 0 {
        // It may be stored where a COMMIT was given up, and be at no standby yet.
        wait_for_standby(change).await?;
        return Ok(Accepted::Again);
    }
    let (mut pending, mut skipped) = (NewDeliveries::default(), NewDeliveries::default());
    let mut accepted = BTreeMap::new();
    for row in &endpoints {
        let delivery = Delivery::accept(event, &endpoint_of(row, "")?, now);
        let endpoint: i32 = row.field("number")?;
        let columns = DeliveryColumns::from(delivery);
        let rows = if delivery.is_pending() { &mut pending } else { &mut skipped };
        rows.push(NewDelivery {
            shard: row.field("shard")?,
            endpoint,
            status: columns.status.as_str(),
            at: At(columns.at),
            attempts: columns.attempts,
            manual: columns.manual,
            generation: columns.generation,
            version: columns.version,
        });
        accepted.insert(endpoint, delivery);
    }
    let mut ids = Vec::new();
    for (insert, rows) in [(sql::ACCEPT_PENDING, pending), (sql::ACCEPT_SKIPPED, skipped)] {
        if rows.endpoint.is_empty() {
            continue;
        }
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&account, &id, &created_at];
        parameters.extend(rows.parameters());
        for row in query(change, insert, &parameters).await? {
            let endpoint: i32 = row.field("endpoint")?;
            if let Some(delivery) = accepted.remove(&endpoint) {
                ids.push((endpoint, row.field("id")?, delivery));
            }
        }
    }
    Ok(Accepted::New(ids))
}

/// Has the COMMIT of a transaction that writes nothing wait for a standby, as any other does: also for
/// what was written before it.
///
/// # Errors
/// [`DbError`]
pub async fn wait_for_standby(change: &Transaction<'_>) -> Result<(), DbError> {
    query(change, sql::COMMIT_WAITS, &[]).await.map(drop)
}

columns! {
    /// Deliveries to insert.
    NewDeliveries of NewDelivery {
        shard: i16,
        endpoint: i32,
        status: &'static str,
        at: At,
        attempts: i16,
        manual: bool,
        generation: i32,
        version: i32,
    }
}
