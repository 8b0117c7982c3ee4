//! Days: their partitions are there before their first event, and are dropped after their last.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{AbandonedReason, Alert, RETENTION};
use deadpool_postgres::{Object, Transaction};
use tokio::time::{Instant, MissedTickBehavior};

use crate::db::{At, Database, DbError};
use crate::health::Counted;
use crate::key_ring::KeyRing;
use crate::sql::sender::{self as sql, Overdue};
use crate::sql::{owners, queue as of_queue};
use crate::{clock, queue};
use host::log;
use host::rows::Names;

/// How often to look. Each of the senders does, one at a time.
const EVERY: Duration = Duration::from_secs(60);

/// The age of an event from which on what nobody can end is parked: 31 days.
const OVERDUE: Duration = Duration::from_secs(31 * 86_400);

/// How many alerts are dropped, and endpoints looked at, at a time.
const ALERTS_AT_ONCE: i64 = 2_000;
const ENDPOINTS_AT_ONCE: i64 = 1_000;

/// How often a sender looks for endpoints that were deleted.
const DAY: Duration = Duration::from_secs(86_400);

/// How long a sender tries to end what is overdue for no reason that it knows: 1 hour.
const TRIES: Duration = Duration::from_secs(3_600);

/// Adds days, until this is dropped.
pub(crate) async fn add(database: Database) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A week ahead, so that one that is refused for a long transaction has a week to be tried
        // again.
        let added = database.change(async |change| sql::days_add(change).await).await;
        log::tried("adding days", &added);
    }
}

/// Drops days, and forgets old alerts, endpoints and processes, until this is dropped.
pub(super) async fn drop_old(database: Database, ring: KeyRing, counted: Counted) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    let mut looked_at = None;
    loop {
        ticks.tick().await;
        // Dropping is irreversible, so the earlier of the two clocks counts.
        let now = database.now().min(clock::now());
        let has_tried = began.elapsed() > TRIES;
        let dropped = drop_days(&database, &ring, &counted, has_tried, now).await;
        log::tried("old days", &dropped);
        if dropped.is_ok() {
            counted.round("days");
        }
        log::tried("old alerts", &drop_alerts(&database, now).await);
        if looked_at.is_none_or(|at: Instant| at.elapsed() > DAY) {
            let forgotten = forget_endpoints(&database, now).await;
            log::tried("old endpoints", &forgotten);
            looked_at = forgotten.is_ok().then(Instant::now).or(looked_at);
        }
        let forget = async |client: &Object| owners::forget(client).await;
        log::tried("old processes", &database.read(forget).await);
    }
}

/// Drops the days whose youngest event is thirty days old. What nobody can end keeps no other.
async fn drop_days(
    database: &Database,
    ring: &KeyRing,
    counted: &Counted,
    has_tried: bool,
    now: Timestamp,
) -> Result<(), DbError> {
    let kept = try_drop(database, now).await?;
    if kept && give_up(database, ring, counted, has_tried, now).await? {
        try_drop(database, now).await?;
    }
    Ok(())
}

/// Drops alerts that are thirty days old, in steps: many may be as old as each other.
async fn drop_alerts(database: &Database, now: Timestamp) -> Result<(), DbError> {
    let oldest = At(now.saturating_sub(RETENTION));
    let step = async |client: &Object| sql::drop_alerts(client, oldest, ALERTS_AT_ONCE).await;
    while i64::try_from(database.read(step).await?).is_ok_and(|gone| gone >= ALERTS_AT_ONCE) {}
    Ok(())
}

/// Forgets the endpoints that were deleted, once their log is gone, in steps.
async fn forget_endpoints(database: &Database, now: Timestamp) -> Result<(), DbError> {
    let (before, mut last) = (At(now.saturating_sub(OVERDUE)), Some(-1_i32));
    while let Some(after) = last {
        let step = async |client: &Object| {
            sql::forget_endpoints(client, after, ENDPOINTS_AT_ONCE, before).await
        };
        (last,) = database.read(step).await?;
    }
    Ok(())
}

