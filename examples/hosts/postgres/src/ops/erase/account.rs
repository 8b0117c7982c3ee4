//! Erasing an account.

use deadpool_postgres::Transaction;

use super::{
    EraseError, Erased, Found, LOOKS, Left, PAUSE, Patience, STEP, Step, ended, endpoints,
    every_step, has_row, is_held, older_have_ended,
};
use crate::db::{Database, DbError, span};
use crate::queue;
use crate::sql::erase as sql;
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
    database.change(async |change| sql::account_mark(change, account).await).await?;
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
            endpoint.delete(database.now());
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
        for is_pending in [true, false] {
            let step = async |change: &Transaction<'_>, after: &i64| {
                deliveries(change, account, *endpoint, is_pending, *after).await
            };
            every_step(database, i64::MIN, step, |more| found.add(&more)).await?;
        }
    }
    for calls in [false, true] {
        let step = async |change: &Transaction<'_>, (): &()| {
            let removed = match calls {
                true => sql::account_calls(change, account, STEP).await?,
                false => sql::account_events(change, account, STEP).await?,
            };
            Ok(((removed > 0).then_some(()), removed))
        };
        let count = if calls { &mut found.calls } else { &mut found.events };
        every_step(database, (), step, |removed| *count = count.saturating_add(removed)).await?;
    }
    Ok(numbers)
}

/// Removes a page of an endpoint's deliveries with their log, after this one. An attempt in flight
/// finds no row to write to, and is forgotten.
async fn deliveries(
    change: &Transaction<'_>,
    account: &str,
    endpoint: i32,
    is_pending: bool,
    after: i64,
) -> Step<i64, Found> {
    let rows = match is_pending {
        true => sql::pending_lock(change, endpoint, after, STEP).await?,
        false => sql::ended_lock(change, endpoint, after, STEP).await?,
    };
    let next = rows.last().map(|row| row.id);
    // After the database went back, a number may have been another's.
    let own = rows.iter().filter(|row| row.account_id == account);
    let ids: Vec<i64> = own.clone().map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok((next, Found::default()));
    }
    let (first, last) = span(own.map(|row| row.event_created_at));
    let attempts = sql::attempts_remove(change, &ids, first, last).await?;
    let deliveries = match is_pending {
        true => sql::pending_remove(change, &ids).await?,
        false => sql::ended_remove(change, endpoint, &ids, first, last).await?,
    };
    Ok((next, Found { deliveries, attempts, ..Found::default() }))
}

/// Removes the account's row, if a last look finds nothing else of it.
async fn finish(
    change: &Transaction<'_>,
    by: By,
    account: &str,
    numbers: &[i32],
) -> Result<Option<Found>, DbError> {
    if sql::account_left(change, account, numbers).await? {
        return Ok(None);
    }
    levers::forget(change, by, account, None).await?;
    sql::journal(change, account).await?;
    let sql::WithAccount { accounts, keys, endpoints, alerts, recoveries } =
        sql::account(change, account).await?;
    Ok(Some(Found { alerts, recoveries, keys, endpoints, accounts, ..Found::default() }))
}
