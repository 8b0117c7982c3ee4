//! The short programs among the examples, each run against the other side, in memory.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
// A program has a `main`, which nothing here calls, and a clock of its own.
#![allow(dead_code, clippy::duplicate_mod)]

mod list_calls;
mod program;
mod rotate_secrets;
mod send_event;
mod serve_api;
mod service;
mod sync_calls;
mod verify_webhook;
