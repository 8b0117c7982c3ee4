//! Erasing: an account, or one caller's number.
//!
//! Signed bytes cannot be edited, for each attempt of an event has the same: the body of an event
//! that mentions the number is removed as a whole, and what is pending of it is parked. A call stays
//! with its id, its times and its appointments, without its caller and its summary.
//!
//! Each function works in short steps, so that nobody waits for it, and may be called again at any
//! time: after it was killed, and after a backup was restored.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::model::{Call, CallCaller};
use deadpool_postgres::Transaction;
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clock;
use crate::db::statements::{self as sql, Statement};
use crate::db::{At, Database, DbError, Fields as _, StepError, execute, query, query_opt};
use crate::queue;

/// How many rows a step reads.
const STEP: i64 = 1_000;

/// The fewest digits of a number: fewer are found in too much.
const FEWEST: usize = 6;

/// How long attempts may be in flight, whose answers are logged when they end.
pub const IN_FLIGHT: Duration = Duration::from_secs(30);

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Calls without their caller or summary, or removed with their account.
    pub calls: u64,
    /// Events without their body, or removed.
    pub events: u64,
    /// Deliveries that were pending, and have ended or are removed.
    pub pending: u64,
    /// Answers of endpoints that are no longer in the log.
    pub responses: u64,
}

/// The reason why nothing, or not everything, was erased. Call again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraseError {
    /// The account does not exist.
    #[error("account not found")]
    NoAccount,
    /// The number is too short to be found and nothing else.
    #[error("the number has fewer than {FEWEST} digits")]
    Short,
    /// The database did not respond.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl StepError for EraseError {
    fn is_unanswered(&self) -> bool {
        matches!(self, Self::Db(_))
    }
}

impl Erased {
    fn add(&mut self, more: &Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.events = self.events.saturating_add(more.events);
        self.pending = self.pending.saturating_add(more.pending);
        self.responses = self.responses.saturating_add(more.responses);
    }

    /// As a line of JSON, which names nobody.
    #[must_use]
    pub fn line(&self) -> Value {
        json!({
            "calls": self.calls,
            "events": self.events,
            "pending": self.pending,
            "responses": self.responses,
        })
    }
}

/// An account's endpoint.
#[derive(Clone, Copy, Debug)]
struct AccountEndpoint {
    shard: i16,
    number: i32,
}

/// The result of a step: where the next one begins, `None` if nothing is left, and what was erased.
type Step<P> = Result<(Option<P>, Erased), DbError>;

