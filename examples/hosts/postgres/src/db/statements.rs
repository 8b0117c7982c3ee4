//! Statements: a file of `sql` for each room has their texts, and its declaration their types. How one is run:
//! prepared once a connection.
//!
//! ```text
//! -- name: accounts_timezone
//! SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1) AS is_known;
//! ```
//!
//! ```text
//! statements! { "store"
//!     fn accounts_timezone(name: &str) -> bool;
//! }
//!
//! let is_known = sql::accounts_timezone(client, "Europe/Oslo").await?;
//! ```
//!
//! A file and its declaration have the same statements in the same order, or the program does not compile. A test
//! compares each with what PostgreSQL says of its parameters and columns.

use deadpool_postgres::GenericClient;
use host::http::answer::large;
use tokio::task::yield_now;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::DbError;
use super::rows::FromRow;

/// A statement of a file in `sql`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement(pub(crate) &'static str);

/// The most rows that are read while other requests wait for the thread: 250, a page of a sender.
const MANY: usize = 250;

/// The line that begins a statement, up to its name.
const MARK: &str = "-- name: ";

/// Declares the statements of a file, in its order, each as a function. What it returns says how it is run:
///
/// - `Vec<T>`, `Option<T>` and `T`: its rows, the first, and the only one. `T` is a [`FromRow`];
/// - nothing: how many rows it has changed;
/// - `= batch`: several statements, which have no parameters and are not prepared.
macro_rules! statements {
    ($file:literal $(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $answer:ty)? $(= $how:ident)?;
    )*) => {
        struct Texts {
            $($name: &'static str,)*
        }

        const TEXTS: Texts = {
            let file = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $file, ".sql"));
            let [$($name),*] = $crate::db::statements::split(file, [$(stringify!($name)),*]);
            Texts { $($name),* }
        };

        $(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments, reason = "as many as the statement has")]
            pub(crate) async fn $name(
                client: &impl deadpool_postgres::GenericClient,
                $($arg: $type,)*
            ) -> Result<$crate::db::statements::statements!(@answer $($answer)?), $crate::db::DbError> {
                const SQL: $crate::db::statements::Statement =
                    $crate::db::statements::Statement(TEXTS.$name);
                #[allow(unused_mut)]
                let mut given: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = Vec::new();
                $($crate::db::statements::Bind::bind(&$arg, &mut given);)*
                $crate::db::statements::statements!(@run client, given, $($answer)? $(= $how)?)
            }
        )*

        #[cfg(test)]
        pub(crate) const DECLARED: &[$crate::db::statements::Declared] = &[$(
            $crate::db::statements::Declared {
                name: concat!($file, "/", stringify!($name)),
                text: TEXTS.$name,
                parameters: &[$(<$type as $crate::db::statements::Bind>::accepts),*],
                columns: $crate::db::statements::statements!(@columns $($answer)?),
            },
        )*];
    };
    (@answer) => { u64 };
    (@answer $answer:ty) => { $answer };
    (@run $client:ident, $given:ident, = batch) => {{
        drop($given);
        $crate::db::statements::batch($client, SQL).await.map(|()| 0)
    }};
    (@run $client:ident, $given:ident,) => {
        $crate::db::statements::execute($client, SQL, &$given).await
    };
    (@run $client:ident, $given:ident, $answer:ty) => {
        <$answer as $crate::db::statements::Answer>::of(
            $crate::db::statements::query($client, SQL, &$given).await?,
        )
    };
    (@columns) => { |_| Vec::new() };
    (@columns $answer:ty) => {
        <<$answer as $crate::db::statements::Answer>::Row as $crate::db::rows::FromRow>::columns
    };
}
pub(crate) use statements;

/// Returns the texts of a file's statements, which have these names in this order.
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "the compiler evaluates it: what is wrong does not compile"
)]
pub(crate) const fn split<const N: usize>(
    file: &'static str,
    names: [&str; N],
) -> [&'static str; N] {
    let mut texts = [""; N];
    let (mut rest, mut nth) = (file, 0);
    while nth < N {
        let bytes = rest.as_bytes();
        assert!(begins(bytes, 0, MARK), "a file of statements begins with the name of one");
        let (name, text) = (names[nth], MARK.len() + names[nth].len());
        assert!(
            begins(bytes, MARK.len(), name) && bytes[text] == b'\n',
            "the file has another statement at this place than its declaration"
        );
        let mut end = text;
        while end < bytes.len() && !(bytes[end - 1] == b'\n' && begins(bytes, end, MARK)) {
            end += 1;
        }
        (texts[nth], rest) = (rest.split_at(end).0.split_at(text + 1).1, rest.split_at(end).1);
        nth += 1;
    }
    assert!(rest.is_empty(), "the file has a statement more than its declaration");
    texts
}

/// Tells whether a text has another one at this place.
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "as in `split`")]
const fn begins(text: &[u8], at: usize, other: &str) -> bool {
    let other = other.as_bytes();
    let mut nth = 0;
    while nth < other.len() {
        if at + nth >= text.len() || text[at + nth] != other[nth] {
            return false;
        }
        nth += 1;
    }
    true
}

