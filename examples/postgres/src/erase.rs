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
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;

use crate::db::{At, Database, DbError, execute, query, within};
use crate::deliveries;
use crate::support::clock;

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

/// Why nothing, or not everything, was erased. Call again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraseError {
    /// There is no such account.
    #[error("there is no such account")]
    NoAccount,
    /// The number is too short to be found and nothing else.
    #[error("the number has fewer than {FEWEST} digits")]
    Short,
    /// The database gave no answer.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Erased {
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
struct Of {
    shard: i16,
    number: i32,
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
    let mut erased = Erased {
        calls: calls(database, account, &digits).await?,
        ..events(database, account, &endpoints, &digits).await?
    };
    erased.responses = responses(database, &endpoints, &digits).await?;
    if erased.pending > 0 {
        tokio::time::sleep(in_flight).await;
        erased.responses += responses(database, &endpoints, &digits).await?;
    }
    Ok(erased)
}

/// Erases an account with all that belongs to it.
///
/// # Errors
/// [`EraseError`]
pub async fn account(database: &Database, account: &str) -> Result<Erased, EraseError> {
    let endpoints = endpoints(database, account).await?;
    close(database, account, &endpoints).await?;
    let mut erased = Erased::default();
    for of in &endpoints {
        // An attempt in flight finds no row to write to, and is forgotten.
        let end = include_str!("../sql/erase_account_deliveries.sql");
        erased.pending += all(database, end, &[&of.number, &STEP]).await?;
        let log = include_str!("../sql/erase_account_log.sql");
        all(database, log, &[&of.number, &STEP]).await?;
    }
    let events = include_str!("../sql/erase_account_events.sql");
    erased.events = all(database, events, &[&account, &STEP]).await?;
    let calls = include_str!("../sql/erase_account_calls.sql");
    erased.calls = all(database, calls, &[&account, &STEP]).await?;
    run(database, include_str!("../sql/erase_account_rates.sql"), &[&account]).await?;
    run(database, include_str!("../sql/erase_account.sql"), &[&account]).await?;
    Ok(erased)
}

async fn endpoints(database: &Database, account: &str) -> Result<Vec<Of>, EraseError> {
    let found = within(async {
        let session = database.session().await?;
        let there = session.query_opt("SELECT FROM accounts WHERE id = $1", &[&account]).await?;
        let rows =
            query(&*session, include_str!("../sql/endpoints.sql"), &[&account, &true]).await?;
        session.keep();
        Ok::<_, DbError>(there.map(|_| rows))
    });
    let rows = found.await?.ok_or(EraseError::NoAccount)?;
    let of = |row: &tokio_postgres::Row| {
        Ok(Of { shard: row.try_get("shard")?, number: row.try_get("number")? })
    };
    Ok(rows.iter().map(of).collect::<Result<_, DbError>>()?)
}

/// Ends what may begin: keys, new events, attempts.
async fn close(database: &Database, account: &str, endpoints: &[Of]) -> Result<(), DbError> {
    let numbers: Vec<i32> = endpoints.iter().map(|of| of.number).collect();
    within(async {
        let mut session = database.session().await?;
        let change = session.transaction().await?;
        execute(&change, include_str!("../sql/erase_account_close.sql"), &[&account]).await?;
        let mut writes = Vec::new();
        for (number, mut endpoint) in deliveries::endpoints(&change, &numbers, true).await? {
            endpoint.delete(clock::now());
            writes.extend(endpoint.write().map(|write| (number, write)));
        }
        if !deliveries::write_endpoints(&change, &writes).await? {
            return Err(DbError::row("a locked endpoint has changed"));
        }
        change.commit().await?;
        session.keep();
        Ok(())
    })
    .await
}

