//! Days: their partitions are there before their first event, and are dropped after their last.

use std::time::Duration;

use crate::alerts;
use crate::db::{At, Database, DbError, within};
use crate::support::{clock, log};
use call_assistant::webhook::sender::RETENTION;

/// How often to look. Each of the senders does, one at a time.
const EVERY: Duration = Duration::from_secs(60);

/// Adds and drops days, until this is dropped.
pub(super) async fn keep(database: Database) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = within(add(&database)).await {
            log::line(&format!("adding days: {error}"));
        }
        match within(old(&database)).await {
            Ok(days) => {
                for day in days {
                    match within(drop_day(&database, &day)).await {
                        Ok(true) => log::line(&format!("dropped the events of {day}")),
                        Ok(false) => {}
                        Err(error) => log::line(&format!("dropping {day}: {error}")),
                    }
                }
            }
            Err(error) => log::line(&format!("old days: {error}")),
        }
        if let Err(error) = within(alerts::forget(&database, clock::now())).await {
            log::line(&format!("old alerts: {error}"));
        }
    }
}

/// A week ahead, so that one that is refused for a long transaction has a week to be tried again.
async fn add(database: &Database) -> Result<(), DbError> {
    let mut session = database.session().await?;
    let change = session.transaction().await?;
    change.batch_execute(include_str!("../../sql/days_add.sql")).await?;
    change.commit().await?;
    session.keep();
    Ok(())
}

/// Days whose youngest event is thirty days old.
async fn old(database: &Database) -> Result<Vec<String>, DbError> {
    let session = database.session().await?;
    let oldest = At(clock::now().saturating_sub(RETENTION));
    let rows = session.query(include_str!("../../sql/days_to_drop.sql"), &[&oldest]).await?;
    session.keep();
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Whether nothing that is pending needs it, so that it is gone now.
pub(super) async fn drop_day(database: &Database, day: &str) -> Result<bool, DbError> {
    let mut session = database.session().await?;
    let change = session.transaction().await?;
    // Who waits for a table makes others wait behind it, so this waits for a moment only.
    change.batch_execute("SET LOCAL lock_timeout = '200ms'").await?;
    let dropped = change.query_one("SELECT drop_day(to_date($1, 'YYYYMMDD'))", &[&day]).await?;
    change.commit().await?;
    session.keep();
    Ok(dropped.try_get(0)?)
}
