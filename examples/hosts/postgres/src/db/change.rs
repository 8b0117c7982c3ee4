//! A transaction that owns its connection, for who takes one step of it after another.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::{Instant, timeout_at};

use super::connect::leads;
use super::pool::Session;
use super::{Database, DbError, StepError as _};

const BEGIN: &str = "START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE";

/// How long a transaction lasts at most, also one that has no deadline of its own: each of its statements has one.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A transaction with one deadline for all of it. One that is dropped, or that fails, leaves nothing, and its
/// connection is closed: it is never used again half way through.
pub struct OpenChange {
    database: Database,
    session: Session,
    deadline: Instant,
}

impl fmt::Debug for OpenChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenChange").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Database {
    /// Begins a transaction.
    ///
    /// # Errors
    /// There was no connection or no answer in time.
    pub async fn begin(&self) -> Result<OpenChange, DbError> {
        let now = Instant::now();
        let deadline = now.checked_add(self.patience().min(LONGEST)).unwrap_or(now);
        let session = match timeout_at(deadline, self.session()).await {
            Ok(session) => session?,
            Err(_) => return Err(DbError::TimedOut),
        };
        let change = OpenChange { database: self.clone(), session, deadline };
        change.within(async { Ok(change.client().batch_execute(BEGIN).await?) }).await?;
        Ok(change)
    }
}

impl OpenChange {
    /// Returns the connection, whose statements are of this transaction.
    pub fn client(&self) -> &Object {
        &self.session
    }

    /// Waits for a step of it.
    ///
    /// # Errors
    /// The step's, or that there was no answer in time.
    pub async fn within<T>(
        &self,
        step: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        let done = timeout_at(self.deadline, step).await.unwrap_or(Err(DbError::TimedOut));
        if let Err(error) = &done
            && error.is_unanswered()
            && (matches!(error, DbError::TimedOut) || !leads(&self.session).await)
        {
            self.database.doubt();
        }
        done
    }

    /// Commits it.
    ///
    /// # Errors
    /// There was no answer, or another than that it is committed: it may be all the same.
    pub async fn commit(self) -> Result<(), DbError> {
        self.within(async { Ok(self.client().batch_execute("COMMIT").await?) }).await?;
        self.session.keep();
        Ok(())
    }

    /// Ends it, and leaves nothing. Its connection is used again if the database says that it has ended.
    pub async fn roll_back(self) {
        let ended = async { Ok(self.client().batch_execute("ROLLBACK").await?) };
        if self.within(ended).await.is_ok() {
            self.session.keep();
        }
    }
}
