//! The steps as a host makes them, of the statements of the page alone.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    Attempt, Delivery, DeliveryColumns, Ended, Endpoint, EndpointColumns, MissedDeliveries,
    Outcome, Recovery, RecoveryBy, RecoveryStatus, RecoveryStep, Settled, WebhookPlan, settle,
};
use call_assistant_postgres::db::{At, delivery_columns, endpoint_columns};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::support::{database_now, statement, statements};

pub(crate) const TABLES: &str = include_str!("../../../../../src/guide/sql/sender/tables.sql");
pub(crate) const ACCEPT: &str = include_str!("../../../../../src/guide/sql/sender/accept.sql");
pub(crate) const BEGIN: &str = include_str!("../../../../../src/guide/sql/sender/begin.sql");
pub(crate) const FINISH: &str = include_str!("../../../../../src/guide/sql/sender/finish.sql");
pub(crate) const PARK: &str = include_str!("../../../../../src/guide/sql/sender/park.sql");
pub(crate) const ENABLE: &str = include_str!("../../../../../src/guide/sql/sender/enable.sql");
pub(crate) const MISSED: &str = include_str!("../../../../../src/guide/sql/sender/missed.sql");
pub(crate) const RECOVER: &str = include_str!("../../../../../src/guide/sql/sender/recover.sql");
pub(crate) const REMIND: &str = include_str!("../../../../../src/guide/sql/sender/remind.sql");
pub(crate) const SWEEP: &str = include_str!("../../../../../src/guide/sql/sender/sweep.sql");

pub(crate) type Result<T> = std::result::Result<T, tokio_postgres::Error>;

/// The event of a change: its id and its `created_at` come from the change.
pub(crate) fn event(change: &str, created_at: Timestamp) -> EventBody {
    let account = AccountId::parse("acct_1").unwrap();
    let id = EventId::derived(&[account.as_str(), "ping", change]);
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), created_at).ping(change).unwrap()
}

pub(crate) async fn register(client: &Client, id: &str, now: Timestamp) {
    let columns = EndpointColumns::from(Endpoint::new(1, now));
    let sql = "INSERT INTO endpoints VALUES ($1, 'acct_1', NULL, $2, $3, $4, $5)";
    let (since, failures) = (At(columns.since), columns.failures);
    let values: [&(dyn ToSql + Sync); 5] =
        [&id, &since, &failures, &columns.generation, &columns.version];
    client.execute(sql, &values).await.unwrap();
}

/// Inserts the event. `false` if it was accepted before.
pub(crate) async fn accept_event(client: &Client, event: &EventBody) -> Result<bool> {
    let insert = statement(ACCEPT, "INSERT INTO events");
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let (created_at, kind) = (At(event.created_at()), event.event_type().as_str());
    let values: [&(dyn ToSql + Sync); 5] = [&account, &id, &created_at, &kind, &event.as_bytes()];
    Ok(client.execute(&insert, &values).await? == 1)
}

/// A row's delivery. The endpoints of these tables have no numbers.
fn delivery_of(row: &tokio_postgres::Row) -> Delivery {
    let id = row.get::<_, i64>("id").cast_unsigned();
    Delivery::from_columns(id, 1, delivery_columns(row).unwrap()).unwrap()
}

fn endpoint_of(row: &tokio_postgres::Row) -> Endpoint {
    Endpoint::from_columns(1, endpoint_columns(row, "").unwrap()).unwrap()
}

pub(crate) async fn accept_endpoints(client: &Client) -> Result<Vec<(String, Endpoint)>> {
    let rows = client.query(&statement(ACCEPT, "SELECT"), &[&"acct_1"]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), endpoint_of(row))).collect())
}

pub(crate) async fn accept_deliveries(
    client: &Client,
    event: &EventBody,
    endpoints: &[(String, Endpoint)],
    now: Timestamp,
) -> Result<u64> {
    let (ids, rows): (Vec<&str>, Vec<DeliveryColumns>) = endpoints
        .iter()
        .map(|(id, endpoint)| {
            (id.as_str(), DeliveryColumns::from(Delivery::accept(event, endpoint, now)))
        })
        .unzip();
    let insert = statement(ACCEPT, "INSERT INTO deliveries");
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let columns = Columns::new(&rows);
    let created_at = At(event.created_at());
    client
        .execute(
            &insert,
            &[
                &account,
                &id,
                &created_at,
                &ids,
                &columns.statuses,
                &columns.ats,
                &columns.attempts,
                &columns.manuals,
                &columns.generations,
                &columns.versions,
            ],
        )
        .await
}

