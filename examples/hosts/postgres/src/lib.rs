//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run -p call-assistant-postgres -- demo
//! ```
//!
//! Each room uses those above it: `db`; `sql`; `key_ring`, `health`, `clocks` and `exit`; `queue`; `sender`, `store`
//! and `ops`; `serving`, `cli`, `commands` and `roles`.

mod cli;
pub mod clock;
mod clocks;
mod commands;
pub mod db;
mod exit;
mod health;
mod journal;
pub mod key_ring;
pub mod ops;
pub mod queue;
mod roles;
pub mod sender;
mod serving;
mod sql;
mod store;

pub use roles::{OwnServer, main};
