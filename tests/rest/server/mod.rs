//! The service's side: cursors, pages, rate limits, and the exchange that puts them together.

mod cursor;
mod exchange;
pub(crate) mod order;
mod page;
mod rate;
mod rate_windows;
pub(crate) mod scenario;
mod stored_key;
