//! What an error of the database means for whoever has to act.

use std::fmt;

use deadpool_postgres::PoolError;
use tokio_postgres::error::{DbError as DbAnswer, SqlState};

use super::DbError;
use super::address::{hint, is_of_login};

/// A class of errors. Its words name no host, no login and no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// No answer.
    Silent,
    /// A refused login: its name, its password, or the place that it comes from.
    Login,
    /// A missing database.
    NoDatabase,
    /// A missing right.
    Right,
    /// A missing table, column or function.
    Schema,
    /// A server with as many connections as it may have.
    Connections,
    /// A full disk.
    Disk,
    /// A refused certificate, or a server without TLS.
    Tls,
    /// A pooler that refuses a session's settings, or gives the next transaction to another session.
    Pooler,
    /// A statement that the server has ended, or that another try may get through.
    Ended,
    /// Any other answer.
    Other,
}

/// How PgBouncer refuses a session with settings. Its code is that of each of its refusals.
const NO_OPTIONS: &str = "unsupported startup parameter";

impl Class {
    /// Returns the class of an answer.
    fn of_answer(answer: &DbAnswer) -> Self {
        match answer.message().starts_with(NO_OPTIONS) {
            true => Self::Pooler,
            false => Self::of(answer.code()),
        }
    }

    /// Returns the class of an error with this code.
    fn of(code: &SqlState) -> Self {
        match code.code() {
            // A statement that was prepared is missing, or is there already.
            "26000" | "42P05" => Self::Pooler,
            "28000" | "28P01" => Self::Login,
            "3D000" => Self::NoDatabase,
            "42501" => Self::Right,
            "42P01" | "42703" | "42883" | "3F000" => Self::Schema,
            "53300" => Self::Connections,
            "53100" => Self::Disk,
            "57P01" | "57P02" | "57P03" => Self::Silent,
            // A lock that is held, and a server that does not lead any more.
            "55P03" | "25006" => Self::Ended,
            code => match code.get(..2) {
                Some("08") => Self::Silent,
                Some("40" | "53" | "57") => Self::Ended,
                _ => Self::Other,
            },
        }
    }

    /// Tells whether the same may succeed later, and nobody has to mend anything but the database itself.
    pub(crate) fn may_pass(self) -> bool {
        matches!(self, Self::Silent | Self::Connections | Self::Disk | Self::Ended)
    }

    /// Returns its words.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "the database does not answer",
            Self::Login => "the database refuses the login",
            Self::NoDatabase => "the database does not exist",
            Self::Right => "the login lacks a right",
            Self::Schema => "the schema does not belong to this program",
            Self::Connections => "the database has no connection left",
            Self::Disk => "the database's disk is full",
            Self::Tls => "the database's TLS is refused",
            Self::Pooler => "a pooler in front of the database mixes sessions",
            Self::Ended => "the database has ended a statement",
            Self::Other => "the database refuses a statement",
        }
    }

    /// Returns what to do.
    pub(crate) fn todo(self) -> &'static str {
        match self {
            Self::Silent => "start the database, or check --database",
            Self::Login => "check the user and the password of --database, and pg_hba.conf",
            Self::NoDatabase => "create the database, and run `migrate`",
            Self::Right => "run deploy/roles.sql as the user who runs `migrate`",
            Self::Schema => "run `migrate`, or check the login's search_path",
            Self::Connections => "raise max_connections, or run fewer processes",
            Self::Disk => "add disk; never delete WAL",
            Self::Tls => "check the certificate of the database, and --database-ca",
            Self::Pooler => {
                "name the server in --database, or pool sessions as docs/scaling.md says"
            }
            Self::Ended => "try again",
            Self::Other => "see the server's log",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl DbError {
    /// Returns the class of this error.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Connect { error: PoolError::Backend(error), .. } | Self::Statement(error) => {
                match error.as_db_error() {
                    Some(answer) => Class::of_answer(answer),
                    None if is_of_login(error) => Class::Login,
                    None if hint(error).is_empty() => Class::Silent,
                    None => Class::Tls,
                }
            }
            Self::Unanswered(class) => *class,
            Self::Row(_) => Class::Other,
            Self::Connect { .. } | Self::TimedOut => Class::Silent,
        }
    }
}

/// Returns the words of what stands in the way of a connection, in front of its own.
pub(super) fn named_of(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) if error.code().is_none() && is_of_login(error) => {
            format!("{}: ", Class::Login)
        }
        PoolError::Backend(error) => error.as_db_error().map(named).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Returns the words of an error's class in front of its own, where its own may not be enough.
pub(super) fn named(answer: &DbAnswer) -> String {
    match Class::of_answer(answer) {
        Class::Silent | Class::Ended | Class::Other => String::new(),
        class @ Class::Pooler => format!("{class}; {}: ", class.todo()),
        class => format!("{class}: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_with_a_failover_is_to_be_run_again() {
        for code in [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::CONNECTION_FAILURE,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_SERIALIZATION_FAILURE,
        ] {
            assert!(Class::of(&code).may_pass(), "{code:?}");
        }
        for code in [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::UNIQUE_VIOLATION] {
            assert!(!Class::of(&code).may_pass(), "{code:?}");
        }
    }

    #[test]
    fn a_pooler_of_transactions_does_not_pass() {
        for code in [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT] {
            assert_eq!(Class::of(&code), Class::Pooler, "{code:?}");
        }
        assert!(!Class::Pooler.may_pass());
    }
}
