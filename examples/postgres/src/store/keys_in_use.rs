//! The look for signing secrets that this process cannot open: a key of the ring is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::sleep;

use crate::counted::Counted;
use crate::db::statements::{self as sql, batch};
use crate::db::{Database, DbError, Fields as _, query};
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
            if let Err(error) = self.look().await {
                log::warn("keys in use").because(&error).write();
            }
        }
    }

    /// Notes which keys are missing, and of how many endpoints.
    pub(crate) async fn look(&mut self) -> Result<(), DbError> {
        let sealed_by = async |client: &Transaction<'_>| {
            batch(client, sql::MONITORING_WHOLE_TABLES).await?;
            query(client, sql::MONITORING_SECRETS, &[]).await
        };
        // It has its own time limit, which is longer than that of who waits for an answer.
        let rows = self.database.unhurried().snapshot(sealed_by).await?;
        let (mut missing, mut unreadable) = (BTreeSet::new(), 0_i64);
        for row in &rows {
            let sealed: &[u8] = row.field("sealed_by")?;
            missing.extend(self.ring.missing_key_of(sealed));
            if !self.ring.has_key_of(sealed) {
                unreadable = unreadable.saturating_add(row.field("endpoints")?);
            }
        }
        if missing != self.missing {
            match missing.is_empty() {
                true => log::info("the key ring has each key that is in use again").write(),
                false => {
                    let message = format!("the key ring lacks keys that are in use: {missing:?}");
                    log::error(message).with("endpoints", unreadable).write();
                }
            }
        }
        self.counted.lacks_keys(!missing.is_empty(), unreadable);
        self.missing = missing;
        Ok(())
    }
}
