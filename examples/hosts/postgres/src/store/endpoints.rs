//! Endpoints: their address, secrets and health.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::Signer;
use call_assistant::webhook::sender::{
    Delivery, DisabledReason, EndpointChange, EndpointColumns, EndpointHealth, EndpointUrl,
    RecoveryFilter, oldest_kept,
};
use deadpool_postgres::{GenericClient, Transaction};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::delivery_key::DeliveryKey;
use super::{accounts, listed, unreadable};
use crate::db::statements as sql;
use crate::db::{At, Fields as _, delivery_of, endpoint_of, execute, plan_of, query, query_opt};
use crate::key_ring::{KeyRing, in_use};
use crate::queue;
use host::log;
use host::store::{Day, EndpointEdit, EndpointRow, Hour, LastHour, Listed, NewEndpoint, NewSecret};
use host::store::{Done, EndpointLimit, Refused};

/// An endpoint as read, and its place.
pub(super) struct StoredEndpoint {
    pub(super) number: i32,
    pub(super) shard: i16,
    pub(super) shown: EndpointRow,
    sealed: Vec<u8>,
}

/// Where the deliveries of an endpoint are, and what lists of them show of it.
pub(super) struct Place {
    pub(super) number: i32,
    pub(super) shard: i16,
    pub(super) id: EndpointId,
    pub(super) url: String,
    pub(super) health: Done<EndpointHealth>,
}

/// A change of an endpoint's health.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Pause,
    Delete,
}

/// Reads the endpoints of an account that are not deleted, oldest first.
pub(super) async fn all(
    client: &impl GenericClient,
    ring: &KeyRing,
    account: &str,
    now: Timestamp,
) -> Done<Vec<Listed<EndpointRow>>> {
    let read = |row: &Row| {
        let found = found_in(row, ring, now).map(|found| found.shown);
        Ok(listed("endpoint", row.field("id")?, found))
    };
    rows(client, account, false).await?.iter().map(read).collect()
}

/// Reads where the deliveries of an account's endpoints are.
pub(super) async fn places(
    client: &impl GenericClient,
    account: &str,
    deleted: bool,
) -> Done<BTreeMap<i32, Place>> {
    let mut places = BTreeMap::new();
    for row in rows(client, account, deleted).await? {
        let (number, shard) = (row.field("number")?, row.field("shard")?);
        let text: &str = row.field("id")?;
        let id = listed("endpoint", text, EndpointId::parse(text).map_err(unreadable));
        let Ok(id) = id else { continue };
        let health = endpoint_of(&row, "").map_err(Refused::from);
        places.insert(number, Place { number, shard, id, url: row.field("url")?, health });
    }
    Ok(places)
}

async fn rows(client: &impl GenericClient, account: &str, deleted: bool) -> Done<Vec<Row>> {
    let rows = query(client, sql::ENDPOINTS_ALL, &[&account, &deleted]).await?;
    if rows.is_empty() {
        accounts::one(client, account).await?;
    }
    Ok(rows)
}

/// Reads one endpoint.
pub(super) async fn one(
    client: &impl GenericClient,
    ring: &KeyRing,
    id: &str,
    now: Timestamp,
) -> Done<StoredEndpoint> {
    let row = query_opt(client, sql::ENDPOINTS_ONE, &[&id]).await?;
    found_in(&row.ok_or(Refused::NotFound("endpoint"))?, ring, now)
}

