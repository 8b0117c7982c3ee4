//! The parts of the service in memory: the program is `main.rs`, and tests use the parts.
//!
//! | | uses | |
//! |---|---|---|
//! | [`store`] | | tables under one lock: each function is a transaction |
//! | [`faults`] | | what is to go wrong on order |
//! | [`sender`] | `store`, `faults` | takes what is due, sends it, stores the outcome |
//! | [`local`] | `store`, `sender` | the store as `examples/hosts/kit` asks for it |
//! | [`sandbox`] | `faults`, `sender` | the routes that order faults and move the clock |
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

pub mod faults;
pub mod local;
pub mod sandbox;
pub mod sender;
pub mod store;
