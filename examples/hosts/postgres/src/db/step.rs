//! Steps: what is read or changed on one connection, with an end to every wait.
//!
//! ```text
//! let keys = database.read(async |client| sql::accounts_keys(client, id).await).await?;
//! database.change(async |change| sql::again(change, &ids).await).await?;
//! ```

use host::lock;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::IsolationLevel;

use super::class::Class;
use super::connect::leads;
use super::pool::Session;
use super::{Database, DbError};

/// How long a step takes at most before somebody finds out whether the database answers at all.
const SLOW: Duration = Duration::from_millis(500);

/// The error of a step.
pub trait StepError: From<DbError> {
    /// Tells whether the database gave no answer: then the step's connection is not used again.
    fn is_unanswered(&self) -> bool;
}

impl StepError for DbError {
    // A row that cannot be read is an answer.
    fn is_unanswered(&self) -> bool {
        !matches!(self, Self::Row(_))
    }
}

impl Database {
    /// Reads, by one statement or by several that need not agree. Where a caller waits for the answer,
    /// it is repeated once if its connection is lost: so it may do twice what it does.
    ///
    /// # Errors
    /// The step's, or that there was no answer in time.
    pub async fn read<T, E: StepError>(
        &self,
        step: impl AsyncFnOnce(&Object) -> Result<T, E> + Clone,
    ) -> Result<T, E> {
        self.within(async {
            match self.once(step.clone()).await {
                (Err(_), true) if self.is_answering() => self.once(step).await.0,
                (done, _) => done,
            }
        })
        .await
    }

    /// Writes by one statement, which must not be repeated.
    ///
    /// # Errors
    /// The step's, or that there was no answer in time: then it may have happened all the same.
    pub async fn write<T, E: StepError>(
        &self,
        step: impl AsyncFnOnce(&Object) -> Result<T, E>,
    ) -> Result<T, E> {
        self.within(async { self.once(step).await.0 }).await
    }

    /// Does a step, and tells whether its connection was lost.
    async fn once<T, E: StepError>(
        &self,
        step: impl AsyncFnOnce(&Object) -> Result<T, E>,
    ) -> (Result<T, E>, bool) {
        let session = match self.connect().await {
            Ok(session) => session,
            Err(error) => return (Err(error.into()), false),
        };
        let done = step(&session).await;
        self.end(session, done).await
    }

    /// Reads what is true at one instant.
    ///
    /// # Errors
    /// The step's, or that there was no answer in time.
    pub async fn snapshot<T, E: StepError>(
        &self,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transaction(IsolationLevel::RepeatableRead, true, step).await
    }

    /// Changes, in one transaction. It is committed where the step succeeds, and leaves nothing where
    /// it does not.
    ///
    /// # Errors
    /// The step's, or that there was no answer in time: then it may have happened all the same, if
    /// its COMMIT was under way.
    pub async fn change<T, E: StepError>(
        &self,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transaction(IsolationLevel::ReadCommitted, false, step).await
    }

    async fn transaction<T, E: StepError>(
        &self,
        isolation: IsolationLevel,
        read_only: bool,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.within(async {
            let mut may_repeat = self.is_answering();
            loop {
                let mut session = self.connect().await?;
                let begin = session.build_transaction().isolation_level(isolation);
                let transaction = match begin.read_only(read_only).start().await {
                    Ok(transaction) => transaction,
                    // Nothing has happened yet.
                    Err(_) if may_repeat => {
                        may_repeat = false;
                        self.doubt();
                        continue;
                    }
                    Err(error) => return Err(DbError::from(error).into()),
                };
                let done = async {
                    let done = step(&transaction).await?;
                    transaction.commit().await.map_err(DbError::from)?;
                    Ok(done)
                };
                let done = done.await;
                return self.end(session, done).await.0;
            }
        })
        .await
    }

    /// Gives the connection back where the database has answered, whatever the answer was. Tells
    /// whether it was lost: then what nobody uses is doubtful, too.
    async fn end<T, E: StepError>(
        &self,
        session: Session,
        done: Result<T, E>,
    ) -> (Result<T, E>, bool) {
        if !done.as_ref().is_err_and(E::is_unanswered) {
            session.keep();
            return (done, false);
        }
        let is_lost = !leads(&session).await;
        if is_lost {
            self.doubt();
        }
        session.close();
        (done, is_lost)
    }

    async fn connect(&self) -> Result<Session, DbError> {
        self.session().await.inspect_err(|error| {
            if error.is_unreachable() {
                self.breaker().trip(error.class());
            }
        })
    }

    /// Waits for a step, and not longer than a step may take. Dropping it closes its connection.
    async fn within<T, E: StepError>(
        &self,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.breaker().check()?;
        let mut step = pin!(tokio::time::timeout(self.patience(), step));
        let done = tokio::select! {
            biased;
            done = &mut step => done,
            () = tokio::time::sleep(SLOW) => {
                self.probe();
                step.await
            }
        };
        let Ok(done) = done else {
            self.doubt();
            self.breaker().prolong();
            return Err(DbError::TimedOut.into());
        };
        if !done.as_ref().is_err_and(E::is_unanswered) {
            self.breaker().reset();
        }
        done
    }

    /// Finds out whether the database answers at all, if nobody is at it.
    fn probe(&self) {
        let Some(turn) = self.breaker().turn_to_probe() else { return };
        let database = self.clone();
        tokio::spawn(async move {
            if !database.answers().await {
                database.breaker().trip(Class::Silent);
                database.doubt();
            }
            drop(turn);
        });
    }
}

/// A refusal of steps while the database gives no answer: else each caller would wait for as long as a
/// step may take, and hold a place in the pool.
#[derive(Debug)]
pub(super) struct Breaker {
    pause: Duration,
    /// Until when steps are refused, and why.
    until: Mutex<Option<(Instant, Class)>>,
    probe: Arc<Semaphore>,
}

impl Breaker {
    /// Creates a breaker that refuses for the time of `pause`.
    pub(super) fn new(pause: Duration) -> Self {
        // Who never refuses has nothing to find out.
        let probes = if pause.is_zero() { 0 } else { 1 };
        Self { pause, until: Mutex::new(None), probe: Arc::new(Semaphore::new(probes)) }
    }

    fn check(&self) -> Result<(), DbError> {
        let mut until = lock(&self.until);
        match *until {
            Some((instant, why)) if Instant::now() < instant => Err(DbError::Unanswered(why)),
            // One tries; the others wait for what comes of it.
            Some((_, why)) => {
                *until = self.pause_for(why);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn turn_to_probe(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.probe).try_acquire_owned().ok()
    }

    fn trip(&self, why: Class) {
        *lock(&self.until) = self.pause_for(why);
    }

    fn pause_for(&self, why: Class) -> Option<(Instant, Class)> {
        Some((Instant::now().checked_add(self.pause)?, why))
    }

    /// Refuses for longer, if nothing was answered since this refuses.
    fn prolong(&self) {
        let mut until = lock(&self.until);
        if let Some((_, why)) = *until {
            *until = self.pause_for(why);
        }
    }

    fn reset(&self) {
        *lock(&self.until) = None;
    }
}

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
