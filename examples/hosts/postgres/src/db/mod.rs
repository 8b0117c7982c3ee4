//! The database: its address, a pool, steps with a time limit on every wait, migrations, statements
//! and columns.

mod address;
mod class;
mod connect;
mod migrations;
mod pool;
pub(crate) mod rows;
pub(crate) mod statements;
mod step;

pub use address::Address;
pub use class::Class;
#[cfg(test)]
pub(crate) use migrations::DECLARED;
pub(crate) use migrations::latest_migration;
pub use migrations::{MigrationError, MigrationStatus, check, migrate, status};
pub use pool::{Database, DbError, OPTIONS, Session};
pub use rows::{At, delivery_of, endpoint_of};
pub(crate) use rows::{columns, span};
pub use step::{OpenChange, StepError};
