//! Rows as values: each column by its name, or each by its place where there are few.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Delivery, EndpointHealth};
use host::store::plan::Plan;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, Type};

use super::{At, DbError, delivery_of, endpoint_of};

/// A value that is read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row) -> Result<Self, DbError>;

    /// Compares it with the columns of a statement.
    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String>;
}

/// The type of a column, and the value that it has in this program.
pub(crate) trait Field: for<'a> FromSql<'a> {
    type Value;

    fn value(self) -> Self::Value;
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
            fn from_row(row: &tokio_postgres::Row) -> Result<Self, $crate::db::DbError> {
                Ok(Self {
                    $($field: $crate::db::rows::column::<$type>(row, stringify!($field))?,)*
                    $($part: $crate::db::rows::FromRow::from_row(row)?,)*
                })
            }

            #[cfg(test)]
            fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
                $($crate::db::rows::has::<$type>(columns, stringify!($field))?;)*
                $(<$whole as $crate::db::rows::FromRow>::fits(columns)?;)*
                Ok(())
            }
        }
    };
}
pub(crate) use row;

/// Reads a column's value.
pub(crate) fn column<C: Field>(
    row: &Row,
    name: impl RowIndex + Display,
) -> Result<C::Value, DbError> {
    row.try_get::<_, C>(name).map(C::value).map_err(|error| match error.source() {
        Some(cause) => DbError::row(cause),
        None => DbError::row(error),
    })
}

/// Compares a column with its type in this program.
#[cfg(test)]
pub(crate) fn has<C: Field>(columns: &[tokio_postgres::Column], name: &str) -> Result<(), String> {
    match columns.iter().find(|column| column.name() == name) {
        Some(column) if C::accepts(column.type_()) => Ok(()),
        Some(column) => Err(format!("{name} is of type {}", column.type_())),
        None => Err(format!("no column {name}")),
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Field for $type {
            type Value = Self;

            fn value(self) -> Self {
                self
            }
        }
    )*};
}

plain!(bool, i16, i32, i64, f64, String, Vec<u8>, Vec<i16>, Vec<String>);

macro_rules! alone {
    ($($type:ty),*) => {$(
        impl FromRow for $type {
            fn from_row(row: &Row) -> Result<Self, DbError> {
                column::<Self>(row, 0)
            }

            #[cfg(test)]
            fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
                <($type,)>::fits(columns)
            }
        }
    )*};
}

// A row of one column.
alone!(bool, i16, i32, i64, String);

impl Field for At {
    type Value = Timestamp;

    fn value(self) -> Self::Value {
        self.0
    }
}

impl<C: Field> Field for Option<C> {
    type Value = Option<C::Value>;

    fn value(self) -> Self::Value {
        self.map(C::value)
    }
}

/// A number that is never negative, as a `bigint`.
pub(crate) struct Count(i64);

impl<'a> FromSql<'a> for Count {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        i64::from_sql(of, raw).map(Self)
    }

    fn accepts(of: &Type) -> bool {
        <i64 as FromSql>::accepts(of)
    }
}

impl Field for Count {
    type Value = u64;

    fn value(self) -> u64 {
        self.0.unsigned_abs()
    }
}

/// A text that is read as a value of the library.
pub(crate) struct Parsed<T>(T);

impl<'a, T: FromStr<Err: Display>> FromSql<'a> for Parsed<T> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text = <&str>::from_sql(of, raw)?;
        text.parse().map(Self).map_err(|error| format!("a row cannot be read: {error}").into())
    }

    fn accepts(of: &Type) -> bool {
        <&str as FromSql>::accepts(of)
    }
}

impl<T: FromStr<Err: Display>> Field for Parsed<T> {
    type Value = T;

    fn value(self) -> T {
        self.0
    }
}

/// A text that is JSON.
pub(crate) struct Json<T>(T);

impl<'a, T: DeserializeOwned> FromSql<'a> for Json<T> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(serde_json::from_str(<&str>::from_sql(of, raw)?)?))
    }

    fn accepts(of: &Type) -> bool {
        <&str as FromSql>::accepts(of)
    }
}

impl<T: DeserializeOwned> Field for Json<T> {
    type Value = T;

    fn value(self) -> T {
        self.0
    }
}

/// The body of an event, or the reason why it cannot be read.
pub(crate) struct Body(Result<EventBody, DbError>);

impl<'a> FromSql<'a> for Body {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(EventBody::from_stored(raw).map_err(DbError::row)))
    }

    fn accepts(of: &Type) -> bool {
        <&[u8] as FromSql>::accepts(of)
    }
}

impl Field for Body {
    type Value = Result<EventBody, DbError>;

    fn value(self) -> Self::Value {
        self.0
    }
}

macro_rules! tuples {
    ($(($($column:ident $place:tt),*))*) => {$(
        impl<$($column: Field),*> FromRow for ($($column,)*) where $($column: Field<Value = $column>),* {
            fn from_row(row: &Row) -> Result<Self, DbError> {
                Ok(($(column::<$column>(row, $place)?,)*))
            }

            #[cfg(test)]
            fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
                $(match columns.get($place) {
                    Some(column) if $column::accepts(column.type_()) => {}
                    other => return Err(format!("column {} is {other:?}", $place)),
                })*
                Ok(())
            }
        }
    )*};
}

tuples! { (A 0) (A 0, B 1) (A 0, B 1, C 2) }

/// A row, or the reason why it cannot be read.
impl<T: FromRow> FromRow for Result<T, DbError> {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        Ok(T::from_row(row))
    }

    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
        T::fits(columns)
    }
}

impl FromRow for Delivery {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        delivery_of(row)
    }

    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
        has::<i64>(columns, "id")?;
        has::<i32>(columns, "endpoint")?;
        has::<At>(columns, "event_created_at")?;
        has::<String>(columns, "status")?;
        has::<At>(columns, "at")?;
        has::<i16>(columns, "attempts")?;
        has::<bool>(columns, "manual")?;
        has::<i32>(columns, "generation")?;
        has::<i32>(columns, "version")
    }
}

impl FromRow for EndpointHealth {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        endpoint_of(row, "")
    }

    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
        has_health(columns, "")
    }
}

/// The health of the endpoint of a row that has a delivery as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfEndpoint(pub(crate) EndpointHealth);

impl FromRow for OfEndpoint {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        endpoint_of(row, "endpoint_").map(Self)
    }

    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
        has_health(columns, "endpoint_")
    }
}

#[cfg(test)]
fn has_health(columns: &[tokio_postgres::Column], prefix: &str) -> Result<(), String> {
    let has_named = |name: &str| format!("{prefix}{name}");
    for name in ["number", "generation", "version"] {
        has::<i32>(columns, &has_named(name))?;
    }
    for name in ["failures", "first_failures", "reminders"] {
        has::<i16>(columns, &has_named(name))?;
    }
    has::<At>(columns, &has_named("since"))?;
    has::<At>(columns, &has_named("first_failed_at"))?;
    has::<String>(columns, &has_named("disabled"))
}

impl FromRow for Plan {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        let name = column::<String>(row, "plan")?;
        Self::named(&name).ok_or_else(|| DbError::row(format!("unknown plan {name}")))
    }

    #[cfg(test)]
    fn fits(columns: &[tokio_postgres::Column]) -> Result<(), String> {
        has::<String>(columns, "plan")
    }
}
