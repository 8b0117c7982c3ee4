//! Calls: they are written once, and found by account, mode, and time or id.

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::{CallQuery, CallRow, CallsQuery};
use deadpool_postgres::GenericClient;

use super::{accounts, breaks_reference, listed, one_more, unreadable};
use crate::db::{At, Database, DbError};
use crate::sql::store::{self as sql, Id, Ids, Page, PagedCall, Pages, StoredCall};
use host::store::{CallPage, Done, List, PageOf, PartRows, Refused, call_place, place_of_call};

/// So many calls go into one statement.
const BATCH: usize = 1_000;

impl Page {
    pub(super) fn of(asked: &CallsQuery) -> Self {
        let filter = asked.filter().ceil_to_micros();
        let (at, id) = match asked.after() {
            Some((started_at, id)) => (started_at, id.as_str().to_owned()),
            None => (Timestamp::MAX, String::new()),
        };
        Self {
            account_id: asked.account_id().as_str().to_owned(),
            live: asked.mode().is_live(),
            since: At(filter.created_after.unwrap_or(Timestamp::MIN)),
            until: At(filter.created_before.unwrap_or(Timestamp::MAX)),
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
pub(super) async fn pages(database: Database, asked: Vec<Page>) -> Done<Vec<Done<Vec<PagedCall>>>> {
    let (count, mut pages) = (asked.len(), Pages::default());
    asked.into_iter().for_each(|page| pages.push(page));
    let rows = database.read(async |client| sql::api_page(client, &pages).await).await?;
    answers(rows.into_iter().map(|row| (row.nth, row)), count)
}

/// Reads the calls of a page that are in front of the place to which it was walked, if it was not walked to its end.
pub(super) fn page_of(found: Vec<PagedCall>, most: usize) -> Done<CallPage> {
    let mut page = CallPage::default();
    for row in found {
        let PagedCall { account_id, livemode, body, started_at, id, .. } = row;
        match (body, started_at.zip(id)) {
            (Some(body), _) => {
                page.rows.push(call_of(&StoredCall { account_id, livemode, body })?);
            }
            (None, place) => page.walked_to = page.walked_to.max(place),
        }
    }
    let CallPage { rows, walked_to } = &mut page;
    rows.sort_by(|a, b| b.call.list_order().cmp(&a.call.list_order()));
    if let Some((at, id)) = walked_to {
        rows.retain(|row| row.call.list_order() >= (*at, id));
    }
    rows.truncate(most);
    Ok(page)
}

/// Reads calls by their ids: of each, a row or none.
pub(super) async fn by_id(database: Database, asked: Vec<Id>) -> Done<Vec<Done<Vec<StoredCall>>>> {
    let (count, mut ids) = (asked.len(), Ids::default());
    asked.into_iter().for_each(|id| ids.push(id));
    let rows = database.read(async |client| sql::api_call(client, &ids).await).await?;
    answers(rows.into_iter().map(|row| (row.nth, row.call)), count)
}

/// Returns the rows that belong to each question.
fn answers<T>(rows: impl Iterator<Item = (i64, T)>, questions: usize) -> Done<Vec<Done<Vec<T>>>> {
    let mut found: Vec<Vec<T>> = (0..questions).map(|_| Vec::new()).collect();
    for (nth, row) in rows {
        let nth = usize::try_from(nth).map_err(DbError::row)?;
        let own = nth.checked_sub(1).and_then(|nth| found.get_mut(nth));
        own.ok_or_else(|| DbError::row("a row of a question that was not asked"))?.push(row);
    }
    Ok(found.into_iter().map(Ok).collect())
}

/// Reads a call, with the account and mode that its row names.
pub(super) fn call_of(row: &StoredCall) -> Done<CallRow> {
    let account_id = AccountId::parse(&row.account_id).map_err(unreadable)?;
    let call = Call::from_json(row.body.as_bytes()).map_err(unreadable)?;
    Ok(CallRow { account_id, mode: if row.livemode { Mode::Live } else { Mode::Test }, call })
}

/// Reads a page of the live calls of an account, newest first.
pub(super) async fn latest(
    client: &impl GenericClient,
    PageOf { account, after, limit }: PageOf<'_>,
) -> Done<List<Call>> {
    let (account, after) = (account.as_str(), call_place(after)?);
    let (at, id) = after.as_ref().map_or((Timestamp::MAX, ""), |(at, id)| (*at, id.as_str()));
    let rows = sql::calls_latest(client, account, At(at), id, one_more(limit)).await?;
    if rows.is_empty() {
        accounts::one(client, account).await?;
    }
    let read =
        |row: sql::ListedCall| listed("call", &row.id, call_of(&row.call).map(|found| found.call));
    Ok(PartRows::first(rows, limit, |row| place_of_call(row.started_at, &row.id), read))
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
        let (account, live) = (account.as_str(), mode.is_live());
        let inserted = sql::calls_insert(client, account, live, &ids, &started, &created, &bodies);
        let inserted = inserted.await;
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