/// Drops what can be dropped, and returns whether a day had to be kept.
async fn try_drop(database: &Database, now: Timestamp) -> Result<bool, DbError> {
    let oldest = At(now.saturating_sub(RETENTION));
    let old = async |client: &Object| sql::days_to_drop(client, oldest).await;
    let mut kept = false;
    for day in &database.read(old).await? {
        match drop_day(database, day).await {
            Ok(true) => log::info!(day, "the events of a day are dropped"),
            Ok(false) => kept = true,
            Err(error) => log::warn!(day, %error, "dropping a day"),
        }
    }
    Ok(kept)
}

/// Drops a day, unless something pending needs it, and returns whether it is gone.
async fn drop_day(database: &Database, day: &str) -> Result<bool, DbError> {
    database
        .change(async |change| {
            sql::days_wait_briefly(change).await?;
            sql::days_drop(change, day).await
        })
        .await
}

/// Parks the overdue deliveries that nobody can end, and tells their owners. Returns whether there were
/// any.
async fn give_up(
    database: &Database,
    ring: &KeyRing,
    counted: &Counted,
    has_tried: bool,
    now: Timestamp,
) -> Result<bool, DbError> {
    let (mut last, mut any) = (i64::MIN, false);
    let page = async |last| {
        let page = async |change: &Transaction<'_>| {
            page(change, ring, has_tried, last, (now, At(database.now()))).await
        };
        database.change(page).await
    };
    while let (Some(reached), told) = page(last).await? {
        for (names, alert) in &told {
            names.told(alert);
        }
        counted.count(|tally| told.iter().for_each(|(_, alert)| tally.alerted(alert)));
        (last, any) = (reached, any || !told.is_empty());
    }
    Ok(any)
}

/// The last number of a page, `None` if it was empty, and what is told of each endpoint.
type Page = (Option<i64>, Vec<(Names, Alert)>);

/// Deliveries of one endpoint that nobody can end, for one reason.
struct Group {
    /// The version of the endpoint, if it is there.
    version: Option<i32>,
    names: Names,
    ids: Vec<i64>,
}

async fn page(
    change: &Transaction<'_>,
    ring: &KeyRing,
    has_tried: bool,
    last: i64,
    (now, at): (Timestamp, At),
) -> Result<Page, DbError> {
    let before = At(now.saturating_sub(OVERDUE));
    let rows = sql::days_overdue(change, before, last).await?;
    let last = rows.last().map(|row| row.id);
    let mut groups: HashMap<(i32, AbandonedReason), Group> = HashMap::new();
    for row in rows {
        let unknown = has_tried.then_some(AbandonedReason::Unknown);
        let Some(reason) = reason(&row, ring, now).or(unknown) else { continue };
        let endpoint = row.endpoint_id.unwrap_or_else(|| "missing".to_owned());
        let shard = queue::shard_of(&endpoint).cast_unsigned();
        let names = Names { account: row.account_id, endpoint, shard };
        let group = groups.entry((row.endpoint, reason));
        let version = row.endpoint_version;
        group.or_insert(Group { version, names, ids: Vec::new() }).ids.push(row.id);
    }
    let mut told = Vec::new();
    for ((endpoint, reason), Group { version, names, ids }) in groups {
        let parked = of_queue::give_up(change, &ids, at).await?;
        if parked == 0 {
            continue;
        }
        let alert = Alert::abandoned(reason, u32::try_from(parked).unwrap_or(u32::MAX));
        if let Some(version) = version {
            let text = serde_json::to_string(&alert).map_err(DbError::row)?;
            of_queue::insert_alerts(change, &[endpoint], &[version], at, &[text]).await?;
        }
        told.push((names, alert));
    }
    Ok((last, told))
}

/// Returns why nobody can end a delivery, if this sender cannot.
fn reason(row: &Overdue, ring: &KeyRing, now: Timestamp) -> Option<AbandonedReason> {
    if row.endpoint_number.is_none() {
        return Some(AbandonedReason::Endpoint);
    }
    if row.delivery.is_err() || row.health.is_err() {
        return Some(AbandonedReason::Row);
    }
    if !matches!(row.body, Some(Ok(_))) {
        return Some(AbandonedReason::Event);
    }
    let (id, sealed) = row.endpoint_id.as_deref().zip(row.secrets.as_deref())?;
    ring.open(id, sealed, now).err().map(|_| AbandonedReason::Secret)
}
