//! What a durable host did, replayed through the library: for its tests.
//!
//! [`record`] notes every change of a row, in the database itself. [`checks`] compares what is stored
//! in the end with what endpoints were sent. [`load`] is what happens to a host meanwhile, and [`sql`] has its statements.
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

pub mod checks;
pub mod load;
pub mod record;
pub mod sql;
