//! Whether this process can do its work, and why not: for `/readyz`, `/metrics`, the log, and `doctor`.

mod counted;
mod readings;

use std::error::Error;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use host::program::watch::Watch;
use host::program::{process, shutdown};
use host::store::levers::ProcessRow;
use host::store::{Done, Metrics, Refused, Writes};
use host::{log, random};
use tokio::time::{Instant, sleep};

pub(crate) use self::counted::{Counted, Kind, Lacking};
use self::readings::{EVERY, Readings};
use crate::db::{Address, Class, Database, DbError};
use crate::exit;
use crate::key_ring::KeyRing;
use crate::key_ring::in_use::{self, Unfit};
use crate::sql::ops as sql;

/// How often it is looked whether the sender of this process has begun: 100 ms.
const START: Duration = Duration::from_millis(100);

/// How long to wait before the next look at the keys: a minute, and 5 s while a key is missing.
const KEYS: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(5);

/// Returns a name of this process where it has no sender.
fn process_id() -> String {
    format!("process-{:016x}", u64::from_le_bytes(random::bytes()))
}

/// What a process has, whatever its role is.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) login: Login,
    pub(crate) database: Address,
    pub(crate) ring: KeyRing,
    pub(crate) counted: Counted,
    pub(crate) watch: Watch,
}

impl Process {
    /// Creates it. It runs until so long after Ctrl-C.
    pub(crate) fn new(
        login: Login,
        (database, ring): (Address, KeyRing),
        drain: Duration,
    ) -> io::Result<Self> {
        let (trigger, stop) = shutdown::on_ctrl_c(drain)?;
        let (counted, watch) = (Counted::default(), Watch::new(trigger, stop));
        Ok(Self { login, database, ring, counted, watch })
    }
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
        let unfit = self.look_at_keys(Unfit::default()).await?;
        let own = self.clone();
        Ok(async move {
            _ = tokio::join!(own.await_rights(), own.keep_keys(unfit), own.tell());
        })
    }

    /// Tells operators for as long as the process runs that it does, and how it is.
    async fn tell(&self) {
        if self.login == Login::Operator {
            return;
        }
        while self.login != Login::Api && self.counted.sender().is_none() {
            sleep(START).await;
        }
        let keys: Vec<String> = self.ring.numbers().iter().map(u8::to_string).collect();
        let row = ProcessRow {
            id: self.counted.sender().map_or_else(process_id, str::to_owned),
            role: self.login.as_str().to_owned(),
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

    /// Looks at the keys in use for as long as the process runs.
    async fn keep_keys(&self, mut unfit: Unfit) {
        loop {
            sleep(if unfit.is_empty() { KEYS } else { SOON }).await;
            let found = self.look_at_keys(unfit.clone()).await;
            log::tried("keys in use", &found);
            unfit = found.unwrap_or(unfit);
        }
    }

    /// Notes which keys are missing, of how many endpoints, and how many deliveries wait for them. Logs a change.
    async fn look_at_keys(&self, before: Unfit) -> Result<Unfit, DbError> {
        // It has its own time limit, which is longer than that of who waits for an answer.
        let database = self.database.unhurried();
        let lacking = database.snapshot(async |client| self.lacking_keys(client).await).await?;
        let (unfit, unreadable) = (lacking.keys.clone(), lacking.endpoints);
        if unfit != before {
            match unfit.is_empty() {
                true => log::info!("the key ring again has every key that is in use"),
                false => log::error!(endpoints = unreadable, "{unfit}"),
            }
        }
        self.counted.lacks(lacking);
        Ok(unfit)
    }

    async fn lacking_keys(&self, client: &Transaction<'_>) -> Result<Lacking, DbError> {
        sql::monitoring_whole_tables(client).await?;
        let rows = sql::monitoring_secrets(client).await?;
        let keys = in_use::compare(client, &self.ring).await?;
        let (mut lacking, mut unreadable) = (Lacking { keys, ..Lacking::default() }, Vec::new());
        for (sealed, endpoints) in rows {
            // A damaged row is nobody's key: the sender that meets it counts it.
            if lacking.keys.is_of(&sealed) {
                lacking.endpoints = lacking.endpoints.saturating_add(endpoints);
                unreadable.push(sealed);
            }
        }
        if let Some(sender) = self.counted.sender()
            && !unreadable.is_empty()
        {
            let (due, oldest) = sql::monitoring_unreadable(client, sender, &unreadable).await?;
            lacking.due = due;
            let oldest = Duration::try_from_secs_f64(oldest).map_err(DbError::row)?;
            lacking.due_since = Instant::now().checked_sub(oldest).filter(|_| lacking.due > 0);
        }
        Ok(lacking)
    }

    /// Notes which roles the login lacks, and logs a change.
    async fn look_at_rights(&self) -> Result<(), DbError> {
        let lacking = lacking(&self.database, self.login).await?;
        let before = self.counted.lacked_right();
        self.counted.lacks_rights(lacking);
        match (before, self.counted.lacked_right()) {
            (before, Some(why)) if before.as_ref() != Some(&why) => log::error!("{why}"),
            (Some(_), None) => log::info!("the login again has every right that it needs"),
            _ => {}
        }
        Ok(())
    }

    /// Looks again until the login has all its roles.
    async fn await_rights(&self) {
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Sender => "sender",
            Self::All => "all",
            Self::Operator => "operator",
        }
    }

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
        let mut all = [Self::Api, Self::Sender, Self::All, Self::Operator].into_iter();
        all.find(|login| login.as_str() == name).ok_or(())
    }
}

/// Returns what the login lacks, a line for each role.
pub(crate) async fn lacking(database: &Database, login: Login) -> Result<Vec<String>, DbError> {
    let roles = async |client: &Object| sql::monitoring_roles(client, login.roles()).await;
    let roles = database.read(roles).await?.into_iter();
    Ok(roles.map(|role| format!("membership in {role}")).collect())
}
