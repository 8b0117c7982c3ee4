//! Endpoints: their address, secrets and health.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::Signer;
use call_assistant::webhook::sender::{
    Delivery, DisabledReason, EndpointChange, EndpointColumns, EndpointHealth, EndpointUrl,
    RecoveryFilter, oldest_kept,
};
use deadpool_postgres::{GenericClient, Transaction};
use tokio::time::{Instant, sleep};

use super::deliveries::DeliveryKey;
use super::{accounts, listed, one_more, unreadable};
use crate::db::At;
use crate::key_ring::{KeyRing, in_use};
use crate::queue;
use crate::sql::queue as of_queue;
use crate::sql::store::{self as sql, ListedEndpoint};
use host::log;
use host::store::plan::Plan;
use host::store::scope::By;
use host::store::{
    Day, Done, EndpointEdit, EndpointLimit, EndpointRow, LastHour, List, NewEndpoint, NewSecret,
    PageOf, PartRows, Refused, bounds, place,
};

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

/// An endpoint that is locked, as it was read at an instant, with the plan of its account.
pub(super) struct Locked {
    pub(super) found: StoredEndpoint,
    plan: Plan,
    now: Timestamp,
}

/// Reads a page of the endpoints of an account that are not deleted, oldest first.
pub(super) async fn page(
    client: &impl GenericClient,
    ring: &KeyRing,
    PageOf { account, after, limit }: PageOf<'_>,
    now: Timestamp,
) -> Done<List<EndpointRow>> {
    let account = account.as_str();
    let read = |row: ListedEndpoint| {
        let found = row.read.map(|row| found_in(row, ring, now).shown);
        listed("endpoint", &row.id, found)
    };
    let rows = rows(client, account, false, place(after, -1)?, one_more(limit)).await?;
    Ok(PartRows::first(rows, limit, |row| row.number.to_string(), read))
}

/// Reads where the deliveries of an account's endpoints are.
pub(super) async fn places(
    client: &impl GenericClient,
    account: &str,
    deleted: bool,
) -> Done<BTreeMap<i32, Place>> {
    let mut places = BTreeMap::new();
    for row in rows(client, account, deleted, -1, i64::MAX).await? {
        let ListedEndpoint { number, shard, id, url, health, .. } = row;
        let parsed = EndpointId::parse(&id).map_err(unreadable);
        let Ok(id) = listed("endpoint", &id, parsed) else { continue };
        let health = health.map_err(Refused::from);
        places.insert(number, Place { number, shard, id, url, health });
    }
    Ok(places)
}

async fn rows(
    client: &impl GenericClient,
    account: &str,
    deleted: bool,
    after: i32,
    limit: i64,
) -> Done<Vec<ListedEndpoint>> {
    let rows = sql::endpoints_all(client, account, deleted, after, limit).await?;
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
    let row = sql::endpoints_one(client, id).await?.ok_or(Refused::NotFound("endpoint"))?;
    Ok(found_in(row, ring, now))
}

/// Checks that somebody may have deleted as many as there are, the one of this change included.
pub(super) async fn check_deleted(
    change: &Transaction<'_>,
    account: &str,
    by: By,
    now: Timestamp,
) -> Done<()> {
    let since = bounds::ENDPOINTS_DELETED.since(now);
    let deleted = sql::endpoints_deleted(change, account, At(since)).await?;
    bounds::ENDPOINTS_DELETED.check(by, deleted.saturating_sub(1))
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
    sql::accounts_lock(change, account).await?;
    limit.check(sql::endpoints_count(change, account).await?.unsigned_abs())?;
    in_use::seal(change, ring).await?;
    let shard = queue::shard_of(new.id.as_str());
    let sealed = ring.seal(new.id.as_str(), &Signer::new(new.secret.clone()), now);
    // The table numbers it.
    let health = EndpointColumns::from(EndpointHealth::new(0, now));
    let inserted = sql::endpoints_insert(
        change,
        new.id.as_str(),
        account,
        shard,
        At(now),
        new.target.as_str(),
        needs_loopback(&new.target),
        &sealed,
        health.disabled.map(|reason| reason.as_str()),
        At(health.since),
        health.failures,
        health.generation,
        health.version,
        new.description.as_deref(),
    );
    match inserted.await? {
        0 => Err(Refused::Conflict("an endpoint with this id already exists".into())),
        _ => Ok(()),
    }
}

/// Describes an endpoint, or gives it another address, and a new life with it.
pub(super) async fn edit(
    change: &Transaction<'_>,
    locked: &mut Locked,
    edit: &EndpointEdit,
) -> Done<()> {
    let (now, found) = (locked.now, locked.not_deleted()?);
    let (described, target) = (&edit.description, edit.target.as_ref());
    let description = described.as_ref().and_then(Option::as_deref);
    let (url, loopback) = (target.map(EndpointUrl::as_str), target.map(needs_loopback));
    let is_described = described.is_some();
    sql::endpoints_edit(change, found.number, is_described, description, url, loopback).await?;
    if let Some(description) = described {
        found.shown.description.clone_from(description);
    }
    if let Some(target) = target {
        let _ = found.shown.health.moved(now);
        write(change, found).await?;
        found.shown.url = target.as_str().to_owned();
    }
    Ok(())
}

