//! Step 4: stores what came of attempts, many at once.
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
    Attempt, Delivery, DeliveryColumns, Ended, Endpoint, Excerpt, FailureReason, LogEntry, Outcome,
    Row, Settled, Tally, settle,
};
use deadpool_postgres::Transaction;
use tokio::sync::{Semaphore, mpsc};

use super::{Counted, Message};
use crate::alerts;
use crate::db::{At, Database, DbError, span, within};
use crate::deliveries::{self, Key, Locked, Table};
use crate::host::post::Sent;
use crate::host::scale::Scale;
use crate::support::{clock, log};

/// An attempt that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) key: Key,
    /// The delivery as it was begun in memory.
    pub(super) row: Row<Delivery>,
    pub(super) attempt: Attempt,
    pub(super) at: Timestamp,
    /// What came of it.
    pub(super) sent: Sent,
}

/// What is known once an attempt is stored.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) key: Key,
    /// When the next attempt is due, if there is one.
    pub(super) again: Option<Timestamp>,
}

/// So many at once at most, and how long the first of them waits for others.
const BATCH: usize = 128;
const GATHER: Duration = Duration::from_millis(5);

/// So many transactions at a time: while one waits for the disk, another is under way.
const AT_ONCE: usize = 3;

/// How long to wait before the next try, at least and at most.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_AT_MOST: Duration = Duration::from_secs(1);

/// The task that gathers and stores.
pub(super) struct Settler {
    pub(super) database: Database,
    pub(super) scale: Scale,
    pub(super) counted: Counted,
    pub(super) done: mpsc::UnboundedReceiver<Done>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
}

impl Settler {
    /// Stores until nobody is left who could hand in anything.
    pub(super) async fn run(mut self) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let mut batch = Vec::new();
            if self.done.recv_many(&mut batch, BATCH).await == 0 {
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
                        n = self.done.recv_many(&mut batch, left) => if n == 0 { break },
                        () = &mut more => break,
                    }
                }
            }
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (database, scale) = (self.database.clone(), self.scale);
            let (messages, counted) = (self.messages.clone(), self.counted.clone());
            tokio::spawn(async move {
                let settled = store(&database, scale, batch, &messages, &counted).await;
                counted.count(|tally| tally.settled(&settled));
                drop(permit);
            });
        }
    }
}

/// Stores a batch, however often it takes: what was sent is not forgotten while this process lives.
async fn store(
    database: &Database,
    scale: Scale,
    batch: Vec<Done>,
    messages: &mpsc::UnboundedSender<Message>,
    counted: &Counted,
) -> Settled<i64, i32> {
    let mut how = How::Quick;
    let mut wait = RETRY;
    let settled = loop {
        match within(try_store(database, scale, &batch, how)).await {
            Ok(Some(settled)) => break settled,
            // Somebody was first: read again, and do not assume anything.
            Ok(None) => {
                counted.count(Tally::lost_write);
                how = How::Sure;
            }
            Err(error) => {
                log::line(&format!("storing {} attempts: {error}", batch.len()));
                // A COMMIT that was not answered may have been done.
                how = How::Sure;
                tokio::time::sleep(wait).await;
                wait = wait.saturating_mul(2).min(RETRY_AT_MOST);
            }
        }
    };
    for (endpoint, alert) in &settled.alerts {
        log::line(&format!("endpoint {endpoint}: {alert}"));
    }
    if !settled.disabled.is_empty() {
        let (database, endpoints) = (database.clone(), settled.endpoints.clone());
        tokio::spawn(async move {
            if let Err(error) = alerts::count_missed(&database, &endpoints, clock::now()).await {
                log::line(&format!("counting what was missed: {error}"));
            }
        });
    }
    let disabled = settled.disabled.iter().map(|(endpoint, _)| *endpoint).collect();
    let mut again: BTreeMap<i64, Timestamp> =
        settled.again.iter().map(|(id, _, due)| (*id, *due)).collect();
    let stored = batch
        .iter()
        .map(|done| {
            // Whatever we are short of will not be there at once.
            let least = match done.sent.outcome {
                Outcome::Unsent => done.at.saturating_add(UNSENT),
                _ => Timestamp::MIN,
            };
            let again = again.remove(&done.key.id).map(|at| at.max(least));
            Stored { key: done.key, again }
        })
        .collect();
    let _ = messages.send(Message::Stored { stored, disabled });
    settled
}

/// How long to wait after an attempt that could not be made.
const UNSENT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// With the rows in memory. Nothing is locked, so no endpoint may change.
    Quick,
    /// With the rows as they are stored.
    Sure,
}

/// One transaction. `None` if a stored row was not the one that was read: nothing is stored.
async fn try_store(
    database: &Database,
    scale: Scale,
    batch: &[Done],
    how: How,
) -> Result<Option<Settled<i64, i32>>, DbError> {
    let mut session = database.session().await?;
    let change = session.transaction().await?;
    let mut numbers: Vec<i32> = batch.iter().map(|done| done.key.endpoint).collect();
    numbers.sort_unstable();
    numbers.dedup();

    let mut rows = match how {
        How::Quick => in_memory(batch),
        How::Sure => as_stored(&change, batch).await?,
    };
    let mut endpoints = deliveries::endpoints(&change, &numbers, false).await?;
    let mut settled = settle_rows(batch, scale, &rows, &endpoints);
    if !settled.endpoints.is_empty() {
        if how == How::Quick {
            rows = as_stored(&change, batch).await?;
        }
        let changing: Vec<i32> = settled.endpoints.iter().map(|(number, _)| *number).collect();
        endpoints.extend(deliveries::endpoints(&change, &changing, true).await?);
        settled = settle_rows(batch, scale, &rows, &endpoints);
    }

    let keys: BTreeMap<i64, Key> = batch.iter().map(|done| (done.key.id, done.key)).collect();
    let writes = settled
        .deliveries
        .iter()
        .filter_map(|(id, write)| Some((*keys.get(id)?, rows.get(id)?.table, *write)));
    let (of_deliveries, of_endpoints, ()) = tokio::try_join!(
        deliveries::write(&change, writes.collect::<Vec<_>>()),
        deliveries::write_endpoints(&change, &settled.endpoints),
        write_log(&change, &settled.log, &keys, how == How::Sure),
    )?;
    if !(of_deliveries && of_endpoints) {
        change.rollback().await?;
        session.keep();
        return Ok(None);
    }
    alerts::store(&change, &settled.alerts, &settled.endpoints, clock::now()).await?;
    change.commit().await?;
    session.keep();
    Ok(Some(settled))
}