/// An argument of a statement: one of its parameters, or several.
pub(crate) trait Bind {
    fn bind<'a>(&'a self, given: &mut Vec<&'a (dyn ToSql + Sync)>);

    /// Takes its parameters from these, and tells whether it fits them.
    #[cfg(test)]
    fn accepts(parameters: &mut std::slice::Iter<'_, tokio_postgres::types::Type>) -> bool;
}

impl<T: ToSql + Sync> Bind for T {
    fn bind<'a>(&'a self, given: &mut Vec<&'a (dyn ToSql + Sync)>) {
        given.push(self);
    }

    #[cfg(test)]
    fn accepts(parameters: &mut std::slice::Iter<'_, tokio_postgres::types::Type>) -> bool {
        parameters.next().is_some_and(|of| <T as ToSql>::accepts(of))
    }
}

/// The rows of a statement, as it is declared.
pub(crate) trait Answer: Sized {
    type Row: FromRow;

    fn of(rows: Vec<Row>) -> Result<Self, DbError>;
}

impl<T: FromRow> Answer for T {
    type Row = T;

    fn of(rows: Vec<Row>) -> Result<Self, DbError> {
        let row = rows.first().ok_or_else(|| DbError::row("a statement returns no row"))?;
        T::from_row(row, "")
    }
}

impl<T: FromRow> Answer for Option<T> {
    type Row = T;

    fn of(rows: Vec<Row>) -> Result<Self, DbError> {
        rows.first().map(|row| T::from_row(row, "")).transpose()
    }
}

impl<T: FromRow> Answer for Vec<T> {
    type Row = T;

    fn of(rows: Vec<Row>) -> Result<Self, DbError> {
        let read = || rows.iter().map(|row| T::from_row(row, "")).collect();
        // Some milliseconds, where rows have bodies of events.
        if rows.len() > MANY { large(read) } else { read() }
    }
}

/// A statement as it is declared, for the comparison with PostgreSQL.
#[cfg(test)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) parameters:
        &'static [fn(&mut std::slice::Iter<'_, tokio_postgres::types::Type>) -> bool],
    pub(crate) columns: fn(&str) -> Vec<super::rows::Column>,
}

/// Runs a statement, and returns its rows.
pub(crate) async fn query(
    client: &impl GenericClient,
    sql: Statement,
    given: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, DbError> {
    let rows = async { client.query(&prepared(client, sql).await?, given).await };
    told(rows.await).await
}

/// Runs a statement, and returns how many rows it has changed.
pub(crate) async fn execute(
    client: &impl GenericClient,
    sql: Statement,
    given: &[&(dyn ToSql + Sync)],
) -> Result<u64, DbError> {
    let changed = async { client.execute(&prepared(client, sql).await?, given).await };
    told(changed.await).await
}

/// Runs several statements, which have no parameters.
pub(crate) async fn batch(client: &impl GenericClient, sql: Statement) -> Result<(), DbError> {
    Ok(client.batch_execute(sql.0).await?)
}

async fn prepared(
    client: &impl GenericClient,
    sql: Statement,
) -> Result<tokio_postgres::Statement, Error> {
    client.prepare_cached(sql.0).await
}

/// Returns what came of a statement. Of statements that are sent together, the error of the first that fails is the
/// cause: those after it say only that their transaction has failed. So they say it later.
async fn told<T>(done: Result<T, Error>) -> Result<T, DbError> {
    if let Err(error) = &done
        && error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
    {
        yield_now().await;
    }
    Ok(done?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unreachable, clippy::unwrap_used)]

    use std::pin::pin;

    use private_server::{PrivateServer, Settings};
    use tokio_postgres::error::SqlState;

    use super::{GenericClient as _, Statement, query};
    use crate::db::{Database, DbError};

    #[tokio::test]
    async fn of_statements_that_are_sent_together_the_cause_is_told_first() {
        const FAILS: Statement = Statement("SELECT 1 / (SELECT 0)");
        const FOLLOWS: Statement = Statement("SELECT 2");
        let server = PrivateServer::start(Settings::default()).unwrap();
        let database = Database::new(&server.url(), 1).unwrap();
        let failed = database.change(async |change| {
            for statement in [FAILS, FOLLOWS] {
                change.prepare_cached(statement.0).await?;
            }
            let (mut fails, mut follows) =
                (pin!(query(change, FAILS, &[])), pin!(query(change, FOLLOWS, &[])));
            // Both are sent, and then answered.
            tokio::select! {
                biased;
                _ = &mut fails => unreachable!(),
                _ = &mut follows => unreachable!(),
                () = std::future::ready(()) => {}
            }
            assert!(change.batch_execute("SELECT 3").await.is_err());
            tokio::select! {
                biased;
                done = &mut follows => done.map(drop),
                done = &mut fails => done.map(drop),
            }
        });
        match failed.await {
            Err(DbError::Statement(error)) => {
                assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}
