//! An authorised request for a page of calls.

use alloc::string::String;
use alloc::vec::Vec;

use http::Response;

use super::Context;
use crate::Timestamp;
use crate::id::{AccountId, CallId};
use crate::model::{Call, CallList};
use crate::rest::server::call_row::Owner;
use crate::rest::server::cursor::CursorKey;
use crate::rest::server::{
    CallRow, Cursor, CursorError, CursorKeys, Rejection, RejectionReason, RowsReason,
};
use crate::rest::{CallFilter, ListCalls, Mode};

/// The query for a page of one account's calls in one mode, for `GET /v1/calls`.
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/page.sql")]
/// ```
///
/// Only an authorised request contains a query. Therefore a store's function that takes a query can be called
/// only for the account of a valid credential.
///
/// # The table
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/calls.sql")]
/// ```
///
/// The list is ordered by `started_at`, but a sync requests calls by `created_at`. Almost all calls are
/// written within an hour of their start. For these calls, bounds on `created_at` are also bounds on
/// `started_at`. A page therefore reads these calls from one range of the first index. The few other calls
/// are *late*. A page reads late calls from the second index, so a page misses no call.
///
/// PostgreSQL's generic plan of this query is as good as a plan for the query's values. With a single index
/// on `started_at`, a poll that finds no new calls would read all calls of the account. With two indexes and
/// no bounds on `started_at`, PostgreSQL would sometimes choose the wrong index.
///
/// You can replace the hour by another span, in the table and in the query. The span should be longer than
/// almost all calls, because a call longer than the span counts as late. A long span makes polls slow,
/// because a poll reads all index entries of the span. Old calls that a service imports are late. After a
/// large import, a page is slow if its bounds exclude most of the imported calls. If a page is slow, limit
/// the number of rows that the store reads, and answer with [`answer_part`](Self::answer_part).
///
/// # Rules for the store
///
/// - A page begins after the last row of the previous page, not at a page number. A walk therefore returns
///   each call exactly once, even if calls are added meanwhile. Each page has the same cost.
/// - Ids are compared bytewise. Therefore the column in PostgreSQL has `COLLATE "C"`. Any other collation can
///   put calls with the same `started_at` in another order.
/// - If your database cannot compare pairs, use `started_at < $s OR (started_at = $s AND id < $i)`.
/// - If a store keeps only microseconds, use [`CallFilter::ceil_to_micros`]. Otherwise, the store would round
///   a bound with nanoseconds, and return calls outside the bound. Cursors need no rounding, because their
///   positions come from rows. Round the times of new calls with [`Timestamp::floor_to_micros`], so that a
///   call in memory and its row have the same position.
/// - If a call becomes visible at a position that a walk has passed, the walk does not include the call. An
///   incremental sync finds the call by `created_at`.
///
/// For a store in memory, [`matches`](Self::matches) checks the condition of the SQL in Rust.
/// [`answer`](Self::answer) checks rows before they are served. Therefore a wrong collation or a missing
/// bound causes a [`RowsReason`](crate::rest::server::RowsReason) and a 500, not a gap in a customer's data.
#[derive(Debug)]
pub struct CallsQuery {
    pub(super) context: Context,
    pub(super) owner: Owner,
    after: Option<(Timestamp, CallId)>,
    filter: CallFilter,
    limit: usize,
    /// The key that seals the next cursor. The query copies the key, so that it borrows nothing during a
    /// look-up.
    cursor_key: CursorKey,
}

impl CallsQuery {
    pub(super) fn new(
        context: Context,
        owner: Owner,
        list: &ListCalls,
        cursors: &CursorKeys,
    ) -> Result<Self, Rejection> {
        let (after, filter) = begins(&owner, list, cursors)
            .map_err(|error| context.reject(RejectionReason::Cursor(error)))?;
        let cursor_key = cursors.signing_key().clone();
        Ok(Self { context, owner, after, filter, limit: list.limit, cursor_key })
    }

