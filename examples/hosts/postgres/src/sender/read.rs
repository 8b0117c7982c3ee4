//! Reads the rows that are needed to begin attempts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{EndpointHealth, EndpointUrl, SignedDestination};
use deadpool_postgres::Object;
use tokio::time::Instant;

use crate::db::{Database, DbError, span};
use crate::health::{Counted, Kind};
use crate::key_ring::KeyRing;
use crate::queue;
use crate::sql::sender as sql;
use host::rows::{Key, Names, Opened, ToBegin};
use host::{lock, log};

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
    pub(super) database: Database,
    pub(super) ring: KeyRing,
    pub(super) allow_loopback: bool,
    pub(super) counted: Counted,
    pub(super) kept: Mutex<Kept>,
}

/// What was opened since an instant, by the numbers of endpoints.
#[derive(Debug, Default)]
pub(super) struct Kept {
    since: Option<Instant>,
    opened: HashMap<i32, Known>,
}

impl Reader {
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
        let both = async |client: &Object| {
            tokio::try_join!(
                sql::deliveries(client, &ids, first, last),
                sql::endpoints(client, &numbers),
            )
        };
        let (rows, endpoints) = self.database.read(both).await?;
        let mut receivers = BTreeMap::new();
        let mut kept = self.kept();
        for row in endpoints {
            match self.receiver(&row, &mut kept, now) {
                Ok(receiver) => _ = receivers.insert(row.number, receiver),
                Err(error) => {
                    // What waits for a key is counted apart: the row is as it should be.
                    if !self.counted.lacks_key_of(&row.secrets) {
                        self.counted.cannot_read(Kind::Endpoint, row.number.into(), now);
                    }
                    log::warn!(endpoint = row.id, %error, "an endpoint cannot be read");
                }
            }
        }
        drop(kept);
        let mut found = BTreeMap::new();
        for sql::ToSend { id, endpoint, body, traceparent, delivery } in rows {
            // Erased: there is nothing to send any more.
            let Some(body) = body else { continue };
            let name = queue::delivery_text(endpoint, id);
            match delivery.and_then(|delivery| Ok((delivery, body?))) {
                Ok((delivery, body)) => {
                    found.insert(id.cast_unsigned(), (delivery, body, name, traceparent));
                }
                Err(error) => {
                    self.counted.cannot_read(Kind::Delivery, id, now);
                    log::warn!(delivery = name, %error, "a delivery or its event cannot be read");
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
        row: &sql::Receiver,
        kept: &mut Kept,
        now: Timestamp,
    ) -> Result<(EndpointHealth, Arc<Opened>), DbError> {
        let sql::Receiver { number, id, account_id, url, allow_loopback, secrets, health } = row;
        let health = *health.as_ref().map_err(DbError::row)?;
        let known = kept.opened.get(number).filter(|known| {
            let names = &known.opened.names;
            (&names.endpoint, &names.account) == (id, account_id)
                && (&known.url, &known.secrets) == (url, secrets)
                && known.allow_loopback == *allow_loopback
        });
        if let Some(known) = known {
            return Ok((health, Arc::clone(&known.opened)));
        }
        let parse = match self.allow_loopback && *allow_loopback {
            true => EndpointUrl::parse_allowing_loopback,
            false => EndpointUrl::parse,
        };
        let signer = self.ring.open(id, secrets, now).map_err(DbError::row)?;
        let target = parse(url).ok();
        let destination = target.map(|it| SignedDestination::new(&health, it, signer.clone()));
        let shard = queue::shard_of(id).cast_unsigned();
        let names = Names { account: account_id.clone(), endpoint: id.clone(), shard };
        let opened = Arc::new(Opened { names, destination, signer });
        let (url, secrets) = (url.clone(), secrets.clone());
        let allow_loopback = *allow_loopback;
        let known = Known { opened: Arc::clone(&opened), url, allow_loopback, secrets };
        kept.opened.insert(*number, known);
        Ok((health, opened))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = lock(&self.kept);
        if kept.since.is_none_or(|since| since.elapsed() > KEPT) {
            *kept = Kept { since: Some(Instant::now()), opened: HashMap::new() };
        }
        kept
    }
}
