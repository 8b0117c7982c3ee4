//! Webhooks: what travels, the side that sends, and the side that receives.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

#[cfg(all(feature = "std", feature = "client", feature = "service"))]
mod receiver;
#[cfg(all(feature = "std", feature = "client", feature = "service"))]
mod sender;
mod wire;

#[cfg(all(feature = "std", feature = "client", feature = "service"))]
use support::dice;
