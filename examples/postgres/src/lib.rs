//! The parts of the durable host. The program is `main.rs`; tests use the parts.
//!
//! ```text
//! cargo run --manifest-path examples/postgres/Cargo.toml -- demo
//! ```

pub mod accept;
mod command_line;
pub mod db;
pub mod key_ring;
pub mod private_server;
mod roles;
#[path = "../../service/scale.rs"]
mod scale;
mod sender;
pub mod support;

pub use roles::main;
