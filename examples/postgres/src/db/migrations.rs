//! Migrations: by number, each once, and never changed once they are applied.

use deadpool_postgres::{Object, PoolError};
use sha2::{Digest as _, Sha256};
use tokio_postgres::error::SqlState;

use super::{Database, DbError, within};

struct Migration {
    number: i32,
    sql: &'static str,
}

/// What this build needs. Each must leave the previous build able to run beside it.
const MIGRATIONS: [Migration; 5] = [
    Migration { number: 1, sql: include_str!("../../migrations/0001_schema.sql") },
    Migration { number: 2, sql: include_str!("../../migrations/0002_alerts.sql") },
    Migration { number: 3, sql: include_str!("../../migrations/0003_recoveries.sql") },
    Migration { number: 4, sql: include_str!("../../migrations/0004_plans.sql") },
    Migration { number: 5, sql: include_str!("../../migrations/0005_recovery_waits.sql") },
];

/// Why this build does not run on this database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The database gave no answer.
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
    #[error("migration {0} is applied, and is not the one of this build")]
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

impl From<tokio_postgres::Error> for MigrationError {
    fn from(error: tokio_postgres::Error) -> Self {
        DbError::from(error).into()
    }
}

/// Applies what is missing, for as long as it takes: an index of a large table takes minutes. Several
/// processes may do so at once.
///
/// # Errors
/// [`MigrationError`]
pub async fn migrate(database: &Database) -> Result<(), MigrationError> {
    for migration in &MIGRATIONS {
        let mut session = database.session().await?;
        apply(&mut session, migration).await?;
        session.keep();
    }
    Ok(())
}

/// Checks that everything this build needs is applied. What a later build has added is no fault: it
/// runs beside this one during a deployment.
///
/// # Errors
/// [`MigrationError`]
pub async fn check(database: &Database) -> Result<(), MigrationError> {
    let rows = within(async {
        let session = database.session().await?;
        let there = session.query_one("SELECT to_regclass('migrations') IS NOT NULL", &[]).await?;
        let rows = match there.try_get(0)? {
            true => session.query("SELECT number, digest FROM migrations", &[]).await?,
            false => Vec::new(),
        };
        session.keep();
        Ok::<_, DbError>(rows)
    })
    .await?;
    for migration in &MIGRATIONS {
        let row = rows.iter().find(|row| row.get::<_, i32>(0) == migration.number);
        let row = row.ok_or(MigrationError::Missing(migration.number))?;
        if row.get::<_, &[u8]>(1) != digest(migration) {
            return Err(MigrationError::Changed(migration.number));
        }
    }
    Ok(())
}

async fn apply(client: &mut Object, migration: &Migration) -> Result<(), MigrationError> {
    let change = client.transaction().await?;
    // One process at a time; the lock ends with the transaction.
    change
        .batch_execute(
            "SET LOCAL statement_timeout = 0;
             SELECT pg_advisory_xact_lock(7235908);
             CREATE TABLE IF NOT EXISTS migrations (
                 number integer PRIMARY KEY,
                 digest bytea NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now()
             )",
        )
        .await?;
    let applied = change
        .query_opt("SELECT digest FROM migrations WHERE number = $1", &[&migration.number])
        .await?;
    if let Some(row) = applied {
        return match row.get::<_, &[u8]>(0) == digest(migration) {
            true => Ok(()),
            false => Err(MigrationError::Changed(migration.number)),
        };
    }
    change.batch_execute(migration.sql).await?;
    change
        .execute(
            "INSERT INTO migrations (number, digest) VALUES ($1, $2)",
            &[&migration.number, &digest(migration).as_slice()],
        )
        .await?;
    change.commit().await?;
    Ok(())
}

fn digest(migration: &Migration) -> [u8; 32] {
    Sha256::digest(migration.sql).into()
}
