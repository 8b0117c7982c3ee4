//! Reminds owners of endpoints that stay disabled, and counts what each of these has missed.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Alert, EndpointHealth};

use crate::rows::{Change, Changes, Done, Names, Page, Search, Shards, Writes};
use crate::store::MOST_COUNTED;

/// Reminds the owners of endpoints of these shards. Returns what they are told.
pub async fn remind(rows: &impl Changes, shards: &Shards, now: Timestamp) -> Done<Vec<Alert>> {
    let mut told = Vec::new();
    let mut after = None;
    loop {
        let mut change = rows.change().await?;
        let Page { rows: page, last } = change.lock_disabled(shards, after, now).await?;
        let (mut alerts, mut endpoints, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for (health, names) in &page {
            let mut health = *health;
            if let Some(alert) = health.remind(now) {
                let number = number_of(&health);
                owners.push(names);
                alerts.push((number, alert));
                endpoints.push((number, health));
            }
        }
        let writes = Writes { endpoints: &endpoints, alerts: &alerts, ..Writes::at(now) };
        change.write(&writes).await?;
        change.commit().await?;
        owners.iter().zip(&alerts).for_each(|(names, (_, alert))| names.told(alert));
        for (names, (_, health)) in owners.into_iter().zip(&endpoints) {
            count_missed(rows, health, names, now).await?;
        }
        told.extend(alerts.into_iter().map(|(_, alert)| alert));
        if last.is_none() {
            return Ok(told);
        }
        after = last;
    }
}

/// Adds to the alert of a disabled endpoint how much it had missed, once that is stored, in pages: a count that
/// takes long holds up nobody. One more than [`MOST_COUNTED`] stands for any number beyond it. An alert whose
/// count is lost is told without it.
pub async fn count_missed(
    rows: &impl Changes,
    health: &EndpointHealth,
    names: &Names,
    now: Timestamp,
) -> Done<()> {
    let Some(missed) = health.missed(now) else { return Ok(()) };
    let search = Search { shard: names.shard, endpoint: number_of(health), missed };
    let (mut counted, mut after) = (0_u64, Some(0));
    while let Some(from) = after.filter(|_| counted <= MOST_COUNTED) {
        let mut change = rows.change().await?;
        let page = change.count(&search, from).await?;
        change.commit().await?;
        (counted, after) = (counted.saturating_add(page.counted), page.to);
    }
    let counted = counted.min(MOST_COUNTED.saturating_add(1));
    let mut change = rows.change().await?;
    change.write(&Writes { missed: Some((health, counted)), ..Writes::at(now) }).await?;
    change.commit().await
}

fn number_of(health: &EndpointHealth) -> u32 {
    u32::try_from(health.id()).unwrap_or(u32::MAX)
}
