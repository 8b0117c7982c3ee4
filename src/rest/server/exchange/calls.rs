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
/// Only an exchange creates a query. If a store's functions take a query, they cannot be called
/// without a credential, or for another account than the credential's account.
///
/// # The table
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/calls.sql")]
/// ```
///
/// The list is ordered by `started_at`, and a sync requests calls by `created_at`. Almost all calls are
/// written within an hour after they started. Bounds on `created_at` are therefore bounds on `started_at`,
/// too, and a page reads one range of the first index, in order. The few other calls have a separate index.
/// No call is lost, however late it is written.
///
/// A generic plan of this query is as good as a plan for the values, because the planner has no choice. With
/// a single index on `started_at`, a poll that finds nothing would read all calls of the account. With two
/// indexes and no bounds, the planner would have to guess, and would sometimes guess wrong.
///
/// The hour is a choice. It should be longer than almost all calls, because a longer call counts as late. A
/// poll reads the index entries of that span. The span is in the table and in the query, and must be the same
/// in both. All calls of an import of old calls are late. After a large import, a page whose bounds exclude
/// most of the imported calls is slow. In that case, limit how many rows a page reads, and answer with
/// [`answer_part`](Self::answer_part).
///
/// # Rules for the store
///
/// - A page is found by position, not by number: it has the rows after the last row served. A walk
///   therefore returns each call exactly once, however many calls are added meanwhile, and each
///   page costs the same.
/// - Ids compare bytewise, so the column in PostgreSQL has `COLLATE "C"`. Any other collation sorts
///   calls with the same `started_at` differently.
/// - A store that cannot compare pairs uses `started_at < $s OR (started_at = $s AND id < $i)`.
/// - A store that keeps microseconds rounds bounds with nanoseconds, and would return calls outside
///   the range. Use [`CallFilter::ceil_to_micros`] for such a store. Positions come from rows, so
///   they need no rounding. Create calls with [`Timestamp::floor_to_micros`], so that a call in
///   memory and its row have the same order.
/// - A walk does not include calls that become visible, or are added at the beginning of the list,
///   after the walk began. Incremental syncs find these calls by `created_at`.
///
/// For a store in memory, [`matches`](Self::matches) is the same condition in Rust. Rows are checked before
/// they are served. A wrong collation or a missing bound therefore causes a
/// [`RowsReason`](crate::rest::server::RowsReason) and a 500, not a gap in a customer's data.
#[derive(Debug)]
pub struct CallsQuery {
    pub(super) context: Context,
    pub(super) owner: Owner,
    after: Option<(Timestamp, CallId)>,
    filter: CallFilter,
    limit: usize,
    /// The key that seals the next cursor. It is a copy, so that a query borrows nothing across a look-up.
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

    /// Returns whether to select production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.owner.mode
    }

    /// Returns the position after which the rows come. Their calls started earlier, or started at
    /// the same instant and have a smaller id. `None` for the first page.
    #[must_use]
    pub fn after(&self) -> Option<(Timestamp, &CallId)> {
        self.after.as_ref().map(|(started_at, id)| (*started_at, id))
    }

    /// Returns the filter of the list.
    #[must_use]
    pub const fn filter(&self) -> &CallFilter {
        &self.filter
    }

    /// Returns whether the list has a filter. A store may then have to examine more rows than
    /// [`rows_to_read`](Self::rows_to_read).
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.filter != CallFilter::new()
    }

    /// Returns the number of rows to select. It is one more than the page holds, to show whether
    /// there is a next page.
    #[must_use]
    pub const fn rows_to_read(&self) -> usize {
        self.limit.saturating_add(1)
    }

    /// Returns whether a row is on this page or a later one.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.owner) && self.matches_call(&row.call)
    }

    /// Returns whether a call of the query's account and mode is on this page or a later one, for a
    /// store that separates accounts and modes.
    #[must_use]
    pub fn matches_call(&self, call: &Call) -> bool {
        self.filter.matches(call) && self.after().is_none_or(|after| call.list_order() < after)
    }

    /// Writes the response from the rows that match, in order. There are at most
    /// [`rows_to_read`](Self::rows_to_read) rows.
    ///
    /// # Errors
    /// A row belongs to another account, or the rows do not match the query: 500. No row is served.
    pub fn answer(self, rows: Vec<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        self.write(rows, None)
    }

    /// Writes the response of a store that stopped reading at the position `walked_to`, which comes after
    /// [`after`](Self::after). Pass all rows that match down to that position, in order, or
    /// [`rows_to_read`](Self::rows_to_read) of them. There is always a next page, even after an empty page.
    /// The next page begins after that position. If there are `rows_to_read` rows, the next page begins after
    /// the last call served, and the position is not used.
    ///
    /// # Errors
    /// The errors of [`answer`](Self::answer). Also, a position that is used does not come after the cursor,
    /// or comes before the last row.
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

    /// Returns the account of the credential. Look up only data of this account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.owner.account_id
    }

    /// Creates the rejection with 500, for a look-up that failed.
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
