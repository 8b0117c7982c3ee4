//! What a statement decides that the library decides, too: the same on random rows.
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::unwrap_used)]

mod deliveries;
mod missed;
mod others;
mod rows;
#[path = "../support/mod.rs"]
mod support;