/// Repeats a step until nothing is left. The one loop of this module.
async fn every_step<P>(
    database: &Database,
    first: P,
    step: impl AsyncFn(&Transaction<'_>, &P) -> Step<P>,
) -> Result<Erased, DbError> {
    let (mut place, mut erased) = (first, Erased::default());
    loop {
        let (next, done) = database.change(async |change| step(change, &place).await).await?;
        erased.add(&done);
        match next {
            Some(next) => place = next,
            None => return Ok(erased),
        }
    }
}

/// Erases a caller's number from the calls, events and logged answers of one account.
///
/// `in_flight` is how long to wait for attempts that are under way, before their answers are looked
/// at too: [`IN_FLIGHT`], unless nobody sends. It is waited only if something was pending.
///
/// # Errors
/// [`EraseError`]
pub async fn number(
    database: &Database,
    account: &str,
    number: &str,
    in_flight: Duration,
) -> Result<Erased, EraseError> {
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
    if digits.len() < FEWEST {
        return Err(EraseError::Short);
    }
    let endpoints = endpoints(database, account).await?;
    let mut erased = every_step(database, String::new(), async |change, after: &String| {
        calls(change, account, &digits, after).await
    })
    .await?;
    let first = (String::new(), At(Timestamp::MIN));
    let events = every_step(database, first, async |change, after: &(String, At)| {
        events(change, account, &endpoints, &digits, after).await
    });
    erased.add(&events.await?);
    erased.add(&responses(database, &endpoints, &digits).await?);
    if erased.pending > 0 {
        tokio::time::sleep(in_flight).await;
        erased.add(&responses(database, &endpoints, &digits).await?);
    }
    Ok(erased)
}

/// Erases an account with all that belongs to it.
///
/// # Errors
/// [`EraseError`]
pub async fn account(database: &Database, account: &str) -> Result<Erased, EraseError> {
    let endpoints = endpoints(database, account).await?;
    database.change(async |change| close(change, account, &endpoints).await).await?;
    let mut erased = Erased::default();
    for AccountEndpoint { number, .. } in &endpoints {
        // An attempt in flight finds no row to write to, and is forgotten.
        let pending = |pending| Erased { pending, ..Erased::default() };
        let deliveries = sql::ERASE_ACCOUNT_DELIVERIES;
        erased.add(&remove(database, deliveries, number, pending).await?);
        let uncounted = |_| Erased::default();
        erased.add(&remove(database, sql::ERASE_ACCOUNT_LOG, number, uncounted).await?);
    }
    let events = |events| Erased { events, ..Erased::default() };
    erased.add(&remove(database, sql::ERASE_ACCOUNT_EVENTS, &account, events).await?);
    let calls = |calls| Erased { calls, ..Erased::default() };
    erased.add(&remove(database, sql::ERASE_ACCOUNT_CALLS, &account, calls).await?);
    database
        .change(async |change| {
            execute(change, sql::ERASE_ACCOUNT_RATES, &[&account]).await?;
            execute(change, sql::ERASE_ACCOUNT, &[&account]).await
        })
        .await
        .map_err(EraseError::Db)?;
    Ok(erased)
}

async fn endpoints(database: &Database, account: &str) -> Result<Vec<AccountEndpoint>, EraseError> {
    database
        .read(async |client| {
            if query_opt(client, sql::ERASE_ACCOUNT_EXISTS, &[&account]).await?.is_none() {
                return Err(EraseError::NoAccount);
            }
            let rows = query(client, sql::ENDPOINTS_ALL, &[&account, &true]).await?;
            let endpoint = |row: &Row| {
                Ok(AccountEndpoint { shard: row.field("shard")?, number: row.field("number")? })
            };
            Ok(rows.iter().map(endpoint).collect::<Result<_, DbError>>()?)
        })
        .await
}

/// Ends what may begin: keys, new events, attempts.
async fn close(
    change: &Transaction<'_>,
    account: &str,
    endpoints: &[AccountEndpoint],
) -> Result<(), DbError> {
    let numbers: Vec<i32> = endpoints.iter().map(|endpoint| endpoint.number).collect();
    execute(change, sql::ERASE_ACCOUNT_CLOSE, &[&account]).await?;
    let mut writes = Vec::new();
    for (number, mut endpoint) in queue::lock_endpoints(change, &numbers).await? {
        endpoint.delete(clock::now());
        writes.extend(endpoint.if_version().map(|_| (number, endpoint)));
    }
    queue::write_locked_endpoints(change, &writes).await
}

/// Erases the caller from a page of calls that mention the number, after the call of this id.
async fn calls(
    change: &Transaction<'_>,
    account: &str,
    digits: &[char],
    after: &String,
) -> Step<String> {
    let rows = query(change, sql::ERASE_CALLS_READ, &[&account, after, &STEP]).await?;
    let (mut ids, mut bodies): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for row in &rows {
        let body: &str = row.field("body")?;
        if mentions(body, digits) {
            ids.push(row.field("id")?);
            bodies.push(without_caller(body, digits)?);
        }
    }
    if !ids.is_empty() {
        execute(change, sql::ERASE_CALLS_WRITE, &[&account, &ids, &bodies]).await?;
    }
    let next = rows.last().map(|row| row.field("id")).transpose()?;
    Ok((next, Erased { calls: len(&ids), ..Erased::default() }))
}

/// A call without what it says of a person. The caller of another number stays.
fn without_caller(body: &str, digits: &[char]) -> Result<String, DbError> {
    let mut call = Call::from_json(body.as_bytes()).map_err(DbError::row)?;
    let caller = serde_json::to_string(&call.caller).map_err(DbError::row)?;
    if mentions(&caller, digits) {
        call.caller = CallCaller::default();
    }
    call.summary = None;
    serde_json::to_string(&call).map_err(DbError::row)
}

/// Erases a page of events whose bodies mention the number, after the event of this id and time.
async fn events(
    change: &Transaction<'_>,
    account: &str,
    endpoints: &[AccountEndpoint],
    digits: &[char],
    (after, at): &(String, At),
) -> Step<(String, At)> {
    let rows = query(change, sql::ERASE_EVENTS_READ, &[&account, after, at, &STEP]).await?;
    let (mut ids, mut created): (Vec<String>, Vec<At>) = (Vec::new(), Vec::new());
    for row in &rows {
        let body: &[u8] = row.field("body")?;
        if mentions(&String::from_utf8_lossy(body), digits) {
            ids.push(row.field("id")?);
            created.push(row.field("created_at")?);
        }
    }
    let mut pending = 0;
    if !ids.is_empty() {
        // The events first: then nothing of them is made pending again.
        execute(change, sql::ERASE_EVENTS_WRITE, &[&account, &ids, &created]).await?;
        let shards: Vec<i16> = endpoints.iter().map(|endpoint| endpoint.shard).collect();
        let numbers: Vec<i32> = endpoints.iter().map(|endpoint| endpoint.number).collect();
        let now = At(clock::now());
        let end: [&(dyn ToSql + Sync); 5] = [&account, &shards, &numbers, &ids, &now];
        pending = execute(change, sql::ERASE_PENDING, &end).await?;
    }
    let next =
        rows.last().map(|row| Ok::<_, DbError>((row.field("id")?, row.field("created_at")?)));
    Ok((next.transpose()?, Erased { events: len(&ids), pending, ..Erased::default() }))
}

/// Removes answers that mention the number, and all answers to events that were erased.
async fn responses(
    database: &Database,
    endpoints: &[AccountEndpoint],
    digits: &[char],
) -> Result<Erased, DbError> {
    let mut erased = Erased::default();
    for endpoint in endpoints {
        let step = async |change: &Transaction<'_>, after: &i64| {
            responses_of(change, endpoint.number, digits, *after).await
        };
        erased.add(&every_step(database, i64::MIN, step).await?);
    }
    Ok(erased)
}

