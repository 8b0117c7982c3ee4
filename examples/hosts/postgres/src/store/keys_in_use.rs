//! The look for signing secrets that this process cannot open: a key of the ring is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::{Instant, sleep};

use crate::counted::{Counted, Lacking};
use crate::db::statements::{self as sql, batch};
use crate::db::{Database, DbError, Fields as _, query, query_opt};
use crate::key_ring::KeyRing;
use host::log;

/// How long to wait before the next look: a minute, and 5 s while a key is missing.
const EVERY: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(5);

/// The keys that secrets of endpoints need.
#[derive(Debug)]
pub(crate) struct KeysInUse {
    pub(super) database: Database,
    pub(super) ring: KeyRing,
    pub(super) counted: Counted,
    pub(super) missing: BTreeSet<u8>,
}

impl KeysInUse {
    /// Looks for as long as the process runs.
    pub(crate) async fn keep(mut self) {
        loop {
            sleep(if self.missing.is_empty() { EVERY } else { SOON }).await;
            log::tried("keys in use", &self.look().await);
        }
    }

    /// Notes which keys are missing, of how many endpoints, and how many deliveries wait for them.
    pub(crate) async fn look(&mut self) -> Result<(), DbError> {
        // It has its own time limit, which is longer than that of who waits for an answer.
        let database = self.database.unhurried();
        let lacking = database.snapshot(async |client| self.lacking(client).await).await?;
        let (missing, unreadable) = (lacking.keys.clone(), lacking.endpoints);
        if missing != self.missing {
            match missing.is_empty() {
                true => log::info("the key ring has each key that is in use again").write(),
                false => {
                    let message = format!("the key ring lacks keys that are in use: {missing:?}");
                    log::error(message).with("endpoints", unreadable).write();
                }
            }
        }
        self.counted.lacks(lacking);
        self.missing = missing;
        Ok(())
    }

    async fn lacking(&self, client: &Transaction<'_>) -> Result<Lacking, DbError> {
        batch(client, sql::MONITORING_WHOLE_TABLES).await?;
        let rows = query(client, sql::MONITORING_SECRETS, &[]).await?;
        let (mut lacking, mut unreadable) = (Lacking::default(), Vec::new());
        for row in &rows {
            let sealed: &[u8] = row.field("sealed_by")?;
            lacking.keys.extend(self.ring.missing_key_of(sealed));
            if !self.ring.has_key_of(sealed) {
                lacking.endpoints = lacking.endpoints.saturating_add(row.field("endpoints")?);
                unreadable.push(sealed);
            }
        }
        if let Some(sender) = self.counted.sender()
            && !unreadable.is_empty()
            && let Some(row) =
                query_opt(client, sql::MONITORING_UNREADABLE, &[&sender, &unreadable]).await?
        {
            lacking.due = row.field("due")?;
            let oldest = Duration::try_from_secs_f64(row.field("oldest")?).map_err(DbError::row)?;
            lacking.due_since = Instant::now().checked_sub(oldest).filter(|_| lacking.due > 0);
        }
        Ok(lacking)
    }
}
