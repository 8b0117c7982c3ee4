//! Pages: what to ask the store for, and the page made from the rows it gives.
//!
//! A page is found by position, not by number: the rows after the last one served, in an order
//! that never changes. So a walk meets every call once and none twice, however many are added
//! meanwhile, and its thousandth page costs what its first did.
//!
//! ```
//! use call_assistant::id::CallId;
//! use call_assistant::rest::{Limit, CreatedRange};
//! use call_assistant::model::Call;
//! use call_assistant::rest::server::PageQuery;
//! use call_assistant::Timestamp;
//!
//! let call = |id: &str, second| {
//!     let started = Timestamp::from_unix(second).unwrap();
//!     Call::new(CallId::parse(id).unwrap(), started, started)
//! };
//!
//! let query = PageQuery::first(CreatedRange::ALL, Limit::new(2)?);
//! assert_eq!(query.fetch(), 3);
//! let page = query.page(vec![call("c", 9), call("b", 7), call("a", 7)]).unwrap();
//! assert_eq!((page.calls.len(), page.has_more()), (2, true));
//!
//! // The next request brings the cursor back; here it asks for more at a time.
//! let next = PageQuery::next(page.next.unwrap(), CreatedRange::ALL, Limit::MAX).unwrap();
//! let last = next.page(vec![call("a", 7)]).unwrap();
//! assert!(!last.has_more());
//! # Ok::<(), call_assistant::rest::LimitError>(())
//! ```
//!
//! # The store's part
//!
//! ```sql
//! SELECT ...
//!   FROM calls
//!  WHERE account_id = $account
//!    AND livemode = $livemode
//!    AND created_at >= $created_after                      -- if created_after()
//!    AND created_at <  $created_before                     -- if created_before()
//!    AND (started_at, id) < ($after_started_at, $after_id) -- if after()
//!  ORDER BY started_at DESC, id DESC
//!  LIMIT $fetch                                            -- fetch(), which is limit + 1
//! ```
//!
//! - Ids compare bytewise: in PostgreSQL the column has `COLLATE "C"`. Under any other collation
//!   the order of calls that arrived at the same instant is another one.
//! - The comparison of pairs is what an index on `(account_id, livemode, started_at, id)` answers
//!   from one place. A store without it writes
//!   `started_at < $s OR (started_at = $s AND id < $i)`.
//! - A store that keeps microseconds rounds bounds that have nanoseconds, and returns calls that
//!   were not asked for: give it those of [`CreatedRange::in_microseconds`]. Positions come from rows,
//!   so they are exact already.
//! - A call that becomes visible late, or is added at the top while a walk goes on, is not met
//!   by that walk. Incremental syncs find it by `created_at`.
//!
//! [`PageQuery::matches`] is the same condition in Rust, for a store in memory. Whatever the store
//! gives is checked before it is served: a wrong collation or a forgotten bound is an
//! [error](RowsError), not a gap in somebody's data.

use alloc::vec::Vec;

use super::cursor::{Cursor, CursorError, Position};
use crate::Timestamp;
use crate::model::Call;
use crate::rest::{CreatedRange, Limit};

/// The rows of one page, for a store to find among one account's calls in one mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageQuery {
    after: Option<Position>,
    window: CreatedRange,
    limit: Limit,
}

impl PageQuery {
    /// The first page.
    #[must_use]
    pub const fn first(window: CreatedRange, limit: Limit) -> Self {
        Self { after: None, window, limit }
    }

    /// The page after a cursor, of a request that asks for these filters and this many calls.
    ///
    /// The limit may be another than before. The filters are the cursor's; each may be repeated or
    /// left out.
    ///
    /// # Errors
    /// [`CursorError::Filters`]: a filter is not the cursor's. It is `invalid_cursor` as well.
    pub fn next(cursor: Cursor, asked: CreatedRange, limit: Limit) -> Result<Self, CursorError> {
        let Cursor { after, window } = cursor;
        if !window.goes_on_with(&asked) {
            return Err(CursorError::Filters);
        }
        Ok(Self { after: Some(after), window, limit })
    }

