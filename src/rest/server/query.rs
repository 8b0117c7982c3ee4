//! What an authorised request asks the store for, and what the store may give.

use alloc::vec::Vec;

use super::cursor::{Cursor, CursorError, CursorKeys, Position};
use super::grant::Grant;
use crate::Timestamp;
use crate::id::{AccountId, CallId};
use crate::model::Call;
use crate::rest::{CreatedRange, ListCalls, Mode};

/// A call of a store, with its account and mode.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::id::{AccountId, CallId};
/// use call_assistant::model::Call;
/// use call_assistant::rest::{Mode, server::CallRow};
///
/// let now = Timestamp::UNIX_EPOCH;
/// let call = Call::new(CallId::parse("call_1")?, now, now);
/// let row = CallRow { account_id: AccountId::parse("acct_1")?, mode: Mode::Live, call };
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// The public object does not name its account, so a list in memory or a missing `WHERE` could
/// serve one customer's calls to another. Fill in what the row says, not what was requested. The
/// struct is exhaustive: a new field must not compile until the store fills it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The account that the call belongs to.
    pub account_id: AccountId,
    /// Production or test data.
    pub mode: Mode,
    /// The call.
    pub call: Call,
}

impl CallRow {
    pub(super) fn belongs_to(&self, grant: &Grant) -> bool {
        self.account_id == *grant.account_id() && self.mode == grant.mode()
    }
}

/// A page of one account's calls in one mode: what to look up for `GET /v1/calls`.
///
/// ```sql
#[doc = include_str!("sql/page.sql")]
/// ```
///
/// Only an exchange makes a query. A store whose functions take one cannot be asked without a
/// credential, nor for an account other than the credential's.
///
/// # The table
///
/// ```sql
#[doc = include_str!("sql/calls.sql")]
/// ```
///
/// The list is ordered by `started_at`, and a sync asks for calls by `created_at`. Almost all calls are
/// written within an hour after they started. So calls that were created within some bounds started
/// within bounds, too, and a page reads one range of the first index, in order. The few other calls have
/// an index of their own. No call is lost, however late it is written.
///
/// A generic plan of this is as good as one for the values, because the planner has nothing to choose.
/// With one index on `started_at` alone, a poll that finds nothing reads all calls of the account; with
/// two indexes and no bounds, the planner guesses, and sometimes guesses wrong.
///
/// Choose the hour above the longest call: a poll reads the index entries of that span. It stands in
/// the table and in the query, and has to be the same in both. An import of old calls is late as a
/// whole; if it is large, its pages are slow.
///
/// # Rules for the store
///
/// - A page is found by position, not by number: the rows after the last one served. A walk returns
///   each call exactly once, however many calls are added meanwhile, and each page costs the same.
/// - Ids compare bytewise: in PostgreSQL the column has `COLLATE "C"`. Any other collation sorts
///   calls with the same `started_at` differently.
/// - A store that cannot compare pairs uses `started_at < $s OR (started_at = $s AND id < $i)`.
/// - A store that keeps microseconds rounds bounds with nanoseconds, and would return calls outside
///   the range. Use [`CreatedRange::ceil_to_micros`] there. Positions come from rows, so they need
///   no rounding; calls are made with [`Timestamp::floor_to_micros`], so that a call in memory and
///   its row have the same order.
/// - A walk does not include calls that become visible or are added at the top after it began.
///   Incremental syncs find them by `created_at`.
///
/// For a store in memory, [`matches`](Self::matches) is the same condition in Rust. Rows are checked
/// before they are served: a wrong collation or a missing bound is a [`RowsReason`] and a 500, not a
/// gap in a customer's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsQuery {
    grant: Grant,
    after: Option<Position>,
    created: CreatedRange,
    limit: usize,
}

impl CallsQuery {
    /// Opens the cursor, if there is one. Its list's bounds may be repeated or left out.
    #[expect(clippy::expect_used, reason = "`ListCalls::from_query` has checked the bounds")]
    pub(super) fn new(
        grant: Grant,
        list: &ListCalls,
        cursors: &CursorKeys,
    ) -> Result<Self, CursorError> {
        let asked = list.created().expect("`ListCalls::from_query` has checked the bounds");
        let limit = list.limit;
        let Some(text) = &list.cursor else {
            return Ok(Self { grant, after: None, created: asked, limit });
        };
        let Cursor { after, created } = cursors.open(grant.account_id(), grant.mode(), text)?;
        let same = |own, asked: Option<Timestamp>| asked.is_none() || asked == own;
        if !same(created.created_after(), asked.created_after())
            || !same(created.created_before(), asked.created_before())
        {
            return Err(CursorError::Filters);
        }
        Ok(Self { grant, after: Some(after), created, limit })
    }

