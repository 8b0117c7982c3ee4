//! Reminds owners of endpoints that stay disabled: those of the shards that this sender owns.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, REMINDER_DAYS};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::owner::Owned;
use super::read::Names;
use crate::clock::database as clock;
use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, endpoint_of, query};
use crate::queue;
use host::log;

/// How often to look. Shards that are new are looked at when they are owned.
const EVERY: Duration = Duration::from_secs(60);

const DAY: Duration = Duration::from_secs(86_400);

/// Reminds, until this is dropped.
pub(super) async fn keep(database: Database, mut owned: watch::Receiver<Owned>, counted: Counted) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
        match remind(&database, &shards, clock::now()).await {
            Ok(told) => {
                counted.count(|tally| told.iter().for_each(|alert| tally.alerted(alert)));
                counted.round("reminders");
            }
            Err(error) => log::warn("reminders").because(&error).write(),
        }
        looked_at = shards;
    }
}

/// Reminds owners of endpoints that stay disabled, in these shards, and returns of what.
async fn remind(
    database: &Database,
    shards: &[i16],
    now: Timestamp,
) -> Result<Vec<Alert>, DbError> {
    let [first, second] =
        REMINDER_DAYS.map(|days| At(now.saturating_sub(DAY.saturating_mul(days.into()))));
    let reminded = database.change(async |change| {
        let (mut alerts, mut writes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for row in &query(change, sql::ALERTS_REMIND, &[&shards, &first, &second]).await? {
            // One that a later version wrote is for that version.
            let Ok(mut endpoint) = endpoint_of(row, "") else { continue };
            let number = row.field("number")?;
            if let Some(alert) = endpoint.remind(now) {
                alerts.push((number, alert));
                names.push(Names { account: row.field("account_id")?, endpoint: row.field("id")? });
                writes.push((number, endpoint));
            }
        }
        queue::write_locked_endpoints(change, &writes).await?;
        queue::store_alerts(change, &alerts, &writes, now).await?;
        Ok::<_, DbError>((alerts, writes, names))
    });
    let (alerts, writes, names) = reminded.await?;
    for (names, (_, alert)) in names.iter().zip(&alerts) {
        names.told(alert).write();
    }
    queue::count_missed(database, &writes, now).await?;
    Ok(alerts.into_iter().map(|(_, alert)| alert).collect())
}