    /// The position after which the rows come: those that started earlier, or at the same instant
    /// and have a smaller id.
    #[must_use]
    pub const fn after(&self) -> Option<&Position> {
        self.after.as_ref()
    }

    /// The bounds on `created_at`.
    #[must_use]
    pub const fn window(&self) -> &CreatedRange {
        &self.window
    }

    /// The bound from which on calls were written: rows at that instant match.
    #[must_use]
    pub const fn created_after(&self) -> Option<Timestamp> {
        self.window.created_after()
    }

    /// The bound before which calls were written: rows at that instant do not match.
    #[must_use]
    pub const fn created_before(&self) -> Option<Timestamp> {
        self.window.created_before()
    }

    /// The most calls the page holds.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// How many rows to ask for: one more than the page holds, to know whether there is a next.
    #[must_use]
    pub const fn fetch(&self) -> usize {
        self.limit.calls().saturating_add(1)
    }

    /// Whether a call of the account is on this page or a later one.
    #[must_use]
    pub fn matches(&self, call: &Call) -> bool {
        self.window.contains(call.created_at)
            && self.after.as_ref().is_none_or(|after| order(call) < order_of(after))
    }

    /// Makes the page from the rows found, in the order in which they were found.
    ///
    /// # Errors
    /// They are not what was asked for: a fault of the store or of its query, and a 500. Nothing
    /// of them may be served, since what else is missing is not known.
    pub fn page(&self, mut rows: Vec<Call>) -> Result<Page, RowsError> {
        self.check(&rows)?;
        let more = rows.len() > self.limit.calls();
        rows.truncate(self.limit.calls());
        let next = rows.last().filter(|_| more).map(|last| Cursor {
            after: Position { started_at: last.started_at, id: last.id.clone() },
            window: self.window,
        });
        Ok(Page { calls: rows, next })
    }

    fn check(&self, rows: &[Call]) -> Result<(), RowsError> {
        if rows.len() > self.fetch() {
            return Err(RowsError::TooMany { rows: rows.len(), fetch: self.fetch() });
        }
        let mut before = self.after.as_ref().map(order_of);
        for (row, call) in rows.iter().enumerate() {
            if !self.window.contains(call.created_at) {
                return Err(RowsError::OutsideWindow { row });
            }
            if before.is_some_and(|before| before <= order(call)) {
                return Err(RowsError::OutOfOrder { row });
            }
            before = Some(order(call));
        }
        Ok(())
    }
}

/// One page of calls, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The calls.
    pub calls: Vec<Call>,
    /// Where the next page begins, to be sealed; `None` if this is the last.
    pub next: Option<Cursor>,
}

impl Page {
    /// Whether there is another page: exactly if there is a cursor to it.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

/// A store gave rows that were not asked for.
///
/// It names the row by its place among those given, from 0, and nothing of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// More rows than [`PageQuery::fetch`].
    #[error("store gave {rows} rows, {fetch} were asked for")]
    TooMany {
        /// How many it gave.
        rows: usize,
        /// How many were asked for.
        fetch: usize,
    },
    /// The row does not come after the one before it, or the first not after the cursor: another
    /// order, another collation, or a row twice.
    #[error("row {row} does not come after the one before it")]
    OutOfOrder {
        /// The row's place.
        row: usize,
    },
    /// The row's `created_at` is not within the bounds.
    #[error("row {row} is outside created_after and created_before")]
    OutsideWindow {
        /// The row's place.
        row: usize,
    },
}

/// Greater is newer, and comes first.
fn order(call: &Call) -> (Timestamp, &str) {
    (call.started_at, call.id.as_str())
}

fn order_of(position: &Position) -> (Timestamp, &str) {
    (position.started_at, position.id.as_str())
}
