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
mod server;
#[path = "../support/mod.rs"]
mod support;
mod testing;
mod wire;

use support::{dice, nanos as at, request_id, seconds as second};
