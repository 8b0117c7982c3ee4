use crate::rest::client::PagingError;

/// Why a page could not be applied. The state is unchanged, and the page can be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// No page can follow this one.
    #[error(transparent)]
    Paging(#[from] PagingError),
    /// A call started after the previous one in the list, so this page is not the one that was
    /// asked for, or the service does not order the list by `started_at`. Whether the call has
    /// been returned before cannot be told.
    #[error("item {index} of the page started after the previous call of the list")]
    Order {
        /// The item's index on the page, from 0.
        index: usize,
    },
}
