//! Makes the steps of recoveries. A process that ends in the middle of one has done nothing, and whoever owns the
//! shard then makes it.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, Recovery, RecoveryStatus, RecoveryStep};

use super::LIMITS;
use crate::log;
use crate::rows::{
    Change, Changes, Done, Failure, Locked, Names, Progress, RunningRecovery, Search, Writes,
};

/// How many redeliveries of one endpoint are pending at once: so many that those in flight are followed by others
/// from one step to the next. How many of them are in flight at once is the planner's.
const AT_ONCE: u32 = 8 * LIMITS.per_endpoint;

/// Makes a step of a recovery: a transaction with the deliveries that it makes due. The log tells of its last.
pub(super) async fn step(rows: &impl Changes, id: u64, now: Timestamp) -> Done<()> {
    let mut change = rows.change().await?;
    let ended = in_change(&mut change, id, now).await?;
    change.commit().await?;
    if let Some((names, recovery, of)) = ended {
        log::info!(
            recovery = format!("rcv_{id}"),
            account = names.account,
            endpoint = names.endpoint,
            status = recovery.status().as_str(),
            redelivered = recovery.redelivered(),
            of,
            "a recovery has ended",
        );
    }
    Ok(())
}

/// Returns whose recovery has ended, and how many deliveries were counted.
async fn in_change(
    change: &mut impl Change,
    id: u64,
    now: Timestamp,
) -> Done<Option<(Names, Recovery<u64>, u64)>> {
    let Some(running) = change.lock_recovery(id).await? else { return Ok(None) };
    let RunningRecovery { mut recovery, endpoint, plan, names, .. } = running;
    if running.is_paused || recovery.status() != RecoveryStatus::Running {
        return Ok(None);
    }
    let number = u32::try_from(endpoint.id()).unwrap_or(u32::MAX);
    let search = Search { shard: names.shard, endpoint: number, missed: recovery.missed().clone() };
    let before = running.progress;
    let changed = |progress| (progress != before).then_some(progress);
    let mut progress = before;
    if let Some(after) = progress.counted_to {
        let page = change.count(&search, after).await?;
        progress.counted = progress.counted.saturating_add(page.counted);
        progress.counted_to = page.to;
    }
    let room = recovery.room(running.pending, AT_ONCE);
    if room == 0 {
        let recovery = Some((id, &recovery, changed(progress)));
        change.write(&Writes { recovery, ..Writes::at(now) }).await?;
        return Ok(None);
    }
    let after = recovery.after().copied().max(progress.searched_to).unwrap_or(0);
    // What is not counted would be missing from the count, once it is redelivered.
    let found = change.lock_missed(&search, after, progress.counted_to, room).await?;
    let by_id: Vec<(u64, Delivery)> =
        found.rows.iter().map(|locked| (locked.row.id(), locked.row)).collect();
    let (all, last) = (u32::try_from(by_id.len()).unwrap_or(u32::MAX), by_id.last());
    // There may be more behind them.
    let window_is_empty = found.to.is_some() && all < room;
    let room = if window_is_empty { all } else { room };
    let step = RecoveryStep { room, found: &by_id, endpoint: &endpoint, plan: plan.webhooks };
    let made_due = recovery.step(step, now).map_err(|error| Failure::Refused(Box::new(error)))?;
    if window_is_empty && last.is_none_or(|(last, _)| recovery.after() == Some(last)) {
        progress = Progress { searched_to: found.to, ..progress };
    }
    let locked = |id| found.rows.iter().find(|locked: &&Locked| locked.row.id() == id).copied();
    let deliveries =
        made_due.into_iter().filter_map(|(id, delivery)| Some((locked(id)?, delivery)));
    let writes = Writes {
        deliveries: deliveries.collect(),
        recovery: Some((id, &recovery, changed(progress))),
        are_news: true,
        ..Writes::at(now)
    };
    change.write(&writes).await?;
    if recovery.status() == RecoveryStatus::Running {
        return Ok(None);
    }
    Ok(Some((names, recovery, progress.counted)))
}
