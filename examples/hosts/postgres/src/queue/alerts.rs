//! Alerts for the owners of endpoints: each fact once, in the transaction that makes it true.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, EndpointColumns, EndpointHealth};
use deadpool_postgres::GenericClient;

use crate::db::{At, DbError};
use crate::sql::queue as sql;

/// Stores what owners are told by these changes of their endpoints.
///
/// # Errors
/// [`DbError`]
pub(crate) async fn store_alerts(
    change: &impl GenericClient,
    alerts: &[(u32, Alert)],
    endpoints: &[(u32, EndpointHealth)],
    now: Timestamp,
) -> Result<(), DbError> {
    let (mut numbers, mut versions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (number, alert) in alerts {
        // An alert comes of a change, so its endpoint is among those that are written.
        let Some((_, endpoint)) = endpoints.iter().find(|(of, _)| of == number) else { continue };
        numbers.push(number.cast_signed());
        versions.push(EndpointColumns::from(*endpoint).version);
        texts.push(serde_json::to_string(alert).map_err(DbError::row)?);
    }
    if !numbers.is_empty() {
        sql::insert_alerts(change, &numbers, &versions, At(now), &texts).await?;
    }
    Ok(())
}

/// Writes how much an endpoint had missed beside its alert of this version.
pub(crate) async fn write_missed(
    client: &impl GenericClient,
    endpoint: &EndpointHealth,
    missed: u64,
) -> Result<(), DbError> {
    let number = i32::try_from(endpoint.id()).map_err(DbError::row)?;
    let (version, missed) = (endpoint.version().cast_signed(), missed.cast_signed());
    sql::write_alert_missed(client, number, version, missed).await?;
    Ok(())
}
