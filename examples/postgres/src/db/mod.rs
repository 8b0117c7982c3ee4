//! The database: its address, a pool with a time limit on every wait, migrations, and columns.

mod address;
mod columns;
mod migrations;
mod pool;
mod statements;

pub use address::Address;
pub(crate) use columns::span;
pub use columns::{At, delivery_of, endpoint_of};
pub use migrations::{MigrationError, check, migrate};
pub use pool::{Database, DbError, OPTIONS, Session, within};
pub(crate) use statements::{execute, query, query_opt};
