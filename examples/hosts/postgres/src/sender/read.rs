//! Reads the rows that are needed to begin attempts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{EndpointHealth, EndpointUrl, SignedDestination};
use deadpool_postgres::Object;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::counted::{Counted, Kind};
use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, delivery_of, endpoint_of, query, span};
use crate::key_ring::KeyRing;
use crate::queue;
use host::log;
use host::rows::{Key, Names, Opened, ToBegin};

/// What is kept of an endpoint that was opened, and the columns that it was made of besides the names.
#[derive(Debug)]
struct Known {
    opened: Arc<Opened>,
    url: String,
    allow_loopback: bool,
    secrets: Vec<u8>,
}

/// How long something that was opened is kept: 60 s. Each row is read again for each batch, and where one of
/// its columns differs, it is opened again.
const KEPT: Duration = Duration::from_secs(60);

/// The reader of what is needed to begin attempts.
#[derive(Debug)]
pub(super) struct Reader {
    database: Database,
    ring: KeyRing,
    allow_loopback: bool,
    pub(super) counted: Counted,
    kept: Mutex<Kept>,
}

/// What was opened since an instant, by the numbers of endpoints.
#[derive(Debug)]
struct Kept {
    since: Instant,
    opened: HashMap<i32, Known>,
}

impl Reader {
    pub(super) fn new(
        database: Database,
        ring: KeyRing,
        allow_loopback: bool,
        counted: Counted,
    ) -> Self {
        let kept = Kept { since: Instant::now(), opened: HashMap::new() };
        Self { database, ring, allow_loopback, counted, kept: Mutex::new(kept) }
    }

    /// Reads deliveries and their endpoints, in one round trip.
    pub(super) async fn read(
        &self,
        keys: &[Key],
        now: Timestamp,
    ) -> Result<Vec<Option<ToBegin>>, DbError> {
        let (first, last) = span(keys.iter().map(|key| key.event_created_at));
        let ids: Vec<i64> = keys.iter().map(|key| key.delivery.cast_signed()).collect();
        let mut numbers: Vec<i32> = keys.iter().map(|key| key.endpoint.cast_signed()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of_deliveries: [&(dyn ToSql + Sync); 3] = [&ids, &first, &last];
        let of_endpoints: [&(dyn ToSql + Sync); 1] = [&numbers];
        let both = async |client: &Object| {
            tokio::try_join!(
                query(client, sql::SENDER_DELIVERIES, &of_deliveries),
                query(client, sql::SENDER_ENDPOINTS, &of_endpoints),
            )
        };
        let (rows, endpoints) = self.database.read(both).await?;
        let mut receivers = BTreeMap::new();
        let mut kept = self.kept();
        for row in &endpoints {
            let number = row.field("number")?;
            match self.receiver(number, row, &mut kept, now) {
                Ok(receiver) => _ = receivers.insert(number, receiver),
                Err(error) => {
                    // What waits for a key is counted apart: the row is as it should be.
                    if !self.counted.lacks_key_of(row.field("secrets")?) {
                        self.counted.cannot_read(Kind::Endpoint, number.into());
                    }
                    log::warn("an endpoint cannot be read")
                        .with("endpoint", row.field::<&str>("id")?)
                        .because(&error)
                        .write();
                }
            }
        }
        drop(kept);
        let mut found = BTreeMap::new();
        for row in &rows {
            let (id, endpoint): (i64, i32) = (row.field("id")?, row.field("endpoint")?);
            // Erased: there is nothing to send any more.
            let Some(body) = row.field::<Option<&[u8]>>("body")? else { continue };
            let name = queue::delivery_text(endpoint, id);
            let body = EventBody::from_stored(body).map_err(DbError::row);
            let read = delivery_of(row).and_then(|delivery| Ok((delivery, body?)));
            match read {
                Ok((delivery, body)) => {
                    let traceparent: Option<String> = row.field("traceparent")?;
                    found.insert(id.cast_unsigned(), (delivery, body, name, traceparent));
                }
                Err(error) => {
                    self.counted.cannot_read(Kind::Delivery, id);
                    log::warn("a delivery or its event cannot be read")
                        .with("delivery", name)
                        .because(&error)
                        .write();
                }
            }
        }
        let to_begin = keys.iter().map(|key| {
            // Of the endpoint that was planned: the row may be another's, of the same number.
            let (health, opened) = receivers.get(&key.endpoint.cast_signed())?;
            let (delivery, body, name, traceparent) = found.remove(&key.delivery)?;
            let (health, opened) = (*health, Arc::clone(opened));
            Some(ToBegin { delivery, name, health, opened, body, traceparent })
        });
        Ok(to_begin.collect())
    }

    fn receiver(
        &self,
        number: i32,
        row: &Row,
        kept: &mut Kept,
        now: Timestamp,
    ) -> Result<(EndpointHealth, Arc<Opened>), DbError> {
        let health = endpoint_of(row, "")?;
        let (id, account): (&str, &str) = (row.field("id")?, row.field("account_id")?);
        let (url, secrets): (&str, &[u8]) = (row.field("url")?, row.field("secrets")?);
        let allow_loopback = row.field("allow_loopback")?;
        let known = kept.opened.get(&number).filter(|known| {
            let names = &known.opened.names;
            (names.endpoint.as_str(), names.account.as_str()) == (id, account)
                && (known.url.as_str(), known.secrets.as_slice()) == (url, secrets)
                && known.allow_loopback == allow_loopback
        });
        if let Some(known) = known {
            return Ok((health, Arc::clone(&known.opened)));
        }
        let parse = match self.allow_loopback && allow_loopback {
            true => EndpointUrl::parse_allowing_loopback,
            false => EndpointUrl::parse,
        };
        let signer = self.ring.open(id, secrets, now).map_err(DbError::row)?;
        let target = parse(url).ok();
        let destination = target.map(|it| SignedDestination::new(&health, it, signer.clone()));
        let shard = queue::shard_of(id).cast_unsigned();
        let names = Names { account: account.to_owned(), endpoint: id.to_owned(), shard };
        let opened = Arc::new(Opened { names, destination, signer });
        let (url, secrets) = (url.to_owned(), secrets.to_vec());
        let known = Known { opened: Arc::clone(&opened), url, allow_loopback, secrets };
        kept.opened.insert(number, known);
        Ok((health, opened))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.since.elapsed() > KEPT {
            *kept = Kept { since: Instant::now(), opened: HashMap::new() };
        }
        kept
    }
}
