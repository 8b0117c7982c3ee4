//! The log of attempts, as rows.

use call_assistant::webhook::sender::{Excerpt, FailureReason, LogEntry};
use deadpool_postgres::GenericClient;

use crate::db::{At, DbError, span};
use crate::sql::sender::{self as sql, Entries, Entry};
use host::post::signed::Signed;
use host::rows::Key;

/// Writes entries of deliveries. One may be there already where a COMMIT was not
/// answered.
pub(super) async fn write(
    change: &impl GenericClient,
    log: &[(Key, &LogEntry, Option<&Signed>)],
    may_be_there: bool,
) -> Result<(), DbError> {
    if log.is_empty() {
        return Ok(());
    }
    let (first, last) = span(log.iter().map(|(key, ..)| key.event_created_at));
    let mut entries = Entries::default();
    for (key, entry, signed) in log {
        let ((response, response_cut), (headers, headers_cut)) =
            (stored(entry.response.as_ref()), stored(entry.headers.as_ref()));
        entries.push(Entry {
            delivery: key.delivery.cast_signed(),
            event_created_at: At(key.event_created_at),
            number: entry.attempt.into(),
            manual: entry.manual,
            began_at: At(entry.began_at),
            took_ms: i64::try_from(entry.took_ms).unwrap_or(i64::MAX),
            outcome: entry.outcome.to_string(),
            late: entry.late,
            status: entry.status.as_str(),
            next_at: entry.next_at.map(At),
            response,
            response_cut,
            headers,
            headers_cut,
            reason: entry.reason.as_ref().map(FailureReason::as_str).map(str::to_owned),
            signed_t: signed.map(|signed| signed.t),
            signed_by: signed.map(|signed| signed.secrets.iter().flat_map(|mark| mark.0).collect()),
        });
    }
    sql::log(change, &entries, may_be_there, first, last).await.map(drop)
}

/// Returns a part of an answer, and whether there was more. PostgreSQL's text holds every character but one.
fn stored(part: Option<&Excerpt>) -> (Option<String>, bool) {
    (part.map(|part| part.text.replace('\0', "\u{fffd}")), part.is_some_and(|part| part.cut))
}