/// Replaces the signing secret.
pub(super) async fn rotate(
    change: &Transaction<'_>,
    ring: &KeyRing,
    locked: &mut Locked,
    new: NewSecret,
) -> Done<()> {
    let (now, found) = (locked.now, locked.not_deleted()?);
    in_use::seal(change, ring).await?;
    let id = found.shown.id.as_str();
    let signer = match ring.open(id, &found.sealed, now) {
        Ok(mut signer) => {
            new.replace(&mut signer, now)?;
            signer
        }
        // Nobody can sign with the old one.
        Err(_) => Signer::new(new.secret),
    };
    sql::endpoints_secrets(change, found.number, &ring.seal(id, &signer, now)).await?;
    found.shown.previous_secrets = Some(signer.previous(now).map(|(_, end)| end).collect());
    Ok(())
}

/// Pauses an endpoint.
pub(super) async fn pause(change: &Transaction<'_>, locked: &mut Locked) -> Done<()> {
    let (now, found) = (locked.now, locked.not_deleted()?);
    match found.shown.health.pause(now) {
        EndpointChange::Unchanged => Err(Refused::Conflict("the endpoint is disabled".into())),
        _ => write(change, found).await,
    }
}

/// Deletes an endpoint.
pub(super) async fn delete(change: &Transaction<'_>, locked: &mut Locked) -> Done<()> {
    let _ = locked.found.shown.health.delete(locked.now);
    write(change, &locked.found).await
}

/// Makes an endpoint active, and says what it missed. `None` if it was active.
pub(super) async fn enable(
    change: &Transaction<'_>,
    locked: &mut Locked,
) -> Done<Option<RecoveryFilter>> {
    locked.plan.webhooks.check_webhooks()?;
    let (now, found) = (locked.now, locked.not_deleted()?);
    let missed = found.shown.health.enable(now);
    write(change, found).await?;
    Ok(missed)
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
    let last = of_queue::transaction(client).await?;
    let began = Instant::now();
    // However long a look takes.
    while began.elapsed() < SETTLE && !of_queue::settled(client, &last).await? {
        sleep(LOOK).await;
    }
    let oldest = At(oldest_kept(now).floor_to_micros());
    // One that a later version wrote is for that version.
    let rows = of_queue::missed_newest(client, found.number, oldest).await?.into_iter().flatten();
    let missed = rows.filter(|delivery| missed.includes(delivery));
    let key = |row: Delivery| DeliveryKey { endpoint: found.number, id: row.id().cast_signed() };
    Ok(missed.map(key).collect())
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
    for row in sql::endpoints_last_hour(client, &shards, &numbers, since).await? {
        let Some(of) = places.get(&row.number) else { continue };
        hours.push((of.id.clone(), row.hour));
    }
    Ok(hours)
}

/// Locks an endpoint to change.
pub(super) async fn lock(
    change: &Transaction<'_>,
    ring: &KeyRing,
    id: &str,
    now: Timestamp,
) -> Done<Locked> {
    let row = sql::endpoints_change(change, id).await?.ok_or(Refused::NotFound("endpoint"))?;
    Ok(Locked { plan: row.plan, found: found_in(row.endpoint, ring, now), now })
}

impl Locked {
    fn not_deleted(&mut self) -> Done<&mut StoredEndpoint> {
        match self.found.shown.health.disabled() {
            Some(DisabledReason::Deleted) => {
                Err(Refused::Conflict("the endpoint is deleted".into()))
            }
            _ => Ok(&mut self.found),
        }
    }
}

/// Writes an endpoint's health where it has changed.
async fn write(change: &Transaction<'_>, found: &StoredEndpoint) -> Done<()> {
    let health = found.shown.health;
    if health.if_version().is_none() {
        return Ok(());
    }
    Ok(queue::write_locked_endpoints(change, &[(found.number.cast_unsigned(), health)]).await?)
}

fn found_in(row: sql::StoredEndpoint, ring: &KeyRing, now: Timestamp) -> StoredEndpoint {
    let previous_secrets = match ring.open(row.id.as_str(), &row.secrets, now) {
        Ok(signer) => Some(signer.previous(now).map(|(_, end)| end).collect()),
        // All else of it can be shown.
        Err(_) if ring.numbers().is_empty() => None,
        Err(error) => {
            log::warn!(endpoint = row.id.as_str(), %error, "an endpoint's secrets cannot be read");
            None
        }
    };
    let sql::StoredEndpoint { number, shard, id, account_id, created_at, url, .. } = row;
    let (description, health, sealed) = (row.description, row.health, row.secrets);
    let shown =
        EndpointRow { id, account_id, url, description, health, created_at, previous_secrets };
    StoredEndpoint { number, shard, shown, sealed }
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
    let limit = most.cast_signed();
    let rows =
        sql::endpoints_day(client, &shards, &numbers, At(from), At(midnight), limit, At(until));
    let mut days: BTreeMap<i32, (Day, u64, Timestamp)> = BTreeMap::new();
    for row in rows.await? {
        let sql::Standing { number, oldest, hour: standing } = row;
        let (day, looked, since) =
            days.entry(number).or_insert((Day::default(), 0, Timestamp::MAX));
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
