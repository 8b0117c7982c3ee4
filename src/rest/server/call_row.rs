//! The rows of a store, and the reasons why a row is not served.

use alloc::string::String;
use alloc::vec::Vec;

use crate::id::AccountId;
use crate::model::Call;
use crate::rest::Mode;
use crate::rest::call_filter::FILTERS;

/// A call in a store, with its account and mode.
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
/// A [`Call`] does not contain its account. Without the account in this row, a list in memory or a missing
/// `WHERE` could serve one customer's calls to another customer. Fill in the account and the mode from the
/// stored call, not from the request.
///
/// Closed: a store compiles only if it fills in every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The account that the call belongs to.
    pub account_id: AccountId,
    /// The mode of the call.
    pub mode: Mode,
    /// The call.
    pub call: Call,
}

impl CallRow {
    pub(super) fn belongs_to(&self, owner: &Owner) -> bool {
        self.account_id == owner.account_id && self.mode == owner.mode
    }
}

/// The account and the mode of the only data that a credential can read.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) account_id: AccountId,
    pub(super) mode: Mode,
}

/// The reason why the rows of a page are not served, for the operator's log.
///
/// The error identifies a row by its position among the given rows, beginning with 0. The error does not
/// contain the row's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsReason {
    /// More rows than [`CallsQuery::rows_to_read`](super::CallsQuery::rows_to_read).
    #[error("store gave {rows} rows, {asked} were asked for")]
    #[non_exhaustive]
    TooMany {
        /// The number of rows.
        rows: usize,
        /// The number of rows that the query requested.
        asked: usize,
    },
    /// A row of another account or mode.
    #[error("row {row} is another account's or mode's")]
    #[non_exhaustive]
    WrongOwner {
        /// The position of the row.
        row: usize,
    },
    /// A row that does not come after the previous row or the cursor. The cause is a wrong order or
    /// collation, or a repeated row. Also, a `walked_to` of [`answer_part`](super::CallsQuery::answer_part)
    /// that does not come after the cursor, or comes before the last row.
    #[error("row {row} does not come after the one before it")]
    #[non_exhaustive]
    OutOfOrder {
        /// The position of the row. If `walked_to` is wrong, the number of rows.
        row: usize,
    },
    /// A row that the [filter](crate::rest::CallFilter) of the list does not select.
    #[error("row {row} is outside {}", filters())]
    #[non_exhaustive]
    OutsideFilter {
        /// The position of the row.
        row: usize,
    },
}

/// Returns the names of the filters.
fn filters() -> String {
    FILTERS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(" and ")
}
