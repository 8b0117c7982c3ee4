//! Recoveries: what an endpoint missed, redelivered a few at a time by the sender of its shard.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    RecoverError, Recovery, RecoveryBy, RecoveryFilter, RecoveryStatus,
};
use deadpool_postgres::{GenericClient, Transaction};
use tokio::time::Instant;

use super::endpoints::StoredEndpoint;
use super::{accounts, listed, one_more, unreadable};
use crate::db::{At, Database};
use crate::journal::{self, Deed};
use crate::queue::{Search, recovery_json, recovery_text, write_recovery};
use crate::sql::queue::{StoredRecovery, lock_recovery};
use crate::sql::store::{self as sql, ListedRecovery};
use host::store::{
    Done, List, MOST_COUNTED, Missed, PageOf, PartRows, RecoveryPage, RecoveryRow, Refused, place,
};

/// How long a count may take while a person waits for it, and before a recovery starts.
const COUNTING: Duration = Duration::from_millis(800);
const STARTING: Duration = Duration::from_millis(75);

/// How many endpoints a page of many recoveries looks at.
const ENDPOINTS: i64 = 100;

/// Counts what a recovery would redeliver.
pub(super) async fn count(
    client: &impl GenericClient,
    found: &StoredEndpoint,
    missed: &RecoveryFilter,
) -> Done<Missed> {
    Ok(count_within(client, found, missed, COUNTING).await?.0)
}

/// Counts what an endpoint missed for so long, and returns where to go on.
async fn count_within(
    client: &impl GenericClient,
    found: &StoredEndpoint,
    missed: &RecoveryFilter,
    patience: Duration,
) -> Done<(Missed, Option<i64>)> {
    let began = Instant::now();
    let missed = missed.clone().with_endpoint(&found.shown.health);
    let search = Search::new(found.shard, found.number, &missed);
    let (mut counted, mut after) = (Missed::default(), Some(i64::MIN));
    while let Some(from) = after {
        let page = search.count(client, from).await?;
        for (of_type, more) in page.by_type {
            let count = counted.by_type.entry(of_type).or_default();
            *count = count.saturating_add(more);
        }
        after = page.to;
        if began.elapsed() >= patience || counted.total() >= MOST_COUNTED {
            break;
        }
    }
    counted.more = after.is_some();
    Ok((counted, after))
}

/// Starts a recovery by a person in the dashboard. What there is no time to count now is counted with
/// its steps.
pub(super) async fn start(
    change: &Transaction<'_>,
    found: &StoredEndpoint,
    missed: RecoveryFilter,
    now: Timestamp,
) -> Done<RecoveryRow> {
    let plan = accounts::one(change, found.shown.account_id.as_str()).await?.plan.webhooks;
    let (counted, counted_to) = count_within(change, found, &missed, STARTING).await?;
    let health = &found.shown.health;
    let recovery: Recovery<u64> =
        missed.recover(RecoveryBy::Dashboard, plan, health, now).map_err(|error| match error {
            RecoverError::Plan(error) => Refused::Plan(error),
            error => Refused::Conflict(error.to_string()),
        })?;
    let recovery = recovery.with_counted(counted.total());
    let id = insert(change, (found.number, found.shard), &recovery, counted_to, now).await?;
    let id = id.ok_or_else(|| {
        Refused::Conflict("a recovery of this endpoint is already running".into())
    })?;
    let of = (found.shown.account_id.clone(), found.shown.id.clone());
    let row = RecoveryRow::of(recovery_text(id), of, &recovery, None);
    Ok(RecoveryRow { more: counted.more, ..row })
}

/// Starts a recovery of each endpoint that is active and may have missed something: of one account, or
/// of all, after a number. Nothing is counted before.
pub(super) async fn start_all(
    change: &Transaction<'_>,
    account: Option<&str>,
    missed: &RecoveryFilter,
    after: Option<&str>,
    now: Timestamp,
) -> Done<RecoveryPage> {
    if let Some(account) = account {
        accounts::one(change, account).await?;
    }
    let after = place(after, -1)?;
    let rows = sql::recoveries_endpoints(change, account, after, ENDPOINTS).await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|found| found >= ENDPOINTS);
    let next = rows.last().filter(|_| is_full).map(|last| last.number.to_string());
    let mut page = RecoveryPage { next, ..RecoveryPage::default() };
    for row in rows {
        let sql::ToRecover { number, id, shard, account_id, health, plan } = row;
        let read = health.and_then(|health| Ok((health, plan?.webhooks)));
        // One that a later version wrote is for that version, and keeps no other from its recovery.
        let Ok((health, plan)) = listed("endpoint", &id, read) else { continue };
        let missed = missed.clone().with_endpoint(&health);
        if Search::new(shard, number, &missed).window(change, i64::MIN, 1).await?.is_none() {
            continue;
        }
        let started = missed.recover(RecoveryBy::Dashboard, plan, &health, now);
        let Ok(recovery) = started else { continue };
        let started = insert(change, (number, shard), &recovery, Some(i64::MIN), now).await?;
        if let Some(started) = started {
            let of = (account_id.parse().map_err(unreadable)?, id.parse().map_err(unreadable)?);
            let row = RecoveryRow::of(recovery_text(started), of, &recovery, None);
            page.started.push(RecoveryRow { more: true, ..row });
        }
    }
    Ok(page)
}

