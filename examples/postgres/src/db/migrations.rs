//! Migrations: by number, each once, and never changed once they are applied.

use std::collections::BTreeMap;

use deadpool_postgres::{GenericClient, PoolError, Transaction};
use sha2::{Digest as _, Sha256};
use tokio_postgres::error::SqlState;

use super::statements::{self as sql, batch};
use super::{Database, DbError, Fields as _, StepError, execute, query, query_opt};

struct Migration {
    number: i32,
    sql: &'static str,
}

/// What this build needs. Each must leave the previous build able to run beside it.
const MIGRATIONS: [Migration; 7] = [
    Migration { number: 1, sql: include_str!("../../migrations/0001_schema.sql") },
    Migration { number: 2, sql: include_str!("../../migrations/0002_renewals.sql") },
    Migration { number: 3, sql: include_str!("../../migrations/0003_clocks.sql") },
    Migration { number: 4, sql: include_str!("../../migrations/0004_erasing.sql") },
    Migration { number: 5, sql: include_str!("../../migrations/0005_recoveries.sql") },
    Migration { number: 6, sql: include_str!("../../migrations/0006_late_calls.sql") },
    Migration { number: 7, sql: include_str!("../../migrations/0007_request_windows.sql") },
];

/// The reason why this build does not run on this database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The database did not respond.
    #[error(transparent)]
    Db(DbError),
    /// The server has no database of this name.
    // Not a `source`: the message says all of it.
    #[error("{0}: create it, and run `migrate --database URL` first")]
    NoDatabase(DbError),
    /// A migration is missing.
    #[error("migration {0} is not applied: run `migrate --database URL` first")]
    Missing(i32),
    /// A migration was changed after it was applied.
    #[error("migration {0} as applied differs from the one of this build")]
    Changed(i32),
}

impl From<DbError> for MigrationError {
    fn from(error: DbError) -> Self {
        match &error {
            DbError::Connect { error: PoolError::Backend(backend), .. }
                if backend.code() == Some(&SqlState::INVALID_CATALOG_NAME) =>
            {
                Self::NoDatabase(error)
            }
            _ => Self::Db(error),
        }
    }
}

impl StepError for MigrationError {
    fn is_unanswered(&self) -> bool {
        matches!(self, Self::Db(_) | Self::NoDatabase(_))
    }
}

/// Applies what is missing, for as long as it takes: an index of a large table takes minutes. Several
/// processes may do so at once.
///
/// # Errors
/// [`MigrationError`]
pub async fn migrate(database: &Database) -> Result<(), MigrationError> {
    for migration in &MIGRATIONS {
        let apply = async |change: &Transaction<'_>| apply(change, migration).await;
        database.unhurried().change(apply).await?;
    }
    Ok(())
}

/// Checks that everything this build needs is applied. What a later build has added is no fault: it
/// runs beside this one during a deployment.
///
/// # Errors
/// [`MigrationError`]
pub async fn check(database: &Database) -> Result<(), MigrationError> {
    let applied =
        database.read(async |client| match query_opt(client, sql::MIGRATE_ANY, &[]).await? {
            Some(any) if any.field(0)? => applied(client).await,
            _ => Ok(BTreeMap::new()),
        });
    let applied = applied.await?;
    MIGRATIONS.iter().try_for_each(|migration| match applied.get(&migration.number) {
        Some(found) => migration.compare(found),
        None => Err(MigrationError::Missing(migration.number)),
    })
}

async fn apply(change: &Transaction<'_>, migration: &Migration) -> Result<(), MigrationError> {
    batch(change, sql::MIGRATE_BEGIN).await?;
    if let Some(found) = applied(change).await?.get(&migration.number) {
        return migration.compare(found);
    }
    change.batch_execute(migration.sql).await.map_err(DbError::from)?;
    let digest = migration.digest();
    execute(change, sql::MIGRATE_NOTE, &[&migration.number, &digest.as_slice()]).await?;
    Ok(())
}

/// The digests of what is applied, by number.
async fn applied(client: &impl GenericClient) -> Result<BTreeMap<i32, Vec<u8>>, DbError> {
    let rows = query(client, sql::MIGRATE_APPLIED, &[]).await?;
    rows.iter().map(|row| Ok((row.field("number")?, row.field("digest")?))).collect()
}

impl Migration {
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.sql).into()
    }

    fn compare(&self, applied: &[u8]) -> Result<(), MigrationError> {
        match applied == self.digest() {
            true => Ok(()),
            false => Err(MigrationError::Changed(self.number)),
        }
    }
}
