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
mod delivery_key;
mod endpoints;
mod keys;
mod keys_in_use;
pub(crate) mod levers;
mod logins;
mod monitoring;
mod recoveries;
mod together;
mod windows;

use call_assistant::rest::server::CursorKeys;
use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;

use self::api::Shared;
use self::keys_in_use::KeysInUse;
use self::monitoring::Readings;
pub(crate) use self::recoveries::start_all as start_recoveries;
use crate::counted::Counted;
use crate::db::{Address, Class, Database, DbError, StepError};
use crate::key_ring::KeyRing;
use crate::key_ring::in_use::{self, Unfit};
use crate::rights::{Login, Rights};
use host::log;
use host::store::{Done, EndpointLimit, Refused};
use host::store::{Listed, Unreadable};

/// The most connections of the public API, of the dashboard and of monitoring in a process. They are made when they
/// are needed.
const API: usize = 16;
const DASHBOARD: usize = 4;
const MONITORING: usize = 3;

/// The store over a database. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    /// For each of these connections of its own: none keeps the others from the database.
    api: Database,
    dashboard: Database,
    monitoring: Database,
    ring: KeyRing,
    endpoint_limit: EndpointLimit,
    readings: Readings,
    shared: Shared,
    counted: Counted,
    only_sends: bool,
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
            monitoring: Database::at(address, MONITORING)?.answering(),
            ring,
            endpoint_limit: EndpointLimit::default(),
            readings: Readings::default(),
            shared: Shared::default(),
            counted: Counted::default(),
            only_sends: false,
        })
    }

    /// Returns the store of a process that counts.
    pub(crate) fn counting(self, counted: Counted) -> Self {
        counted.uses("api", &self.api);
        counted.uses("dashboard", &self.dashboard);
        counted.uses("monitoring", &self.monitoring);
        Self { counted, ..self }
    }

    /// Returns the store of a process that answers nobody: it is ready where it can store.
    pub(crate) fn sending(self) -> Self {
        Self { only_sends: true, ..self }
    }

    /// Returns the store with another limit of endpoints.
    pub(crate) fn limited(self, endpoint_limit: EndpointLimit) -> Self {
        Self { endpoint_limit, ..self }
    }

    /// Returns the look for keys that the ring lacks.
    pub(crate) fn keys_in_use(&self) -> KeysInUse {
        KeysInUse {
            database: self.monitoring.clone(),
            ring: self.ring.clone(),
            counted: self.counted.clone(),
            unfit: Unfit::default(),
        }
    }

    /// Compares the ring with the keys that are in use. A process that may seal has its first key in use from here on,
    /// if its ring has all others.
    ///
    /// # Errors
    /// The ring has another key under a number that is in use.
    pub(crate) async fn join_keys(&self) -> Done<()> {
        let compare = async |client: &Object| in_use::compare(client, &self.ring).await;
        let mut unfit = self.dashboard.read(compare).await?;
        if !self.only_sends && unfit.is_empty() {
            let join = self.dashboard.change(async |change| in_use::seal(change, &self.ring).await);
            match join.await {
                // Another process was first.
                Err(Refused::Unfit(_)) => unfit = self.dashboard.read(compare).await?,
                // A right is missing: the look for rights tells which, and nothing is sealed.
                Ok(()) | Err(Refused::Broken(..)) => {}
                Err(error) => return Err(error),
            }
        }
        match unfit.other.is_empty() {
            true => Ok(()),
            false => Err(Refused::Unfit(unfit.to_string())),
        }
    }

    /// Returns the look for rights that the login lacks.
    pub(crate) fn rights(&self, login: Login) -> Rights {
        Rights::new(self.monitoring.clone(), login, self.counted.clone())
    }

    /// Reads what monitoring shows of the database, for as long as the process runs.
    pub(crate) fn keep_readings(&self) -> impl Future<Output = ()> + Send + use<> {
        self.readings.clone().keep(self.monitoring.clone(), self.counted.clone())
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
        log::warn("a row of a list cannot be read").with(what, id).because(&error).write();
        Unreadable(id.to_owned())
    })
}

/// Makes the error of a row that no version up to this one can have written.
fn unreadable(error: impl std::fmt::Display) -> Refused {
    Refused::Unavailable(format!("a row cannot be read: {error}"))
}