/// Stores a recovery, unless one of its endpoint is running. Returns its number.
async fn insert(
    change: &Transaction<'_>,
    (endpoint, shard): (i32, i16),
    recovery: &Recovery<u64>,
    counted_to: Option<i64>,
    now: Timestamp,
) -> Done<Option<i64>> {
    sql::recoveries_forget(change, endpoint).await?;
    let (text, version) = (recovery_json(recovery)?, recovery.version().cast_signed());
    let at = At(now);
    Ok(sql::recoveries_insert(change, endpoint, shard, &text, version, at, counted_to).await?)
}

/// Reads a page of the recoveries of an account: those that run, then those that have ended, newest first.
pub(super) async fn page(
    client: &impl GenericClient,
    PageOf { account, after, limit }: PageOf<'_>,
) -> Done<List<RecoveryRow>> {
    let (account, below) = (account.as_str(), place(after, i64::MAX)?);
    let rows = sql::recoveries_page(client, account, below, one_more(limit)).await?;
    let read =
        |row: ListedRecovery| listed("recovery", &recovery_text(row.id), row.read.map(shown));
    Ok(PartRows::first(rows, limit, |row| row.place.to_string(), read))
}

/// Reads one recovery.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<RecoveryRow> {
    Ok(shown(sql::recoveries_one(client, number(id)?).await?.ok_or(MISSING)?))
}

/// Has a recovery rest, or go on. Returns it, and whether it was otherwise before.
pub(super) async fn pause(
    change: &Transaction<'_>,
    id: &str,
    paused: bool,
) -> Done<(RecoveryRow, bool)> {
    let number = number(id)?;
    let locked = lock_recovery(change, number).await?.ok_or(MISSING)?;
    if locked.stored.recovery.status() != RecoveryStatus::Running {
        return Err(Refused::Conflict("the recovery has ended".into()));
    }
    let is_changed = sql::recoveries_pause(change, number, paused).await? > 0;
    Ok((one(change, id).await?, is_changed))
}

/// Ends a recovery, if it runs. Returns it, and whether it ran.
pub(super) async fn cancel(
    change: &Transaction<'_>,
    id: &str,
    now: Timestamp,
) -> Done<(RecoveryRow, bool)> {
    let number = number(id)?;
    let mut stored = lock_recovery(change, number).await?.ok_or(MISSING)?.stored;
    if stored.recovery.cancel() {
        write_recovery(change, number, &stored.recovery, now).await?;
        return Ok((one(change, id).await?, true));
    }
    Ok((shown(stored), false))
}

const MISSING: Refused = Refused::NotFound("recovery");

fn shown(stored: StoredRecovery) -> RecoveryRow {
    let (id, of) = (recovery_text(stored.id), (stored.account_id, stored.endpoint_id));
    let shown = RecoveryRow::of(id, of, &stored.recovery, stored.ended_at);
    RecoveryRow {
        paused: stored.paused,
        more: stored.counted_to.is_some(),
        counted: stored.counted.unwrap_or(shown.counted),
        ..shown
    }
}

/// Returns the number in a public id.
fn number(id: &str) -> Done<i64> {
    let number = id.strip_prefix("rcv_").and_then(|number| number.parse().ok());
    // No two texts are one recovery.
    number.filter(|number| recovery_text(*number) == id).ok_or(MISSING)
}

/// Starts a recovery of each endpoint that is active and has missed something, a page at a time, and notes the
/// deed with the first page. Returns how many were started: senders make their steps. It may be called again:
/// where one is running, nothing changes.
///
/// # Errors
/// There is no such account, or the database did not respond: call again.
pub(crate) async fn recover_all(
    database: &Database,
    account: Option<&str>,
    missed: &RecoveryFilter,
    deed: Deed,
    now: Timestamp,
) -> Result<usize, Refused> {
    let (mut started, mut after) = (0_usize, None);
    let mut deed = Some(deed);
    loop {
        let page = journal::act(database, async |change| {
            let page = start_all(change, account, missed, after.as_deref(), now).await?;
            Ok((page, deed.take()))
        });
        let page = page.await?;
        page.started.iter().for_each(RecoveryRow::log_start);
        started = started.saturating_add(page.started.len());
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(started),
        }
    }
}
