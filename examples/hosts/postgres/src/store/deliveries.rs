//! Deliveries: what is pending and what has ended are two tables, and one list.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{DeliveryId, EndpointId};
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{Delivery, DeliveryStatus, EndpointHealth, LogEntry};
use deadpool_postgres::{GenericClient, Transaction};
use serde_json::{Value, json};

use super::endpoints::Place;
use super::{listed, unreadable};
use crate::clock as machine;
use crate::db::At;
use crate::key_ring::KeyRing;
use crate::queue::{self, Locked, delivery_text};
use crate::sql::store::{self as sql, ListedDelivery, StoredAttempt, StoredDelivery, ToRedeliver};
use host::http::answer::large;
use host::post::signed::{SecretMark, Signed};
use host::store::{
    AttemptRow, DeliveryFilter, DeliveryPage, DeliveryRow, Done, LISTED_BODY, Refused, place,
};

/// Reads a page of deliveries of these endpoints, newest first.
pub(super) async fn page(
    client: &impl GenericClient,
    endpoints: &BTreeMap<i32, Place>,
    filter: &DeliveryFilter,
    now: Timestamp,
) -> Done<DeliveryPage> {
    let below = place(filter.after.as_deref(), i64::MAX)?;
    let asked = filter.endpoint.as_ref();
    let of: Vec<&Place> =
        endpoints.values().filter(|place| asked.is_none_or(|asked| place.id == *asked)).collect();
    if asked.is_some() && of.is_empty() {
        return Err(Refused::NotFound("endpoint"));
    }
    let own = filter.id.as_deref().and_then(|id| id.parse::<DeliveryKey>().ok());
    let of: Vec<&Place> =
        of.into_iter().filter(|place| own.is_none_or(|own| own.endpoint == place.number)).collect();
    let shards: Vec<i16> = of.iter().map(|place| place.shard).collect();
    let numbers: Vec<i32> = of.iter().map(|place| place.number).collect();
    let is_bounded = own.is_some()
        || (!filter.leaves_out() && numbers.len().saturating_mul(filter.limit) <= READ);
    let (from, until) = (filter.from.unwrap_or(Timestamp::MIN), filter.until);
    let bounds = [from, until.unwrap_or(Timestamp::MAX)];
    let (reached, [from, until]) = match is_bounded {
        true => (None, bounds),
        false => reach(client, &numbers, below, bounds).await?,
    };
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = Some(statuses.as_slice()).filter(|statuses| !statuses.is_empty());
    let event = filter.id.as_deref().filter(|_| own.is_none());
    let rows = sql::deliveries_page(
        client,
        &shards,
        &numbers,
        statuses,
        filter.event_type.as_deref(),
        event,
        At(from),
        At(until),
        below,
        // One more tells whether there are more.
        i64::try_from(filter.limit.saturating_add(1)).unwrap_or(i64::MAX),
        i32::try_from(LISTED_BODY).unwrap_or(i32::MAX),
        own.map(|key| key.id),
        filter.failing,
        reached.map_or(i64::MIN, |(id, _)| id),
    );
    let mut rows = rows.await?;
    let more = rows.len() > filter.limit;
    rows.truncate(filter.limit);
    let reached = reached.filter(|_| !more);
    let last = match reached {
        Some((id, _)) => Some(id),
        None => rows.last().filter(|_| more).map(|row| row.id),
    };
    let read = |row: ListedDelivery| {
        let key = DeliveryKey { endpoint: row.endpoint, id: row.id };
        let endpoint = endpoints.get(&key.endpoint)?;
        let (id, url) = (&endpoint.id, &endpoint.url);
        let read = row.read.map_err(Refused::from).and_then(|row| {
            shown_of(row, key, id, url, endpoint.health.as_ref().map_err(Clone::clone)?, now)
        });
        Some(listed("delivery", &key.to_string(), read))
    };
    let mut shown: Vec<_> = large(|| rows.into_iter().filter_map(read).collect());
    fill_logs(client, shown.iter_mut().flatten().collect()).await?;
    let looked_to = reached.map(|(_, at)| at);
    Ok(DeliveryPage { rows: shown, next: last.map(|last| last.to_string()), looked_to })
}

/// The most deliveries that are read for a page that leaves none out: 10,000.
const READ: usize = 10_000;

/// About how many deliveries a page with a filter looks at: 4,000, and 16 of each endpoint. A million are 250 pages.
const LOOKED: usize = 4_000;

/// The most deliveries of one endpoint that are looked at in one step: 1,000.
const STEP: i64 = 1_000;

/// The precision of instants that are stored.
const MICROSECOND: Duration = Duration::from_micros(1);

