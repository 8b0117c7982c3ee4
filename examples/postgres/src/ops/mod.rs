//! Maintenance by an operator.

pub mod erase;
pub mod rotate;
