//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run -p call-assistant-postgres -- demo
//! ```
//!
//! Each room uses those above it: `db`; `sql`; `key_ring`, `counted`, `clocks`, `rights` and `exit`; `queue`; `sender`, `store`
//! and `ops`; `serving`, `cli`, `commands` and `roles`.

mod cli;
pub mod clock;
mod clocks;
mod commands;
mod counted;
pub mod db;
mod exit;
mod journal;
pub mod key_ring;
pub mod ops;
pub mod queue;
mod rights;
mod roles;
mod sender;
mod serving;
mod sql;
mod store;

pub use roles::{OwnServer, main};
