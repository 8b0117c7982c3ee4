//! Stores the outcomes of attempts, many at once.
//!
//! An attempt was begun in memory, and the store still has the row as it was read. So the usual case
//! locks nothing: endpoints are read after the attempts have ended, none of them changes, and each
//! delivery is written under the version that was read. Where an endpoint changes, or somebody else
//! was first, rows are locked and read again, deliveries before endpoints, each by number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DeliveryColumns, EndedAttempt, EndpointHealth, RetrySchedule, SenderMetrics,
    Settled,
};
use deadpool_postgres::Transaction;
use tokio::sync::{Semaphore, mpsc};

use super::read::Names;
use super::{Message, attempt_log};
use crate::clock::database as clock;
use crate::counted::Counted;
use crate::db::{Database, DbError, StepError};
use crate::queue::{self, Key, Locked, Table};
use host::log;
use host::post::Sent;
use host::sending::postpone;
use host::signed::Signed;
use host::watch::Watch;

/// An attempt that has ended.
#[derive(Debug)]
pub(super) struct SentAttempt {
    pub(super) key: Key,
    pub(super) names: Arc<Names>,
    /// The delivery as it was begun in memory.
    pub(super) row: Delivery,
    pub(super) attempt: Attempt,
    pub(super) at: Timestamp,
    /// Its outcome.
    pub(super) sent: Sent,
}

/// The result of storing an attempt.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) key: Key,
    /// When the next attempt is due, if there is one.
    pub(super) again: Option<Timestamp>,
}

/// The most attempts in a batch, and how long the first waits for others.
const BATCH: usize = 128;
const GATHER: Duration = Duration::from_millis(5);

/// The most transactions at a time: while one waits for the disk, another runs.
const AT_ONCE: usize = 3;

/// How long to wait before the next try, at least and at most.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_AT_MOST: Duration = Duration::from_secs(1);

/// The task that collects results and stores them.
pub(super) struct Settler {
    pub(super) database: Database,
    pub(super) schedule: RetrySchedule,
    pub(super) counted: Counted,
    pub(super) ended: mpsc::UnboundedReceiver<SentAttempt>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
    pub(super) watch: Watch,
}

impl Settler {
    /// Stores results until the last sender of results is dropped.
    pub(super) async fn run(mut self) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let mut batch = Vec::new();
            if self.ended.recv_many(&mut batch, BATCH).await == 0 {
                // The last batches end before this does.
                let _ = room.acquire_many(u32::try_from(AT_ONCE).unwrap_or(1)).await;
                return;
            }
            if batch.len() < BATCH {
                let more = tokio::time::sleep(GATHER);
                tokio::pin!(more);
                while batch.len() < BATCH {
                    let left = BATCH.saturating_sub(batch.len());
                    tokio::select! {
                        biased;
                        n = self.ended.recv_many(&mut batch, left) => if n == 0 { break },
                        () = &mut more => break,
                    }
                }
            }
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (database, schedule) = (self.database.clone(), self.schedule);
            let (messages, counted) = (self.messages.clone(), self.counted.clone());
            let storing = async move {
                let settled = store(&database, schedule, batch, &messages, &counted).await;
                counted.count(|tally| tally.settled(&settled));
                drop(permit);
            };
            tokio::spawn(self.watch.without_panic("storing of attempts", storing));
        }
    }
}

/// Stores a batch, with any number of tries: a result is kept while this process lives.
async fn store(
    database: &Database,
    schedule: RetrySchedule,
    batch: Vec<SentAttempt>,
    messages: &mpsc::UnboundedSender<Message>,
    counted: &Counted,
) -> Settled<i64, i32> {
    let mut how = How::Quick;
    let mut wait = RETRY;
    let settled = loop {
        match database.change(async |change| try_store(change, schedule, &batch, how).await).await {
            Ok(settled) => break settled,
            Err(NotStored::Outdated) => {
                counted.count(SenderMetrics::lost_write);
                if how == How::Sure {
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2).min(RETRY_AT_MOST);
                }
            }
            Err(NotStored::Db(error)) => {
                log::failed("attempts are not stored", &error);
                tokio::time::sleep(wait).await;
                wait = wait.saturating_mul(2).min(RETRY_AT_MOST);
            }
        }
        // Somebody was first, or a COMMIT that was not answered may have been done: read again, and do
        // not assume anything.
        how = How::Sure;
    };
    log::succeeded("attempts are not stored");
    for (endpoint, alert) in &settled.alerts {
        let of = batch.iter().find(|ended| ended.key.endpoint == *endpoint);
        if let Some(ended) = of {
            ended.names.told(alert).write();
        }
    }
    if !settled.disabled.is_empty() {
        let (database, endpoints) = (database.clone(), settled.endpoints.clone());
        tokio::spawn(async move {
            if let Err(error) = queue::count_missed(&database, &endpoints, clock::now()).await {
                log::warn("counting what was missed").because(&error).write();
            }
        });
    }
    let disabled = settled.disabled.iter().map(|(endpoint, _)| *endpoint).collect();
    let mut again: BTreeMap<i64, Timestamp> =
        settled.again.iter().map(|(id, _, due)| (*id, *due)).collect();
    let stored = batch
        .iter()
        .map(|ended| Stored { key: ended.key, again: again.remove(&ended.key.id) })
        .collect();
    let _ = messages.send(Message::Stored { stored, disabled });
    settled
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// With the rows in memory. Nothing is locked, so no endpoint may change.
    Quick,
    /// With the rows as they are stored.
    Sure,
}