    /// Returns the account whose calls to select.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Returns whether to select production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.grant.mode()
    }

    /// Returns the position after which the rows come: those that started earlier, or at the same
    /// instant and have a smaller id.
    #[must_use]
    pub const fn after(&self) -> Option<&Position> {
        self.after.as_ref()
    }

    /// Returns the bounds of `created_at`.
    #[must_use]
    pub const fn created(&self) -> CreatedRange {
        self.created
    }

    /// Returns the number of rows to select: one more than the page holds, to know whether there
    /// is a next page.
    #[must_use]
    pub const fn rows_to_read(&self) -> usize {
        self.limit.saturating_add(1)
    }

    /// Returns whether a row is on this page or a later one.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.grant) && self.matches_call(&row.call)
    }

    /// Returns whether a call of the query's account and mode is on this page or a later one, for a
    /// store that keeps accounts and modes apart.
    #[must_use]
    pub fn matches_call(&self, call: &Call) -> bool {
        self.created.contains(call.created_at)
            && self.after.as_ref().is_none_or(|after| call.list_order() < order_of(after))
    }

    pub(super) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Creates the page: its calls, and where the next one begins.
    pub(super) fn page(
        &self,
        rows: Vec<CallRow>,
    ) -> Result<(Vec<Call>, Option<Cursor>), RowsReason> {
        self.check(&rows)?;
        let more = rows.len() > self.limit;
        let calls: Vec<Call> = rows.into_iter().take(self.limit).map(|row| row.call).collect();
        let next = calls.last().filter(|_| more).map(|last| Cursor {
            after: Position { started_at: last.started_at, id: last.id.clone() },
            created: self.created,
        });
        Ok((calls, next))
    }

    fn check(&self, rows: &[CallRow]) -> Result<(), RowsReason> {
        if rows.len() > self.rows_to_read() {
            return Err(RowsReason::TooMany { rows: rows.len(), asked: self.rows_to_read() });
        }
        let mut previous = self.after.as_ref().map(order_of);
        for (row, stored) in rows.iter().enumerate() {
            let call = &stored.call;
            if !stored.belongs_to(&self.grant) {
                return Err(RowsReason::WrongOwner { row });
            }
            if !self.created.contains(call.created_at) {
                return Err(RowsReason::OutsideRange { row });
            }
            if previous.is_some_and(|previous| previous <= call.list_order()) {
                return Err(RowsReason::OutOfOrder { row });
            }
            previous = Some(call.list_order());
        }
        Ok(())
    }
}

fn order_of(position: &Position) -> (Timestamp, &CallId) {
    (position.started_at, &position.id)
}

/// The reason why the rows of a page are not served, for the operator's log.
///
/// It names a row by its position among those given, from 0, and nothing of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsReason {
    /// There are more rows than [`CallsQuery::rows_to_read`].
    #[error("store gave {rows} rows, {asked} were asked for")]
    TooMany {
        /// The number of rows.
        rows: usize,
        /// The number that was asked for.
        asked: usize,
    },
    /// The row belongs to another account or mode.
    #[error("row {row} is another account's or mode's")]
    WrongOwner {
        /// The position of the row.
        row: usize,
    },
    /// The row does not come after the previous one, or after the cursor: another order, another
    /// collation, or a repeated row.
    #[error("row {row} does not come after the one before it")]
    OutOfOrder {
        /// The position of the row.
        row: usize,
    },
    /// The row's `created_at` is outside the bounds.
    #[error("row {row} is outside created_after and created_before")]
    OutsideRange {
        /// The position of the row.
        row: usize,
    },
}

/// One call of one account in one mode: what to look up for `GET /v1/calls/{call_id}`.
///
/// ```sql
#[doc = include_str!("sql/call.sql")]
/// ```
///
/// Only an exchange makes a query, as with [`CallsQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuery {
    grant: Grant,
    call_id: CallId,
}

impl CallQuery {
    pub(super) fn new(grant: Grant, call_id: CallId) -> Self {
        Self { grant, call_id }
    }

    /// Returns the account whose call to select.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Returns whether to select production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.grant.mode()
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Returns whether a row is the call, for a store in memory.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.grant) && row.call.id == self.call_id
    }

    pub(super) fn grant(&self) -> &Grant {
        &self.grant
    }
}
