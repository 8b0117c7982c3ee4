//! The simulated day that `simulate` runs in full, and a test in small.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

pub mod chart;
pub mod day;
