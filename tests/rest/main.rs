//! The REST API: cursors, pages and rate limits.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)]
#![allow(clippy::as_conversions, clippy::panic, clippy::string_slice)]

mod cursor;
mod exchange;
mod openapi;
mod operations;
mod order;
mod page;
mod rate;
mod rate_windows;
mod scenario;

use call_assistant::time::Timestamp;

/// So many nanoseconds into the year 2026.
fn at(nanos: u64) -> Timestamp {
    let start = Timestamp::from_unix(1_767_225_600).unwrap();
    start.checked_add(std::time::Duration::from_nanos(nanos)).unwrap()
}

/// So many seconds into the year 2026.
fn second(seconds: u64) -> Timestamp {
    at(seconds * 1_000_000_000)
}
