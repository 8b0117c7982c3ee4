//! The short programs among the examples, each run against the other side, in memory.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod list_calls;
mod program;
mod rotate_secrets;
mod send_event;
mod serve_api;
mod service;
mod sync_calls;
mod verify_webhook;
