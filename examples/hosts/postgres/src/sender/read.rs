//! Reads the rows that are needed to begin attempts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Alert, Delivery, EndpointHealth, EndpointUrl, SignedDestination,
};
use deadpool_postgres::Object;
use tokio::time::Instant;
use tokio_postgres::Row;
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
    pub(super) health: EndpointHealth,
    pub(super) opened: Arc<Opened>,
}

/// What is made of an endpoint's URL and sealed secrets.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) names: Arc<Names>,
    /// `None` where this sender may not call it.
    pub(super) destination: Option<Arc<SignedDestination>>,
    pub(super) signer: Signer,
    /// The columns that it was made of, besides the names.
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
    kept: Mutex<Kept>,
}

/// What was opened since an instant, by the numbers of endpoints.
#[derive(Debug)]
struct Kept {
    since: Instant,
    opened: HashMap<i32, Arc<Opened>>,
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

impl Reader {
    pub(super) fn new(database: Database, ring: KeyRing, allow_loopback: bool) -> Self {
        let kept = Kept { since: Instant::now(), opened: HashMap::new() };
        Self { database, ring, allow_loopback, kept: Mutex::new(kept) }
    }

    /// Reads deliveries and their endpoints, in one round trip.
    pub(super) async fn read(
        &self,
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
        let (rows, endpoints) = self.database.read(both).await?;
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
        let mut kept = self.kept();
        for row in &endpoints {
            let number = row.field("number")?;
            match self.receiver(number, row, &mut kept, now) {
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
        &self,
        number: i32,
        row: &Row,
        kept: &mut Kept,
        now: Timestamp,
    ) -> Result<Receiver, DbError> {
        let health = endpoint_of(row, "")?;
        let (id, account): (&str, &str) = (row.field("id")?, row.field("account_id")?);
        let (url, secrets): (&str, &[u8]) = (row.field("url")?, row.field("secrets")?);
        let allow_loopback = row.field("allow_loopback")?;
        let known = kept.opened.get(&number).filter(|known| {
            (known.names.endpoint.as_str(), known.names.account.as_str()) == (id, account)
                && (known.url.as_str(), known.secrets.as_slice()) == (url, secrets)
                && known.allow_loopback == allow_loopback
        });
        if let Some(known) = known {
            return Ok(Receiver { health, opened: Arc::clone(known) });
        }
        let parse = match self.allow_loopback && allow_loopback {
            true => EndpointUrl::parse_allowing_loopback,
            false => EndpointUrl::parse,
        };
        let signer = self.ring.open(id, secrets, now).map_err(DbError::row)?;
        let target = parse(url).ok();
        let destination =
            target.map(|it| Arc::new(SignedDestination::new(&health, it, signer.clone())));
        let names = Arc::new(Names { account: account.to_owned(), endpoint: id.to_owned() });
        let (url, secrets) = (url.to_owned(), secrets.to_vec());
        let opened = Opened { names, destination, signer, url, allow_loopback, secrets };
        let opened = Arc::new(opened);
        kept.opened.insert(number, Arc::clone(&opened));
        Ok(Receiver { health, opened })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.since.elapsed() > KEPT {
            *kept = Kept { since: Instant::now(), opened: HashMap::new() };
        }
        kept
    }
}