/// Returns how far a page looks whatever its filter leaves out, as the number and the event's `created_at` of the last
/// delivery: each endpoint has as many behind a position, and whichever has come least far has more. `None`: to the end.
/// And narrower bounds of `created_at` that have all of them, so that few days are looked into for the page.
async fn reach(
    client: &impl GenericClient,
    endpoints: &[i32],
    below: i64,
    [from, until]: [Timestamp; 2],
) -> Done<(Option<(i64, Timestamp)>, [Timestamp; 2])> {
    let days = |seconds: i64| Timestamp::from_unix(seconds.saturating_mul(86_400));
    let day_of = |at: Timestamp| at.unix_seconds().div_euclid(86_400);
    let first = At(days(day_of(from)).unwrap_or(Timestamp::MIN));
    let last = At(days(day_of(until).saturating_add(1)).unwrap_or(Timestamp::MAX));
    let mut within = [until, from];
    let each = LOOKED.checked_div(endpoints.len().saturating_mul(2)).unwrap_or(LOOKED).max(16);
    let mut count = i64::try_from(each).unwrap_or(STEP).min(STEP);
    let mut left = i64::try_from(LOOKED).unwrap_or(i64::MAX);
    let (mut asked, mut positions) = (endpoints.to_vec(), vec![below; endpoints.len()]);
    // Of each endpoint that has more, how far it has come.
    let mut reached: BTreeMap<(i64, i32), Timestamp> = BTreeMap::new();
    loop {
        let rows = sql::deliveries_reach(client, &asked, &positions, count, first, last).await?;
        for row in rows {
            let newest = row.newest.saturating_add(MICROSECOND);
            within = [within[0].min(row.oldest).max(from), within[1].max(newest).min(until)];
            if row.is_full {
                reached.insert((row.id, row.number), row.event_created_at);
            }
        }
        left = left.saturating_sub(count.saturating_mul(asked.len().try_into().unwrap_or(STEP)));
        let Some((&(id, endpoint), &at)) = reached.last_key_value() else {
            return Ok((None, within));
        };
        count = STEP.min(left);
        if count <= 0 {
            return Ok((Some((id, at)), within));
        }
        reached.pop_last();
        (asked, positions) = (vec![endpoint], vec![id]);
    }
}

