//! Erasing what an account has of one caller, contact or call.

use std::error::Error;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::model::{Call, CallCaller};
use deadpool_postgres::{Object, Transaction};

use super::{
    EraseError, Erased, Found, LOOKS, Left, PAUSE, Patience, STEP, Step, Subject, ended, endpoints,
    every_step, has_row, len, older_have_ended,
};
use crate::db::{At, Database, DbError, span};
use crate::sql::erase as sql;
use crate::sql::queue::give_up;
use host::log;

/// What a look has found: changed, held by somebody, or calls that cannot be read, with the reason of each.
#[derive(Clone, Debug, Default)]
struct Look {
    found: Found,
    held: u64,
    unreadable: Vec<String>,
}

impl Look {
    fn add(&mut self, more: Self) {
        self.found.add(&more.found);
        self.held = self.held.saturating_add(more.held);
        self.unreadable.extend(more.unreadable);
    }
}

/// Erases a subject from the calls, events and logged answers of one account. An event that is
/// accepted later is found by the next call of this.
///
/// # Errors
/// [`EraseError`]
pub async fn caller(
    database: &Database,
    account: &str,
    subject: &Subject,
    patience: Patience,
) -> Result<Erased, EraseError> {
    let mut found = Found::default();
    let done = all(database, account, subject, patience, &mut found).await;
    ended(done, found)
}

/// Erases a subject, and returns why something may be left.
async fn all(
    database: &Database,
    account: &str,
    subject: &Subject,
    patience: Patience,
    found: &mut Found,
) -> Result<Option<Left>, EraseError> {
    let has_row = has_row(database, account).await?;
    found.add(&look(database, account, has_row, subject).await?.found);
    let have_ended = older_have_ended(database, patience.older).await?;
    let span = patience.in_flight;
    if found.deliveries > 0 && may_be_in_flight(database, span).await? {
        log::info!("erasing waits for attempts in flight: {span:?}");
        tokio::time::sleep(span).await;
    }
    for nth in 0..LOOKS {
        tokio::time::sleep(PAUSE.saturating_mul(nth)).await;
        let look = look(database, account, has_row, subject).await?;
        found.add(&look.found);
        if look.found != Found::default() || look.held > 0 {
            continue;
        }
        for why in &look.unreadable {
            log::warn!(account, "{why}: the caller is not erased from it");
        }
        return Ok(match (have_ended, look.unreadable.is_empty()) {
            (false, _) => Some(Left::OlderTransactions),
            (true, false) => Some(Left::Unreadable),
            (true, true) => None,
        });
    }
    Ok(Some(Left::Rows))
}

/// Tells whether a sender has lived in this span, so that something may still be in flight.
async fn may_be_in_flight(database: &Database, span: Duration) -> Result<bool, DbError> {
    let seconds = span.as_secs_f64();
    database.read(async |client: &Object| sql::may_be_in_flight(client, seconds).await).await
}

/// Looks through all that the account has, once.
async fn look(
    database: &Database,
    account: &str,
    has_row: bool,
    subject: &Subject,
) -> Result<Look, DbError> {
    let mut look = Look::default();
    let mut add = |more: Look| look.add(more);
    let step = async |change: &Transaction<'_>, after: &String| {
        calls(change, account, subject, after).await
    };
    every_step(database, String::new(), step, &mut add).await?;
    let step = async |change: &Transaction<'_>, after: &(String, At)| {
        events(change, account, subject, after).await
    };
    every_step(database, (String::new(), At(Timestamp::MIN)), step, &mut add).await?;
    for endpoint in endpoints(database, account, has_row).await? {
        let step = async |change: &Transaction<'_>, after: &i64| {
            pending(change, endpoint, *after, At(database.now())).await
        };
        every_step(database, i64::MIN, step, &mut add).await?;
        let step = async |change: &Transaction<'_>, after: &i64| {
            answers(change, endpoint, subject, *after).await
        };
        every_step(database, i64::MIN, step, &mut add).await?;
    }
    Ok(look)
}

