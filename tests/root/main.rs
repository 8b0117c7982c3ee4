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
#[path = "../support/mod.rs"]
mod support;
mod time;
