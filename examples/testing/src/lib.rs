//! For tests of programs: a host as a process, an endpoint that records what it gets, what a sender's store
//! promises, and the judge of what was stored.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

pub mod day;
pub mod event;
pub mod judge;
pub mod port;
pub mod receiver;
pub mod running;
pub mod shifted;
pub mod store;
