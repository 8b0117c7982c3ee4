//! Maintenance by an operator.

pub mod erase;
pub mod recover;
pub mod rotate;
