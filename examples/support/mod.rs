//! What the examples have in common.

pub mod chart;
pub mod sender;
