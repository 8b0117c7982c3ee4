//! What owners of endpoints are told: each fact once, in the transaction that makes it one.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, Endpoint, EndpointColumns, RETENTION, Row, Write};
use deadpool_postgres::Transaction;

use crate::db::{At, Database, DbError, endpoint_of, execute, query, query_opt, within};
use crate::deliveries;
use crate::missed::Search;
use crate::support::log;

/// How long after it was disabled an endpoint's owner is reminded first.
const FIRST_REMINDER: Duration = Duration::from_secs(86_400);

/// Stores what owners are told by these changes of their endpoints.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn store(
    change: &Transaction<'_>,
    alerts: &[(i32, Alert)],
    endpoints: &[(i32, Write<Endpoint>)],
    now: Timestamp,
) -> Result<(), DbError> {
    let (mut numbers, mut versions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (number, alert) in alerts {
        // An alert comes of a change, so its endpoint is among those that are written.
        let Some((_, write)) = endpoints.iter().find(|(of, _)| of == number) else { continue };
        numbers.push(*number);
        versions.push(EndpointColumns::from(write.value).version);
        texts.push(serde_json::to_string(alert).map_err(DbError::row)?);
    }
    if !numbers.is_empty() {
        let sql = include_str!("../sql/alerts_insert.sql");
        execute(change, sql, &[&numbers, &versions, &At(now), &texts]).await?;
    }
    Ok(())
}

/// Adds to the alerts of disabled endpoints how much they had missed, once they are stored: a count
/// that takes long holds up nobody. An alert whose count is lost is told without it.
pub(crate) async fn count_missed(
    database: &Database,
    endpoints: &[(i32, Write<Endpoint>)],
    now: Timestamp,
) -> Result<(), DbError> {
    for (number, write) in endpoints {
        let Some(missed) = write.value.missed(now) else { continue };
        let version = EndpointColumns::from(write.value).version;
        within(async {
            let session = database.session().await?;
            let sql = "SELECT shard FROM endpoints WHERE number = $1";
            if let Some(row) = query_opt(&*session, sql, &[number]).await? {
                let search = Search::new(row.try_get(0)?, *number, &missed);
                let counted: u64 = search.count(&*session).await?.values().sum();
                let counted = i64::try_from(counted).unwrap_or(i64::MAX);
                let sql = include_str!("../sql/alerts_missed.sql");
                execute(&*session, sql, &[number, &version, &counted]).await?;
            }
            session.keep();
            Ok::<_, DbError>(())
        })
        .await?;
    }
    Ok(())
}

/// Reminds owners of endpoints that stay disabled, in these shards, and returns of what.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn remind(
    database: &Database,
    shards: &[i16],
    now: Timestamp,
) -> Result<Vec<Alert>, DbError> {
    let mut session = database.session().await?;
    let change = session.transaction().await?;
    let since = At(now.saturating_sub(FIRST_REMINDER));
    let rows = query(&change, include_str!("../sql/remind.sql"), &[&shards, &since]).await?;
    let (mut alerts, mut writes) = (Vec::new(), Vec::new());
    for row in &rows {
        // One that a later version wrote is for that version.
        let Ok(endpoint) = endpoint_of(row, "") else { continue };
        let (number, mut endpoint) = (row.try_get("number")?, Row::from(endpoint));
        if let Some(alert) = endpoint.remind(now) {
            alerts.push((number, alert));
            writes.extend(endpoint.write().map(|write| (number, write)));
        }
    }
    if !deliveries::write_endpoints(&change, &writes).await? {
        return Err(DbError::row("a locked endpoint has changed"));
    }
    store(&change, &alerts, &writes, now).await?;
    change.commit().await?;
    session.keep();
    for (endpoint, alert) in &alerts {
        log::line(&format!("endpoint {endpoint}: {alert}"));
    }
    count_missed(database, &writes, now).await?;
    Ok(alerts.into_iter().map(|(_, alert)| alert).collect())
}

/// Forgets what was told thirty days ago.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn forget(database: &Database, now: Timestamp) -> Result<(), DbError> {
    let session = database.session().await?;
    let oldest = At(now.saturating_sub(RETENTION));
    execute(&*session, include_str!("../sql/alerts_drop.sql"), &[&oldest]).await?;
    session.keep();
    Ok(())
}
