//! Erasing an account.

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::{EraseError, Erased, Found, LOOKS, Left, PAUSE, Patience, STEP, Step};
use super::{ended, endpoints, every_step, has_row, is_held, older_have_ended};
use crate::clock::database as clock;
use crate::db::statements::{self as sql, Statement};
use crate::db::{Database, DbError, Fields as _, execute, query, query_opt, span};
use crate::queue;
use crate::store::levers;
use host::store::scope::By;

/// Erases an account with all that belongs to it. Its id is refused from then on: a mark with the id
/// alone outlives the account. The journal has each of its levers as undone. The account's row goes last, and only
/// when a final look finds nothing.
///
/// # Errors
/// [`EraseError`]
pub async fn account(
    database: &Database,
    by: By,
    account: &str,
    patience: Patience,
) -> Result<Erased, EraseError> {
    let mut found = Found::default();
    let done = all(database, by, account, patience, &mut found).await;
    ended(done, found)
}

/// Erases an account, and returns why something may be left.
async fn all(
    database: &Database,
    by: By,
    account: &str,
    patience: Patience,
    found: &mut Found,
) -> Result<Option<Left>, EraseError> {
    let has_row = has_row(database, account).await?;
    database
        .change(async |change| execute(change, sql::ERASE_ACCOUNT_MARK, &[&account]).await)
        .await?;
    stop(database, account).await?;
    let have_ended = older_have_ended(database, patience.older).await?;
    // Those of older transactions, too.
    stop(database, account).await?;
    if !have_ended {
        remove(database, account, has_row, found).await?;
        return Ok(Some(Left::OlderTransactions));
    }
    for nth in 0..LOOKS {
        tokio::time::sleep(PAUSE.saturating_mul(nth)).await;
        let numbers = remove(database, account, has_row, found).await?;
        match database.change(async |change| finish(change, by, account, &numbers).await).await {
            Ok(Some(last)) => {
                found.add(&last);
                return Ok(None);
            }
            Ok(None) => {}
            Err(error) if is_held(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(Left::Rows))
}

/// Deletes the account's endpoints as their owner would: no attempt begins.
async fn stop(database: &Database, account: &str) -> Result<(), DbError> {
    let numbers = endpoints(database, account, true).await?;
    let numbers: Vec<u32> = numbers.into_iter().map(i32::cast_unsigned).collect();
    let stop = async |change: &Transaction<'_>| {
        let mut writes = Vec::new();
        for (number, mut endpoint) in queue::lock_endpoints(change, &numbers).await? {
            endpoint.delete(clock::now());
            writes.extend(endpoint.if_version().map(|_| (number, endpoint)));
        }
        queue::write_locked_endpoints(change, &writes).await
    };
    database.change(stop).await
}

/// Removes what can be removed in steps, and returns the numbers of the account's endpoints.
async fn remove(
    database: &Database,
    account: &str,
    has_row: bool,
    found: &mut Found,
) -> Result<Vec<i32>, DbError> {
    let numbers = endpoints(database, account, has_row).await?;
    for endpoint in &numbers {
        for table in [PENDING, ENDED] {
            let step = async |change: &Transaction<'_>, after: &i64| {
                table.step(change, account, *endpoint, *after).await
            };
            every_step(database, i64::MIN, step, |more| found.add(&more)).await?;
        }
    }
    for (statement, calls) in [(sql::ERASE_ACCOUNT_EVENTS, false), (sql::ERASE_ACCOUNT_CALLS, true)]
    {
        let step = async |change: &Transaction<'_>, (): &()| {
            let removed = execute(change, statement, &[&account, &STEP]).await?;
            Ok(((removed > 0).then_some(()), removed))
        };
        let count = if calls { &mut found.calls } else { &mut found.events };
        every_step(database, (), step, |removed| *count = count.saturating_add(removed)).await?;
    }
    Ok(numbers)
}

/// A table of deliveries.
#[derive(Clone, Copy)]
struct Deliveries {
    lock: Statement,
    remove: Statement,
    is_pending: bool,
}

const PENDING: Deliveries = Deliveries {
    lock: sql::ERASE_PENDING_LOCK,
    remove: sql::ERASE_PENDING_REMOVE,
    is_pending: true,
};
const ENDED: Deliveries =
    Deliveries { lock: sql::ERASE_ENDED_LOCK, remove: sql::ERASE_ENDED_REMOVE, is_pending: false };

impl Deliveries {
    /// Removes a page of an endpoint's deliveries with their log, after this one. An attempt in flight
    /// finds no row to write to, and is forgotten.
    async fn step(
        self,
        change: &Transaction<'_>,
        account: &str,
        endpoint: i32,
        after: i64,
    ) -> Step<i64, Found> {
        let rows = query(change, self.lock, &[&endpoint, &after, &STEP]).await?;
        let next = rows.last().map(|row| row.field("id")).transpose()?;
        let (mut ids, mut created) = (Vec::<i64>::new(), Vec::new());
        for row in &rows {
            // After the database went back, a number may have been another's.
            if row.field::<&str>("account_id")? == account {
                ids.push(row.field("id")?);
                created.push(row.instant("event_created_at")?);
            }
        }
        if ids.is_empty() {
            return Ok((next, Found::default()));
        }
        let (first, last) = span(created.into_iter());
        let log: [&(dyn ToSql + Sync); 3] = [&ids, &first, &last];
        let attempts = execute(change, sql::ERASE_ATTEMPTS_REMOVE, &log).await?;
        let ended: [&(dyn ToSql + Sync); 4] = [&endpoint, &ids, &first, &last];
        let pending: [&(dyn ToSql + Sync); 1] = [&ids];
        let of = if self.is_pending { &pending[..] } else { &ended[..] };
        let deliveries = execute(change, self.remove, of).await?;
        Ok((next, Found { deliveries, attempts, ..Found::default() }))
    }
}

/// Removes the account's row, if a last look finds nothing else of it.
async fn finish(
    change: &Transaction<'_>,
    by: By,
    account: &str,
    numbers: &[i32],
) -> Result<Option<Found>, DbError> {
    let row = query_opt(change, sql::ERASE_ACCOUNT_LEFT, &[&account, &numbers]).await?;
    if row.map_or(Ok(true), |row| row.field("is_left"))? {
        return Ok(None);
    }
    levers::forget(change, by, account, None).await?;
    execute(change, sql::JOURNAL_ERASE, &[&account]).await?;
    let row = query_opt(change, sql::ERASE_ACCOUNT, &[&account]).await?;
    let row = row.ok_or_else(|| DbError::row("a count without a row"))?;
    let count = |name: &str| Ok::<_, DbError>(row.field::<i64>(name)?.unsigned_abs());
    Ok(Some(Found {
        alerts: count("alerts")?,
        recoveries: count("recoveries")?,
        keys: count("keys")?,
        endpoints: count("endpoints")?,
        accounts: count("accounts")?,
        ..Found::default()
    }))
}