async fn responses_of(
    change: &Transaction<'_>,
    endpoint: i32,
    digits: &[char],
    after: i64,
) -> Step<i64> {
    let rows = query(change, sql::ERASE_LOG_READ, &[&endpoint, &after, &STEP]).await?;
    let (mut ids, mut created) = (Vec::<i64>::new(), Vec::<At>::new());
    let (mut began, mut numbers) = (Vec::<At>::new(), Vec::<i16>::new());
    for row in &rows {
        let Some(began_at) = row.field::<Option<At>>("began_at")? else { continue };
        if row.field("erased")? || mentions(row.field("response")?, digits) {
            ids.push(row.field("id")?);
            created.push(row.field("event_created_at")?);
            began.push(began_at);
            numbers.push(row.field("number")?);
        }
    }
    let mut responses = 0;
    if !ids.is_empty() {
        let log: [&(dyn ToSql + Sync); 4] = [&ids, &created, &began, &numbers];
        responses = execute(change, sql::ERASE_LOG_WRITE, &log).await?;
    }
    let next = rows.last().map(|row| row.field("id")).transpose()?;
    Ok((next, Erased { responses, ..Erased::default() }))
}

/// Repeats a statement that removes rows of an endpoint or an account, until it removes none.
async fn remove(
    database: &Database,
    sql: Statement,
    owner: &(dyn ToSql + Sync),
    erased: fn(u64) -> Erased,
) -> Result<Erased, DbError> {
    every_step(database, (), async |change: &Transaction<'_>, (): &()| {
        let row = query_opt(change, sql, &[owner, &STEP]).await?;
        let removed = row.map_or(Ok(0), |row| row.field::<i64>("count"))?.unsigned_abs();
        Ok(((removed > 0).then_some(()), erased(removed)))
    })
    .await
}

fn len<T>(rows: &[T]) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}

/// Whether a text has a number, however it is written: what is no letter or digit may stand between
/// its digits, three characters at most.
fn mentions(text: &str, digits: &[char]) -> bool {
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        if !previous.is_ascii_digit()
            && Some(&character) == digits.first()
            && begins_with(text.get(at..).unwrap_or_default(), digits)
        {
            return true;
        }
        previous = character;
    }
    false
}

fn begins_with(text: &str, digits: &[char]) -> bool {
    let (mut wanted, mut between) = (digits.iter().peekable(), 0_u8);
    for character in text.chars() {
        match wanted.peek() {
            None => return !character.is_ascii_digit(),
            Some(digit) if **digit == character => {
                wanted.next();
                between = 0;
            }
            Some(_) if character.is_alphanumeric() || between == 3 => return false,
            Some(_) => between = between.saturating_add(1),
        }
    }
    wanted.peek().is_none()
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_number_however_it_is_written() {
        let digits: Vec<char> = "4798765432".chars().collect();
        for text in [
            "+4798765432",
            "4798765432",
            "0047 98765432".trim_start_matches('0'),
            r#"{"phone_number":"+47 98 76 54 32"}"#,
            "call (47) 98-76-54-32.",
            "tel:+47-987\u{a0}65\u{a0}432;ext=1",
            "1 4798765432",
        ] {
            assert!(mentions(text, &digits), "{text}");
        }
        for text in [
            "",
            "479876543",
            "+479876543",
            "+47987654321",
            "14798765432",
            "47 98765 and 432",
            "47    98765432",
            "+4798765431",
        ] {
            assert!(!mentions(text, &digits), "{text}");
        }
    }
}
