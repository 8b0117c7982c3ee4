//! What operators set to stop sending or to slow it down, and which senders send.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use deadpool_postgres::{GenericClient, Transaction};
use serde_json::{Value, json};

use super::accounts;
use crate::db::{At, DbError};
use crate::journal::Deed;
use crate::sql::queue::give_up;
use crate::sql::store::{self as sql, StoredLever};
use host::input::Bad;
use host::store::levers::{Cancelled, LeverOf, LeverRow, Levers, ProcessRow};
use host::store::scope::By;
use host::store::{Done, Refused};

/// Reads what is set, and the senders and processes that live.
pub(crate) async fn all(client: &impl GenericClient) -> Done<Levers> {
    let (levers, senders, processes) = tokio::try_join!(
        set_levers(client, None),
        sql::levers_senders(client),
        sql::levers_processes(client),
    )?;
    let processes = processes
        .into_iter()
        .map(|row| ProcessRow { lease_ms: row.lease_ms, shards: row.shards, ..row.told })
        .collect();
    Ok(Levers { levers, senders, processes })
}

pub(super) async fn set_levers(
    client: &impl GenericClient,
    of: Option<&str>,
) -> Result<Vec<LeverRow>, DbError> {
    sql::levers(client, of).await?.into_iter().map(|set| lever(set.lever)).collect()
}

/// Sets a lever, in place of the one that `instead_of` names. Returns what stood before, and what stands: the same if it
/// allows as much.
pub(super) async fn set(
    change: &Transaction<'_>,
    of: &LeverOf,
    per_second: u32,
    instead_of: Option<&str>,
    who: &str,
    now: Timestamp,
) -> Done<(Option<LeverRow>, LeverRow)> {
    let stood = standing(change, of).await?;
    match (&stood, instead_of) {
        (Some(stood), _) if stood.per_second == per_second => {
            return Ok((Some(stood.clone()), stood.clone()));
        }
        (Some(stood), Some(id)) if stood.id == id => drop(undo(change, id).await?),
        (Some(stood), _) => return Err(stands(stood)),
        (None, Some(_)) => {
            let why = format!("instead_of: no lever of {} is set", of.words());
            return Err(Refused::Conflict(why));
        }
        (None, None) => {}
    }
    let account = of.account_id.as_ref().map(AccountId::as_str);
    let endpoint = of.endpoint_id.as_ref().map(EndpointId::as_str);
    let per_second = per_second.cast_signed();
    match sql::levers_set(change, account, endpoint, per_second, who, At(now)).await? {
        Some(row) => Ok((stood, lever(row)?)),
        // Somebody was first, or there is nothing to hold back.
        None => Err(match standing(change, of).await? {
            Some(stood) => stands(&stood),
            None => Refused::NotFound(if account.is_some() { "account" } else { "endpoint" }),
        }),
    }
}

/// Reads what is set of the same.
async fn standing(change: &Transaction<'_>, of: &LeverOf) -> Done<Option<LeverRow>> {
    Ok(set_levers(change, None).await?.into_iter().find(|lever| lever.of == *of))
}

/// Refuses a second lever of the same: who sets it may not know of the first.
fn stands(stood: &LeverRow) -> Refused {
    let (words, id) = (stood.words(), &stood.id);
    let cure = format!("undo the lever, or replace it: instead_of (--instead-of) {id}");
    Refused::Conflict(format!("{words}: {cure}"))
}

/// Removes a lever.
pub(super) async fn undo(change: &Transaction<'_>, id: &str) -> Done<LeverRow> {
    let number: Option<i64> = id.strip_prefix("lvr_").and_then(|n| n.parse().ok());
    let number = number.ok_or(Refused::NotFound("lever"))?;
    let undone = sql::levers_undo(change, number).await?;
    let not_set = || Refused::Conflict("the lever does not exist, or was undone".into());
    Ok(lever(undone.ok_or_else(not_set)?)?)
}

/// Removes the levers of what goes: of an endpoint, or of an account and its endpoints. The journal says so.
pub(crate) async fn forget(
    change: &Transaction<'_>,
    by: By,
    account: &str,
    endpoint: Option<&str>,
) -> Result<(), DbError> {
    for row in sql::levers_forget(change, account, endpoint).await? {
        let undone = lever(row)?;
        let deed = Deed::new(by, "lever.undone", Some(account), &undone.of.words());
        deed.changing(json!(undone), Value::Null).note(change).await?;
    }
    Ok(())
}

/// Parks those of the next thousand pending deliveries of an account whose events are of this type. What a
/// sender has in flight ends as its answer says.
pub(super) async fn cancel(
    change: &Transaction<'_>,
    account: &str,
    event_type: &str,
    after: Option<&str>,
    now: Timestamp,
) -> Done<Cancelled> {
    accounts::one(change, account).await?;
    let (endpoint, id) = place(after)?;
    let rows = sql::levers_pending(change, account, endpoint, id, event_type).await?;
    let next = rows.last().map(|(endpoint, id, _)| format!("{endpoint}-{id}"));
    let of_type = rows.into_iter().filter(|(.., is_of_type)| *is_of_type);
    let ids: Vec<i64> = of_type.map(|(_, id, _)| id).collect();
    Ok(Cancelled { cancelled: give_up(change, &ids, At(now)).await?, next })
}

/// Reads the place among what is pending at which a step begins.
fn place(after: Option<&str>) -> Done<(i32, i64)> {
    let Some(text) = after else { return Ok((0, i64::MIN)) };
    let place = text
        .split_once('-')
        .and_then(|(endpoint, id)| Some((endpoint.parse().ok()?, id.parse().ok()?)));
    place.ok_or_else(|| Refused::Bad(Bad::new("after", "not the `next` of a step")))
}

fn lever(row: StoredLever) -> Result<LeverRow, DbError> {
    let (account, endpoint) = (row.account_id.as_deref(), row.endpoint_id.as_deref());
    Ok(LeverRow {
        id: format!("lvr_{}", row.id),
        of: LeverOf {
            account_id: account.map(AccountId::parse).transpose().map_err(DbError::row)?,
            endpoint_id: endpoint.map(EndpointId::parse).transpose().map_err(DbError::row)?,
        },
        per_second: row.per_second.unsigned_abs(),
        set_by: row.set_by,
        set_at: row.set_at,
    })
}
