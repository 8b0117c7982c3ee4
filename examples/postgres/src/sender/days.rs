//! Days: their partitions are there before their first event, and are dropped after their last.

use std::time::Duration;

use call_assistant::webhook::sender::RETENTION;
use deadpool_postgres::Object;
use tokio::time::MissedTickBehavior;
use tokio_postgres::Row;

use crate::clock::database as clock;
use crate::db::statements::{self as sql, batch};
use crate::db::{At, Database, DbError, Fields as _, execute, query, query_opt};
use host::log;

/// How often to look. Each of the senders does, one at a time.
const EVERY: Duration = Duration::from_secs(60);

/// Adds and drops days, and forgets old alerts and dead processes, until this is dropped.
pub(super) async fn keep(database: Database) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A week ahead, so that one that is refused for a long transaction has a week to be tried
        // again.
        if let Err(error) = database.change(async |change| batch(change, sql::DAYS_ADD).await).await
        {
            log::line(&format!("adding days: {error}"));
        }
        let oldest = At(clock::now().saturating_sub(RETENTION));
        match old(&database, oldest).await {
            Ok(days) => {
                for day in days {
                    match drop_day(&database, &day).await {
                        Ok(true) => log::line(&format!("dropped the events of {day}")),
                        Ok(false) => {}
                        Err(error) => log::line(&format!("dropping {day}: {error}")),
                    }
                }
            }
            Err(error) => log::line(&format!("old days: {error}")),
        }
        let forget = async |client: &Object| execute(client, sql::ALERTS_DROP, &[&oldest]).await;
        if let Err(error) = database.read(forget).await {
            log::line(&format!("old alerts: {error}"));
        }
        let forget = async |client: &Object| execute(client, sql::OWNERS_FORGET, &[]).await;
        if let Err(error) = database.read(forget).await {
            log::line(&format!("old processes: {error}"));
        }
    }
}

/// Days whose youngest event is thirty days old.
async fn old(database: &Database, oldest: At) -> Result<Vec<String>, DbError> {
    let old = async |client: &Object| query(client, sql::DAYS_TO_DROP, &[&oldest]).await;
    let rows: Vec<Row> = database.read(old).await?;
    rows.iter().map(|row| row.field("day")).collect()
}

/// Whether nothing that is pending needs it, so that it is gone now.
async fn drop_day(database: &Database, day: &str) -> Result<bool, DbError> {
    database
        .change(async |change| {
            batch(change, sql::DAYS_WAIT_BRIEFLY).await?;
            let dropped = query_opt(change, sql::DAYS_DROP, &[&day]).await?;
            dropped.map_or(Ok(false), |row| row.field(0))
        })
        .await
}
