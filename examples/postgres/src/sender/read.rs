//! Reads the rows that are needed to begin attempts.

use std::collections::HashMap;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, Destination, Endpoint, Target};
use deadpool_postgres::Object;
use tokio_postgres::types::ToSql;

use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, endpoint_of, query, span};
use crate::key_ring::KeyRing;
use host::log;

/// A pending delivery, and its event.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) endpoint: i32,
    pub(super) delivery: Delivery,
    pub(super) body: EventBody,
}

/// An endpoint, and where and how to send to it.
#[derive(Debug)]
pub(super) struct Receiver {
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
        match (delivery_of(row), body) {
            (Ok(delivery), Ok(body)) => {
                read.pending.insert(id, Pending { endpoint, delivery, body });
            }
            (Err(error), _) => log::line(&format!("delivery {id}: {error}")),
            (_, Err(error)) => log::line(&format!("the event of delivery {id}: {error}")),
        }
    }
    for row in &endpoints {
        let number = row.field("number")?;
        match receiver(row, ring, allow_loopback, now) {
            Ok(receiver) => {
                read.receivers.insert(number, receiver);
            }
            Err(error) => log::line(&format!("endpoint {number}: {error}")),
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
    Ok(Receiver { health, destination, signer })
}
