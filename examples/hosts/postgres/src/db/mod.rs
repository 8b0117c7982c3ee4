//! The database: its address, a pool, steps with a time limit on every wait, migrations, statements
//! and columns.

mod address;
mod change;
mod class;
mod columns;
mod connect;
mod migrations;
mod pool;
pub(crate) mod statements;
mod step;

pub use address::Address;
pub use change::OpenChange;
pub use class::Class;
pub use columns::{At, delivery_columns, delivery_of, endpoint_columns, endpoint_of};
pub(crate) use columns::{Fields, columns, plan_of, span};
pub use migrations::{MigrationError, MigrationStatus, check, migrate, status};
pub use pool::{Database, DbError, OPTIONS, Session};
pub(crate) use statements::{execute, query, query_opt};
pub use step::StepError;