/// Step 1, whole.
pub(crate) async fn accept(client: &Client, event: &EventBody, now: Timestamp) -> Result<u64> {
    client.batch_execute("BEGIN").await?;
    let mut deliveries = 0;
    if accept_event(client, event).await? {
        let endpoints = accept_endpoints(client).await?;
        deliveries = accept_deliveries(client, event, &endpoints, now).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(deliveries)
}

struct Columns {
    statuses: Vec<&'static str>,
    ats: Vec<At>,
    attempts: Vec<i16>,
    manuals: Vec<bool>,
    generations: Vec<i32>,
    versions: Vec<i32>,
}

impl Columns {
    fn new(rows: &[DeliveryColumns]) -> Self {
        Self {
            statuses: rows.iter().map(|row| row.status.as_str()).collect(),
            ats: rows.iter().map(|row| At(row.at)).collect(),
            attempts: rows.iter().map(|row| row.attempts).collect(),
            manuals: rows.iter().map(|row| row.manual).collect(),
            generations: rows.iter().map(|row| row.generation).collect(),
            versions: rows.iter().map(|row| row.version).collect(),
        }
    }
}

/// The `UPDATE` of deliveries. Says whether all have their row.
pub(crate) async fn write(client: &Client, writes: &[(i64, Delivery)]) -> Result<bool> {
    let update = statement(BEGIN, "UPDATE");
    assert_eq!(update, statement(FINISH, "UPDATE deliveries"));
    let ids: Vec<i64> = writes.iter().map(|(id, _)| *id).collect();
    let versions: Vec<_> = writes.iter().map(|(_, write)| write.if_version()).collect();
    let rows: Vec<DeliveryColumns> = writes.iter().map(|(_, write)| (*write).into()).collect();
    let columns = Columns::new(&rows);
    let affected = client
        .execute(
            &update,
            &[
                &ids,
                &versions,
                &columns.statuses,
                &columns.ats,
                &columns.attempts,
                &columns.manuals,
                &columns.generations,
                &columns.versions,
            ],
        )
        .await?;
    Ok(affected == writes.len() as u64)
}

async fn write_endpoints(client: &Client, writes: &[(String, Endpoint)]) -> Result<bool> {
    let ids: Vec<&str> = writes.iter().map(|(id, _)| id.as_str()).collect();
    let versions: Vec<_> = writes.iter().map(|(_, write)| write.if_version()).collect();
    let rows: Vec<EndpointColumns> = writes.iter().map(|(_, write)| (*write).into()).collect();
    let disabled: Vec<Option<&str>> =
        rows.iter().map(|row| row.disabled.map(|reason| reason.as_str())).collect();
    let since: Vec<At> = rows.iter().map(|row| At(row.since)).collect();
    let failures: Vec<i16> = rows.iter().map(|row| row.failures).collect();
    let generations: Vec<i32> = rows.iter().map(|row| row.generation).collect();
    let new_versions: Vec<i32> = rows.iter().map(|row| row.version).collect();
    let firsts: Vec<i16> = rows.iter().map(|row| row.first_failures).collect();
    let first_at: Vec<Option<At>> = rows.iter().map(|row| row.first_failed_at.map(At)).collect();
    let reminders: Vec<i16> = rows.iter().map(|row| row.reminders).collect();
    let update = statement(FINISH, "UPDATE endpoints");
    let affected = client
        .execute(
            &update,
            &[
                &ids,
                &versions,
                &disabled,
                &since,
                &failures,
                &generations,
                &new_versions,
                &firsts,
                &first_at,
                &reminders,
            ],
        )
        .await?;
    Ok(affected == writes.len() as u64)
}

/// A delivery that was begun.
pub(crate) type Begun = (i64, String, Attempt);

async fn endpoints(client: &Client, sql: &str, ids: &[&str]) -> Result<BTreeMap<String, Endpoint>> {
    let rows = client.query(sql, &[&ids]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), endpoint_of(row))).collect())
}

/// Step 2, whole, with the first search or the other one.
pub(crate) async fn begin(client: &Client, search: usize) -> Result<Vec<Begun>> {
    client.batch_execute("BEGIN").await?;
    let searches = statements(BEGIN);
    let rows = client.query(&searches[1 + search], &[]).await?;
    let ids: Vec<&str> = rows.iter().map(|row| row.get("endpoint_id")).collect();
    let found = endpoints(client, &searches[3], &ids).await?;
    let (mut begun, mut writes) = (Vec::new(), Vec::new());
    for row in &rows {
        let (id, endpoint): (i64, String) = (row.get("id"), row.get("endpoint_id"));
        let mut delivery = delivery_of(row);
        if let Ok(attempt) = delivery.begin(&found[&endpoint], row.get::<_, At>("now").0) {
            begun.push((id, endpoint, attempt));
        }
        if delivery.if_version().is_some() {
            writes.push((id, delivery));
        }
    }
    assert!(write(client, &writes).await?, "the rows are locked");
    client.batch_execute("COMMIT").await?;
    Ok(begun)
}

