//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run --manifest-path examples/postgres/Cargo.toml -- demo
//! ```

pub mod accept;
mod alerts;
mod command_line;
pub mod db;
pub mod deliveries;
pub mod erase;
#[path = "../../host/mod.rs"]
mod host;
pub mod key_ring;
mod missed;
pub mod private_server;
mod roles;
pub mod rotate;
mod sender;
mod serving;
mod store;
pub mod support;

pub use roles::main;