/// The reason why a batch is not stored.
#[derive(Debug)]
enum NotStored {
    /// A stored row was not the one that was read.
    Outdated,
    /// The database did not respond.
    Db(DbError),
}

impl From<DbError> for NotStored {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

impl StepError for NotStored {
    fn is_unanswered(&self) -> bool {
        matches!(self, Self::Db(error) if error.is_unanswered())
    }
}

/// Settles a batch and writes all of it, in one transaction.
async fn try_store(
    change: &Transaction<'_>,
    schedule: RetrySchedule,
    batch: &[SentAttempt],
    how: How,
) -> Result<Settled<i64, i32>, NotStored> {
    let mut numbers: Vec<i32> = batch.iter().map(|ended| ended.key.endpoint).collect();
    numbers.sort_unstable();
    numbers.dedup();

    let mut rows = match how {
        How::Quick => in_memory(batch),
        How::Sure => as_stored(change, batch).await?,
    };
    let mut endpoints = queue::read_endpoints(change, &numbers).await?;
    let mut settled = settle_rows(batch, schedule, &rows, &endpoints);
    if !settled.endpoints.is_empty() {
        if how == How::Quick {
            rows = as_stored(change, batch).await?;
        }
        let changing: Vec<i32> = settled.endpoints.iter().map(|(number, _)| *number).collect();
        endpoints.extend(queue::lock_endpoints(change, &changing).await?);
        settled = settle_rows(batch, schedule, &rows, &endpoints);
    }

    let signed: BTreeMap<i64, &Signed> = batch
        .iter()
        .filter_map(|ended| Some((ended.key.id, ended.sent.signed.as_ref()?)))
        .collect();
    let log: Vec<_> =
        settled.log.iter().map(|(id, entry)| (*id, entry, signed.get(id).copied())).collect();
    let keys: BTreeMap<i64, Key> = batch.iter().map(|ended| (ended.key.id, ended.key)).collect();
    let writes = settled
        .deliveries
        .iter()
        .filter_map(|(id, row)| Some((*keys.get(id)?, rows.get(id)?.table, *row)));
    let (of_deliveries, of_endpoints, ()) = tokio::try_join!(
        queue::write(change, writes.collect::<Vec<_>>()),
        queue::write_endpoints(change, &settled.endpoints),
        attempt_log::write(change, &log, &keys, how == How::Sure),
    )?;
    if !(of_deliveries && of_endpoints) {
        return Err(NotStored::Outdated);
    }
    queue::store_alerts(change, &settled.alerts, &settled.endpoints, clock::now()).await?;
    Ok(settled)
}

fn in_memory(batch: &[SentAttempt]) -> BTreeMap<i64, Locked> {
    let row =
        |ended: &SentAttempt| (ended.key.id, Locked { table: Table::Pending, row: ended.row });
    batch.iter().map(row).collect()
}

/// Locks the stored rows. Where one still is as it was when the attempt began, the attempt stands
/// as it was begun in memory.
async fn as_stored(
    change: &Transaction<'_>,
    batch: &[SentAttempt],
) -> Result<BTreeMap<i64, Locked>, DbError> {
    let keys: Vec<Key> = batch.iter().map(|ended| ended.key).collect();
    let mut rows = queue::lock(change, &keys).await?;
    for ended in batch {
        if let Some(stored) = rows.get_mut(&ended.key.id)
            && ended.row.if_version() == Some(DeliveryColumns::from(stored.row).version)
        {
            stored.row = ended.row;
        }
    }
    Ok(rows)
}

fn settle_rows(
    batch: &[SentAttempt],
    schedule: RetrySchedule,
    rows: &BTreeMap<i64, Locked>,
    endpoints: &BTreeMap<i32, EndpointHealth>,
) -> Settled<i64, i32> {
    let ended: Vec<EndedAttempt<'_, i64, i32>> = batch
        .iter()
        .map(|ended| EndedAttempt {
            delivery: ended.key.id,
            endpoint: ended.key.endpoint,
            attempt: ended.attempt,
            outcome: ended.sent.outcome,
            at: ended.at,
            response: ended.sent.body.as_deref(),
        })
        .collect();
    let rows = rows.iter().map(|(id, locked)| (*id, locked.row)).collect();
    let mut settled = schedule.settle(&ended, &rows, endpoints);
    postpone(&mut settled);
    let sent: BTreeMap<i64, &Sent> =
        batch.iter().map(|ended| (ended.key.id, &ended.sent)).collect();
    for (id, entry) in &mut settled.log {
        sent.get(id).inspect(|sent| sent.describe(entry));
    }
    settled
}
