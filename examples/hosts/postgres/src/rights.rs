//! The look for rights that a login lacks. `deploy/roles.sql` grants them, and `sql/monitoring/rights.sql` lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::sleep;

use crate::counted::Counted;
use crate::db::{Database, DbError};
use crate::sql::ops as sql;
use host::log;

/// How long to wait before the next look: 5 s.
const EVERY: Duration = Duration::from_secs(5);

/// What a login is for.
#[derive(Clone, Copy, Debug)]
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
            Self::Api => &["api"],
            Self::Sender => &["sender"],
            Self::All => &["api", "sender"],
            Self::Operator => &["operator"],
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

/// Returns the rights that a login lacks, as `INSERT on attempts`: one for each table, sequence or function.
pub(crate) async fn lacking(database: &Database, login: Login) -> Result<Vec<String>, DbError> {
    let rows = database
        .read(async |client: &Object| sql::monitoring_rights(client, login.roles()).await)
        .await?;
    let mut lacking: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (thing, right) in rows {
        lacking.entry(thing).or_default().insert(right);
    }
    let told = |(thing, rights): (_, BTreeSet<String>)| {
        format!("{} on {thing}", rights.into_iter().collect::<Vec<_>>().join(", "))
    };
    Ok(lacking.into_iter().map(told).collect())
}

/// The rights of a process's login.
#[derive(Debug)]
pub(crate) struct Rights {
    database: Database,
    login: Login,
    counted: Counted,
}

impl Rights {
    /// Creates the look at the rights of the database's login.
    pub(crate) fn new(database: Database, login: Login, counted: Counted) -> Self {
        Self { database, login, counted }
    }

    /// Looks for as long as the process runs.
    pub(crate) async fn keep(self) {
        loop {
            sleep(EVERY).await;
            log::tried("rights", &self.look().await);
        }
    }

    /// Notes which rights are missing, and logs a change.
    pub(crate) async fn look(&self) -> Result<(), DbError> {
        let lacking = lacking(&self.database, self.login).await?;
        let before = self.counted.lacked_right();
        self.counted.lacks_rights(lacking);
        let now = self.counted.lacked_right();
        if now != before {
            match now {
                Some(why) => log::error(why).write(),
                None => log::info("the login has each right that it needs again").write(),
            }
        }
        Ok(())
    }
}
