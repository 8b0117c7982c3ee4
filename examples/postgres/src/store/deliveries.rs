//! Deliveries: what is pending and what has ended are two tables, and one list.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId, EventId};
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::sender::{
    Delivery, Endpoint, Gauges, LogEntry, Row as Read, Status, Write,
};
use deadpool_postgres::{GenericClient, Transaction};
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::endpoints::Found;
use super::{accounts, sql, unreadable};
use crate::db::{At, delivery_of, endpoint_of, execute, query, query_opt};
use crate::deliveries::{self, Key, Table};
use crate::host::rows::{DeliveryFilter, DeliveryPage, DeliveryRow, LISTED_BODY};
use crate::host::store::{Done, Refused};

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
        write!(f, "dlv_{:x}_{:x}", self.endpoint, self.id)
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

/// A page of deliveries of these endpoints, newest first.
pub(super) async fn page(
    client: &impl GenericClient,
    endpoints: &[Found],
    filter: &DeliveryFilter,
    now: Timestamp,
) -> Done<DeliveryPage> {
    let below = match &filter.after {
        Some(text) => i64::from_str_radix(text, 16)
            .map_err(|_| Refused::Conflict("after: not from this list".into()))?,
        None => i64::MAX,
    };
    let asked = filter.endpoint.as_ref();
    let of: Vec<&Found> = endpoints
        .iter()
        .filter(|found| asked.is_none_or(|asked| found.shown.id == *asked))
        .collect();
    if asked.is_some() && of.is_empty() {
        return Err(Refused::NotFound("endpoint"));
    }
    let shards: Vec<i16> = of.iter().map(|found| found.shard).collect();
    let numbers: Vec<i32> = of.iter().map(|found| found.number).collect();
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = Some(statuses).filter(|statuses| !statuses.is_empty());
    let own = filter.id.as_deref().and_then(|id| id.parse::<DeliveryKey>().ok());
    let event = filter.id.as_deref().filter(|_| own.is_none());
    let (from, until) = (filter.from.unwrap_or(Timestamp::MIN), filter.until);
    // One more tells whether there are more.
    let limit = i64::try_from(filter.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let longest = i32::try_from(LISTED_BODY).unwrap_or(i32::MAX);
    let parameters: [&(dyn ToSql + Sync); 11] = [
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
    ];
    let rows = query(client, sql!("deliveries_page"), &parameters).await?;
    let more = rows.len() > filter.limit;
    let rows = rows.get(..filter.limit).unwrap_or(&rows);
    let last: Option<i64> = rows.last().map(|row| row.try_get("id")).transpose()?;
    let mut shown = Vec::new();
    for row in rows {
        let number: i32 = row.try_get("endpoint")?;
        let Some(endpoint) = of.iter().find(|found| found.number == number) else { continue };
        // What a later version wrote in a word of its own is for that version to show.
        if row.try_get::<_, &str>("status")?.parse::<Status>().is_err() {
            continue;
        }
        shown.push(shown_of(row, endpoint.shown.id.clone(), endpoint.shown.url.clone(), now)?);
    }
    fill_logs(client, &mut shown).await?;
    Ok(DeliveryPage { rows: shown, next: last.filter(|_| more).map(|last| format!("{last:x}")) })
}

/// What there is now, in all of the database: what is due is in hand of some sender, or should be.
pub(super) async fn gauges(client: &impl GenericClient, now: Timestamp) -> Done<Gauges> {
    let row = query_opt(client, sql!("gauges"), &[&At(now)]).await?;
    let row = row.ok_or_else(|| unreadable("there is no count"))?;
    let count = |name: &str| -> Done<u64> { Ok(row.try_get::<_, i64>(name)?.unsigned_abs()) };
    let mut gauges = Gauges::default();
    (gauges.waiting, gauges.sending) = (count("waiting")?, count("sending")?);
    gauges.oldest_due = Duration::from_millis(count("oldest_due_ms")?);
    (gauges.active, gauges.suspect) = (count("active")?, count("suspect")?);
    (gauges.gone, gauges.failing) = (count("gone")?, count("failing")?);
    gauges.paused = count("paused")?;
    Ok(gauges)
}

/// One delivery with its log.
pub(super) async fn one(
    client: &impl GenericClient,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<DeliveryRow> {
    let row = query_opt(client, sql!("delivery"), &[&key.endpoint, &key.id]).await?;
    let row = row.ok_or(Refused::NotFound("delivery"))?;
    let endpoint = EndpointId::parse(row.try_get("endpoint_id")?).map_err(unreadable)?;
    let mut shown = [shown_of(&row, endpoint, row.try_get("url")?, now)?];
    fill_logs(client, &mut shown).await?;
    let [shown] = shown;
    Ok(shown)
}

/// Makes one manual attempt due.
pub(super) async fn redeliver(
    change: &Transaction<'_>,
    key: DeliveryKey,
    now: Timestamp,
) -> Done<()> {
    // Its sender may end it between two looks, and not between three.
    for table in [Table::Ended, Table::Pending, Table::Ended] {
        let read = match table {
            Table::Ended => sql!("redeliver_ended"),
            Table::Pending => sql!("redeliver_pending"),
        };
        let Some(row) = query_opt(change, read, &[&key.endpoint, &key.id]).await? else { continue };
        // One that is pending is refused, unless its endpoint was disabled before anybody parked it.
        let write = redelivered(&row, now)?;
        let event_created_at = row.try_get::<_, At>("event_created_at")?.0;
        let at = Key { id: key.id, endpoint: key.endpoint, event_created_at };
        if !deliveries::write(change, [(at, table, write)]).await? {
            return Err(unreadable("a locked delivery has changed"));
        }
        if table == Table::Pending {
            execute(change, sql!("recovery_queue"), &[&[key.id].as_slice()]).await?;
        }
        return Ok(());
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
    let pending = query_opt(change, sql!("redeliver_pending"), &[&key.endpoint, &key.id]).await?;
    let Some(row) = pending else {
        one(change, key, now).await?;
        return Err(Refused::Conflict(NO_WAIT.into()));
    };
    accounts::plan_of(&row)?.webhooks.check_webhooks().map_err(Refused::Plan)?;
    if delivery_of(&row)?.status() != Status::Waiting {
        return Err(Refused::Conflict(NO_WAIT.into()));
    }
    execute(change, sql!("send_now"), &[&key.id, &At(now)]).await?;
    Ok(())
}

const NO_WAIT: &str = "the delivery does not wait";

fn redelivered(row: &Row, now: Timestamp) -> Done<Write<Delivery>> {
    accounts::plan_of(row)?.webhooks.check_webhooks().map_err(Refused::Plan)?;
    if row.try_get("erased")? {
        return Err(Refused::Conflict("the event was erased".into()));
    }
    let endpoint: Endpoint = endpoint_of(row, "endpoint_")?;
    let mut delivery = Read::from(delivery_of(row)?);
    delivery.redeliver(&endpoint, now).map_err(|error| Refused::Conflict(error.to_string()))?;
    delivery.write().ok_or_else(|| unreadable("a delivery was made due and has not changed"))
}

fn shown_of(row: &Row, endpoint_id: EndpointId, url: String, now: Timestamp) -> Done<DeliveryRow> {
    let state = delivery_of(row)?;
    let key = DeliveryKey { endpoint: row.try_get("endpoint")?, id: row.try_get("id")? };
    let body: Option<&[u8]> = row.try_get("body")?;
    Ok(DeliveryRow {
        id: key.public(),
        account_id: AccountId::parse(row.try_get("account_id")?).map_err(unreadable)?,
        endpoint_id,
        url,
        event_id: EventId::parse(row.try_get("event_id")?).map_err(unreadable)?,
        event_type: EventType::from(row.try_get::<_, &str>("type")?),
        state,
        next_at: state.due(now),
        log: Vec::new(),
        body: body.map(EventBody::from_stored).transpose().map_err(unreadable)?,
    })
}

/// Reads the attempts of all of them at once.
async fn fill_logs(client: &impl GenericClient, rows: &mut [DeliveryRow]) -> Done<()> {
    let created = rows.iter().map(|row| row.state.event_created_at());
    let (Some(from), Some(until)) = (created.clone().min(), created.max()) else {
        return Ok(());
    };
    let keys = rows.iter().map(|row| row.id.as_str().parse().map(|key: DeliveryKey| key.id));
    let ids = keys.collect::<Done<Vec<i64>>>()?;
    let mut logs: BTreeMap<i64, Vec<LogEntry>> = BTreeMap::new();
    for row in query(client, sql!("attempts"), &[&ids, &At(from), &At(until)]).await? {
        // As with a delivery, a status of a later version is not shown.
        if let Some(entry) = entry_of(&row)? {
            logs.entry(row.try_get("delivery")?).or_default().push(entry);
        }
    }
    for (row, id) in rows.iter_mut().zip(&ids) {
        row.log = logs.remove(id).unwrap_or_default();
    }
    Ok(())
}

/// An entry of the log, by its stored form: its fields may grow.
fn entry_of(row: &Row) -> Done<Option<LogEntry>> {
    let excerpt = |text: Option<&str>, cut: bool| match text {
        Some(text) => json!({ "text": text, "cut": cut }),
        None => Value::Null,
    };
    let response: Option<&str> = row.try_get("response")?;
    let next_at: Option<At> = row.try_get("next_at")?;
    let number: i16 = row.try_get("number")?;
    let entry = json!({
        "attempt": number,
        "manual": row.try_get::<_, bool>("manual")?,
        "began_at": row.try_get::<_, At>("began_at")?.0,
        "took_ms": row.try_get::<_, i64>("took_ms")?.unsigned_abs(),
        "outcome": row.try_get::<_, &str>("outcome")?,
        "late": row.try_get::<_, bool>("late")?,
        "status": row.try_get::<_, &str>("status")?,
        "next_at": next_at.map(|at| at.0),
        "response": excerpt(response, row.try_get("response_cut")?),
        "headers": excerpt(row.try_get("headers")?, row.try_get("headers_cut")?),
        "reason": row.try_get::<_, Option<&str>>("reason")?,
    });
    Ok(serde_json::from_value(entry).ok())
}