    /// Returns the mode of the data to select.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.owner.mode
    }

    /// Returns the instant and the id after which the page begins. The calls of the page started before this
    /// instant, or at this instant with a smaller id. Returns `None` for the first page.
    #[must_use]
    pub fn after(&self) -> Option<(Timestamp, &CallId)> {
        self.after.as_ref().map(|(started_at, id)| (*started_at, id))
    }

    /// Returns the filter of the list.
    #[must_use]
    pub const fn filter(&self) -> &CallFilter {
        &self.filter
    }

    /// Returns whether the list has a filter. A filtered list may require a store to examine more rows than
    /// [`rows_to_read`](Self::rows_to_read).
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.filter != CallFilter::new()
    }

    /// Returns the number of rows to select: the limit of the page plus one. The additional row shows that
    /// there is a next page.
    #[must_use]
    pub const fn rows_to_read(&self) -> usize {
        self.limit.saturating_add(1)
    }

    /// Returns whether a row is on this page or on a later page.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.owner) && self.matches_call(&row.call)
    }

    /// Returns whether a call of the query's account and mode is on this page or on a later page, for a store
    /// that separates accounts and modes.
    #[must_use]
    pub fn matches_call(&self, call: &Call) -> bool {
        self.filter.matches(call) && self.after().is_none_or(|after| call.list_order() < after)
    }

    /// Writes the response from the rows that match the query, in the order of the list. Pass at most
    /// [`rows_to_read`](Self::rows_to_read) rows.
    ///
    /// # Errors
    /// If a row belongs to another account, or the rows do not match the query, the response is 500, without
    /// any row.
    pub fn answer(self, rows: Vec<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        self.write(rows, None)
    }

    /// Writes the response of a store that stopped reading at the position `walked_to`. This position must
    /// come after [`after`](Self::after) in the list. Pass the matching rows up to `walked_to`, in the list's
    /// order, but at most [`rows_to_read`](Self::rows_to_read) rows. The response always has a next page,
    /// even if it contains no calls. If you pass `rows_to_read` rows, the next page begins after the last
    /// call served, and `walked_to` is not used. Otherwise, the next page begins after `walked_to`.
    ///
    /// # Errors
    /// Returns the errors of [`answer`](Self::answer). If `walked_to` is used, but does not come after the
    /// cursor, or comes before the last row, the response is also 500.
    pub fn answer_part(
        self,
        rows: Vec<CallRow>,
        walked_to: (Timestamp, CallId),
    ) -> Result<Response<Vec<u8>>, Rejection> {
        self.write(rows, Some(walked_to))
    }

    fn write(
        self,
        rows: Vec<CallRow>,
        walked_to: Option<(Timestamp, CallId)>,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        self.check(&rows, walked_to.as_ref())
            .map_err(|reason| self.context.reject(RejectionReason::Rows(reason)))?;
        let is_full = rows.len() > self.limit;
        let calls: Vec<Call> = rows.into_iter().take(self.limit).map(|row| row.call).collect();
        let next = match calls.last().filter(|_| is_full) {
            Some(last) => Some((last.started_at, last.id.clone())),
            None => walked_to,
        };
        let next = next.map(|(started_at, id)| self.cursor_after(started_at, id));
        Ok(self.context.respond(&CallList::new(calls, next)))
    }

    fn check(
        &self,
        rows: &[CallRow],
        walked_to: Option<&(Timestamp, CallId)>,
    ) -> Result<(), RowsReason> {
        if rows.len() > self.rows_to_read() {
            return Err(RowsReason::TooMany { rows: rows.len(), asked: self.rows_to_read() });
        }
        let mut previous = self.after();
        for (row, stored) in rows.iter().enumerate() {
            let call = &stored.call;
            if !stored.belongs_to(&self.owner) {
                return Err(RowsReason::WrongOwner { row });
            }
            if !self.filter.matches(call) {
                return Err(RowsReason::OutsideFilter { row });
            }
            if previous.is_some_and(|previous| previous <= call.list_order()) {
                return Err(RowsReason::OutOfOrder { row });
            }
            previous = Some(call.list_order());
        }
        let is_behind = |(started_at, id): &(Timestamp, CallId)| {
            let place = (*started_at, id);
            self.after().is_none_or(|after| place < after)
                && rows.last().is_none_or(|last| place <= last.call.list_order())
        };
        match walked_to.is_none_or(is_behind) || rows.len() > self.limit {
            true => Ok(()),
            false => Err(RowsReason::OutOfOrder { row: rows.len() }),
        }
    }

    fn cursor_after(&self, started_at: Timestamp, id: CallId) -> String {
        self.cursor_key.seal(
            &self.owner.account_id,
            self.owner.mode,
            &Cursor { started_at, id, filter: self.filter.clone() },
        )
    }

    /// Returns the id of the credential's account. Look up only data of this account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.owner.account_id
    }

    /// Creates the rejection with 500 for a failed look-up.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        self.context.reject(RejectionReason::Internal)
    }
}

/// The position where a page begins, and the filter of its list.
type Beginning = (Option<(Timestamp, CallId)>, CallFilter);

fn begins(owner: &Owner, list: &ListCalls, cursors: &CursorKeys) -> Result<Beginning, CursorError> {
    let Some(text) = &list.cursor else { return Ok((None, list.filter.clone())) };
    let Cursor { started_at, id, filter } = cursors.open(&owner.account_id, owner.mode, text)?;
    match list.filter.continues(&filter) {
        true => Ok((Some((started_at, id)), filter)),
        false => Err(CursorError::Filters),
    }
}
