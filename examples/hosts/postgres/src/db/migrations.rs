//! Migrations: by number, each once, and never changed once they are applied.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::{GenericClient, Object, PoolError};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::statements::{self as sql, Statement, batch};
use super::{Database, DbError, Fields as _, Session, StepError, execute, query, query_opt};

struct Migration {
    number: i32,
    sql: &'static str,
}

/// What this build needs. Each must leave the previous build able to run beside it.
const MIGRATIONS: [Migration; 18] = [
    Migration { number: 1, sql: include_str!("../../migrations/0001_schema.sql") },
    Migration { number: 2, sql: include_str!("../../migrations/0002_renewals.sql") },
    Migration { number: 3, sql: include_str!("../../migrations/0003_clocks.sql") },
    Migration { number: 4, sql: include_str!("../../migrations/0004_erasing.sql") },
    Migration { number: 5, sql: include_str!("../../migrations/0005_recoveries.sql") },
    Migration { number: 6, sql: include_str!("../../migrations/0006_late_calls.sql") },
    Migration { number: 7, sql: include_str!("../../migrations/0007_request_windows.sql") },
    Migration { number: 8, sql: include_str!("../../migrations/0008_accounts.sql") },
    Migration { number: 9, sql: include_str!("../../migrations/0009_days_as_owner.sql") },
    Migration { number: 10, sql: include_str!("../../migrations/0010_logins.sql") },
    Migration { number: 11, sql: include_str!("../../migrations/0011_alerts.sql") },
    Migration { number: 12, sql: include_str!("../../migrations/0012_levers.sql") },
    Migration { number: 13, sql: include_str!("../../migrations/0013_dashboard.sql") },
    Migration { number: 14, sql: include_str!("../../migrations/0014_traces.sql") },
    Migration { number: 15, sql: include_str!("../../migrations/0015_journal.sql") },
    Migration { number: 16, sql: include_str!("../../migrations/0016_gauges.sql") },
    Migration { number: 17, sql: include_str!("../../migrations/0017_sender_places.sql") },
    Migration { number: 18, sql: include_str!("../../migrations/0018_kept_shards.sql") },
];

/// A large index that a migration needs. It is made before, outside of a transaction, so that nobody who
/// writes to its table waits for it.
struct Index {
    /// The number of the migration, whose own statement then finds the index there.
    of: i32,
    name: &'static str,
    make: Statement,
    remove: Statement,
}

const INDEXES: [Index; 1] = [Index {
    of: 6,
    name: "calls_late_in_time",
    make: sql::MIGRATE_CALLS_LATE_IN_TIME,
    remove: sql::MIGRATE_NO_CALLS_LATE_IN_TIME,
}];

/// How long to wait for the turn to migrate, and for a lock, before the next try.
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
    #[error("{0}: create it, and run `migrate --database URL` first")]
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
         `options`; docs/scaling.md says how to set it for the role"
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

/// Applies what is missing, for as long as it takes: an index of a large table takes minutes. Of several
/// processes one does so, and the others wait. Nobody who uses the database waits for longer than the
/// lock of a session may take: a migration that does not get its locks leaves the queue, and tries again.
///
/// # Errors
/// [`MigrationError`]
pub async fn migrate(database: &Database) -> Result<(), MigrationError> {
    // It is not kept: its end gives the turn to the next.
    let mut session = database.session().await?;
    batch(&*session, sql::MIGRATE_BEGIN).await?;
    while !has_turn(&session).await? {
        tokio::time::sleep(AGAIN).await;
    }
    batch(&*session, sql::MIGRATE_TABLE).await?;
    let applied = applied(&*session).await?;
    for migration in &MIGRATIONS {
        if let Some(found) = applied.get(&migration.number) {
            migration.compare(found)?;
            continue;
        }
        for index in INDEXES.iter().filter(|index| index.of == migration.number) {
            index.make(&session).await?;
        }
        while !apply(&mut session, migration).await? {
            tokio::time::sleep(AGAIN).await;
        }
    }
    Ok(())
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
            applied_at: found.map(|found| found.at),
            is_changed: found.is_some_and(|found| migration.compare(found).is_err()),
            sql: migration.sql,
        }
    };
    Ok(MIGRATIONS.iter().map(status).collect())
}

/// A migration of this build.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MigrationStatus {
    /// Its number.
    pub number: i32,
    /// When it was applied, if it was.
    pub applied_at: Option<Timestamp>,
    /// Whether it was changed after it was applied.
    pub is_changed: bool,
    /// Its statements.
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
    let settings = async |client: &Object| query_opt(client, sql::MIGRATE_SETTINGS, &[]).await;
    let ignored: Option<Row> = database.read(settings).await?;
    match ignored {
        Some(row) => Err(MigrationError::Ignored(row.field("name")?)),
        None => Ok(()),
    }
}

/// Tells whether it is this connection's turn to migrate.
async fn has_turn(client: &Object) -> Result<bool, DbError> {
    match query_opt(client, sql::MIGRATE_TURN, &[]).await? {
        Some(row) => row.field(0),
        None => Ok(false),
    }
}

/// Applies a migration, unless its locks are not to be had soon. Whether it is applied now.
async fn apply(session: &mut Session, migration: &Migration) -> Result<bool, DbError> {
    let change = session.transaction().await?;
    batch(&change, sql::MIGRATE_WAIT_BRIEFLY).await?;
    let digest = migration.digest();
    let apply = async || {
        change.batch_execute(migration.sql).await?;
        execute(&change, sql::MIGRATE_NOTE, &[&migration.number, &digest.as_slice()]).await
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

/// A migration that is applied.
struct Applied {
    digest: Vec<u8>,
    at: Timestamp,
}

/// Reads what is applied, by number.
async fn applied(client: &impl GenericClient) -> Result<BTreeMap<i32, Applied>, DbError> {
    let rows = query(client, sql::MIGRATE_APPLIED, &[]).await?;
    let of = |row: &Row| {
        let found = Applied { digest: row.field("digest")?, at: row.instant("applied_at")? };
        Ok((row.field("number")?, found))
    };
    rows.iter().map(of).collect()
}

/// Reads what is applied, also where nothing ever was.
async fn read_applied(database: &Database) -> Result<BTreeMap<i32, Applied>, DbError> {
    let read = async |client: &Object| match query_opt(client, sql::MIGRATE_ANY, &[]).await? {
        Some(any) if any.field(0)? => applied(client).await,
        _ => Ok(BTreeMap::new()),
    };
    database.read(read).await
}

impl Index {
    /// Makes the index, unless it is there. One whose making was ended half way is made again.
    async fn make(&self, client: &Object) -> Result<(), DbError> {
        if let Some(row) = query_opt(client, sql::MIGRATE_INDEX, &[&self.name]).await?
            && row.field(0)?
        {
            return Ok(());
        }
        batch(client, self.remove).await?;
        batch(client, self.make).await
    }
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
