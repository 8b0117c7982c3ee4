//! Rows as values: each column by its name, or each by its place where there are few. And library values as columns.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use bytes::BytesMut;
use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, DeliveryStatus, DisabledReason, EndpointColumns, EndpointHealth,
};
use host::store::plan::Plan;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::DbError;

/// A value that is read from a row.
pub(crate) trait FromRow: Sized {
    /// Reads it from the columns whose names begin so.
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError>;

    /// Returns its columns, for the comparison with those of a statement.
    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<Column>;
}

/// A column by its name or place, and which types it takes.
#[cfg(test)]
pub(crate) type Column = (String, fn(&Type) -> bool);

/// The type of a column, and the value that it has in this program.
pub(crate) trait Field {
    type Column<'a>: FromSql<'a>;
    type Value;

    fn value(column: Self::Column<'_>) -> Result<Self::Value, DbError>;
}

/// Declares what is read of a row: a struct, or with `for` the fields of one that there is. Each field has the name of
/// its column, after `..` it is made of several columns.
macro_rules! row {
    (
        $(#[$doc:meta])*
        struct $row:ident { $($field:ident: $type:ty,)* $(..$part:ident: $whole:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $row {
            $(pub(crate) $field: <$type as $crate::db::rows::Field>::Value,)*
            $(pub(crate) $part: $whole,)*
        }

        $crate::db::rows::row! { for $row { $($field: $type,)* $(..$part: $whole,)* } }
    };
    (for $row:ident { $($field:ident: $type:ty,)* $(..$part:ident: $whole:ty,)* }) => {
        impl $crate::db::rows::FromRow for $row {
            fn from_row(row: &tokio_postgres::Row, prefix: &str) -> Result<Self, $crate::db::DbError> {
                Ok(Self {
                    $($field: $crate::db::rows::column::<$type>(row, prefix, stringify!($field))?,)*
                    $($part: $crate::db::rows::FromRow::from_row(row, prefix)?,)*
                })
            }

            #[cfg(test)]
            fn columns(prefix: &str) -> Vec<$crate::db::rows::Column> {
                let named: Vec<$crate::db::rows::Column> =
                    vec![$($crate::db::rows::named::<$type>(prefix, stringify!($field))),*];
                let parts: Vec<Vec<$crate::db::rows::Column>> =
                    vec![$(<$whole as $crate::db::rows::FromRow>::columns(prefix)),*];
                named.into_iter().chain(parts.into_iter().flatten()).collect()
            }
        }
    };
}
pub(crate) use row;

/// Reads the value of a named column.
pub(crate) fn column<C: Field>(row: &Row, prefix: &str, name: &str) -> Result<C::Value, DbError> {
    let name = match prefix.is_empty() {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("{prefix}{name}")),
    };
    at::<C>(row, &*name)
}

fn at<C: Field>(row: &Row, index: impl RowIndex + Display) -> Result<C::Value, DbError> {
    C::value(row.try_get(index).map_err(DbError::row)?)
}

/// Returns a column, and which types it takes.
#[cfg(test)]
pub(crate) fn named<C: Field>(prefix: &str, name: &str) -> Column {
    (format!("{prefix}{name}"), <C::Column<'_> as FromSql>::accepts)
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Field for $type {
            type Column<'a> = Self;
            type Value = Self;

            fn value(column: Self) -> Result<Self, DbError> {
                Ok(column)
            }
        }
    )*};
}

plain!(bool, i16, i32, i64, f64, String, Vec<u8>, Vec<i16>, Vec<String>);

impl<C: Field> Field for Option<C> {
    type Column<'a> = Option<C::Column<'a>>;
    type Value = Option<C::Value>;

    fn value(column: Self::Column<'_>) -> Result<Self::Value, DbError> {
        column.map(C::value).transpose()
    }
}

impl Field for At {
    type Column<'a> = Self;
    type Value = Timestamp;

    fn value(column: Self) -> Result<Timestamp, DbError> {
        Ok(column.0)
    }
}

/// A number that is never negative.
pub(crate) enum Count {}

impl Field for Count {
    type Column<'a> = i64;
    type Value = u64;

    fn value(column: i64) -> Result<u64, DbError> {
        Ok(column.unsigned_abs())
    }
}

/// A text of the library's.
pub(crate) struct Parsed<T>(T);

impl<T: FromStr<Err: Display>> Field for Parsed<T> {
    type Column<'a> = &'a str;
    type Value = T;

    fn value(column: &str) -> Result<T, DbError> {
        let unreadable = |error| DbError::row(format!("a row cannot be read: {error}"));
        column.parse().map_err(unreadable)
    }
}

/// A word of the library's.
pub(crate) struct Word<T>(T);

impl<T: FromStr<Err: Display>> Field for Word<T> {
    type Column<'a> = &'a str;
    type Value = T;

    fn value(column: &str) -> Result<T, DbError> {
        column.parse().map_err(DbError::row)
    }
}

/// A text that is JSON.
pub(crate) struct Json<T>(T);

impl<T: DeserializeOwned> Field for Json<T> {
    type Column<'a> = &'a str;
    type Value = T;

    fn value(column: &str) -> Result<T, DbError> {
        serde_json::from_str(column).map_err(DbError::row)
    }
}

/// The body of an event, or the reason why it cannot be read.
pub(crate) enum Body {}

impl Field for Body {
    type Column<'a> = &'a [u8];
    type Value = Result<EventBody, DbError>;

    fn value(column: &[u8]) -> Result<Self::Value, DbError> {
        Ok(EventBody::from_stored(column).map_err(DbError::row))
    }
}

macro_rules! by_place {
    ($($row:ty [$($limit:tt)*] $make:expr => $($column:ident $place:tt),*;)*) => {$(
        impl<$($limit)*> FromRow for $row {
            fn from_row(row: &Row, _: &str) -> Result<Self, DbError> {
                Ok($make($(at::<$column>(row, $place)?),*))
            }

            #[cfg(test)]
            fn columns(_: &str) -> Vec<Column> {
                vec![$(named::<$column>("", stringify!($place))),*]
            }
        }
    )*};
}

by_place! {
    bool [] |it| it => bool 0;
    i16 [] |it| it => i16 0;
    i32 [] |it| it => i32 0;
    i64 [] |it| it => i64 0;
    String [] |it| it => String 0;
    (A,) [A: Field<Value = A>] |a| (a,) => A 0;
    (A, B) [A: Field<Value = A>, B: Field<Value = B>] |a, b| (a, b) => A 0, B 1;
    (A, B, C) [A: Field<Value = A>, B: Field<Value = B>, C: Field<Value = C>]
        |a, b, c| (a, b, c) => A 0, B 1, C 2;
}

/// A row, or the reason why it cannot be read.
impl<T: FromRow> FromRow for Result<T, DbError> {
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError> {
        Ok(T::from_row(row, prefix))
    }

    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<Column> {
        T::columns(prefix)
    }
}

row! {
    for DeliveryColumns {
        event_created_at: At,
        status: Word<DeliveryStatus>,
        at: At,
        attempts: i16,
        manual: bool,
        generation: i32,
        version: i32,
    }
}

row! {
    /// A delivery.
    struct Stored { id: i64, endpoint: i32, ..columns: DeliveryColumns, }
}

impl FromRow for Delivery {
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError> {
        let Stored { id, endpoint, columns } = Stored::from_row(row, prefix)?;
        let endpoint = endpoint.cast_unsigned().into();
        Self::from_columns(id.cast_unsigned(), endpoint, columns).map_err(DbError::row)
    }

    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<Column> {
        Stored::columns(prefix)
    }
}

row! {
    for EndpointColumns {
        disabled: Option<Word<DisabledReason>>,
        since: At,
        failures: i16,
        first_failures: i16,
        first_failed_at: Option<At>,
        reminders: i16,
        generation: i32,
        version: i32,
    }
}

row! {
    /// An endpoint's health.
    struct Health { number: i32, ..columns: EndpointColumns, }
}

impl FromRow for EndpointHealth {
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError> {
        let Health { number, columns } = Health::from_row(row, prefix)?;
        Self::from_columns(number.cast_unsigned().into(), columns).map_err(DbError::row)
    }

    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<Column> {
        Health::columns(prefix)
    }
}

/// The health of the endpoint of a row that has a delivery as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfEndpoint(pub(crate) EndpointHealth);

impl FromRow for OfEndpoint {
    fn from_row(row: &Row, _: &str) -> Result<Self, DbError> {
        EndpointHealth::from_row(row, "endpoint_").map(Self)
    }

    #[cfg(test)]
    fn columns(_: &str) -> Vec<Column> {
        EndpointHealth::columns("endpoint_")
    }
}

impl FromRow for Plan {
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError> {
        let name = column::<String>(row, prefix, "plan")?;
        Self::named(&name).ok_or_else(|| DbError::row(format!("unknown plan {name}")))
    }

    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<Column> {
        vec![named::<String>(prefix, "plan")]
    }
}

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
