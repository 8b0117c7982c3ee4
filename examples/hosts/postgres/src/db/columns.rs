//! Library values as columns.

use std::error::Error;

use bytes::BytesMut;
use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, EndpointHealth};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::DbError;
use super::rows::FromRow as _;

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

/// Declares an argument of a statement that takes many rows: a vector for each column, in the order of the parameters
/// of its `unnest`.
macro_rules! columns {
    ($(#[$doc:meta])* $rows:ident of $row:ident { $($column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $rows {
            $(pub(crate) $column: Vec<$type>,)*
        }

        /// One of them.
        #[derive(Clone, Debug)]
        pub(crate) struct $row {
            $(pub(crate) $column: $type,)*
        }

        impl $rows {
            pub(crate) fn push(&mut self, row: $row) {
                $(self.$column.push(row.$column);)*
            }
        }

        impl $crate::db::statements::Bind for &$rows {
            fn bind<'a>(&'a self, given: &mut Vec<&'a (dyn tokio_postgres::types::ToSql + Sync)>) {
                $(given.push(&self.$column);)*
            }

            #[cfg(test)]
            fn accepts(
                parameters: &mut std::slice::Iter<'_, tokio_postgres::types::Type>,
            ) -> bool {
                $(<Vec<$type> as $crate::db::statements::Bind>::accepts(parameters))&&*
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
    Delivery::from_row(row, "")
}

/// Reads a row's [`EndpointHealth`]. The names have a prefix where a row has a delivery as well.
///
/// # Errors
/// A column is not what this version writes.
pub fn endpoint_of(row: &Row, prefix: &str) -> Result<EndpointHealth, DbError> {
    EndpointHealth::from_row(row, prefix)
}
