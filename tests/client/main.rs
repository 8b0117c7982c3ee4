//! The customer's side: paging, sync, retries, answers, and the inbox of events, in virtual time.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod inbox;
mod paging;
mod replies;
mod retry;
mod sync;
mod world;

use call_assistant::time::Timestamp;

/// So many milliseconds into 2026.
fn at(millis: i64) -> Timestamp {
    const YEAR_2026: i64 = 1_767_225_600;
    let nanos = u32::try_from(millis.rem_euclid(1_000)).unwrap() * 1_000_000;
    Timestamp::from_parts(YEAR_2026 + millis.div_euclid(1_000), nanos).unwrap()
}
