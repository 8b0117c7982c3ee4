//! Alerts for the owners of endpoints: each fact once, in the transaction that makes it true.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, Endpoint, EndpointColumns};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;

use super::missed::Search;
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, execute, query_opt};

/// Stores what owners are told by these changes of their endpoints.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn store_alerts(
    change: &Transaction<'_>,
    alerts: &[(i32, Alert)],
    endpoints: &[(i32, Endpoint)],
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

/// Adds to the alerts of disabled endpoints how much they had missed, once they are stored: a count
/// that takes long holds up nobody. An alert whose count is lost is told without it.
pub(crate) async fn count_missed(
    database: &Database,
    endpoints: &[(i32, Endpoint)],
    now: Timestamp,
) -> Result<(), DbError> {
    for (number, endpoint) in endpoints {
        let Some(missed) = endpoint.missed(now) else { continue };
        let version = EndpointColumns::from(*endpoint).version;
        let count = async |client: &Object| {
            if let Some(row) = query_opt(client, sql::MISSED_SHARD, &[number]).await? {
                let search = Search::new(row.field("shard")?, *number, &missed);
                let counted: u64 = search.count(client).await?.values().sum();
                let counted = i64::try_from(counted).unwrap_or(i64::MAX);
                execute(client, sql::ALERTS_MISSED, &[number, &version, &counted]).await?;
            }
            Ok::<_, DbError>(())
        };
        database.read(count).await?;
    }
    Ok(())
}
