//! The day that `examples/simulate` runs in full, and a test runs in small.

pub mod chart;
pub mod sender;