/// Registers an endpoint, unless its account has as many as the limit allows. Whether the account has
/// webhooks was checked.
pub(super) async fn insert(
    change: &Transaction<'_>,
    ring: &KeyRing,
    limit: EndpointLimit,
    new: &NewEndpoint,
    now: Timestamp,
) -> Done<()> {
    let account = new.account_id.as_str();
    // Who adds another one at the same time waits, and counts this one.
    execute(change, sql::ACCOUNTS_LOCK, &[&account]).await?;
    let counted = query_opt(change, sql::ENDPOINTS_COUNT, &[&account]).await?;
    limit.check(counted.map_or(Ok(0), |row| row.field::<i64>("count"))?.unsigned_abs())?;
    in_use::seal(change, ring).await?;
    let shard = queue::shard_of(new.id.as_str());
    let sealed = ring.seal(new.id.as_str(), &Signer::new(new.secret.clone()), now);
    // The table numbers it.
    let health = EndpointColumns::from(EndpointHealth::new(0, now));
    let inserted = execute(
        change,
        sql::ENDPOINTS_INSERT,
        &[
            &new.id.as_str(),
            &account,
            &shard,
            &At(now),
            &new.target.as_str(),
            &needs_loopback(&new.target),
            &sealed,
            &health.disabled.map(|reason| reason.as_str()),
            &At(health.since),
            &health.failures,
            &health.generation,
            &health.version,
            &new.description,
        ],
    )
    .await;
    match inserted? {
        0 => Err(Refused::Conflict("an endpoint with this id already exists".into())),
        _ => Ok(()),
    }
}

/// Describes an endpoint, or gives it another address, and a new life with it.
pub(super) async fn edit(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    edit: &EndpointEdit,
    now: Timestamp,
) -> Done<EndpointRow> {
    let (_, mut found) = lock(change, ring, id, now).await?;
    refuse_deleted(&found)?;
    let (described, target) = (&edit.description, edit.target.as_ref());
    let parameters: [&(dyn ToSql + Sync); 5] = [
        &found.number,
        &described.is_some(),
        &described.as_ref().and_then(Option::as_ref),
        &target.map(|target| target.as_str()),
        &target.map(needs_loopback),
    ];
    execute(change, sql::ENDPOINTS_EDIT, &parameters).await?;
    if let Some(description) = described {
        found.shown.description.clone_from(description);
    }
    if let Some(target) = target {
        let _ = found.shown.health.moved(now);
        write(change, &found).await?;
        found.shown.url = target.as_str().to_owned();
    }
    Ok(found.shown)
}

/// Replaces the signing secret.
pub(super) async fn rotate(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    new: NewSecret,
    now: Timestamp,
) -> Done<EndpointRow> {
    let (_, mut found) = lock(change, ring, id, now).await?;
    refuse_deleted(&found)?;
    in_use::seal(change, ring).await?;
    let signer = match ring.open(id, &found.sealed, now) {
        Ok(mut signer) => {
            let rotated = signer.rotate(new.secret, new.overlap, now);
            rotated.map_err(|error| Refused::Conflict(error.to_string()))?;
            signer
        }
        // Nobody can sign with the old one.
        Err(_) => Signer::new(new.secret),
    };
    let parameters: [&(dyn ToSql + Sync); 2] = [&found.number, &ring.seal(id, &signer, now)];
    execute(change, sql::ENDPOINTS_SECRETS, &parameters).await?;
    found.shown.previous_secrets = signer.previous(now).map(|(_, end)| end).collect();
    Ok(found.shown)
}

/// Pauses or deletes an endpoint.
pub(super) async fn disable(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    how: Change,
    now: Timestamp,
) -> Done<StoredEndpoint> {
    let (_, mut found) = lock(change, ring, id, now).await?;
    let changed = match how {
        Change::Pause => {
            refuse_deleted(&found)?;
            found.shown.health.pause(now)
        }
        Change::Delete => found.shown.health.delete(now),
    };
    if changed == EndpointChange::Unchanged && matches!(how, Change::Pause) {
        return Err(Refused::Conflict("the endpoint is disabled".into()));
    }
    write(change, &found).await?;
    Ok(found)
}

/// Makes an endpoint active, and says what it missed. `None` if it was active.
pub(super) async fn enable(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    now: Timestamp,
) -> Done<(StoredEndpoint, Option<RecoveryFilter>)> {
    let (row, mut found) = lock(change, ring, id, now).await?;
    plan_of(&row)?.webhooks.check_webhooks()?;
    refuse_deleted(&found)?;
    let Some(missed) = found.shown.health.enable(now) else { return Ok((found, None)) };
    write(change, &found).await?;
    Ok((found, Some(missed)))
}

