//! What operators set to stop sending or to slow it down, and which senders send.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Postgres, accounts, unreadable};
use crate::db::statements as sql;
use crate::db::{At, Fields as _, execute, query, query_opt};
use crate::journal::Deed;
use host::levers::{Cancelled, LeverOf, LeverRow, Levers, SenderRow};
use host::log;
use host::store::{Done, Refused};

impl Postgres {
    /// Changes what an operator may change, notes it, and says who did what to which, as the journal does.
    pub(super) async fn act<T>(
        &self,
        deed: Deed<'_>,
        act: impl AsyncFnOnce(&Transaction<'_>) -> Done<T>,
    ) -> Done<T> {
        let after = Some(deed.after.to_string()).filter(|_| !deed.after.is_null());
        let line = log::info("an operator acts")
            .with("by", deed.by.as_str())
            .with("action", deed.action)
            .with("on", deed.target)
            .with("after", after);
        let noted = async |change: &Transaction<'_>| {
            let done = act(change).await?;
            deed.note(change).await?;
            Ok::<_, Refused>(done)
        };
        let done = self.dashboard.change(noted).await?;
        line.write();
        Ok(done)
    }
}

/// Reads what is set, and the senders that live.
pub(super) async fn all(client: &impl GenericClient) -> Done<Levers> {
    let (levers, senders) = tokio::try_join!(
        query(client, sql::LEVERS_ALL, &[]),
        query(client, sql::LEVERS_SENDERS, &[]),
    )?;
    Ok(Levers {
        levers: levers.iter().map(lever).collect::<Done<_>>()?,
        senders: senders.iter().map(sender).collect::<Done<_>>()?,
    })
}

/// Reads what is set of an account, of its endpoints, or of everything.
pub(super) async fn of_account(client: &impl GenericClient, account: &str) -> Done<Vec<LeverRow>> {
    query(client, sql::LEVERS_OF_ACCOUNT, &[&account]).await?.iter().map(lever).collect()
}

/// Sets a lever, in place of what was set of the same.
pub(super) async fn set(
    change: &Transaction<'_>,
    of: &LeverOf,
    per_second: u32,
    who: &str,
    now: Timestamp,
) -> Done<LeverRow> {
    let account = of.account_id.as_ref().map(AccountId::as_str);
    let endpoint = of.endpoint_id.as_ref().map(EndpointId::as_str);
    let per_second = per_second.cast_signed();
    let parameters: [&(dyn ToSql + Sync); 5] = [&account, &endpoint, &per_second, &who, &At(now)];
    let row = query_opt(change, sql::LEVERS_SET, &parameters).await?;
    let missing = if account.is_some() { "account" } else { "endpoint" };
    lever(&row.ok_or(Refused::NotFound(missing))?)
}

/// Removes a lever.
pub(super) async fn undo(change: &Transaction<'_>, id: &str) -> Done<LeverRow> {
    const MISSING: Refused = Refused::NotFound("lever");
    let number: i64 = id.strip_prefix("lvr_").and_then(|n| n.parse().ok()).ok_or(MISSING)?;
    lever(&query_opt(change, sql::LEVERS_UNDO, &[&number]).await?.ok_or(MISSING)?)
}

/// Has a sender give its shards back and take none, or take its share again.
pub(super) async fn drain(change: &Transaction<'_>, id: &str, drained: bool) -> Done<SenderRow> {
    if execute(change, sql::LEVERS_DRAIN, &[&id, &drained]).await? == 0 {
        return Err(Refused::NotFound("sender"));
    }
    let senders = query(change, sql::LEVERS_SENDERS, &[]).await?;
    let senders = senders.iter().map(sender).collect::<Done<Vec<_>>>()?;
    senders.into_iter().find(|sender| sender.id == id).ok_or(Refused::NotFound("sender"))
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
    let parameters: [&(dyn ToSql + Sync); 4] = [&account, &endpoint, &id, &event_type];
    let rows = query(change, sql::LEVERS_PENDING, &parameters).await?;
    let mut ids: Vec<i64> = Vec::new();
    for row in &rows {
        if row.field("is_of_type")? {
            ids.push(row.field("id")?);
        }
    }
    let cancelled = execute(change, sql::QUEUE_GIVE_UP, &[&ids, &At(now)]).await?;
    let next = match rows.last() {
        Some(last) => {
            Some(format!("{}-{}", last.field::<i32>("endpoint")?, last.field::<i64>("id")?))
        }
        None => None,
    };
    Ok(Cancelled { cancelled, next })
}

/// Reads the place among what is pending at which a step begins.
fn place(after: Option<&str>) -> Done<(i32, i64)> {
    let Some(text) = after else { return Ok((0, i64::MIN)) };
    let place = text
        .split_once('-')
        .and_then(|(endpoint, id)| Some((endpoint.parse().ok()?, id.parse().ok()?)));
    place.ok_or_else(|| Refused::Conflict("after: not the `next` of a step".into()))
}

fn lever(row: &Row) -> Done<LeverRow> {
    let account: Option<&str> = row.field("account_id")?;
    let endpoint: Option<&str> = row.field("endpoint_id")?;
    Ok(LeverRow {
        id: format!("lvr_{}", row.field::<i64>("id")?),
        of: LeverOf {
            account_id: account.map(AccountId::parse).transpose().map_err(unreadable)?,
            endpoint_id: endpoint.map(EndpointId::parse).transpose().map_err(unreadable)?,
        },
        per_second: row.field::<i32>("per_second")?.unsigned_abs(),
        set_by: row.field("set_by")?,
        set_at: row.instant("set_at")?,
    })
}

fn sender(row: &Row) -> Done<SenderRow> {
    Ok(SenderRow {
        id: row.field("id")?,
        drained: row.field("drained")?,
        lease_ms: u64::try_from(row.field::<i64>("lease_ms")?).unwrap_or(0),
        shards: row.field("shards")?,
    })
}
