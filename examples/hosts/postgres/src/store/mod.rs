//! What the public API and the dashboard look up and change.
//!
//! Each operation is one step on one connection, with an end to every wait: a database that is down,
//! slow or full is an answer at once, and the next operation tries again.

mod accounts;
mod alerts;
mod api;
mod calls;
mod dashboard;
mod deliveries;
mod endpoints;
pub(crate) mod levers;
mod recoveries;

use std::sync::Arc;

use call_assistant::rest::server::CursorKeys;
use tokio::sync::Mutex;
use tokio_postgres::error::SqlState;

use self::api::Shared;
pub(crate) use self::recoveries::recover_all;
use crate::db::{Address, Class, Database, DbError, StepError};
use crate::health::{Counted, Health, Login, Process};
use crate::key_ring::KeyRing;
use host::http::shares::OWNERS;
use host::log;
use host::store::together::Together;
use host::store::{EndpointLimit, Listed, LoginRow, Refused, Unreadable};

/// The most connections of the public API, of the dashboard and of monitoring in a process. They are made when they
/// are needed. Owners together have fewer requests under way than the dashboard has connections: the others are the
/// operators'.
const API: usize = 16;
const DASHBOARD: usize = OWNERS + 4;
const MONITORING: usize = 3;

/// The store over a database. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    /// For each of these, and for monitoring, connections of its own: none keeps the others from the database.
    api: Database,
    dashboard: Database,
    ring: KeyRing,
    endpoint_limit: EndpointLimit,
    shared: Shared,
    /// Look-ups of logins, shared by the requests that wait.
    logins: Together<[u8; 32], Option<LoginRow>>,
    /// One endpoint is parked at a time: it may have much, and takes a connection.
    parking: Arc<Mutex<()>>,
    /// Whether this process can do its work.
    pub(crate) health: Health,
}

impl Postgres {
    /// Prepares to use a database that is as this build needs it. Nothing is connected yet.
    ///
    /// # Errors
    /// The address is not one of a database.
    pub(crate) fn at(address: &Address, ring: KeyRing) -> Result<Self, String> {
        Ok(Self {
            api: Database::at(address, API)?.answering(),
            dashboard: Database::at(address, DASHBOARD)?.answering(),
            health: Health::new(
                Database::at(address, MONITORING)?.answering(),
                ring.clone(),
                Login::Api,
                Counted::default(),
            ),
            ring,
            endpoint_limit: EndpointLimit::default(),
            shared: Shared::default(),
            logins: Together::default(),
            parking: Arc::default(),
        })
    }

    /// Creates the store of a process, which counts what it does.
    ///
    /// # Errors
    /// The address cannot be read.
    pub(crate) fn of(process: &Process) -> Result<Self, String> {
        let Process { login, database, ring, counted, .. } = process;
        let store = Self::at(database, ring.clone())?;
        let monitoring = store.health.database();
        counted.uses("api", &store.api);
        counted.uses("dashboard", &store.dashboard);
        counted.uses("monitoring", &monitoring);
        let health = Health::new(monitoring, ring.clone(), *login, counted.clone());
        Ok(Self { health, ..store })
    }

    /// Returns the store with another limit of endpoints.
    pub(crate) fn limited(self, endpoint_limit: EndpointLimit) -> Self {
        Self { endpoint_limit, ..self }
    }

    /// Returns the keys of cursors, the same in every process that has the same ring.
    pub(crate) fn cursors(&self) -> CursorKeys {
        self.ring.cursors()
    }
}

impl From<DbError> for Refused {
    fn from(error: DbError) -> Self {
        match error.class() {
            _ if error.is_erased() => Self::Conflict("the account was erased".into()),
            class @ (Class::Right | Class::Schema) => {
                Self::Broken(class.as_str(), error.to_string())
            }
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl StepError for Refused {
    fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Returns how many rows are read for a page: one more tells whether there are others.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Tells whether a row was refused because what it belongs to is not there.
fn breaks_reference(error: &DbError) -> bool {
    let code = match error {
        DbError::Statement(error) => error.code(),
        _ => None,
    };
    code == Some(&SqlState::FOREIGN_KEY_VIOLATION)
}

/// Returns a row of a list, or its id and a line in the log.
fn listed<T>(what: &'static str, id: &str, read: Result<T, impl Into<Refused>>) -> Listed<T> {
    read.map_err(|error| {
        let error = match error.into() {
            Refused::Unavailable(why) | Refused::Broken(_, why) => why,
            other => format!("{other:?}"),
        };
        let [account, call, delivery, endpoint, key, recovery] =
            ["account", "call", "delivery", "endpoint", "key", "recovery"]
                .map(|it| (it == what).then_some(id));
        let message = "a row of a list cannot be read";
        log::warn!(account, call, delivery, endpoint, key, recovery, error, "{message}");
        Unreadable(id.to_owned())
    })
}

/// Makes the error of a row that no version up to this one can have written.
fn unreadable(error: impl std::fmt::Display) -> Refused {
    Refused::Unavailable(format!("a row cannot be read: {error}"))
}