/// How long to wait for transactions that may have accepted an event while an endpoint was enabled: 750 ms. What is
/// counted after that takes 800 ms, and all of it has two seconds.
const SETTLE: Duration = Duration::from_millis(750);

/// How long to wait before the next look whether they have ended: 10 ms.
const LOOK: Duration = Duration::from_millis(10);

/// Reads the newest deliveries that an endpoint missed, newest first, once they are all stored: call it when
/// the endpoint's change is committed.
///
/// Events are accepted without a lock on the endpoint, so transactions that may have read it before that are
/// waited for, those included that began after the change and before its commit. What one of them stores
/// later is not told here; a recovery finds it.
pub(super) async fn missed(
    client: &impl GenericClient,
    found: &StoredEndpoint,
    missed: &RecoveryFilter,
    now: Timestamp,
) -> Done<Vec<DeliveryKey>> {
    let row = query_opt(client, sql::ENDPOINTS_TRANSACTION, &[]).await?;
    let last: String = row.ok_or_else(|| unreadable("there is no transaction"))?.field(0)?;
    let began = Instant::now();
    // However long a look takes.
    while began.elapsed() < SETTLE {
        let row = query_opt(client, sql::ENDPOINTS_SETTLED, &[&last]).await?;
        if row.map(|row| row.field(0)).transpose()?.unwrap_or(true) {
            break;
        }
        sleep(LOOK).await;
    }
    let oldest = At(oldest_kept(now).floor_to_micros());
    let rows = query(client, sql::MISSED_NEWEST, &[&found.number, &oldest]).await;
    let mut ids = Vec::new();
    for row in rows? {
        // One that a later version wrote is for that version.
        let Ok::<Delivery, _>(delivery) = delivery_of(&row) else { continue };
        if missed.includes(&delivery) {
            ids.push(DeliveryKey { endpoint: found.number, id: row.field("id")? });
        }
    }
    Ok(ids)
}

/// Reads how each endpoint has answered in the last hour, as far as its latest deliveries tell.
pub(super) async fn last_hour(
    client: &impl GenericClient,
    account: &str,
    now: Timestamp,
) -> Done<Vec<(EndpointId, LastHour)>> {
    let places = places(client, account, false).await?;
    let shards: Vec<i16> = places.values().map(|place| place.shard).collect();
    let numbers: Vec<i32> = places.keys().copied().collect();
    let since = At(now.saturating_sub(Duration::from_secs(3600)));
    let mut hours = Vec::new();
    for row in query(client, sql::ENDPOINTS_LAST_HOUR, &[&shards, &numbers, &since]).await? {
        let Some(of) = places.get(&row.field("number")?) else { continue };
        let count = |name: &str| -> Done<u64> { Ok(row.field::<i64>(name)?.unsigned_abs()) };
        let took = |name: &str| -> Done<Option<u64>> {
            Ok(row.field::<Option<i64>>(name)?.map(i64::unsigned_abs))
        };
        let hour = LastHour {
            attempts: count("attempts")?,
            more: row.field("more")?,
            succeeded: count("succeeded")?,
            p50_ms: took("p50_ms")?,
            p99_ms: took("p99_ms")?,
        };
        hours.push((of.id.clone(), hour));
    }
    Ok(hours)
}

/// Locks an endpoint, and returns it as it is before a change.
pub(super) async fn locked(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    now: Timestamp,
) -> Done<EndpointRow> {
    Ok(lock(change, ring, id, now).await?.1.shown)
}

/// Locks an endpoint to change, and returns it with the row it was read from.
async fn lock(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    now: Timestamp,
) -> Done<(Row, StoredEndpoint)> {
    let row = query_opt(change, sql::ENDPOINTS_CHANGE, &[&id]).await?;
    let row = row.ok_or(Refused::NotFound("endpoint"))?;
    let found = found_in(&row, ring, now)?;
    Ok((row, found))
}

