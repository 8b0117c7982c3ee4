//! Alerts that were stored for owners.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::Alert;
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::unreadable;
use crate::db::statements as sql;
use crate::db::{At, Fields as _, execute, query, query_opt};
use host::store::{Acknowledged, AlertPage, AlertRow, missed_so_far};
use host::store::{Done, Refused};

/// Reads the latest alerts of an account, newest first.
pub(super) async fn latest(client: &impl GenericClient, account: &str) -> Done<Vec<AlertRow>> {
    let rows = query(client, sql::ALERTS_LATEST, &[&account]).await?;
    rows.iter().filter_map(|row| shown(row).transpose()).collect()
}

/// Tells whether there is an alert without a number.
pub(super) async fn has_new(client: &impl GenericClient) -> Done<bool> {
    let row = query_opt(client, sql::ALERTS_NEW, &[]).await?;
    Ok(row.map_or(Ok(false), |row| row.field("has_new"))?)
}

/// Numbers the alerts that have none. Numbers are given out by one transaction after the other, so whoever has
/// read one has read all below it.
pub(super) async fn number(change: &Transaction<'_>) -> Done<()> {
    query(change, sql::ALERTS_TURN, &[]).await?;
    execute(change, sql::ALERTS_NUMBER, &[]).await?;
    Ok(())
}

/// Reads the alerts behind a number, in the order of their numbers.
pub(super) async fn after(
    client: &impl GenericClient,
    after: u64,
    limit: usize,
) -> Done<AlertPage> {
    let row = query_opt(client, sql::ALERTS_LAST, &[]).await?;
    let last: i64 = row.ok_or_else(|| unreadable("there is no sequence"))?.field("last_value")?;
    let after = i64::try_from(after).ok().filter(|after| *after <= last).ok_or_else(|| {
        let why = "after: this feed has not come as far; begin again without it";
        Refused::Conflict(why.into())
    })?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(client, sql::ALERTS_AFTER, &[&after, &limit]).await?;
    let next = rows.last().map_or(Ok(after), |row| row.field("number"))?;
    let rows = rows.iter().filter_map(|row| shown(row).transpose()).collect::<Done<_>>()?;
    Ok(AlertPage { rows, next: next.unsigned_abs() })
}

/// Notes which operator has taken note of an alert, or that its owner has. Returns whether this note is the first.
pub(super) async fn acknowledge(
    change: &Transaction<'_>,
    id: &str,
    by: Option<&str>,
    now: Timestamp,
) -> Done<(AlertRow, bool)> {
    let missing = Refused::NotFound("alert");
    let number = id.strip_prefix("alrt_").and_then(|number| number.parse::<i64>().ok());
    let number = number.filter(|number| text_of(*number) == id).ok_or(missing.clone())?;
    let noted = execute(change, sql::ALERTS_ACKNOWLEDGE, &[&number, &by, &At(now)]).await?;
    let row = query_opt(change, sql::ALERTS_ONE, &[&number]).await?.ok_or(missing.clone())?;
    Ok((shown(&row)?.ok_or(missing)?, noted > 0))
}

fn text_of(number: i64) -> String {
    format!("alrt_{number}")
}

/// Shows an alert, but for what a later version tells: that is for that version to show.
fn shown(row: &Row) -> Done<Option<AlertRow>> {
    let Ok(alert) = serde_json::from_str::<Alert>(row.field("alert")?) else { return Ok(None) };
    let missed: Option<i64> = row.field("missed")?;
    let missed =
        missed.filter(|_| matches!(alert, Alert::Disabled { .. } | Alert::StillDisabled { .. }));
    let missed = missed.map(|missed| missed_so_far(missed.unsigned_abs()));
    let by: Option<String> = row.field("acknowledged_by")?;
    let at = row.instant_opt("acknowledged_at")?;
    Ok(Some(AlertRow {
        id: text_of(row.field("id")?),
        account_id: AccountId::parse(row.field("account_id")?).map_err(unreadable)?,
        endpoint_id: EndpointId::parse(row.field("endpoint_id")?).map_err(unreadable)?,
        url: row.field("url")?,
        at: row.instant("at")?,
        kind: alert.kind().to_owned(),
        message: format!("{alert}{}", missed.unwrap_or_default()),
        acknowledged: by.zip(at).map(|(by, at)| Acknowledged { by, at }),
        owner_acknowledged_at: row.instant_opt("owner_acknowledged_at")?,
    }))
}
