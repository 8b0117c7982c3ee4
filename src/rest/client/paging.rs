use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::model::CallList;
use crate::rest::ListCalls;

/// Bounds the pages in a row that bring a walk no further: an empty page may lead to another one,
/// but a walk must end.
pub const MAX_EMPTY_PAGES: u32 = 10_000;

/// Walks through the pages of a list of calls: holds the list, and where in it the walk is.
///
/// ```
/// use call_assistant::model::ListedCall;
/// use call_assistant::rest::ListCalls;
/// use call_assistant::rest::client::Paging;
/// # use call_assistant::model::CallList;
/// # let mut pages = vec![CallList::new(vec![], None), CallList::new(vec![], Some("c1".into()))];
/// # let mut send = |_: &ListCalls| pages.pop().unwrap();
///
/// let mut next = Some(Paging::new(ListCalls::new()));
/// while let Some(paging) = next {
///     let page = send(paging.list());
///     for item in &page.data {
///         match item {
///             ListedCall::Call(call) => println!("{}", call.id),
///             ListedCall::Unreadable(item) => println!("cannot be read: {}", item.json()),
///         }
///     }
///     next = paging.after(&page)?;
/// }
/// # assert!(pages.is_empty());
/// # Ok::<(), call_assistant::rest::client::PagingError>(())
/// ```
///
/// It is a small value that serialises, so a walk can continue in another process. How it decides
/// whether there is a next page:
///
/// | `has_more` | `next_cursor` | |
/// |---|---|---|
/// | true or absent | a text | continue, also after an empty page |
/// | false | anything | the end |
/// | absent | none | the end |
/// | true | none | an error: to stop here would lose calls silently |
///
/// An empty `next_cursor` counts as none. A cursor that comes back is an error: see
/// [`PagingError::Cycle`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredPaging", into = "StoredPaging")]
pub struct Paging {
    /// With the cursor of the page to ask for.
    list: ListCalls,
    cursors: Cursors,
}

impl Paging {
    /// Creates the walk through all pages of a list. If the list has a cursor, the walk begins
    /// there.
    #[must_use]
    pub fn new(list: ListCalls) -> Self {
        let cursors = Cursors { cursor: list.cursor.clone(), ..Cursors::default() };
        Self { list, cursors }
    }

    /// Returns the page to ask for.
    #[must_use]
    pub fn list(&self) -> &ListCalls {
        &self.list
    }

    /// Returns the same walk from the first page on: for when the service no longer takes the
    /// cursor (`invalid_cursor`). Pages that were read already come again.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self::new(ListCalls { cursor: None, ..self.list.clone() })
    }

    /// Decides what follows the page that [`list`](Self::list) was answered with. `None` means that
    /// it was the last one.
    ///
    /// # Errors
    /// The page says that there is more but not where, or the walk would not end. This value is
    /// unchanged, and the same page can be asked for again.
    pub fn after(&self, page: &CallList) -> Result<Option<Self>, PagingError> {
        self.follow(page, !page.data.is_empty())
    }

    /// The same, where the walk knows whether the page has brought it further.
    pub(super) fn follow(
        &self,
        page: &CallList,
        is_further: bool,
    ) -> Result<Option<Self>, PagingError> {
        let Some(cursors) = self.cursors.after(page, is_further)? else {
            return Ok(None);
        };
        let list = ListCalls { cursor: cursors.cursor.clone(), ..self.list.clone() };
        Ok(Some(Self { list, cursors }))
    }
}

