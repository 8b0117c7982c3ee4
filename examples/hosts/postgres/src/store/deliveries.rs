//! Deliveries: what is pending and what has ended are two tables, and one list.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId, EventId};
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::sender::{Delivery, DeliveryStatus, LogEntry};
use deadpool_postgres::{GenericClient, Transaction};
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::delivery_key::DeliveryKey;
use super::endpoints::Place;
use super::{listed, unreadable};
use crate::clock as machine;
use crate::db::statements as sql;
use crate::db::{At, Fields as _, delivery_of, endpoint_of, execute, plan_of, query, query_opt};
use crate::key_ring::KeyRing;
use crate::queue::{self, Locked};
use host::post::signed::{SecretMark, Signed};
use host::store::{AttemptRow, DeliveryFilter, DeliveryPage, DeliveryRow, LISTED_BODY};
use host::store::{Done, Refused};

/// Reads a page of deliveries of these endpoints, newest first.
pub(super) async fn page(
    client: &impl GenericClient,
    endpoints: &BTreeMap<i32, Place>,
    filter: &DeliveryFilter,
    now: Timestamp,
) -> Done<DeliveryPage> {
    let below = match &filter.after {
        Some(text) => i64::from_str_radix(text, 16)
            .map_err(|_| Refused::Conflict("after: not a page of this list".into()))?,
        None => i64::MAX,
    };
    let asked = filter.endpoint.as_ref();
    let of: Vec<&Place> =
        endpoints.values().filter(|place| asked.is_none_or(|asked| place.id == *asked)).collect();
    if asked.is_some() && of.is_empty() {
        return Err(Refused::NotFound("endpoint"));
    }
    let shards: Vec<i16> = of.iter().map(|place| place.shard).collect();
    let numbers: Vec<i32> = of.iter().map(|place| place.number).collect();
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = Some(statuses).filter(|statuses| !statuses.is_empty());
    let own = filter.id.as_deref().and_then(|id| id.parse::<DeliveryKey>().ok());
    let event = filter.id.as_deref().filter(|_| own.is_none());
    let (from, until) = (filter.from.unwrap_or(Timestamp::MIN), filter.until);
    // One more tells whether there are more.
    let limit = i64::try_from(filter.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let longest = i32::try_from(LISTED_BODY).unwrap_or(i32::MAX);
    let parameters: [&(dyn ToSql + Sync); 12] = [
        &shards,
        &numbers,
        &statuses,
        &filter.event_type,
        &event,
        &At(from),
        &At(until.unwrap_or(Timestamp::MAX)),
        &below,
        &limit,
        &longest,
        &own.map(|key| key.id),
        &filter.failing,
    ];
    let rows = query(client, sql::DELIVERIES_PAGE, &parameters).await?;
    let more = rows.len() > filter.limit;
    let rows = rows.get(..filter.limit).unwrap_or(&rows);
    let last: Option<i64> = rows.last().map(|row| row.field("id")).transpose()?;
    let mut shown = Vec::new();
    for row in rows {
        let key = DeliveryKey { endpoint: row.field("endpoint")?, id: row.field("id")? };
        let Some(endpoint) = endpoints.get(&key.endpoint) else { continue };
        let read = shown_of(row, endpoint, now);
        shown.push(listed("delivery", &key.to_string(), read));
    }
    fill_logs(client, shown.iter_mut().flatten().collect()).await?;
    Ok(DeliveryPage { rows: shown, next: last.filter(|_| more).map(|last| format!("{last:x}")) })
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
    let (row, shown) = read_one(client, key, now).await?;
    let signer = ring.open(shown.endpoint_id.as_str(), row.field("secrets")?, now);
    // Requests are signed by the clocks of machines.
    Ok(shown.with_requests(signer.ok().as_ref(), machine::now()))
}

async fn read_one(
    client: &impl GenericClient,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<(Row, DeliveryRow)> {
    let row = query_opt(client, sql::DELIVERIES_ONE, &[&key.endpoint, &key.id]).await?;
    let row = row.ok_or(Refused::NotFound("delivery"))?;
    let endpoint = Place {
        number: key.endpoint,
        shard: row.field("shard")?,
        id: EndpointId::parse(row.field("endpoint_id")?).map_err(unreadable)?,
        url: row.field("url")?,
        health: Ok(endpoint_of(&row, "endpoint_")?),
    };
    let mut shown = shown_of(&row, &endpoint, now)?;
    fill_logs(client, vec![&mut shown]).await?;
    Ok((row, shown))
}

/// Makes one manual attempt due.
pub(super) async fn redeliver(
    change: &Transaction<'_>,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<()> {
    // Its sender may end it between two looks, and not between three.
    for read in [
        sql::DELIVERIES_REDELIVER_ENDED,
        sql::DELIVERIES_REDELIVER_PENDING,
        sql::DELIVERIES_REDELIVER_ENDED,
    ] {
        let Some(row) = query_opt(change, read, &[&key.endpoint, &key.id]).await? else { continue };
        // One that is pending is refused, unless its endpoint was disabled before anybody parked it.
        let write = redelivered(&row, now)?;
        let writes = [(Locked::of(delivery_of(&row)?), write)];
        queue::write_locked(change, writes).await?;
        return Ok(queue::tell_again(change, &writes).await?);
    }
    Err(Refused::NotFound("delivery"))
}

/// Makes the next attempt of a waiting delivery due now. The owner of its shard finds it again by
/// the number of this transaction.
pub(super) async fn send_now(
    change: &Transaction<'_>,
    key: DeliveryKey,
    now: Timestamp,
) -> Result<(), Refused> {
    let pending =
        query_opt(change, sql::DELIVERIES_REDELIVER_PENDING, &[&key.endpoint, &key.id]).await?;
    let Some(row) = pending else {
        one(change, key, now).await?;
        return Err(Refused::Conflict(NO_WAIT.into()));
    };
    plan_of(&row)?.webhooks.check_webhooks()?;
    if delivery_of(&row)?.status() != DeliveryStatus::Waiting {
        return Err(Refused::Conflict(NO_WAIT.into()));
    }
    execute(change, sql::DELIVERIES_SEND_NOW, &[&key.id, &At(now)]).await?;
    Ok(())
}

const NO_WAIT: &str = "the delivery is not waiting for an attempt";

fn redelivered(row: &Row, now: Timestamp) -> Done<Delivery> {
    plan_of(row)?.webhooks.check_webhooks()?;
    if row.field("erased")? {
        return Err(Refused::Conflict("the event was erased".into()));
    }
    let mut delivery = delivery_of(row)?;
    let endpoint = endpoint_of(row, "endpoint_")?;
    delivery.redeliver(&endpoint, now).map_err(|error| Refused::Conflict(error.to_string()))?;
    Ok(delivery)
}

fn shown_of(row: &Row, endpoint: &Place, now: Timestamp) -> Done<DeliveryRow> {
    let (state, health) = (delivery_of(row)?, endpoint.health.as_ref().map_err(Clone::clone)?);
    let key = DeliveryKey { endpoint: endpoint.number, id: row.field("id")? };
    let body: Option<&[u8]> = row.field("body")?;
    Ok(DeliveryRow {
        id: key.public(),
        account_id: AccountId::parse(row.field("account_id")?).map_err(unreadable)?,
        endpoint_id: endpoint.id.clone(),
        url: endpoint.url.clone(),
        event_id: EventId::parse(row.field("event_id")?).map_err(unreadable)?,
        event_type: EventType::from(row.field::<&str>("type")?),
        state,
        outlook: state.outlook(health, now).map_err(unreadable)?,
        log: Vec::new(),
        body: body.map(EventBody::from_stored).transpose().map_err(unreadable)?,
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
    for row in query(client, sql::DELIVERIES_ATTEMPTS, &[&ids, &At(from), &At(until)]).await? {
        // As with a delivery, a status of a later version is not shown.
        if let Some(entry) = entry_of(&row)? {
            logs.entry(row.field("delivery")?).or_default().push(entry);
        }
    }
    for (row, id) in rows.into_iter().zip(&ids) {
        row.log = logs.remove(id).unwrap_or_default();
    }
    Ok(())
}

/// Reads an entry of the log, by its stored form: its fields may grow.
fn entry_of(row: &Row) -> Done<Option<AttemptRow>> {
    let excerpt = |text: Option<&str>, cut: bool| match text {
        Some(text) => json!({ "text": text, "cut": cut }),
        None => Value::Null,
    };
    let response: Option<&str> = row.field("response")?;
    let next_at: Option<At> = row.field("next_at")?;
    let number: i16 = row.field("number")?;
    let entry = json!({
        "attempt": number,
        "manual": row.field::<bool>("manual")?,
        "began_at": row.instant("began_at")?,
        "took_ms": row.field::<i64>("took_ms")?.unsigned_abs(),
        "outcome": row.field::<&str>("outcome")?,
        "late": row.field::<bool>("late")?,
        "status": row.field::<&str>("status")?,
        "next_at": next_at.map(|at| at.0),
        "response": excerpt(response, row.field("response_cut")?),
        "headers": excerpt(row.field("headers")?, row.field("headers_cut")?),
        "reason": row.field::<Option<&str>>("reason")?,
    });
    let Ok(entry) = serde_json::from_value::<LogEntry>(entry) else { return Ok(None) };
    let (t, marks): (Option<i64>, Option<&[u8]>) =
        (row.field("signed_t")?, row.field("signed_by")?);
    let marks = marks.map(|marks| marks.as_chunks().0.iter().copied().map(SecretMark).collect());
    let signed = t.zip(marks).map(|(t, secrets)| Signed { t, secrets, fault: None });
    Ok(Some(AttemptRow { entry, signed, request: None }))
}
