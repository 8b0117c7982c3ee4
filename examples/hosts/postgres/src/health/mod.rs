//! Whether this process can do its work, and why not: for `/readyz`, `/metrics`, the log, and `doctor`.

mod counted;
mod keys;
mod readings;
mod rights;

use std::error::Error;
use std::time::Duration;

use deadpool_postgres::Object;
use host::log;
use host::program::process;
use host::random;
use host::store::levers::ProcessRow;
use host::store::{Done, Metrics, Refused, Writes};
use tokio::time::sleep;

pub(crate) use self::counted::{Counted, Kind, Lacking};
use self::keys::KeysInUse;
use self::readings::{EVERY, Readings};
pub(crate) use self::rights::{Login, lacking};
use crate::db::{Class, Database, DbError};
use crate::exit;
use crate::key_ring::{KeyRing, in_use};
use crate::sql::ops as sql;

/// How often it is looked whether the sender of this process has begun: 100 ms.
const START: Duration = Duration::from_millis(100);

/// Returns a name of this process where it has no sender.
fn process_id() -> String {
    format!("process-{:016x}", u64::from_le_bytes(random::bytes()))
}

/// What a process knows of its health. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    database: Database,
    ring: KeyRing,
    login: Login,
    readings: Readings,
    pub(crate) counted: Counted,
}

impl Health {
    /// Creates the health of a process with a login for this.
    pub(crate) fn new(database: Database, ring: KeyRing, login: Login, counted: Counted) -> Self {
        Self { database, ring, login, readings: Readings::default(), counted }
    }

    /// Returns the database by the connections of monitoring.
    pub(crate) fn database(&self) -> Database {
        self.database.clone()
    }

    /// Looks at what the process needs before it begins, and returns the loops that look again.
    ///
    /// # Errors
    /// The ring has another key under a number that is in use, or the database did not respond.
    pub(crate) async fn look(
        &self,
    ) -> Result<impl Future<Output = ()> + Send + use<>, Box<dyn Error>> {
        self.look_at_rights().await?;
        self.join_keys().await.map_err(exit::refused)?;
        let mut keys =
            KeysInUse::new(self.database.clone(), self.ring.clone(), self.counted.clone());
        keys.look().await?;
        let (of_rights, living) = (self.clone(), self.clone());
        Ok(async move {
            _ = tokio::join!(of_rights.await_rights(), keys.keep(), living.tell());
        })
    }

    /// Tells operators for as long as the process runs that it does, and how it is.
    async fn tell(self) {
        let role = match self.login {
            Login::Api => "api",
            Login::Sender => "sender",
            Login::All => "all",
            Login::Operator => return,
        };
        while self.login != Login::Api && self.counted.sender().is_none() {
            sleep(START).await;
        }
        let keys: Vec<String> = self.ring.numbers().iter().map(u8::to_string).collect();
        let row = ProcessRow {
            id: self.counted.sender().map_or_else(process_id, str::to_owned),
            role: role.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: process::host_name(),
            pid: std::process::id(),
            keys: keys.join(","),
            ..ProcessRow::default()
        };
        loop {
            let row = ProcessRow {
                clock_ahead_seconds: self.counted.ahead(),
                late_seconds: readings::late(&self.counted, self.database.now()).as_secs_f64(),
                unreadable: self.counted.unreadable_rows(),
                reason: self.counted.not_ready(),
                ..row.clone()
            };
            let (id, row) = (&row.id, serde_json::json!(row).to_string());
            let tell = async |client: &Object| sql::processes_tell(client, id, &row).await;
            let told = self.database.write(tell);
            log::tried("telling operators of this process", &told.await);
            sleep(EVERY).await;
        }
    }

    /// Notes which roles the login lacks, and logs a change.
    async fn look_at_rights(&self) -> Result<(), DbError> {
        let lacking = lacking(&self.database, self.login).await?;
        let before = self.counted.lacked_right();
        self.counted.lacks_rights(lacking);
        match (before, self.counted.lacked_right()) {
            (before, Some(why)) if before.as_ref() != Some(&why) => log::error!("{why}"),
            (Some(_), None) => log::info!("the login has each right that it needs again"),
            _ => {}
        }
        Ok(())
    }

    /// Looks again until the login has all its roles.
    async fn await_rights(self) {
        while self.counted.lacked_right().is_some() {
            sleep(EVERY).await;
            log::tried("rights", &self.look_at_rights().await);
        }
    }

    /// Compares the ring with the keys that are in use. A process that may seal has its first key in use from here on,
    /// if its ring has all others.
    async fn join_keys(&self) -> Done<()> {
        let compare = async |client: &Object| in_use::compare(client, &self.ring).await;
        let mut unfit = self.database.read(compare).await?;
        if self.login != Login::Sender && unfit.is_empty() {
            let join = self.database.change(async |change| in_use::seal(change, &self.ring).await);
            match join.await {
                // Another process was first.
                Err(Refused::Unfit(_)) => unfit = self.database.read(compare).await?,
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

    /// Reads what monitoring shows of the database, for as long as the process runs.
    pub(crate) fn keep_readings(&self) -> impl Future<Output = ()> + Send + use<> {
        self.readings.clone().keep(self.database.clone(), self.counted.clone())
    }

    /// Returns what this process has counted, and what was read last of the database.
    pub(crate) fn metrics(&self) -> Metrics {
        self.readings.metrics(&self.counted, self.database.now())
    }

    /// Tells how writes are taken, or why this process cannot do its work.
    pub(crate) async fn ready(&self) -> Done<Writes> {
        if let Some(why) = self.counted.not_ready() {
            return Err(Refused::Unavailable(why));
        }
        // Whoever asks hears of what class an error is; the log has all of it.
        let refused = |class: Class| Refused::Unavailable(class.to_string());
        if let Some(class) = self.readings.refused() {
            return Err(refused(class));
        }
        let writes = readings::writes(&self.database).await;
        match writes.map_err(|error| refused(error.class()))? {
            // Requests that read are answered all the same: a load balancer would take out every process.
            Writes::Waiting if self.login == Login::Sender => {
                let why = "no result can be stored: a COMMIT waits for a standby server";
                Err(Refused::Unavailable(why.into()))
            }
            writes => Ok(writes),
        }
    }
}