/// Step 4, whole, until it is stored.
pub(crate) async fn finish(
    client: &Client,
    begun: &[Begun],
    outcome: Outcome,
    at: Timestamp,
) -> Result<Settled<i64, String>> {
    let ended: Vec<Ended<'_, i64, String>> = begun
        .iter()
        .map(|(delivery, endpoint, attempt)| Ended {
            delivery: *delivery,
            endpoint: endpoint.clone(),
            attempt: *attempt,
            outcome,
            at,
            response: None,
        })
        .collect();
    let of_finish = statements(FINISH);
    loop {
        client.batch_execute("BEGIN").await?;
        let ids: Vec<i64> = begun.iter().map(|begun| begun.0).collect();
        let rows = client.query(&of_finish[1], &[&ids]).await?;
        let deliveries: BTreeMap<i64, Delivery> =
            rows.iter().map(|row| (row.get("id"), delivery_of(row))).collect();
        let ids: Vec<&str> = begun.iter().map(|begun| begun.1.as_str()).collect();
        let mut owners = endpoints(client, &of_finish[2], &ids).await?;
        let mut settled = settle(&ended, &deliveries, &owners);
        if !settled.endpoints.is_empty() {
            let ids: Vec<&str> = settled.endpoints.iter().map(|(id, _)| id.as_str()).collect();
            owners.extend(endpoints(client, &of_finish[3], &ids).await?);
            settled = settle(&ended, &deliveries, &owners);
        }
        let stored = write(client, &settled.deliveries).await?
            && write_endpoints(client, &settled.endpoints).await?;
        if !stored {
            client.batch_execute("ROLLBACK").await?;
            continue;
        }
        let ids: Vec<i64> = settled.log.iter().map(|(id, _)| *id).collect();
        let entries = settled.log.iter().map(|(_, entry)| serde_json::to_string(entry).unwrap());
        let entries: Vec<String> = entries.collect();
        client.execute(&of_finish[6], &[&ids, &entries]).await?;
        let (owners, alerts): (Vec<&str>, Vec<String>) = settled
            .alerts
            .iter()
            .map(|(id, alert)| (id.as_str(), serde_json::to_string(alert).unwrap()))
            .unzip();
        client.execute(&of_finish[7], &[&owners, &alerts]).await?;
        client.batch_execute("COMMIT").await?;
        return Ok(settled);
    }
}

/// Parks what is pending of an endpoint.
pub(crate) async fn park(client: &Client, endpoint: &str) -> Result<u64> {
    let (mut last, mut parked) = (0_i64, 0);
    loop {
        client.batch_execute("BEGIN").await?;
        let rows = client.query(&statements(PARK)[1], &[&endpoint, &last]).await?;
        let found = client.query_one(&statements(PARK)[2], &[&endpoint]).await?;
        let owner = endpoint_of(&found);
        let mut writes = Vec::new();
        for row in &rows {
            last = row.get("id");
            let mut delivery = delivery_of(row);
            if delivery.park(&owner, row.get::<_, At>("now").0) {
                parked += 1;
                writes.push((last, delivery));
            }
        }
        assert!(write(client, &writes).await?, "the rows are locked");
        client.batch_execute("COMMIT").await?;
        if rows.is_empty() {
            return Ok(parked);
        }
    }
}

pub(crate) async fn endpoint(client: &Client, id: &str) -> Endpoint {
    let row = client.query_one(&statements(PARK)[2], &[&id]).await.unwrap();
    endpoint_of(&row)
}

/// Stores an endpoint that its owner has changed, by the first statement of enabling.
pub(crate) async fn store(client: &Client, id: &str, endpoint: &Endpoint) -> Result<bool> {
    let columns = EndpointColumns::from(*endpoint);
    let disabled = columns.disabled.map(|reason| reason.as_str());
    let first_failed_at = columns.first_failed_at.map(At);
    let values: [&(dyn ToSql + Sync); 10] = [
        &id,
        &endpoint.if_version(),
        &disabled,
        &At(columns.since),
        &columns.failures,
        &columns.generation,
        &columns.version,
        &columns.first_failures,
        &first_failed_at,
        &columns.reminders,
    ];
    Ok(client.execute(&statements(ENABLE)[0], &values).await? == 1)
}

