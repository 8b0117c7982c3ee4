//! Calls: they are written once, and found by account, mode, and time or id.

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::{CallQuery, CallRow, CallsQuery};
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{accounts, breaks_reference, listed, unreadable};
use crate::db::statements::{self as sql, Statement};
use crate::db::{At, Database, DbError, Fields as _, columns, execute, query};
use host::store::Listed;
use host::store::{Done, Refused};

/// So many calls go into one statement.
const BATCH: usize = 1_000;

columns! {
    /// Pages that are asked for.
    Pages of Page {
        account_id: String,
        live: bool,
        since: At,
        until: At,
        at: At,
        id: String,
        rows: i64,
    }
}

columns! {
    /// Calls that are asked for by id.
    Ids of Id {
        account_id: String,
        live: bool,
        id: String,
    }
}

impl Page {
    pub(super) fn of(asked: &CallsQuery) -> Self {
        let created = asked.created().ceil_to_micros();
        let (at, id) = match asked.after() {
            Some((started_at, id)) => (started_at, id.as_str().to_owned()),
            None => (Timestamp::MAX, String::new()),
        };
        Self {
            account_id: asked.account_id().as_str().to_owned(),
            live: asked.mode().is_live(),
            since: At(created.created_after().unwrap_or(Timestamp::MIN)),
            until: At(created.created_before().unwrap_or(Timestamp::MAX)),
            at: At(at),
            id,
            rows: i64::try_from(asked.rows_to_read()).unwrap_or(i64::MAX),
        }
    }
}

impl Id {
    pub(super) fn of(asked: &CallQuery) -> Self {
        Self {
            account_id: asked.account_id().as_str().to_owned(),
            live: asked.mode().is_live(),
            id: asked.call_id().as_str().to_owned(),
        }
    }
}

/// Reads pages. Whoever asked reads the calls of a row.
pub(super) async fn pages(database: Database, asked: Vec<Page>) -> Done<Vec<Done<Vec<Row>>>> {
    let (count, mut pages) = (asked.len(), Pages::default());
    asked.into_iter().for_each(|page| pages.push(page));
    look_up(database, sql::API_PAGE, &pages.parameters(), count).await
}

/// Reads calls by their ids: of each, a row or none.
pub(super) async fn by_id(database: Database, asked: Vec<Id>) -> Done<Vec<Done<Vec<Row>>>> {
    let (count, mut ids) = (asked.len(), Ids::default());
    asked.into_iter().for_each(|id| ids.push(id));
    look_up(database, sql::API_CALL, &ids.parameters(), count).await
}

/// Reads the rows that belong to each question.
async fn look_up(
    database: Database,
    statement: Statement,
    parameters: &[&(dyn ToSql + Sync)],
    questions: usize,
) -> Done<Vec<Done<Vec<Row>>>> {
    let rows = database.read(async |client| query(client, statement, parameters).await).await?;
    let mut found: Vec<Done<Vec<Row>>> = (0..questions).map(|_| Ok(Vec::new())).collect();
    for row in rows {
        let nth = usize::try_from(row.field::<i64>("nth")?).map_err(DbError::row)?;
        let own = nth.checked_sub(1).and_then(|nth| found.get_mut(nth));
        let Some(Ok(own)) = own else {
            return Err(DbError::row("a row of a question that was not asked").into());
        };
        own.push(row);
    }
    Ok(found)
}

/// Reads a call, with the account and mode that its row names.
pub(super) fn call_of(row: &Row) -> Done<CallRow> {
    let live: bool = row.field("livemode")?;
    let account_id = AccountId::parse(row.field("account_id")?).map_err(unreadable)?;
    let body: &str = row.field("body")?;
    let call = Call::from_json(body.as_bytes()).map_err(unreadable)?;
    Ok(CallRow { account_id, mode: if live { Mode::Live } else { Mode::Test }, call })
}

/// Reads the newest live calls of an account.
pub(super) async fn latest(
    client: &impl GenericClient,
    account: &str,
    most: usize,
) -> Done<Vec<Listed<Call>>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = query(client, sql::CALLS_LATEST, &[&account, &most]).await?;
    if rows.is_empty() {
        accounts::one(client, account).await?;
    }
    let read =
        |row: &Row| Ok(listed("call", row.field("id")?, call_of(row).map(|found| found.call)));
    rows.iter().map(read).collect()
}

/// Writes calls, and says how many of them were new.
pub(super) async fn insert(
    client: &impl GenericClient,
    account: &AccountId,
    mode: Mode,
    calls: &[Call],
) -> Done<u64> {
    let mut written: u64 = 0;
    for calls in calls.chunks(BATCH) {
        // What is served is what the columns say, so both have the column's precision.
        let calls: Vec<Call> = calls.iter().cloned().map(in_microseconds).collect();
        let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        let started: Vec<At> = calls.iter().map(|call| At(call.started_at)).collect();
        let created: Vec<At> = calls.iter().map(|call| At(call.created_at)).collect();
        let bodies: Vec<String> = calls.iter().map(json).collect::<Done<_>>()?;
        let inserted = execute(
            client,
            sql::CALLS_INSERT,
            &[&account.as_str(), &mode.is_live(), &ids, &started, &created, &bodies],
        )
        .await;
        let inserted = inserted.map_err(|error| match &error {
            error if breaks_reference(error) => Refused::NotFound("account"),
            _ => error.into(),
        })?;
        written = written.saturating_add(inserted);
    }
    Ok(written)
}

/// Writes the object that is served, as it is stored.
fn json(call: &Call) -> Done<String> {
    serde_json::to_string(call).map_err(unreadable)
}

pub(super) fn in_microseconds(mut call: Call) -> Call {
    call.started_at = call.started_at.floor_to_micros();
    call.created_at = call.created_at.floor_to_micros();
    call
}
