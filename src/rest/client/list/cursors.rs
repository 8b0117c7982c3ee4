use alloc::string::String;

use super::CallPages;
use crate::json::stored_object;
use crate::model::CallList;
use crate::rest::ListCalls;

/// The reason why a page does not fit into its list. The error does not change the walk's state, and
/// the page can be requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagingError {
    /// A page that announces a next page, but has no cursor for the next page.
    #[error("has_more is true, but there is no next_cursor")]
    NoCursor,
    /// A page that leads back to a previous page.
    ///
    /// If a page leads to itself, the cycle is detected at once. If a cycle of several pages closes
    /// after N pages, the walk detects the cycle after at most 3 × N pages, because the walk keeps only
    /// two cursors.
    #[error("next_cursor leads back to a previous page")]
    Cycle,
    /// A cursor that is longer than [`ListCalls::MAX_CURSOR_LEN`].
    #[error("next_cursor has {len} bytes, more than {max}", max = ListCalls::MAX_CURSOR_LEN)]
    #[non_exhaustive]
    LongCursor {
        /// The length of the cursor, in bytes.
        len: usize,
    },
    /// More than [`CallPages::MAX_EMPTY_PAGES`] pages in a row without a new call.
    #[error("more than {max} pages in a row with nothing new", max = CallPages::MAX_EMPTY_PAGES)]
    Empty,
    /// A call that started after the previous call in the list. Either the page with this call is not
    /// the requested page, or the service does not order the list by `started_at`. The walk cannot
    /// determine whether this call has already been returned.
    #[error("item {index} of the page started after the previous call of the list")]
    #[non_exhaustive]
    Order {
        /// The item's index on the page, from 0.
        index: usize,
    },
}

stored_object! {
    /// The page that a walk of any list requests next.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(super) struct Cursors {
        /// The cursor of the next request; `None` for the first page.
        pub(super) cursor: Option<String>,
        /// An earlier cursor, by which the walk detects a cycle. The walk replaces this cursor whenever
        /// the number of pages is a power of two.
        anchor: Option<String>,
        pages: u64,
        /// The number of pages in a row without progress.
        empty: u32,
    }
}

impl Cursors {
    pub(super) fn new(cursor: Option<String>) -> Self {
        Self { cursor, ..Self::default() }
    }

    /// Moves past `page`. Returns false if `page` was the last page.
    pub(super) fn follow(&mut self, page: &CallList, further: bool) -> Result<bool, PagingError> {
        let cursor = page.next_cursor.as_ref().filter(|cursor| !cursor.is_empty());
        let cursor = match (page.has_more, cursor) {
            (Some(false), _) | (None, None) => return Ok(false),
            (Some(true), None) => return Err(PagingError::NoCursor),
            (_, Some(cursor)) => cursor,
        };
        if cursor.len() > ListCalls::MAX_CURSOR_LEN {
            return Err(PagingError::LongCursor { len: cursor.len() });
        }
        if [&self.cursor, &self.anchor].into_iter().flatten().any(|before| before == cursor) {
            return Err(PagingError::Cycle);
        }
        let empty = if further { 0 } else { self.empty.saturating_add(1) };
        if empty > CallPages::MAX_EMPTY_PAGES {
            return Err(PagingError::Empty);
        }
        let before = self.cursor.replace(cursor.clone());
        (self.pages, self.empty) = (self.pages.saturating_add(1), empty);
        if self.pages.is_power_of_two() {
            self.anchor = before;
        }
        Ok(true)
    }
}