/// The second statement of enabling.
pub(crate) async fn after_commit(client: &Client) -> Result<String> {
    Ok(client.query_one(&statements(ENABLE)[1], &[]).await?.get(0))
}

/// The third: whether all transactions that may have read the endpoint before have ended.
pub(crate) async fn have_ended(client: &Client, after_commit: &str) -> Result<bool> {
    Ok(client.query_one(&statements(ENABLE)[2], &[&after_commit]).await?.get(0))
}

/// The fourth, and the steps of the recovery until it ends. Says how many were redelivered.
pub(crate) async fn recover(client: &Client, id: &str, missed: &MissedDeliveries) -> Result<u64> {
    let counted: i64 = search(client, &statements(MISSED)[0], id, missed, None).await?[0].get(0);
    let (owner, now) = (endpoint(client, id).await, database_now(client).await);
    let plan = WebhookPlan::Pro;
    let counted = counted.unsigned_abs();
    let recovery: Recovery<i64> =
        missed.clone().recover(RecoveryBy::Dashboard, plan, &owner, now).unwrap();
    let recovery = recovery.with_counted(counted);
    let (json, version) = (serde_json::to_string(&recovery).unwrap(), 0);
    let values: [&(dyn ToSql + Sync); 4] = [&id, &json, &recovery.status().as_str(), &version];
    client.execute(&statements(ENABLE)[3], &values).await?;
    let number = "SELECT max(id) FROM recoveries WHERE status = 'running' AND endpoint_id = $1";
    let number: i64 = client.query_one(number, &[&id]).await?.get(0);
    loop {
        let steps = statements(RECOVER);
        client.batch_execute(&steps[0]).await?;
        let row = client.query_one(&steps[1], &[&number]).await?;
        let mut recovery: Recovery<i64> = serde_json::from_str(row.get(0)).unwrap();
        let owner = endpoint_of(&client.query_one(&steps[2], &[&id]).await?);
        let pending: i64 = client.query_one(&steps[3], &[&id]).await?.get(0);
        let room = recovery.room(pending.try_into().unwrap(), 10_000).min(100);
        let after = recovery.after().copied().unwrap_or_default();
        let page = Some((after, i64::from(room)));
        let rows = search(client, &steps[4], id, recovery.missed(), page).await?;
        let found: Vec<(i64, Delivery)> =
            rows.iter().map(|row| (row.get("id"), delivery_of(row))).collect();
        let now = database_now(client).await;
        let step = RecoveryStep { room, found: &found, endpoint: &owner, plan };
        let writes = recovery.step(step, now);
        assert!(write(client, &writes).await?, "the rows are locked");
        let (json, version) = (serde_json::to_string(&recovery).unwrap(), recovery.version());
        let (status, version) = (recovery.status(), i32::try_from(version).unwrap());
        let values: [&(dyn ToSql + Sync); 5] =
            [&number, &recovery.if_version(), &json, &status.as_str(), &version];
        assert_eq!(client.execute(&steps[5], &values).await?, 1);
        client.batch_execute(&steps[6]).await?;
        if status != RecoveryStatus::Running {
            assert_eq!(status, RecoveryStatus::Completed);
            assert_eq!(recovery.redelivered(), counted);
            return Ok(counted);
        }
    }
}

/// The condition of what was missed, with the page of a recovery or without.
async fn search(
    client: &Client,
    sql: &str,
    id: &str,
    missed: &MissedDeliveries,
    page: Option<(i64, i64)>,
) -> Result<Vec<tokio_postgres::Row>> {
    let statuses: Vec<&str> = missed.statuses().iter().map(|status| status.as_str()).collect();
    let types: Vec<&str> = missed.types().iter().map(|kind| kind.as_str()).collect();
    let [from, until, failed_from] = [missed.from(), missed.until(), missed.failed_from()].map(At);
    let (ended_in, not_pending_in) = (missed.ended_in(), missed.not_pending_in());
    let mut values: Vec<&(dyn ToSql + Sync)> =
        vec![&id, &from, &until, &statuses, &ended_in, &failed_from];
    values.extend([&not_pending_in as &(dyn ToSql + Sync), &types]);
    if let Some((after, room)) = &page {
        values.extend([after as &(dyn ToSql + Sync), room]);
    }
    client.query(sql, &values).await
}

/// How many deliveries there are in each state, as text.
pub(crate) async fn statuses(client: &Client) -> BTreeMap<String, i64> {
    let sql = "SELECT status, count(*) FROM deliveries GROUP BY status";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
