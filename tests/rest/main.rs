//! The REST API: what travels, the service's side, and the customer's, in virtual time.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod client;
#[path = "../support/dice.rs"]
mod dice;
mod server;
mod wire;

use call_assistant::Timestamp;

/// So many nanoseconds into the year 2026.
fn at(nanos: u64) -> Timestamp {
    let start = Timestamp::from_unix(1_767_225_600).unwrap();
    start.checked_add(std::time::Duration::from_nanos(nanos)).unwrap()
}

/// So many seconds into the year 2026.
fn second(seconds: u64) -> Timestamp {
    at(seconds * 1_000_000_000)
}
