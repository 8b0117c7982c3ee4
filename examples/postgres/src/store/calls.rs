//! Calls: they are written once, and found by account, mode, and time or id.

use call_assistant::id::AccountId;
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use deadpool_postgres::GenericClient;

use super::api::call_of;
use super::{accounts, breaks_reference, unreadable};
use crate::db::statements as sql;
use crate::db::{At, execute, query};
use host::store::{Done, Refused};

/// So many calls go into one statement.
const BATCH: usize = 1_000;

/// The newest live calls of an account.
pub(super) async fn latest(
    client: &impl GenericClient,
    account: &str,
    most: usize,
) -> Done<Vec<Call>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = query(client, sql::CALLS_LATEST, &[&account, &most]).await?;
    if rows.is_empty() {
        accounts::one(client, account).await?;
    }
    rows.iter().map(|row| Ok(call_of(row)?.call)).collect()
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

/// The object that is served, as it is stored.
fn json(call: &Call) -> Done<String> {
    serde_json::to_string(call).map_err(unreadable)
}

pub(super) fn in_microseconds(mut call: Call) -> Call {
    call.started_at = call.started_at.floor_to_micros();
    call.created_at = call.created_at.floor_to_micros();
    call
}
