//! Maintenance by an operator.

pub(crate) mod ask;
pub(crate) mod doctor;
pub mod erase;
mod notes;
pub mod ring;