/// Writes an endpoint's health where it has changed.
async fn write(change: &Transaction<'_>, found: &StoredEndpoint) -> Done<()> {
    let health = found.shown.health;
    if health.if_version().is_none() {
        return Ok(());
    }
    Ok(queue::write_locked_endpoints(change, &[(found.number.cast_unsigned(), health)]).await?)
}

fn found_in(row: &Row, ring: &KeyRing, now: Timestamp) -> Done<StoredEndpoint> {
    let id: &str = row.field("id")?;
    let sealed: Vec<u8> = row.field("secrets")?;
    let previous = match ring.open(id, &sealed, now) {
        Ok(signer) => signer.previous(now).map(|(_, end)| end).collect(),
        // All else of it can be shown.
        Err(error) => {
            log::warn("an endpoint's secrets cannot be read")
                .with("endpoint", id)
                .because(&error)
                .write();
            Vec::new()
        }
    };
    let shown = EndpointRow {
        id: EndpointId::parse(id).map_err(unreadable)?,
        account_id: AccountId::parse(row.field("account_id")?).map_err(unreadable)?,
        url: row.field("url")?,
        description: row.field("description")?,
        health: endpoint_of(row, "")?,
        created_at: row.instant("created_at")?,
        previous_secrets: previous,
    };
    Ok(StoredEndpoint { number: row.field("number")?, shard: row.field("shard")?, shown, sealed })
}

fn refuse_deleted(found: &StoredEndpoint) -> Done<()> {
    match found.shown.health.disabled() {
        Some(DisabledReason::Deleted) => Err(Refused::Conflict("the endpoint is deleted".into())),
        _ => Ok(()),
    }
}

/// Tells whether an address is one that only a development mode allows.
fn needs_loopback(target: &EndpointUrl) -> bool {
    EndpointUrl::parse(target.as_str()).is_err()
}

/// Reads how the events of the day that begins at `from` stand at each endpoint.
pub(super) async fn day(
    client: &impl GenericClient,
    account: &str,
    from: Timestamp,
) -> Done<Vec<(EndpointId, Day)>> {
    let places = places(client, account, false).await?;
    let shards: Vec<i16> = places.values().map(|place| place.shard).collect();
    let numbers: Vec<i32> = places.keys().copied().collect();
    let most = Day::most(places.len());
    let midnight = from.unix_seconds().div_euclid(86_400).saturating_mul(86_400);
    let midnight = Timestamp::from_unix(midnight).unwrap_or(from);
    let until = from.saturating_add(Duration::from_secs(24 * 3600));
    let parameters: [&(dyn ToSql + Sync); 6] =
        [&shards, &numbers, &At(from), &At(midnight), &most.cast_signed(), &At(until)];
    let mut days: BTreeMap<i32, (Day, u64, Timestamp)> = BTreeMap::new();
    for row in query(client, sql::ENDPOINTS_DAY, &parameters).await? {
        let count = |name: &str| -> Done<u64> { Ok(row.field::<i64>(name)?.unsigned_abs()) };
        let standing = Hour {
            delivered: count("delivered")?,
            failing: count("failing")?,
            missed: count("missed")?,
            waiting: count("waiting")?,
        };
        let oldest = row.instant("oldest")?;
        let (day, looked, since) =
            days.entry(row.field("number")?).or_insert((Day::default(), 0, Timestamp::MAX));
        day.add(from, oldest, &standing);
        *looked = looked.saturating_add(standing.total());
        *since = (*since).min(oldest);
    }
    let shown = places.values().map(|place| {
        let (day, looked, oldest) =
            days.remove(&place.number).unwrap_or((Day::default(), 0, Timestamp::MAX));
        let since = Some(oldest).filter(|oldest| looked >= most && *oldest >= from);
        (place.id.clone(), Day { since, ..day })
    });
    Ok(shown.collect())
}
