//! The words everything else speaks: times, ids, names, errors, credentials, models, JSON.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod ids;
mod json;
mod metrics;
mod models;
mod names;
mod secrets;
mod time;

use call_assistant::Timestamp;

/// Reads an instant.
#[track_caller]
fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
