//! The customer's side: answers, retries, pages and the sync.

mod flow;
mod paging;
mod period;
mod replies;
mod retry;
mod sync;
mod testing;
mod unreadable;
mod world;
