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
mod testing;
mod wire;

use call_assistant::id::RequestId;
use support::{dice, nanos as at, seconds as second};

/// Some request's id.
fn request_id() -> RequestId {
    RequestId::from_random([9; 16])
}
