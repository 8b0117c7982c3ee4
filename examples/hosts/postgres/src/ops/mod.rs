//! Maintenance by an operator.

pub(crate) mod ask;
pub(crate) mod doctor;
pub mod erase;
pub(crate) mod recover;
pub mod ring;
pub mod rotate;