/// Says why a page does not fit into its list. The state is unchanged, and the page can be asked for
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagingError {
    /// The page says that there is another one, but has no cursor that leads there.
    #[error("has_more is true, but there is no next_cursor")]
    NoCursor,
    /// The page leads back to a previous one.
    ///
    /// A page that leads to itself is found at once. A longer cycle is found after at most three
    /// times the number of pages it took to close, because two cursors are kept and not all of
    /// them. (A [`CallSync`](super::CallSync) recognises such a page by its calls, before any of
    /// them is returned twice.)
    #[error("next_cursor leads back to a previous page")]
    Cycle,
    /// The cursor is longer than [`ListCalls::MAX_CURSOR_LEN`].
    #[error("next_cursor has {len} bytes, more than {max}", max = ListCalls::MAX_CURSOR_LEN)]
    LongCursor {
        /// Its length, in bytes.
        len: usize,
    },
    /// There were more than [`MAX_EMPTY_PAGES`] pages in a row that are empty or, in a flow and in a
    /// [`CallSync`](super::CallSync), show nothing but what the walk has shown.
    #[error("more than {MAX_EMPTY_PAGES} pages in a row with nothing new")]
    Empty,
    /// A call started after the previous one in the list, so this page is not the one that was
    /// asked for, or the service does not order the list by `started_at`. Whether the call has
    /// been returned before cannot be told. [`Paging`] does not check it.
    #[error("item {index} of the page started after the previous call of the list")]
    Order {
        /// The item's index on the page, from 0.
        index: usize,
    },
}

/// Where in a list a walk is, whatever list it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursors {
    /// What to ask with; `None` for the first page.
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// An earlier cursor of this walk, moved up whenever the number of pages is a power of two:
    /// any cycle is met again within its length, without keeping every cursor.
    #[serde(default)]
    anchor: Option<String>,
    #[serde(default)]
    pages: u64,
    #[serde(default)]
    empty: u32,
}

impl Cursors {
    /// See [`Paging::after`].
    pub(super) fn after(
        &self,
        page: &CallList,
        is_further: bool,
    ) -> Result<Option<Self>, PagingError> {
        let cursor = page.next_cursor.as_ref().filter(|cursor| !cursor.is_empty());
        let cursor = match (page.has_more, cursor) {
            (Some(false), _) | (None, None) => return Ok(None),
            (Some(true), None) => return Err(PagingError::NoCursor),
            (_, Some(cursor)) => cursor,
        };
        if cursor.len() > ListCalls::MAX_CURSOR_LEN {
            return Err(PagingError::LongCursor { len: cursor.len() });
        }
        if [&self.cursor, &self.anchor].into_iter().flatten().any(|before| before == cursor) {
            return Err(PagingError::Cycle);
        }
        let empty = if is_further { 0 } else { self.empty.saturating_add(1) };
        if empty > MAX_EMPTY_PAGES {
            return Err(PagingError::Empty);
        }
        let pages = self.pages.saturating_add(1);
        let anchor = if pages.is_power_of_two() { &self.cursor } else { &self.anchor };
        Ok(Some(Self { cursor: Some(cursor.clone()), anchor: anchor.clone(), pages, empty }))
    }
}

/// How a [`Paging`] is stored. Earlier versions left the list to their hosts and wrote no bounds.
#[derive(Serialize, Deserialize)]
struct StoredPaging {
    #[serde(default = "default_limit")]
    limit: usize,
    #[serde(default)]
    created_after: Option<Timestamp>,
    #[serde(default)]
    created_before: Option<Timestamp>,
    #[serde(flatten)]
    cursors: Cursors,
}

fn default_limit() -> usize {
    ListCalls::DEFAULT_LIMIT
}

impl From<Paging> for StoredPaging {
    fn from(Paging { list, cursors }: Paging) -> Self {
        Self {
            limit: list.limit,
            created_after: list.created_after,
            created_before: list.created_before,
            cursors,
        }
    }
}

impl TryFrom<StoredPaging> for Paging {
    type Error = &'static str;

    fn try_from(stored: StoredPaging) -> Result<Self, &'static str> {
        if !(1..=ListCalls::MAX_LIMIT).contains(&stored.limit) {
            return Err("limit is out of range");
        }
        let list = ListCalls {
            limit: stored.limit,
            created_after: stored.created_after,
            created_before: stored.created_before,
            cursor: stored.cursors.cursor.clone(),
        };
        list.created().map_err(|_| "created_after is not before created_before")?;
        Ok(Self { list, cursors: stored.cursors })
    }
}
