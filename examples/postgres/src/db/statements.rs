//! Statements, each prepared once a connection.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::DbError;

/// What a statement gives.
pub(crate) async fn query(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, DbError> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, parameters).await?)
}

/// The first row of a statement, if there is one.
pub(crate) async fn query_opt(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, DbError> {
    Ok(query(client, sql, parameters).await?.into_iter().next())
}

/// How many rows a statement has changed.
pub(crate) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, DbError> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, parameters).await?)
}
