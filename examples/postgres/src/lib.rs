//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run --manifest-path examples/postgres/Cargo.toml -- demo
//! ```
//!
//! Each room uses those above it: `db`; `key_ring` and `counted`; `queue`; `sender`, `store` and `ops`;
//! `serving`, `cli` and `roles`.

mod cli;
mod counted;
pub mod db;
#[path = "../../host/mod.rs"]
mod host;
pub mod key_ring;
pub mod ops;
pub mod queue;
mod roles;
mod sender;
mod serving;
mod store;
pub mod support;

pub use roles::{OwnServer, main};
