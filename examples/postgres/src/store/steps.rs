//! Steps on a connection, each of which ends in time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::Postgres;
use crate::db::{DbError, Session};
use crate::host::store::{Done, Refused};

/// How long an operation may take, waiting for its connection included: a caller would rather be
/// told than wait.
const STEP: Duration = Duration::from_secs(2);

/// For how long nobody tries again, when the database gave no answer.
const PAUSE: Duration = Duration::from_millis(250);

/// Refuses at once while the database gives no answer: else each caller would wait for as long as a
/// step may take, and hold a place in the pool.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<Option<Instant>>);

impl Postgres {
    /// Takes a connection for one step.
    pub(super) async fn session(&self) -> Result<Session, DbError> {
        self.database.session().await.inspect_err(|_| self.breaker.trip())
    }

    /// Waits for a step, and not longer than a step may take. One that breaks off closes its
    /// connection, and its transaction with it.
    pub(super) async fn within<T>(&self, step: impl Future<Output = Done<T>>) -> Done<T> {
        self.breaker.check()?;
        let Ok(done) = tokio::time::timeout(STEP, step).await else {
            self.breaker.trip();
            return Err(DbError::TimedOut.into());
        };
        if !matches!(done, Err(Refused::Unavailable(_))) {
            self.breaker.reset();
        }
        done
    }
}

impl Session {
    /// Gives the connection back where the database has answered, whatever the answer was.
    pub(super) fn end<T>(self, done: Done<T>) -> Done<T> {
        if !matches!(done, Err(Refused::Unavailable(_))) {
            self.keep();
        }
        done
    }
}

impl Breaker {
    fn check(&self) -> Done<()> {
        let mut until = self.lock();
        match *until {
            Some(instant) if Instant::now() < instant => {
                Err(Refused::Unavailable("the database gave no answer a moment ago".to_owned()))
            }
            // One tries; the others wait for what comes of it.
            Some(_) => {
                *until = Some(Instant::now() + PAUSE);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn trip(&self) {
        *self.lock() = Some(Instant::now() + PAUSE);
    }

    fn reset(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a row was refused because what it belongs to is not there.
pub(super) fn breaks_reference(error: &DbError) -> bool {
    has_code(error, &SqlState::FOREIGN_KEY_VIOLATION)
}

fn has_code(error: &DbError, code: &SqlState) -> bool {
    matches!(error, DbError::Statement(error) if error.code() == Some(code))
}
