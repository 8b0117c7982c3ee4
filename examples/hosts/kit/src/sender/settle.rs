//! Stores the outcomes of attempts, many in one transaction.
//!
//! An attempt was begun in memory, and the store still has the row as it was read. So the usual case
//! locks nothing: endpoints are read after the attempts have ended, none of them changes, and each
//! delivery is written under the version that was read. Where an endpoint changes, or somebody else
//! was first, rows are locked and read again.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    EndedAttempt, EndpointHealth, Outcome, RetrySchedule, Settled,
};

use super::{Ended, UNSENT};
use crate::post::Sent;
use crate::rows::{Change, Changes, Done, Failure, Key, Lock, Locked, Writes};

/// How a batch is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With the rows in memory. Nothing is locked, so no endpoint may change.
    Quick,
    /// With the rows as they are stored: somebody was first, or a commit was not answered.
    Sure,
}

/// Settles a batch and writes all of it. Nothing of it is stored where this fails, unless the failure is unknown.
pub async fn settle(
    rows: &impl Changes,
    schedule: RetrySchedule,
    batch: &[Ended],
    how: How,
    now: Timestamp,
) -> Done<Settled<u64, u32>> {
    let mut change = rows.change().await?;
    match in_change(&mut change, schedule, batch, how, now).await {
        Ok(settled) => {
            change.commit().await?;
            Ok(settled)
        }
        Err(Failure::Outdated) => {
            change.roll_back().await;
            Err(Failure::Outdated)
        }
        Err(failure) => Err(failure),
    }
}

async fn in_change(
    change: &mut impl Change,
    schedule: RetrySchedule,
    batch: &[Ended],
    how: How,
    now: Timestamp,
) -> Done<Settled<u64, u32>> {
    let mut numbers: Vec<u32> = batch.iter().map(|ended| ended.key.endpoint).collect();
    numbers.sort_unstable();
    numbers.dedup();

    let mut rows = match how {
        How::Quick => in_memory(batch),
        How::Sure => as_stored(change, batch).await?,
    };
    let mut endpoints = change.endpoints(&numbers, Lock::No).await?;
    let mut settled = settle_rows(schedule, batch, &rows, &endpoints);
    if !settled.endpoints.is_empty() {
        if how == How::Quick {
            rows = as_stored(change, batch).await?;
        }
        let changing: Vec<u32> = settled.endpoints.iter().map(|(number, _)| *number).collect();
        endpoints.extend(change.endpoints(&changing, Lock::Yes).await?);
        settled = settle_rows(schedule, batch, &rows, &endpoints);
    }

    let by_id: BTreeMap<u64, (Key, &Sent)> =
        batch.iter().map(|ended| (ended.key.delivery, (ended.key, &ended.sent))).collect();
    let deliveries =
        settled.deliveries.iter().filter_map(|(id, row)| Some((*rows.get(id)?, *row))).collect();
    let attempts = settled.log.iter().filter_map(|(id, entry)| {
        let (key, sent) = by_id.get(id)?;
        (!sent.lacks_resources()).then_some((*key, entry, sent.signed.as_ref()))
    });
    let writes = Writes {
        deliveries,
        endpoints: &settled.endpoints,
        alerts: &settled.alerts,
        attempts: attempts.collect(),
        may_be_there: how == How::Sure,
        ..Writes::at(now)
    };
    change.write(&writes).await?;
    Ok(settled)
}

fn in_memory(batch: &[Ended]) -> BTreeMap<u64, Locked> {
    let row = |ended: &Ended| (ended.key.delivery, Locked { is_pending: true, row: ended.row });
    batch.iter().map(row).collect()
}

/// Locks the stored rows. Where one still is as it was when the attempt began, the attempt stands
/// as it was begun in memory.
async fn as_stored(change: &mut impl Change, batch: &[Ended]) -> Done<BTreeMap<u64, Locked>> {
    let keys: Vec<Key> = batch.iter().map(|ended| ended.key).collect();
    let mut rows = change.lock(&keys).await?;
    for ended in batch {
        if let Some(stored) = rows.get_mut(&ended.key.delivery)
            && ended.row.if_version() == Some(stored.row.version().cast_signed())
        {
            stored.row = ended.row;
        }
    }
    Ok(rows)
}

fn settle_rows(
    schedule: RetrySchedule,
    batch: &[Ended],
    rows: &BTreeMap<u64, Locked>,
    endpoints: &BTreeMap<u32, EndpointHealth>,
) -> Settled<u64, u32> {
    let ended: Vec<EndedAttempt<'_, u64, u32>> = batch
        .iter()
        .map(|ended| EndedAttempt {
            delivery: ended.key.delivery,
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
    let sent: BTreeMap<u64, &Sent> =
        batch.iter().map(|ended| (ended.key.delivery, &ended.sent)).collect();
    for (id, entry) in &mut settled.log {
        sent.get(id).inspect(|sent| sent.describe(entry));
    }
    settled
}

/// Makes deliveries wait whose attempt could not be made. The wait is stored, so it outlives the process.
pub fn postpone<D: Ord, E>(settled: &mut Settled<D, E>) {
    for (id, entry) in &mut settled.log {
        if entry.outcome != Outcome::Unsent || entry.late {
            continue;
        }
        let row = settled.deliveries.iter_mut().find(|(of, _)| of == id);
        let (Some((_, row)), Some(due)) = (row, &mut entry.next_at) else { continue };
        if row.postpone(UNSENT, *due) {
            *due = due.saturating_add(UNSENT);
            let again = settled.again.iter_mut().filter(|(of, ..)| of == id);
            again.for_each(|(.., at)| *at = *due);
        }
    }
}
