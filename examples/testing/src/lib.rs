//! For tests of programs: a host as a process, an endpoint that records what it gets, and what a sender's store
//! promises.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod port;
pub mod receiver;
pub mod running;
pub mod shifted;
