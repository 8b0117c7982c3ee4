//! The customer's side: paging, sync, retries, answers, and the inbox of events, in virtual time.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

#[path = "../world/dice.rs"]
mod dice;
mod inbox;
mod paging;
mod replies;
mod retry;
mod sync;
mod world;
