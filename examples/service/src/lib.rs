//! The parts of the service in memory: the program is `main.rs`, and tests use the parts.
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

pub mod flags;
pub mod sandbox;
pub mod sender;
pub mod store;
