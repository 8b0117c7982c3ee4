//! Alerts for the owners of endpoints: each fact once, in the transaction that makes it true.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, EndpointColumns, EndpointHealth};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;

use super::missed::{CountedPage, Search};
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, execute, query_opt};
use host::rows::MOST_COUNTED;

/// Stores what owners are told by these changes of their endpoints.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn store_alerts(
    change: &Transaction<'_>,
    alerts: &[(i32, Alert)],
    endpoints: &[(i32, EndpointHealth)],
    now: Timestamp,
) -> Result<(), DbError> {
    let (mut numbers, mut versions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (number, alert) in alerts {
        // An alert comes of a change, so its endpoint is among those that are written.
        let Some((_, endpoint)) = endpoints.iter().find(|(of, _)| of == number) else { continue };
        numbers.push(*number);
        versions.push(EndpointColumns::from(*endpoint).version);
        texts.push(serde_json::to_string(alert).map_err(DbError::row)?);
    }
    if !numbers.is_empty() {
        let parameters: [&(dyn ToSql + Sync); 4] = [&numbers, &versions, &At(now), &texts];
        execute(change, sql::ALERTS_INSERT, &parameters).await?;
    }
    Ok(())
}

/// Adds to the alerts of disabled endpoints how much they had missed, once they are stored, in pages: a
/// count that takes long holds up nobody. One more than [`MOST_COUNTED`] stands for any number beyond it.
/// An alert whose count is lost is told without it.
pub(crate) async fn count_missed(
    database: &Database,
    endpoints: &[(i32, EndpointHealth)],
    now: Timestamp,
) -> Result<(), DbError> {
    for (number, endpoint) in endpoints {
        let Some(missed) = endpoint.missed(now) else { continue };
        let version = EndpointColumns::from(*endpoint).version;
        let shard = async |client: &Object| query_opt(client, sql::MISSED_SHARD, &[number]).await;
        let Some(row): Option<tokio_postgres::Row> = database.read(shard).await? else { continue };
        let search = Search::new(row.field("shard")?, *number, &missed);
        let (mut counted, mut after) = (0_u64, Some(i64::MIN));
        while let Some(from) = after.filter(|_| counted <= MOST_COUNTED) {
            let count = async |client: &Object| search.count(client, from).await;
            let page: CountedPage = database.read(count).await?;
            counted = page.by_type.values().fold(counted, |sum, more| sum.saturating_add(*more));
            after = page.to;
        }
        let counted =
            i64::try_from(counted.min(MOST_COUNTED.saturating_add(1))).unwrap_or(i64::MAX);
        let write = async |client: &Object| {
            execute(client, sql::ALERTS_MISSED, &[number, &version, &counted]).await
        };
        database.read(write).await?;
    }
    Ok(())
}
