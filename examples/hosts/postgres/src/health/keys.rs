//! The look for signing secrets that this process cannot open: its ring does not have a key that is in use.

use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::{Instant, sleep};

use super::{Counted, Lacking};
use crate::db::{Database, DbError};
use crate::key_ring::KeyRing;
use crate::key_ring::in_use::{self, Unfit};
use crate::sql::ops as sql;
use host::log;

/// How long to wait before the next look: a minute, and 5 s while a key is missing.
const EVERY: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(5);

/// The keys that secrets of endpoints need.
#[derive(Debug)]
pub(super) struct KeysInUse {
    database: Database,
    ring: KeyRing,
    counted: Counted,
    unfit: Unfit,
}

impl KeysInUse {
    /// Creates the look for keys that the ring lacks.
    pub(super) fn new(database: Database, ring: KeyRing, counted: Counted) -> Self {
        Self { database, ring, counted, unfit: Unfit::default() }
    }

    /// Looks for as long as the process runs.
    pub(super) async fn keep(mut self) {
        loop {
            sleep(if self.unfit.is_empty() { EVERY } else { SOON }).await;
            log::tried("keys in use", &self.look().await);
        }
    }

    /// Notes which keys are missing, of how many endpoints, and how many deliveries wait for them.
    pub(super) async fn look(&mut self) -> Result<(), DbError> {
        // It has its own time limit, which is longer than that of who waits for an answer.
        let database = self.database.unhurried();
        let lacking = database.snapshot(async |client| self.lacking(client).await).await?;
        let (unfit, unreadable) = (lacking.keys.clone(), lacking.endpoints);
        if unfit != self.unfit {
            match unfit.is_empty() {
                true => log::info!("the key ring has each key that is in use again"),
                false => log::error!(endpoints = unreadable, "{unfit}"),
            }
        }
        self.counted.lacks(lacking);
        self.unfit = unfit;
        Ok(())
    }

    async fn lacking(&self, client: &Transaction<'_>) -> Result<Lacking, DbError> {
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
}
