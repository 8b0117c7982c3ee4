//! The customer's side of the REST API: what to ask, what an answer means, when to ask again, and a
//! sync that loses nothing.

mod http_date;
pub mod inbox;
mod pace;
mod paging;
mod retry;
pub mod sync;

pub use pace::Pace;
pub use paging::{MAX_CURSOR_LEN, MAX_EMPTY_PAGES, Paging, PagingError, Turn};
pub use retry::{Failure, Retry, RetryAfter, RetryDecision};
pub use sync::{CallSync, SyncError, SyncStep};
