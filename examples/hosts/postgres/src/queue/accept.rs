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

use crate::db::{At, DbError};
use crate::sql::accept::{self as sql, NewDeliveries, NewDelivery};
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
    Ok(sql::now(change).await?.started_at)
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
    // One round trip for both. Where both fail, the first is the cause.
    let (new, endpoints) = tokio::join!(
        sql::event(change, account, id, created_at, event_type, body, trace),
        sql::endpoints(change, account, &plans, only),
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
    for sql::Receiver { number: endpoint, shard, health } in endpoints {
        let delivery = Delivery::accept(event, &health, now);
        let columns = DeliveryColumns::from(delivery);
        let rows = if delivery.is_pending() { &mut pending } else { &mut skipped };
        rows.push(NewDelivery {
            shard,
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
    if !pending.endpoint.is_empty() {
        ids.extend(sql::pending(change, account, id, created_at, &pending).await?);
    }
    if !skipped.endpoint.is_empty() {
        ids.extend(sql::skipped(change, account, id, created_at, &skipped).await?);
    }
    let with_id = |(endpoint, id)| Some((endpoint, id, accepted.remove(&endpoint)?));
    Ok(Accepted::New(ids.into_iter().filter_map(with_id).collect()))
}

/// Has the COMMIT of a transaction that writes nothing wait for a standby, as any other does: also for
/// what was written before it.
///
/// # Errors
/// [`DbError`]
pub async fn wait_for_standby(change: &Transaction<'_>) -> Result<(), DbError> {
    sql::wait_for_standby(change).await.map(drop)
}
