//! Library values as columns.

use std::error::Error;
use std::fmt::Display;

use bytes::BytesMut;
use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, EndpointColumns, EndpointHealth};
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::DbError;
use host::store::plan::Plan;

/// An instant as a `timestamptz`: microseconds, both ways exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub Timestamp);

/// Where PostgreSQL counts from, 2000-01-01, in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

impl<'a> FromSql<'a> for At {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = i64::from_sql(ty, raw)?.saturating_add(EPOCH);
        Ok(Self(Timestamp::from_unix_micros(micros).ok_or("an instant out of range")?))
    }

    accepts!(TIMESTAMPTZ);
}

impl ToSql for At {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.unix_micros().saturating_sub(EPOCH).to_sql(ty, out)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

/// Columns of a row, with the error of a step.
pub(crate) trait Fields {
    /// Reads a column's value.
    fn field<'a, T: FromSql<'a>>(&'a self, name: impl RowIndex + Display) -> Result<T, DbError>;

    /// Reads an instant.
    fn instant(&self, name: &str) -> Result<Timestamp, DbError> {
        Ok(self.field::<At>(name)?.0)
    }

    /// Reads an instant that may be `NULL`.
    fn instant_opt(&self, name: &str) -> Result<Option<Timestamp>, DbError> {
        Ok(self.field::<Option<At>>(name)?.map(|at| at.0))
    }
}

impl Fields for Row {
    fn field<'a, T: FromSql<'a>>(&'a self, name: impl RowIndex + Display) -> Result<T, DbError> {
        Ok(self.try_get(name)?)
    }
}

/// Declares what is written of many rows: a vector for each column, in the order of the parameters of
/// a statement that takes them with `unnest`.
macro_rules! columns {
    ($(#[$doc:meta])* $rows:ident of $row:ident { $($column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $rows {
            $($column: Vec<$type>,)*
        }

        /// One of them.
        #[derive(Debug)]
        pub(super) struct $row {
            $(pub(super) $column: $type,)*
        }

        impl $rows {
            pub(super) fn push(&mut self, row: $row) {
                $(self.$column.push(row.$column);)*
            }

            pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
                vec![$(&self.$column),*]
            }
        }
    };
}
pub(crate) use columns;

/// Returns the first and the last of some instants.
pub(crate) fn span(instants: impl Iterator<Item = Timestamp>) -> (At, At) {
    instants.map(At).fold((At(Timestamp::MAX), At(Timestamp::MIN)), |(first, last), at| {
        (first.min(at), last.max(at))
    })
}

/// Reads a row's [`Delivery`].
///
/// # Errors
/// A column is not what this version writes: its row is left as it is.
pub fn delivery_of(row: &Row) -> Result<Delivery, DbError> {
    let (id, endpoint): (i64, i32) = (row.try_get("id")?, row.try_get("endpoint")?);
    let columns = delivery_columns(row)?;
    Delivery::from_columns(id.cast_unsigned(), endpoint.cast_unsigned().into(), columns)
        .map_err(DbError::row)
}

/// Reads the columns of a delivery.
///
/// # Errors
/// A text is none that this version writes.
pub fn delivery_columns(row: &Row) -> Result<DeliveryColumns, DbError> {
    Ok(DeliveryColumns {
        event_created_at: row.instant("event_created_at")?,
        status: row.try_get::<_, &str>("status")?.parse().map_err(DbError::row)?,
        at: row.instant("at")?,
        attempts: row.try_get("attempts")?,
        manual: row.try_get("manual")?,
        generation: row.try_get("generation")?,
        version: row.try_get("version")?,
    })
}

/// Reads a row's [`EndpointHealth`]. The names have a prefix where a row has a delivery as well.
///
/// # Errors
/// A column is not what this version writes.
pub fn endpoint_of(row: &Row, prefix: &str) -> Result<EndpointHealth, DbError> {
    let number: i32 = row.try_get(format!("{prefix}number").as_str())?;
    let columns = endpoint_columns(row, prefix)?;
    EndpointHealth::from_columns(number.cast_unsigned().into(), columns).map_err(DbError::row)
}

/// Reads the columns of an endpoint.
///
/// # Errors
/// A text is none that this version writes.
pub fn endpoint_columns(row: &Row, prefix: &str) -> Result<EndpointColumns, DbError> {
    let named = |name: &str| format!("{prefix}{name}");
    let disabled: Option<&str> = row.try_get(named("disabled").as_str())?;
    Ok(EndpointColumns {
        disabled: disabled.map(str::parse).transpose().map_err(DbError::row)?,
        since: row.instant(&named("since"))?,
        failures: row.try_get(named("failures").as_str())?,
        first_failures: row.try_get(named("first_failures").as_str())?,
        first_failed_at: row.instant_opt(&named("first_failed_at"))?,
        reminders: row.try_get(named("reminders").as_str())?,
        generation: row.try_get(named("generation").as_str())?,
        version: row.try_get(named("version").as_str())?,
    })
}

/// Reads the plan of a row's account.
pub(crate) fn plan_of(row: &Row) -> Result<Plan, DbError> {
    let name: &str = row.try_get("plan")?;
    Plan::named(name).ok_or_else(|| DbError::row(format!("unknown plan {name}")))
}
