//! Whether a login has the rights that its process needs: those of a role of `deploy/roles.sql`, or of who owns the
//! tables.

use std::str::FromStr;

use deadpool_postgres::Object;

use crate::db::{Database, DbError};
use crate::sql::ops as sql;

/// What a login is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Api,
    Sender,
    /// `Api` and `Sender`.
    All,
    /// The commands of operators.
    Operator,
}

impl Login {
    /// Returns the roles whose rights it needs.
    fn roles(self) -> &'static [&'static str] {
        match self {
            Self::Api => &["call_assistant_api"],
            Self::Sender => &["call_assistant_sender"],
            Self::All => &["call_assistant_api", "call_assistant_sender"],
            Self::Operator => &["call_assistant_operator"],
        }
    }
}

impl FromStr for Login {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "api" => Ok(Self::Api),
            "sender" => Ok(Self::Sender),
            "all" => Ok(Self::All),
            "operator" => Ok(Self::Operator),
            _ => Err(()),
        }
    }
}

/// Returns what the login lacks, a line for each role.
pub(crate) async fn lacking(database: &Database, login: Login) -> Result<Vec<String>, DbError> {
    let roles = async |client: &Object| sql::monitoring_roles(client, login.roles()).await;
    let roles = database.read(roles).await?.into_iter();
    Ok(roles.map(|role| format!("it is no member of {role}")).collect())
}
