//! What several of the tools share: secrets from outside, files that one process writes, and the
//! simulated day that `simulate` runs in full and a test in small.

pub mod chart;
pub mod day;
pub mod files;
pub mod secrets;
