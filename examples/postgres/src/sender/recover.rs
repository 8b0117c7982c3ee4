//! Makes the steps of recoveries: those of the shards that this sender owns.

use std::time::Duration;

use tokio::sync::watch;

use super::owner::Owned;
use crate::db::Database;
use crate::store::step_recoveries;
use crate::support::{clock, log};

/// How often to look while a recovery runs, while none does, and after an error.
const RUNNING: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Steps, until this is dropped.
pub(super) async fn keep(database: Database, owned: watch::Receiver<Owned>) {
    loop {
        let mut wait = IDLE;
        if owned.borrow().is_valid() {
            let shards: Vec<i16> = owned.borrow().shards.keys().copied().collect();
            match step_recoveries(&database, &shards, clock::now()).await {
                Ok(true) => wait = RUNNING,
                Ok(false) => {}
                Err(error) => {
                    log::line(&format!("recoveries: {error:?}"));
                    wait = AFTER_ERROR;
                }
            }
        }
        tokio::time::sleep(wait).await;
    }
}