async fn calls(database: &Database, account: &str, digits: &[char]) -> Result<u64, DbError> {
    let (mut last, mut erased) = (String::new(), 0);
    loop {
        let found = within(async {
            let session = database.session().await?;
            let read = include_str!("../sql/erase_calls_read.sql");
            let rows = query(&*session, read, &[&account, &last, &STEP]).await?;
            let (mut ids, mut bodies): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
            for row in &rows {
                let body: &str = row.try_get("body")?;
                if mentions(body, digits) {
                    ids.push(row.try_get("id")?);
                    bodies.push(without_caller(body, digits)?);
                }
            }
            if !ids.is_empty() {
                let write = include_str!("../sql/erase_calls_write.sql");
                execute(&*session, write, &[&account, &ids, &bodies]).await?;
            }
            session.keep();
            let next = rows.last().map(|row| row.try_get::<_, String>("id")).transpose()?;
            Ok::<_, DbError>((next, ids.len()))
        });
        let (next, count) = found.await?;
        erased += u64::try_from(count).unwrap_or(u64::MAX);
        match next {
            Some(next) => last = next,
            None => return Ok(erased),
        }
    }
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

async fn events(
    database: &Database,
    account: &str,
    endpoints: &[Of],
    digits: &[char],
) -> Result<Erased, DbError> {
    let shards: Vec<i16> = endpoints.iter().map(|of| of.shard).collect();
    let numbers: Vec<i32> = endpoints.iter().map(|of| of.number).collect();
    let mut erased = Erased::default();
    let mut last = (String::new(), At(Timestamp::MIN));
    loop {
        let found = within(async {
            let mut session = database.session().await?;
            let change = session.transaction().await?;
            let read = include_str!("../sql/erase_events_read.sql");
            let rows = query(&change, read, &[&account, &last.0, &last.1, &STEP]).await?;
            let (mut ids, mut created): (Vec<String>, Vec<At>) = (Vec::new(), Vec::new());
            for row in &rows {
                let body: &[u8] = row.try_get("body")?;
                if mentions(&String::from_utf8_lossy(body), digits) {
                    ids.push(row.try_get("id")?);
                    created.push(row.try_get("created_at")?);
                }
            }
            let mut pending = 0;
            if !ids.is_empty() {
                // The events first: then nothing of them is made pending again.
                let write = include_str!("../sql/erase_events_write.sql");
                execute(&change, write, &[&account, &ids, &created]).await?;
                let end = include_str!("../sql/erase_pending.sql");
                let now = At(clock::now());
                pending = execute(&change, end, &[&account, &shards, &numbers, &ids, &now]).await?;
            }
            change.commit().await?;
            session.keep();
            let next = rows.last().map(|row| {
                Ok::<_, DbError>((row.try_get::<_, String>("id")?, row.try_get("created_at")?))
            });
            Ok::<_, DbError>((next.transpose()?, ids.len(), pending))
        });
        let (next, count, pending) = found.await?;
        erased.events += u64::try_from(count).unwrap_or(u64::MAX);
        erased.pending += pending;
        match next {
            Some(next) => last = next,
            None => return Ok(erased),
        }
    }
}

/// Removes answers that mention the number, and all answers to events that were erased.
async fn responses(database: &Database, endpoints: &[Of], digits: &[char]) -> Result<u64, DbError> {
    let mut erased = 0;
    for of in endpoints {
        let mut last = i64::MIN;
        loop {
            let found = within(async {
                let session = database.session().await?;
                let read = include_str!("../sql/erase_log_read.sql");
                let rows = query(&*session, read, &[&of.number, &last, &STEP]).await?;
                let (mut ids, mut created) = (Vec::<i64>::new(), Vec::<At>::new());
                let (mut began, mut numbers) = (Vec::<At>::new(), Vec::<i16>::new());
                for row in &rows {
                    let began_at: Option<At> = row.try_get("began_at")?;
                    let (Some(began_at), response) =
                        (began_at, row.try_get::<_, &str>("response")?)
                    else {
                        continue;
                    };
                    if row.try_get("erased")? || mentions(response, digits) {
                        ids.push(row.try_get("id")?);
                        created.push(row.try_get("event_created_at")?);
                        began.push(began_at);
                        numbers.push(row.try_get("number")?);
                    }
                }
                let write = include_str!("../sql/erase_log_write.sql");
                let written = match ids.is_empty() {
                    true => 0,
                    false => execute(&*session, write, &[&ids, &created, &began, &numbers]).await?,
                };
                session.keep();
                let next = rows.last().map(|row| row.try_get::<_, i64>("id")).transpose()?;
                Ok::<_, DbError>((next, written))
            });
            let (next, count) = found.await?;
            erased += count;
            match next {
                Some(next) => last = next,
                None => break,
            }
        }
    }
    Ok(erased)
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
    let (mut wanted, mut between) = (digits.iter().peekable(), 0);
    for character in text.chars() {
        match wanted.peek() {
            None => return !character.is_ascii_digit(),
            Some(digit) if **digit == character => {
                wanted.next();
                between = 0;
            }
            Some(_) if character.is_alphanumeric() || between == 3 => return false,
            Some(_) => between += 1,
        }
    }
    wanted.peek().is_none()
}

/// Repeats a statement that does some of the work until there is none left.
async fn all(
    database: &Database,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, DbError> {
    let mut done = 0;
    loop {
        let some = within(async {
            let session = database.session().await?;
            let rows = query(&*session, sql, parameters).await?;
            session.keep();
            let some = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?;
            Ok::<_, DbError>(some.unwrap_or(0).unsigned_abs())
        });
        match some.await? {
            0 => return Ok(done),
            some => done += some,
        }
    }
}

async fn run(
    database: &Database,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, DbError> {
    within(async {
        let session = database.session().await?;
        let changed = execute(&*session, sql, parameters).await?;
        session.keep();
        Ok(changed)
    })
    .await
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
