//! Reminds owners of endpoints that stay disabled: those of the shards that this sender owns.

use std::time::Duration;

use tokio::sync::watch;

use super::Counted;
use super::owner::Owned;
use crate::alerts;
use crate::db::{Database, within};
use crate::support::{clock, log};

/// How often to look. Shards that are new are looked at when they are owned.
const EVERY: Duration = Duration::from_secs(60);

/// Reminds, until this is dropped.
pub(super) async fn keep(database: Database, mut owned: watch::Receiver<Owned>, counted: Counted) {
    let mut ticks = tokio::time::interval(EVERY);
    let mut looked_at = Vec::new();
    loop {
        let is_time = tokio::select! {
            _ = ticks.tick() => true,
            Ok(()) = owned.changed() => false,
        };
        let shards: Vec<i16> = owned.borrow_and_update().shards.keys().copied().collect();
        if !is_time && shards == looked_at {
            continue;
        }
        match within(alerts::remind(&database, &shards, clock::now())).await {
            Ok(told) => counted.count(|tally| told.iter().for_each(|alert| tally.alerted(alert))),
            Err(error) => log::line(&format!("reminders: {error}")),
        }
        looked_at = shards;
    }
}
