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
        let reminded = remind(&database, &shards, &counted, clock::now()).await;
        log::tried("reminders", &reminded);
        if reminded.is_ok() {
            counted.round("reminders");
        }
        looked_at = shards;
    }
}

/// Reminds owners of endpoints that stay disabled, in these shards.
async fn remind(
    database: &Database,
    shards: &[i16],
    counted: &Counted,
    now: Timestamp,
) -> Result<(), DbError> {
    let mut last = Some(-1);
    while let Some(after) = last {
        let (alerts, next) = page(database, shards, after, now).await?;
        counted.count(|tally| alerts.iter().for_each(|alert| tally.alerted(alert)));
        last = next;
    }
    Ok(())
}

/// Reminds the owners of a page, after the endpoint with this number. Returns of what, and the number of its last
/// one; `None` if there was none.
async fn page(
    database: &Database,
    shards: &[i16],
    after: i32,
    now: Timestamp,
) -> Result<(Vec<Alert>, Option<i32>), DbError> {
    let since = |days: &u8| At(now.saturating_sub(DAY.saturating_mul((*days).into())));
    let [first, second] = [0, 1].map(|nth| REMINDER_DAYS.get(nth).map(since));
    let reminded = database.change(async |change| {
        let (mut alerts, mut writes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let rows = query(change, sql::ALERTS_REMIND, &[&shards, &first, &second, &after]).await?;
        for row in &rows {
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
        let last = rows.last().map(|row| row.field("number")).transpose()?;
        Ok::<_, DbError>((alerts, writes, names, last))
    });
    let (alerts, writes, names, last) = reminded.await?;
    for (names, (_, alert)) in names.iter().zip(&alerts) {
        names.told(alert).write();
    }
    queue::count_missed(database, &writes, now).await?;
    Ok((alerts.into_iter().map(|(_, alert)| alert).collect(), last))
}
