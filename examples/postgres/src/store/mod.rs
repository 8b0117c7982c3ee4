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
mod recoveries;
mod steps;

use std::sync::Arc;

use call_assistant::rest::server::CursorKeys;

pub(crate) use self::recoveries::step_all as step_recoveries;

use self::api::Refusals;
use self::steps::Breaker;
use crate::db::Database;
use crate::host::store::Refused;
use crate::key_ring::KeyRing;
use crate::sender::Counted;

/// The text of a statement.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/", $name, ".sql"))
    };
}
use sql;

/// The store over a database. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    database: Database,
    ring: KeyRing,
    breaker: Arc<Breaker>,
    refusals: Arc<Refusals>,
    counted: Counted,
}

impl Postgres {
    /// The store over a database that is as this build needs it.
    pub(crate) fn new(database: Database, ring: KeyRing) -> Self {
        let (breaker, refusals) = (Arc::default(), Arc::default());
        Self { database, ring, breaker, refusals, counted: Counted::default() }
    }

    /// The store in a process with a sender, which counts.
    pub(crate) fn counting(self, counted: Counted) -> Self {
        Self { counted, ..self }
    }

    /// The keys of cursors, the same in every process that has the same ring.
    pub(crate) fn cursors(&self) -> CursorKeys {
        self.ring.cursors()
    }
}

/// A row that no version before this one can have written.
fn unreadable(error: impl std::fmt::Display) -> Refused {
    Refused::Unavailable(format!("a row cannot be read: {error}"))
}
