//! The database: a pool with a time limit on every wait, migrations, and columns.

mod columns;
mod migrations;
mod pool;
mod statements;

pub use columns::{At, delivery_of, endpoint_of};
pub use migrations::{MigrationError, check, migrate};
pub use pool::{Database, DbError, OPTIONS, Session, within};
pub(crate) use statements::{execute, query, query_opt};
