//! Step 2, in memory: reads what it takes to begin, as it is now.

use std::collections::HashMap;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, Endpoint, EndpointSecrets, Target};
use tokio_postgres::types::ToSql;

use crate::db::{Database, DbError, delivery_of, endpoint_of, span};
use crate::key_ring::KeyRing;
use crate::support::log;

/// A pending delivery, and its event.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) delivery: Delivery,
    pub(super) body: EventBody,
}

/// An endpoint, and where and how to send to it.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) health: Endpoint,
    /// `None` where this sender may not call it.
    pub(super) target: Option<Target>,
    pub(super) secrets: EndpointSecrets,
}

/// What was read. What is not in it is not pending any more, or not for this version.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) pending: HashMap<i64, Pending>,
    pub(super) receivers: HashMap<i32, Receiver>,
}

/// What to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
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
    asked: Asked<'_>,
    now: Timestamp,
) -> Result<Read, DbError> {
    let session = database.session().await?;
    let of_ids = session.prepare_cached(include_str!("../../sql/sender_read.sql")).await?;
    let of_endpoints = session.prepare_cached(include_str!("../../sql/endpoint_read.sql")).await?;
    let (first, last) = span(asked.created.iter().copied());
    let ids: [&(dyn ToSql + Sync); 3] = [&asked.ids, &first, &last];
    let endpoints: [&(dyn ToSql + Sync); 1] = [&asked.endpoints];
    let (rows, endpoints) =
        tokio::try_join!(session.query(&of_ids, &ids), session.query(&of_endpoints, &endpoints),)?;
    session.keep();
    let mut read = Read::default();
    for row in &rows {
        let id: i64 = row.try_get("id")?;
        // Erased: there is nothing to send any more.
        let Some(body) = row.try_get::<_, Option<&[u8]>>("body")? else { continue };
        let body = EventBody::from_stored(body);
        match (delivery_of(row), body) {
            (Ok(delivery), Ok(body)) => {
                read.pending.insert(id, Pending { delivery, body });
            }
            (Err(error), _) => log::line(&format!("delivery {id}: {error}")),
            (_, Err(error)) => log::line(&format!("the event of delivery {id}: {error}")),
        }
    }
    for row in &endpoints {
        let number = row.try_get("number")?;
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
    let parse = match allow_loopback && row.try_get("allow_loopback")? {
        true => Target::parse_allowing_loopback,
        false => Target::parse,
    };
    Ok(Receiver {
        health: endpoint_of(row, "")?,
        target: parse(row.try_get("url")?).ok(),
        secrets: ring
            .open(row.try_get("id")?, row.try_get("secrets")?, now)
            .map_err(DbError::row)?,
    })
}
