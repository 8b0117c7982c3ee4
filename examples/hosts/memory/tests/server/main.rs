//! The service's example end to end: the real binary, real sockets, a real receiver.
//!
//! Time is scaled by the binary's own flags. Nothing here waits for a fixed time: what is expected
//! is asked for until it is there.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod alerts;
mod amounts;
mod check;
mod command_line;
mod connections;
mod dashboard;
mod deliveries;
#[cfg(unix)]
mod ending;
mod faults;
mod hostile;
mod kept;
mod login;
mod monitoring;
mod owner;
mod portal;
mod recovery;
mod recovery_pace;
mod requests;
mod rest;
mod steps;
mod tls;