fn in_memory(batch: &[Done]) -> BTreeMap<i64, Locked> {
    let row = |done: &Done| (done.key.id, Locked { table: Table::Pending, row: done.row });
    batch.iter().map(row).collect()
}

/// The stored rows, locked. Where one still is as it was when the attempt began, the attempt stands
/// as it was begun in memory.
async fn as_stored(
    change: &Transaction<'_>,
    batch: &[Done],
) -> Result<BTreeMap<i64, Locked>, DbError> {
    let keys: Vec<Key> = batch.iter().map(|done| done.key).collect();
    let mut rows = deliveries::lock(change, &keys).await?;
    for done in batch {
        if let Some(stored) = rows.get_mut(&done.key.id)
            && done
                .row
                .write()
                .is_some_and(|write| DeliveryColumns::from(*stored.row).version == write.if_version)
        {
            stored.row = done.row;
        }
    }
    Ok(rows)
}

fn settle_rows(
    batch: &[Done],
    scale: Scale,
    rows: &BTreeMap<i64, Locked>,
    endpoints: &BTreeMap<i32, Row<Endpoint>>,
) -> Settled<i64, i32> {
    let ended: Vec<Ended<'_, i64, i32>> = batch
        .iter()
        .map(|done| Ended {
            delivery: done.key.id,
            endpoint: done.key.endpoint,
            attempt: done.attempt,
            outcome: done.sent.outcome,
            at: done.at,
            response: done.sent.body.as_deref(),
        })
        .collect();
    let rows = rows.iter().map(|(id, locked)| (*id, locked.row)).collect();
    let mut settled = settle(&ended, &rows, endpoints);
    scale.to_wall_clock(&mut settled, &ended);
    let sent: BTreeMap<i64, &Sent> = batch.iter().map(|done| (done.key.id, &done.sent)).collect();
    for (id, entry) in &mut settled.log {
        sent.get(id).inspect(|sent| sent.describe(entry));
    }
    settled
}

/// A part of an answer that is kept.
type Part = fn(&LogEntry) -> Option<&Excerpt>;

async fn write_log(
    change: &Transaction<'_>,
    log: &[(i64, LogEntry)],
    keys: &BTreeMap<i64, Key>,
    may_be_there: bool,
) -> Result<(), DbError> {
    let of = |id: &i64| keys.get(id).map_or(Timestamp::MIN, |key| key.event_created_at);
    let (first, last) = span(log.iter().map(|(id, _)| of(id)));
    let entries = || log.iter().map(|(_, entry)| entry);
    let deliveries: Vec<i64> = log.iter().map(|(id, _)| *id).collect();
    let created: Vec<At> = log.iter().map(|(id, _)| At(of(id))).collect();
    let numbers: Vec<i16> = entries().map(|entry| entry.attempt.into()).collect();
    let manuals: Vec<bool> = entries().map(|entry| entry.manual).collect();
    let began: Vec<At> = entries().map(|entry| At(entry.began_at)).collect();
    let took: Vec<i64> =
        entries().map(|entry| i64::try_from(entry.took_ms).unwrap_or(i64::MAX)).collect();
    let outcomes: Vec<String> = entries().map(|entry| entry.outcome.to_string()).collect();
    let lates: Vec<bool> = entries().map(|entry| entry.late).collect();
    let statuses: Vec<&str> = entries().map(|entry| entry.status.as_str()).collect();
    let nexts: Vec<Option<At>> = entries().map(|entry| entry.next_at.map(At)).collect();
    // PostgreSQL's text holds every character but one.
    let text = |excerpt: &Excerpt| excerpt.text.replace('\0', "\u{fffd}");
    let texts =
        |of: Part| -> Vec<Option<String>> { entries().map(|entry| of(entry).map(text)).collect() };
    let cuts = |of: Part| -> Vec<bool> {
        entries().map(|entry| of(entry).is_some_and(|excerpt| excerpt.cut)).collect()
    };
    let body: Part = |entry| entry.response.as_ref();
    let headers: Part = |entry| entry.headers.as_ref();
    let reasons: Vec<Option<&str>> =
        entries().map(|entry| entry.reason.as_ref().map(FailureReason::as_str)).collect();
    let insert = change.prepare_cached(include_str!("../../sql/attempts_insert.sql")).await?;
    change
        .execute(
            &insert,
            &[
                &deliveries,
                &created,
                &numbers,
                &manuals,
                &began,
                &took,
                &outcomes,
                &lates,
                &statuses,
                &nexts,
                &texts(body),
                &cuts(body),
                &may_be_there,
                &texts(headers),
                &cuts(headers),
                &reasons,
                &first,
                &last,
            ],
        )
        .await?;
    Ok(())
}
