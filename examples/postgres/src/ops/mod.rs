//! What an operator runs now and then.

pub mod erase;
pub mod rotate;
