//! Walks through a list of calls: the next page, and the new calls on it.

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

/// The new calls of a page, and the state `S` after it: a [`CallPages`] or a [`CallSync`].
///
/// Store the whole batch in one transaction. Then every call is stored once, despite any crash.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "store all of it, in one transaction"]
#[non_exhaustive]
pub struct Batch<S> {
    /// The calls that no previous batch has returned, newest first.
    pub calls: Vec<Call>,
    /// The items that cannot be read and that no previous batch has returned, whole and with the
    /// reason. Store or report these items, because no later batch returns them.
    pub unreadable: Vec<UnreadableCall>,
    /// The state to store together with the calls and items, and to continue from.
    pub next: S,
}

/// Binds a state to the mode or the account of a key, or refuses the key.
fn bind<T: PartialEq>(bound: &mut Option<T>, to: T, refused: FlowError) -> Result<(), FlowError> {
    match bound {
        Some(bound) if *bound != to => Err(refused),
        _ => {
            *bound = Some(to);
            Ok(())
        }
    }
}
