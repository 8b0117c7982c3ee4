//! A walk over pages: which page comes next, and when there is none.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::model::CallList;
use crate::rest::ListCalls;

/// How many empty pages in a row a walk takes, since an empty page may still lead to another one
/// but a walk must end.
pub const MAX_EMPTY_PAGES: u32 = 10_000;

/// A place in a list of calls: which cursor to ask with next.
///
/// It is a small value that serialises, so a walk may go on in another process. What a page
/// without `has_more`, or with one that contradicts its cursor, means (D-24):
///
/// | `has_more` | `next_cursor` | |
/// |---|---|---|
/// | true or absent | a text | go on, also after an empty page |
/// | false | anything | the end |
/// | absent | none | the end |
/// | true | none | an error: to stop here would lose calls in silence |
///
/// An empty `next_cursor` is none. A cursor that comes back is an error: see
/// [`PagingError::Cycle`].
///
/// ```
/// use call_assistant::rest::ListCalls;
/// use call_assistant::rest::client::{Paging, Turn};
/// # use call_assistant::model::CallList;
/// # let mut pages = vec![CallList::new(vec![], None), CallList::new(vec![], Some("c1".into()))];
/// # let mut send = |_: &ListCalls| pages.pop().unwrap();
///
/// let mut place = Paging::start();
/// let mut list = ListCalls::new(); // and its window, the same for every page
/// loop {
///     list.cursor = place.cursor().map(String::from);
///     let page = send(&list);
///     for call in &page.data {
///         println!("{}", call.id);
///     }
///     match place.turn(&page)? {
///         Turn::Next(next) => place = next,
///         Turn::End => break,
///     }
/// }
/// # assert_eq!(list.cursor.as_deref(), Some("c1"));
/// # Ok::<(), call_assistant::rest::client::PagingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    #[serde(default)]
    cursor: Option<String>,
    /// An earlier cursor of this walk, moved up whenever the number of pages is a power of two:
    /// any cycle is met again within its length, without keeping every cursor.
    #[serde(default)]
    anchor: Option<String>,
    #[serde(default)]
    pages: u64,
    #[serde(default)]
    empty: u32,
}

/// What follows a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Turn {
    /// Another page: ask with the cursor of this place.
    Next(Paging),
    /// Nothing: this was the last page.
    End,
}

/// Why a page cannot be gone on from. The place before it still holds, and may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagingError {
    /// There is said to be another page, but no cursor leads there.
    #[error("has_more is true, but there is no next_cursor")]
    NoCursor,
    /// The page leads back to one that was there before.
    ///
    /// A page that leads to itself is found out at once. A longer cycle is found out after at most
    /// three times as many pages as were there until it closed: [`Paging`] keeps two cursors,
    /// not all of them. (A [`CallSync`](super::sync::CallSync) knows such a page by its calls,
    /// before any of them is returned twice.)
    #[error("next_cursor leads back to a page that was there before")]
    Cycle,
    /// The cursor is longer than [`ListCalls::MAX_CURSOR_LEN`].
    #[error("next_cursor has {len} bytes, more than {max}", max = ListCalls::MAX_CURSOR_LEN)]
    LongCursor {
        /// Its length, in bytes.
        len: usize,
    },
    /// There were more than [`MAX_EMPTY_PAGES`] empty pages in a row.
    #[error("more than {MAX_EMPTY_PAGES} empty pages in a row")]
    Empty,
}

impl Paging {
    /// The first page.
    #[must_use]
    pub fn start() -> Self {
        Self { cursor: None, anchor: None, pages: 0, empty: 0 }
    }

    /// What to ask with; `None` for the first page.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Decides what follows the page that this place led to.
    ///
    /// # Errors
    /// The page says that there is more but not where, or the walk would not end.
    pub fn turn(&self, page: &CallList) -> Result<Turn, PagingError> {
        let cursor = page.next_cursor.as_ref().filter(|cursor| !cursor.is_empty());
        let cursor = match (page.has_more, cursor) {
            (Some(false), _) | (None, None) => return Ok(Turn::End),
            (Some(true), None) => return Err(PagingError::NoCursor),
            (_, Some(cursor)) => cursor,
        };
        if cursor.len() > ListCalls::MAX_CURSOR_LEN {
            return Err(PagingError::LongCursor { len: cursor.len() });
        }
        if [&self.cursor, &self.anchor].into_iter().flatten().any(|before| before == cursor) {
            return Err(PagingError::Cycle);
        }
        let empty = if page.data.is_empty() { self.empty.saturating_add(1) } else { 0 };
        if empty > MAX_EMPTY_PAGES {
            return Err(PagingError::Empty);
        }
        let pages = self.pages.saturating_add(1);
        let anchor = if pages.is_power_of_two() { &self.cursor } else { &self.anchor };
        Ok(Turn::Next(Self { cursor: Some(cursor.clone()), anchor: anchor.clone(), pages, empty }))
    }
}