/// Erases the caller from a page of calls that mention the subject, after the call of this id.
async fn calls(
    change: &Transaction<'_>,
    account: &str,
    subject: &Subject,
    after: &str,
) -> Step<String, Look> {
    let rows = sql::calls_read(change, account, after, STEP).await?;
    let (mut ids, mut old, mut new) = (Vec::<&str>::new(), Vec::<&str>::new(), Vec::new());
    let mut unreadable = Vec::new();
    for (id, body) in &rows {
        if !subject.is_in(body) {
            continue;
        }
        match without_caller(id, body, subject) {
            Ok(left) if left == *body => {}
            Ok(left) => {
                ids.push(id);
                old.push(body);
                new.push(left);
            }
            Err(why) => unreadable.push(format!("the call {id} cannot be read: {why}")),
        }
    }
    let mut calls = 0;
    if !ids.is_empty() {
        calls = sql::calls_write(change, account, &ids, &old, &new).await?;
    }
    let held = len(&ids).saturating_sub(calls);
    let next = rows.last().map(|(id, _)| id.clone());
    Ok((next, Look { found: Found { calls, ..Found::default() }, held, unreadable }))
}

/// Returns a call without what it says of a person. The caller of a call that only mentions the subject stays.
fn without_caller(id: &str, body: &str, subject: &Subject) -> Result<String, Box<dyn Error>> {
    let mut call = Call::from_json(body.as_bytes())?;
    let caller = serde_json::to_string(&call.caller)?;
    if subject.is_in(id) || subject.is_in(&caller) {
        call.caller = CallCaller::default();
    }
    call.summary = None;
    Ok(serde_json::to_string(&call)?)
}

/// Erases a page of events whose bodies mention the subject, after the event of this id and time.
async fn events(
    change: &Transaction<'_>,
    account: &str,
    subject: &Subject,
    (after, at): &(String, At),
) -> Step<(String, At), Look> {
    let rows = sql::events_read(change, account, after, *at, STEP).await?;
    let mentions = |row: &&sql::Event| subject.is_in(&String::from_utf8_lossy(&row.body));
    let of_subject: Vec<&sql::Event> = rows.iter().filter(mentions).collect();
    let ids: Vec<&str> = of_subject.iter().map(|row| row.id.as_str()).collect();
    let mut events = 0;
    if !ids.is_empty() {
        let (first, last) = span(of_subject.iter().map(|row| row.created_at));
        events = sql::events_write(change, account, &ids, first, last).await?;
    }
    let held = len(&ids).saturating_sub(events);
    Ok((
        rows.last().map(|row| (row.id.clone(), At(row.created_at))),
        Look { found: Found { events, ..Found::default() }, held, ..Look::default() },
    ))
}

/// Ends what is pending of erased events, in a page of an endpoint's deliveries after this one. Nothing
/// of them is made pending again.
async fn pending(change: &Transaction<'_>, endpoint: i32, after: i64, now: At) -> Step<i64, Look> {
    let rows = sql::pending_read(change, endpoint, after, STEP).await?;
    let next = rows.last().map(|(id, _)| *id);
    let erased = rows.into_iter().filter(|(_, erased)| *erased);
    let ids: Vec<i64> = erased.map(|(id, _)| id).collect();
    let mut deliveries = 0;
    if !ids.is_empty() {
        deliveries = give_up(change, &ids, now).await?;
    }
    let held = len(&ids).saturating_sub(deliveries);
    Ok((next, Look { found: Found { deliveries, ..Found::default() }, held, ..Look::default() }))
}

/// Removes answers that mention the subject, and all answers to events that were erased.
async fn answers(
    change: &Transaction<'_>,
    endpoint: i32,
    subject: &Subject,
    after: i64,
) -> Step<i64, Look> {
    let rows = sql::log_read(change, endpoint, after, STEP).await?;
    let (mut ids, mut created) = (Vec::<i64>::new(), Vec::<At>::new());
    let (mut began, mut numbers) = (Vec::<At>::new(), Vec::<i16>::new());
    for row in &rows {
        let Some((began_at, number)) = row.began_at.zip(row.number) else { continue };
        if row.erased || subject.is_in(&row.response) {
            ids.push(row.id);
            created.push(At(row.event_created_at));
            began.push(At(began_at));
            numbers.push(number);
        }
    }
    let mut attempts = 0;
    if !ids.is_empty() {
        attempts = sql::log_write(change, &ids, &created, &began, &numbers).await?;
    }
    let next = rows.last().map(|row| row.id);
    let held = len(&ids).saturating_sub(attempts);
    Ok((next, Look { found: Found { attempts, ..Found::default() }, held, ..Look::default() }))
}
