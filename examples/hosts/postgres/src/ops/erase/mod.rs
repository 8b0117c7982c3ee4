//! Erasing: an account, or what an account has of one caller, contact or call.
//!
//! Signed bytes cannot be edited, for each attempt of an event has the same: the body of an event
//! that mentions the subject is removed as a whole, and what is pending of it is parked. A call stays
//! with its id, its times and its appointments, without its caller and its summary.
//!
//! Each function works in short steps, so that nobody waits for it, and never waits for a row while
//! it holds another: it leaves out what somebody holds, and looks again. It waits for transactions
//! that had begun before it, for what they have accepted is seen when they end. It may be called
//! again at any time: after it was killed, after a backup was restored, and until nothing is left.

mod account;
mod caller;
mod subject;

use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use serde::Serialize;
use tokio_postgres::error::SqlState;

use crate::db::{Database, DbError, StepError};
use crate::sql::{erase as sql, queue, store};
use host::log;

pub use self::account::account;
pub use self::caller::caller;
pub use self::subject::Subject;

/// How many rows a step reads.
const STEP: i64 = 1_000;

/// How often to look again for what somebody held, or what was committed meanwhile, and the first of
/// the waits before that.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// How often to look whether older transactions have ended.
const EVERY: Duration = Duration::from_millis(50);

/// How long to wait for what had begun before.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long for older transactions, at most.
    pub older: Duration,
    /// How long attempts may be in flight, whose answers are logged when they end. It is waited only
    /// if something was pending and a sender has lived in this time.
    pub in_flight: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { older: Duration::from_secs(60), in_flight: Duration::from_secs(30) }
    }
}

/// What was found, by its kind, and erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Calls without their caller or summary, or removed with their account.
    pub calls: u64,
    /// Events without their body, or removed.
    pub events: u64,
    /// Deliveries that were pending and are parked, or removed with their account.
    pub deliveries: u64,
    /// Entries of the log without the answer, or removed.
    pub attempts: u64,
    /// Alerts, removed with their account, as all that follows.
    pub alerts: u64,
    /// Recoveries.
    pub recoveries: u64,
    /// API keys.
    pub keys: u64,
    /// Endpoints.
    pub endpoints: u64,
    /// The account itself.
    pub accounts: u64,
}

/// The reason why something may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Left {
    /// A transaction that had begun before is still open: what it has accepted was not seen.
    OlderTransactions,
    /// The last look has found more, or what somebody held.
    Rows,
    /// Calls cannot be read, so what they say of the caller stays. The log has their ids.
    Unreadable,
}

/// The result of erasing. It names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Erased {
    /// What was found and erased.
    #[serde(flatten)]
    pub found: Found,
    /// Why something may be left, so that this has to be called again. `None`: nothing is left.
    pub left: Option<Left>,
}

/// The reason why nothing, or not everything, was erased. Call again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraseError {
    /// There is no such account, and nothing of it.
    #[error("account not found")]
    NoAccount,
    /// The number is too short to be found and nothing else.
    #[error("the number has fewer than {fewest} digits")]
    ShortNumber {
        /// The fewest digits.
        fewest: usize,
    },
    /// The id is too short to be found and nothing else.
    #[error("the id has fewer than {fewest} characters")]
    ShortId {
        /// The fewest characters.
        fewest: usize,
    },
    /// The database did not respond.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl StepError for EraseError {
    fn is_unanswered(&self) -> bool {
        matches!(self, Self::Db(error) if error.is_unanswered())
    }
}

impl Found {
    fn add(&mut self, more: &Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.events = self.events.saturating_add(more.events);
        self.deliveries = self.deliveries.saturating_add(more.deliveries);
        self.attempts = self.attempts.saturating_add(more.attempts);
        self.alerts = self.alerts.saturating_add(more.alerts);
        self.recoveries = self.recoveries.saturating_add(more.recoveries);
        self.keys = self.keys.saturating_add(more.keys);
        self.endpoints = self.endpoints.saturating_add(more.endpoints);
        self.accounts = self.accounts.saturating_add(more.accounts);
    }
}

/// Returns what came of erasing. What somebody held for too long is left.
fn ended(done: Result<Option<Left>, EraseError>, found: Found) -> Result<Erased, EraseError> {
    match done {
        Ok(left) => Ok(Erased { found, left }),
        Err(EraseError::Db(error)) if is_held(&error) => {
            Ok(Erased { found, left: Some(Left::Rows) })
        }
        Err(error) => Err(error),
    }
}

/// Tells whether somebody holds a row for too long.
fn is_held(error: &DbError) -> bool {
    let DbError::Statement(error) = error else { return false };
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
        || error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// The result of a step: where the next one begins, `None` if nothing is left; and what was found.
type Step<P, F> = Result<(Option<P>, F), DbError>;

/// Repeats a step until nothing is left, and hands in what each has found.
async fn every_step<P, F>(
    database: &Database,
    first: P,
    step: impl AsyncFn(&Transaction<'_>, &P) -> Step<P, F>,
    mut found: impl FnMut(F),
) -> Result<(), DbError> {
    let mut place = first;
    loop {
        let (next, done) = database.change(async |change| step(change, &place).await).await?;
        found(done);
        match next {
            Some(next) => place = next,
            None => return Ok(()),
        }
    }
}

/// Tells whether the account has a row.
async fn has_row(database: &Database, account: &str) -> Result<bool, EraseError> {
    let known = async |client: &Object| sql::account_known(client, account).await;
    match database.read(known).await? {
        (has_row, true) => Ok(has_row),
        (_, false) => Err(EraseError::NoAccount),
    }
}

/// Reads the numbers of an account's endpoints. Where the account's row is gone, those of its endpoints are,
/// and the deliveries tell.
async fn endpoints(database: &Database, account: &str, has_row: bool) -> Result<Vec<i32>, DbError> {
    if has_row {
        let all =
            async |client: &Object| store::endpoints_all(client, account, true, -1, i64::MAX).await;
        return Ok(database.read(all).await?.iter().map(|row| row.number).collect());
    }
    let (mut numbers, mut last) = (Vec::new(), -1);
    loop {
        let page = async |client: &Object| sql::endpoints(client, last, STEP).await;
        let rows = database.read(page).await?;
        let Some((reached, _)) = rows.last() else { return Ok(numbers) };
        last = *reached;
        numbers.extend(rows.iter().filter(|(_, of)| of == account).map(|(number, _)| *number));
    }
}

/// Waits for every transaction that had begun before this call. Returns whether all have ended.
async fn older_have_ended(database: &Database, patience: Duration) -> Result<bool, DbError> {
    let own = async |change: &Transaction<'_>| queue::transaction(change).await;
    let own = database.change(own).await?;
    let ended =
        async || database.read(async |client: &Object| queue::settled(client, &own).await).await;
    let wait = async {
        while !ended().await? {
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    };
    if ended().await? {
        return Ok(true);
    }
    log::info!("erasing waits for older transactions, at most {patience:?}");
    match tokio::time::timeout(patience, wait).await {
        Ok(ended) => ended.map(|()| true),
        // Once more, for who has no patience at all.
        Err(_) => ended().await,
    }
}

fn len<T>(rows: &[T]) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}
