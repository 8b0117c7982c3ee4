//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run -p call-assistant-postgres -- demo
//! ```

pub mod accept;
mod alerts;
pub mod broken;
mod command_line;
pub mod db;
pub mod deliveries;
pub mod erase;
pub mod key_ring;
mod missed;
pub mod private_server;
mod roles;
pub mod rotate;
mod sender;
mod serving;
mod store;
pub mod support;

pub(crate) use ::host;
pub use roles::main;
