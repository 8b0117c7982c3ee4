//! Reads the rows that are needed to begin attempts.

use std::collections::HashMap;
use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Alert, Delivery, Destination, Endpoint, Target};
use deadpool_postgres::Object;
use tokio_postgres::types::ToSql;

use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, endpoint_of, query, span};
use crate::key_ring::KeyRing;
use crate::queue;
use host::log;

/// A pending delivery, and its event.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) endpoint: i32,
    pub(super) delivery: Delivery,
    pub(super) body: EventBody,
    pub(super) traceparent: Option<String>,
}

/// The ids of an endpoint and of its account, for lines of the log.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) account: String,
    pub(super) endpoint: String,
}

impl Names {
    /// Returns the line of the log for what an owner is told.
    pub(super) fn told(&self, alert: &Alert) -> log::Line {
        log::warn("the owner of an endpoint is told")
            .with("account", self.account.as_str())
            .with("endpoint", self.endpoint.as_str())
            .with("alert", alert.kind())
            .with("text", alert.to_string())
    }
}

/// An endpoint, and where and how to send to it.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) names: Arc<Names>,
    pub(super) health: Endpoint,
    /// `None` where this sender may not call it.
    pub(super) destination: Option<Destination>,
    pub(super) signer: Signer,
}

/// What it takes to begin. What is not in it is not pending any more, or not for this version.
#[derive(Debug, Default)]
pub(super) struct ToBegin {
    pub(super) pending: HashMap<i64, Pending>,
    pub(super) receivers: HashMap<i32, Receiver>,
}

/// The deliveries that the planner has handed out, to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned<'a> {
    pub(super) ids: &'a [i64],
    /// `created_at` of the events of these deliveries.
    pub(super) created: &'a [Timestamp],
    pub(super) endpoints: &'a [i32],
}

/// Reads deliveries and their endpoints, in one round trip.
pub(super) async fn read(
    database: &Database,
    ring: &KeyRing,
    allow_loopback: bool,
    planned: Planned<'_>,
    now: Timestamp,
) -> Result<ToBegin, DbError> {
    let (first, last) = span(planned.created.iter().copied());
    let ids: [&(dyn ToSql + Sync); 3] = [&planned.ids, &first, &last];
    let endpoints: [&(dyn ToSql + Sync); 1] = [&planned.endpoints];
    let both = async |client: &Object| {
        tokio::try_join!(
            query(client, sql::SENDER_DELIVERIES, &ids),
            query(client, sql::SENDER_ENDPOINTS, &endpoints),
        )
    };
    let (rows, endpoints) = database.read(both).await?;
    let mut read = ToBegin::default();
    for row in &rows {
        let id: i64 = row.field("id")?;
        // Erased: there is nothing to send any more.
        let Some(body) = row.field::<Option<&[u8]>>("body")? else { continue };
        let body = EventBody::from_stored(body);
        let endpoint = row.field("endpoint")?;
        let name = || queue::delivery_text(endpoint, id);
        match (delivery_of(row), body) {
            (Ok(delivery), Ok(body)) => {
                let traceparent = row.field("traceparent")?;
                read.pending.insert(id, Pending { endpoint, delivery, body, traceparent });
            }
            (Err(error), _) => log::warn("a delivery cannot be read")
                .with("delivery", name())
                .because(&error)
                .write(),
            (_, Err(error)) => log::warn("an event cannot be read")
                .with("delivery", name())
                .because(&error)
                .write(),
        }
    }
    for row in &endpoints {
        let number = row.field("number")?;
        match receiver(row, ring, allow_loopback, now) {
            Ok(receiver) => {
                read.receivers.insert(number, receiver);
            }
            Err(error) => log::warn("an endpoint cannot be read")
                .with("endpoint", row.field::<&str>("id")?)
                .because(&error)
                .write(),
        }
    }
    Ok(read)
}

fn receiver(
    row: &tokio_postgres::Row,
    ring: &KeyRing,
    allow_loopback: bool,
    now: Timestamp,
) -> Result<Receiver, DbError> {
    let parse = match allow_loopback && row.field("allow_loopback")? {
        true => Target::parse_allowing_loopback,
        false => Target::parse,
    };
    let health = endpoint_of(row, "")?;
    let signer = ring.open(row.field("id")?, row.field("secrets")?, now).map_err(DbError::row)?;
    let target = parse(row.field("url")?).ok();
    let destination = target.map(|target| Destination::new(&health, target, signer.clone()));
    let (account, endpoint) = (row.field("account_id")?, row.field("id")?);
    let names = Arc::new(Names { account, endpoint });
    Ok(Receiver { names, health, destination, signer })
}
