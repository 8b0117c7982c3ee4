//! Migrations: by number, each once, and never changed once they are applied.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::{GenericClient, Object, PoolError};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::rows::row;
use super::statements::statements;
use super::{At, Database, DbError, Session, StepError};

struct Migration {
    number: i32,
    sql: &'static str,
}

/// What this build needs: the files of `migrations`, by their numbers. Each must leave the previous build able to run
/// beside it.
const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

row! {
    /// A migration that is applied.
    struct Applied { number: i32, digest: Vec<u8>, applied_at: At, }
}

statements! { "migrate"
    fn any() -> bool;
    fn applied() -> Vec<Applied>;
    fn begin() = batch;
    fn note(number: i32, digest: &[u8]);
    fn settings() -> Option<String>;
    fn wait_briefly() = batch;
}

/// Returns the number of the last migration of this build. Behind it are those of later versions.
pub(crate) fn latest_migration() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.number)
}

/// How long to try whether sessions are kept apart: 3 s.
const PROBED: Duration = Duration::from_secs(3);

/// How long a migration that did not get its locks waits before the next try.
const AGAIN: Duration = Duration::from_millis(250);

/// The reason why this build does not run on this database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The database did not respond.
    #[error(transparent)]
    Db(DbError),
    /// The server has no database of this name.
    // Not a `source`: the message says all of it.
    #[error("{0}: create the database, and run `migrate --database URL` first")]
    NoDatabase(DbError),
    /// A migration is missing.
    #[error("migration {0} is not applied: run `migrate --database URL` first")]
    Missing(i32),
    /// A migration was changed after it was applied.
    #[error("migration {0} as applied differs from the one of this build")]
    Changed(i32),
    /// The settings that a session asks for are ignored: its time limits and plans are not as they have to be.
    #[error(
        "the setting `{0}` of this program's sessions is ignored: a pooler between here and the server drops \
         `options`; docs/scaling.md describes how to set it for the role"
    )]
    Ignored(String),
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

/// Applies what is missing, for as long as it takes. Of several processes one does so, and the others wait.
/// Nobody who uses the database waits for longer than the lock of a session may take: a migration that does
/// not get its locks leaves the queue, and tries again. Returns how many were applied.
///
/// # Errors
/// [`MigrationError`]
pub async fn migrate(database: &Database) -> Result<usize, MigrationError> {
    // It is not kept: its end gives the turn to the next.
    let mut session = database.session().await?;
    begin(&*session).await?;
    let applied = by_number(&*session).await?;
    let mut missing = 0_usize;
    for migration in MIGRATIONS {
        if let Some(found) = applied.get(&migration.number) {
            migration.compare(found)?;
            continue;
        }
        while !apply(&mut session, migration).await? {
            tokio::time::sleep(AGAIN).await;
        }
        missing = missing.saturating_add(1);
    }
    Ok(missing)
}

/// Returns each migration of this build, and whether it is applied.
///
/// # Errors
/// The database did not respond.
pub async fn status(database: &Database) -> Result<Vec<MigrationStatus>, DbError> {
    let applied = read_applied(database).await?;
    let status = |migration: &Migration| {
        let found = applied.get(&migration.number);
        MigrationStatus {
            number: migration.number,
            applied_at: found.map(|found| found.applied_at),
            is_changed: found.is_some_and(|found| migration.compare(found).is_err()),
            sql: migration.sql,
        }
    };
    Ok(MIGRATIONS.iter().map(status).collect())
}

/// A migration of this build.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct MigrationStatus {
    /// Its number.
    pub number: i32,
    /// When it was applied, if it was.
    pub applied_at: Option<Timestamp>,
    /// Whether it was changed after it was applied.
    #[serde(rename = "changed")]
    pub is_changed: bool,
    /// Its statements.
    #[serde(skip)]
    pub sql: &'static str,
}

/// Checks that everything this build needs is applied, and that its sessions are set as they ask for.
/// What a later build has added is no fault: it runs beside this one during a deployment.
///
/// # Errors
/// [`MigrationError`]
pub async fn check(database: &Database) -> Result<(), MigrationError> {
    let applied = read_applied(database).await?;
    MIGRATIONS.iter().try_for_each(|migration| match applied.get(&migration.number) {
        Some(found) => migration.compare(found),
        None => Err(MigrationError::Missing(migration.number)),
    })?;
    match database.read(async |client: &Object| settings(client).await).await? {
        Some(ignored) => Err(MigrationError::Ignored(ignored)),
        // A pooler with few connections answers late: then this tells nothing.
        None => timeout(PROBED, keeps_statements(database)).await.unwrap_or(Ok(())),
    }
}

/// Runs a prepared statement before and after another connection begins a transaction. A pooler of transactions gives that
/// the server's session, so that the second run is in a session which lacks the statement.
async fn keeps_statements(database: &Database) -> Result<(), MigrationError> {
    let session = database.session().await?;
    let run = async || settings(&*session).await;
    run().await?;
    let Some(mut beside) = database.beside().await else { return Ok(()) };
    let begun = beside.transaction().await.map_err(DbError::from)?;
    run().await?;
    drop(begun);
    session.keep();
    Ok(())
}

/// Applies a migration, unless its locks are not to be had soon. Whether it is applied now.
async fn apply(session: &mut Session, migration: &Migration) -> Result<bool, DbError> {
    let change = session.transaction().await?;
    wait_briefly(&change).await?;
    let digest = migration.digest();
    let apply = async || {
        change.batch_execute(migration.sql).await?;
        note(&change, migration.number, digest.as_slice()).await
    };
    match apply().await {
        Err(DbError::Statement(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            return Ok(false);
        }
        done => done?,
    };
    change.commit().await?;
    Ok(true)
}

/// Reads what is applied, by number.
async fn by_number(client: &impl GenericClient) -> Result<BTreeMap<i32, Applied>, DbError> {
    let applied = applied(client).await?.into_iter();
    Ok(applied.map(|applied| (applied.number, applied)).collect())
}

/// Reads what is applied, also where nothing ever was.
async fn read_applied(database: &Database) -> Result<BTreeMap<i32, Applied>, DbError> {
    let read = async |client: &Object| match any(client).await? {
        true => by_number(client).await,
        false => Ok(BTreeMap::new()),
    };
    database.read(read).await
}

impl Migration {
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.sql).into()
    }

    fn compare(&self, applied: &Applied) -> Result<(), MigrationError> {
        match applied.digest == self.digest() {
            true => Ok(()),
            false => Err(MigrationError::Changed(self.number)),
        }
    }
}
