//! Alerts that were stored for owners.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Alert;
use deadpool_postgres::{GenericClient, Transaction};

use super::one_more;
use crate::db::At;
use crate::sql::store::{self as sql, StoredAlert};
use host::store::{
    Acknowledged, AlertPage, AlertRow, Done, PageOf, PartRows, Place, Refused, missed_so_far, place,
};

/// Reads a page of the alerts of an account, newest first.
pub(super) async fn latest(
    client: &impl GenericClient,
    PageOf { account, after, limit }: PageOf<'_>,
) -> Done<PartRows<AlertRow>> {
    let (account, below) = (account.as_str(), place(after, i64::MAX)?);
    let rows = sql::alerts_latest(client, account, below, one_more(limit)).await?;
    let PartRows { rows, next, more } =
        PartRows::first(rows, limit, |row| row.id.to_string(), shown);
    Ok(PartRows { rows: rows.into_iter().flatten().collect(), next, more })
}

/// Reads one alert.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<AlertRow> {
    let row = sql::alerts_one(client, number_of(id).ok_or(MISSING)?).await?;
    row.and_then(shown).ok_or(MISSING)
}

/// Numbers the alerts that have none. Numbers are given out by one transaction after the other, so whoever has
/// read one has read all below it.
pub(super) async fn number(change: &Transaction<'_>) -> Done<()> {
    sql::alerts_turn(change).await?;
    sql::alerts_number(change).await?;
    Ok(())
}

/// Reads alerts of all accounts: those behind a number, in the order of their numbers, or the newest before the alert
/// with this id.
pub(super) async fn all(
    client: &impl GenericClient,
    of: Place<'_>,
    limit: usize,
) -> Done<AlertPage> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let shown = |rows: Vec<_>| rows.into_iter().filter_map(shown).collect();
    match of {
        Place::After(after) => {
            let (after, last) = (place::<u64>(after, 0)?, sql::alerts_last(client).await?);
            let after = i64::try_from(after).ok().filter(|after| *after <= last);
            let why =
                "after: this feed has not reached this place yet: begin again without `after`";
            let after = after.ok_or_else(|| Refused::Conflict(why.into()))?;
            let rows = sql::alerts_after(client, after, most).await?;
            let next = rows.last().and_then(|row| row.number).unwrap_or(after);
            Ok(AlertPage { rows: shown(rows), next: Some(next.to_string()) })
        }
        Place::Before(before) => {
            let before = before.map_or(Some(i64::MAX), number_of);
            let wrong = || Refused::Conflict("before: not an id of an alert".into());
            let rows = sql::alerts_before(client, before.ok_or_else(wrong)?, most).await?;
            Ok(AlertPage::newest(shown(rows), limit))
        }
    }
}

/// Notes which operator has taken note of an alert, or that its owner has. Returns whether this note is the first.
pub(super) async fn acknowledge(
    change: &Transaction<'_>,
    id: &str,
    by: Option<&str>,
    now: Timestamp,
) -> Done<(AlertRow, bool)> {
    let number = number_of(id).ok_or(MISSING)?;
    let noted = sql::alerts_acknowledge(change, number, by, At(now)).await?;
    Ok((one(change, id).await?, noted > 0))
}

const MISSING: Refused = Refused::NotFound("alert");

fn number_of(id: &str) -> Option<i64> {
    let number = id.strip_prefix("alrt_")?.parse().ok()?;
    (text_of(number) == id).then_some(number)
}

fn text_of(number: i64) -> String {
    format!("alrt_{number}")
}

/// Shows an alert, but for what a later version tells: that is for that version to show.
fn shown(row: StoredAlert) -> Option<AlertRow> {
    let alert: Alert = serde_json::from_str(&row.alert).ok()?;
    let is_disabled = matches!(alert, Alert::Disabled { .. } | Alert::StillDisabled { .. });
    let missed = row.missed.filter(|_| is_disabled).map(missed_so_far);
    let acknowledged = row.acknowledged_by.zip(row.acknowledged_at);
    Some(AlertRow {
        id: text_of(row.id),
        account_id: row.account_id,
        endpoint_id: row.endpoint_id,
        url: row.url,
        at: row.at,
        kind: alert.kind().to_owned(),
        message: format!("{alert}{}", missed.unwrap_or_default()),
        acknowledged: acknowledged.map(|(by, at)| Acknowledged { by, at }),
        owner_acknowledged_at: row.owner_acknowledged_at,
    })
}