/// Reads one delivery with its log.
pub(super) async fn one(
    client: &impl GenericClient,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<DeliveryRow> {
    Ok(read_one(client, key, now).await?.1)
}

/// Reads one delivery with its log, and the requests of its attempts.
pub(super) async fn one_with_requests(
    client: &impl GenericClient,
    ring: &KeyRing,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<DeliveryRow> {
    let (secrets, shown) = read_one(client, key, now).await?;
    let signer = ring.open(shown.endpoint_id.as_str(), &secrets, now);
    // Requests are signed by the clocks of machines.
    Ok(shown.with_requests(signer.ok().as_ref(), machine::now()))
}

/// Reads one delivery with its log, and the sealed secrets of its endpoint.
async fn read_one(
    client: &impl GenericClient,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<(Vec<u8>, DeliveryRow)> {
    let row = sql::deliveries_one(client, key.endpoint, key.id).await?;
    let row = row.ok_or(Refused::NotFound("delivery"))?;
    let mut shown = shown_of(row.delivery, key, &row.endpoint_id, &row.url, &row.health.0, now)?;
    fill_logs(client, vec![&mut shown]).await?;
    Ok((row.secrets, shown))
}

/// Makes one manual attempt due.
pub(super) async fn redeliver(
    change: &Transaction<'_>,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<()> {
    // Its sender may end it between two looks, and not between three.
    let DeliveryKey { endpoint, id } = key;
    let mut found = sql::deliveries_redeliver_ended(change, endpoint, id).await?;
    if found.is_none() {
        found = sql::deliveries_redeliver_pending(change, endpoint, id).await?;
    }
    if found.is_none() {
        found = sql::deliveries_redeliver_ended(change, endpoint, id).await?;
    }
    // One that is pending is refused, unless its endpoint was disabled before anybody parked it.
    let found = found.ok_or(Refused::NotFound("delivery"))?;
    let writes = [(Locked::of(found.delivery), redelivered(&found, now)?)];
    queue::write_locked(change, writes).await?;
    Ok(queue::tell_again(change, &writes).await?)
}

/// Makes the next attempt of a waiting delivery due now. The owner of its shard finds it again by
/// the number of this transaction.
pub(super) async fn send_now(
    change: &Transaction<'_>,
    key: DeliveryKey,
    now: Timestamp,
) -> Result<(), Refused> {
    let pending = sql::deliveries_redeliver_pending(change, key.endpoint, key.id).await?;
    let Some(row) = pending else {
        one(change, key, now).await?;
        return Err(Refused::Conflict(NO_WAIT.into()));
    };
    row.plan.webhooks.check_webhooks()?;
    if row.delivery.status() != DeliveryStatus::Waiting {
        return Err(Refused::Conflict(NO_WAIT.into()));
    }
    sql::deliveries_send_now(change, key.id, At(now)).await?;
    Ok(())
}

const NO_WAIT: &str = "the delivery is not waiting for an attempt";

fn redelivered(row: &ToRedeliver, now: Timestamp) -> Done<Delivery> {
    row.plan.webhooks.check_webhooks()?;
    if row.erased {
        return Err(Refused::Conflict("the event was erased".into()));
    }
    let mut delivery = row.delivery;
    delivery.redeliver(&row.health.0, now).map_err(|error| Refused::Conflict(error.to_string()))?;
    Ok(delivery)
}

fn shown_of(
    row: StoredDelivery,
    key: DeliveryKey,
    endpoint_id: &EndpointId,
    url: &str,
    health: &EndpointHealth,
    now: Timestamp,
) -> Done<DeliveryRow> {
    Ok(DeliveryRow {
        id: key.public(),
        account_id: row.account_id,
        endpoint_id: endpoint_id.clone(),
        url: url.to_owned(),
        event_id: row.event_id,
        event_type: EventType::from(row.event_type.as_str()),
        state: row.state,
        outlook: row.state.outlook(health, now).map_err(unreadable)?,
        log: Vec::new(),
        body: row.body.transpose().map_err(unreadable)?,
    })
}

/// Reads the attempts of all of them at once.
async fn fill_logs(client: &impl GenericClient, rows: Vec<&mut DeliveryRow>) -> Done<()> {
    let created = rows.iter().map(|row| row.state.event_created_at());
    let (Some(from), Some(until)) = (created.clone().min(), created.max()) else {
        return Ok(());
    };
    let keys = rows.iter().map(|row| row.id.as_str().parse().map(|key: DeliveryKey| key.id));
    let ids = keys.collect::<Done<Vec<i64>>>()?;
    let mut logs: BTreeMap<i64, Vec<AttemptRow>> = BTreeMap::new();
    let attempts = sql::deliveries_attempts(client, &ids, At(from), At(until)).await?;
    large(|| {
        for row in attempts {
            // As with a delivery, a status of a later version is not shown.
            if let Some(entry) = entry_of(&row) {
                logs.entry(row.delivery).or_default().push(entry);
            }
        }
    });
    for (row, id) in rows.into_iter().zip(&ids) {
        row.log = logs.remove(id).unwrap_or_default();
    }
    Ok(())
}

/// Reads an entry of the log, by its stored form: its fields may grow.
fn entry_of(row: &StoredAttempt) -> Option<AttemptRow> {
    let excerpt = |text: &Option<String>, cut: bool| match text {
        Some(text) => json!({ "text": text, "cut": cut }),
        None => Value::Null,
    };
    let entry = json!({
        "attempt": row.number,
        "manual": row.manual,
        "began_at": row.began_at,
        "took_ms": row.took_ms,
        "outcome": row.outcome,
        "late": row.late,
        "status": row.status,
        "next_at": row.next_at,
        "response": excerpt(&row.response, row.response_cut),
        "headers": excerpt(&row.headers, row.headers_cut),
        "reason": row.reason,
    });
    let entry = serde_json::from_value::<LogEntry>(entry).ok()?;
    let marks = row.signed_by.as_deref().map(|marks| marks.as_chunks().0.iter().copied());
    let signed = row.signed_t.zip(marks.map(|marks| marks.map(SecretMark).collect()));
    let signed = signed.map(|(t, secrets)| Signed { t, secrets, fault: None });
    Some(AttemptRow { entry, signed, request: None })
}

/// Where a delivery is: its endpoint's number and its own, which its id says.
///
/// `ended` has no index but that of endpoint and id: one more would cost every delivery that ends,
/// for a look-up that a person makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeliveryKey {
    pub(crate) endpoint: i32,
    pub(crate) id: i64,
}

impl fmt::Display for DeliveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&delivery_text(self.endpoint, self.id))
    }
}

impl FromStr for DeliveryKey {
    type Err = Refused;

    fn from_str(text: &str) -> Done<Self> {
        let parts = text.strip_prefix("dlv_").and_then(|text| text.split_once('_'));
        let key = parts.and_then(|(endpoint, id)| {
            let endpoint = i32::from_str_radix(endpoint, 16).ok()?;
            Some(Self { endpoint, id: i64::from_str_radix(id, 16).ok()? })
        });
        // No two texts are one delivery.
        key.filter(|key| key.to_string() == text).ok_or(Refused::NotFound("delivery"))
    }
}

impl DeliveryKey {
    pub(crate) fn public(self) -> DeliveryId {
        #[allow(clippy::expect_used)]
        DeliveryId::parse(&self.to_string()).expect("digits and underscores are an id")
    }
}
