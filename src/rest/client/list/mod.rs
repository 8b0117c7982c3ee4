//! Walks through a list of calls. A walk returns the request for the next page, and the new calls of
//! each page.

mod cursors;
mod flow_error;
mod pages;
mod sync;
mod sync_walk;
mod walk;

use alloc::vec::Vec;

pub use self::cursors::PagingError;
pub use self::flow_error::FlowError;
pub use self::pages::CallPages;
pub use self::sync::CallSync;

use crate::model::{Call, UnreadableCall};

/// The new calls of a page, and the state after the page. The state `S` is a [`CallPages`] or a
/// [`CallSync`].
///
/// Store the whole batch in one transaction. Then every call is stored exactly once, even if the program
/// crashes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "store all of it, in one transaction"]
#[non_exhaustive]
pub struct Batch<S> {
    /// The calls that no previous batch has returned, newest first.
    pub calls: Vec<Call>,
    /// The unreadable items that no previous batch has returned. Each item is kept whole, with the
    /// reason why it cannot be read. Store or report the unreadable items, because no later batch
    /// returns them.
    pub unreadable: Vec<UnreadableCall>,
    /// The state after this batch. Store this state together with the calls and items, and continue from
    /// this state.
    pub next: S,
}

fn bind<T: PartialEq>(bound: &mut Option<T>, to: T, refused: FlowError) -> Result<(), FlowError> {
    match bound {
        Some(bound) if *bound != to => Err(refused),
        _ => {
            *bound = Some(to);
            Ok(())
        }
    }
}
