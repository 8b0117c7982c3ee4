//! Rows of deliveries and endpoints: locked in the order in which everybody locks, and written under
//! the version that was read.
//!
//! A delivery is pending, in `deliveries`, or has ended, in `ended`. A write that changes which moves
//! the row. What each function does is part of the caller's transaction.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, Endpoint, EndpointColumns, Row, Write,
};
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::db::{At, Database, DbError, delivery_of, endpoint_of, within};

/// Where a delivery is found: its number is not enough once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its number.
    pub id: i64,
    /// Its endpoint's number.
    pub endpoint: i32,
    /// Its event's `created_at`, which says the day.
    pub event_created_at: Timestamp,
}

/// In which of the two tables a row was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `deliveries`.
    Pending,
    /// `ended`.
    Ended,
}

/// A row that is locked.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    /// Where it is.
    pub table: Table,
    /// What is in it.
    pub row: Row<Delivery>,
}

/// Locks deliveries, pending ones first, each by ascending number. One that cannot be read by this
/// version, or is not there, is left out.
///
/// # Errors
/// [`DbError`]
pub async fn lock(
    change: &Transaction<'_>,
    keys: &[Key],
) -> Result<BTreeMap<i64, Locked>, DbError> {
    let mut found = BTreeMap::new();
    let ids: Vec<i64> = keys.iter().map(|key| key.id).collect();
    let pending = change.prepare_cached(include_str!("../sql/delivery_lock_pending.sql")).await?;
    for row in change.query(&pending, &[&ids]).await? {
        if let Ok(delivery) = delivery_of(&row) {
            let locked = Locked { table: Table::Pending, row: delivery.into() };
            found.insert(row.try_get("id")?, locked);
        }
    }
    let others: Vec<&Key> = keys.iter().filter(|key| !found.contains_key(&key.id)).collect();
    if others.is_empty() {
        return Ok(found);
    }
    let endpoints: Vec<i32> = others.iter().map(|key| key.endpoint).collect();
    let ids: Vec<i64> = others.iter().map(|key| key.id).collect();
    let created: Vec<At> = others.iter().map(|key| At(key.event_created_at)).collect();
    let ended = change.prepare_cached(include_str!("../sql/delivery_lock_ended.sql")).await?;
    for row in change.query(&ended, &[&endpoints, &ids, &created]).await? {
        if let Ok(delivery) = delivery_of(&row) {
            let locked = Locked { table: Table::Ended, row: delivery.into() };
            found.insert(row.try_get("id")?, locked);
        }
    }
    Ok(found)
}

/// Writes deliveries. Returns whether each stored row had the version that was read: if not, roll
/// back and read again.
///
/// # Errors
/// [`DbError`]
pub async fn write(
    change: &Transaction<'_>,
    writes: impl IntoIterator<Item = (Key, Table, Write<Delivery>)>,
) -> Result<bool, DbError> {
    let mut kinds = [(); 4].map(|()| Writes::default());
    for (key, table, write) in writes {
        let kind = match (table, write.value.is_pending()) {
            (Table::Pending, true) => 0,
            (Table::Pending, false) => 1,
            (Table::Ended, false) => 2,
            (Table::Ended, true) => 3,
        };
        kinds[kind].push(key, write);
    }
    let [wait, retire, amend, revive] = kinds;
    let (wait, retire, amend, revive) = tokio::try_join!(
        wait.store(change, include_str!("../sql/delivery_wait.sql")),
        retire.store(change, include_str!("../sql/delivery_retire.sql")),
        amend.store(change, include_str!("../sql/delivery_amend.sql")),
        revive.store(change, include_str!("../sql/delivery_revive.sql")),
    )?;
    Ok(wait && retire && amend && revive)
}

/// Deliveries to write, as columns.
#[derive(Default)]
struct Writes {
    endpoints: Vec<i32>,
    ids: Vec<i64>,
    created: Vec<At>,
    if_versions: Vec<i32>,
    columns: Columns,
}

impl Writes {
    fn push(&mut self, key: Key, write: Write<Delivery>) {
        self.endpoints.push(key.endpoint);
        self.ids.push(key.id);
        self.created.push(At(key.event_created_at));
        self.if_versions.push(write.if_version);
        self.columns.push(write.value.into());
    }

    async fn store(self, change: &Transaction<'_>, sql: &str) -> Result<bool, DbError> {
        if self.ids.is_empty() {
            return Ok(true);
        }
        let statement = change.prepare_cached(sql).await?;
        let [statuses, ats, attempts, manuals, generations, versions] = self.columns.parameters();
        let affected = change
            .execute(
                &statement,
                &[
                    &self.endpoints,
                    &self.ids,
                    &self.created,
                    &self.if_versions,
                    statuses,
                    ats,
                    attempts,
                    manuals,
                    generations,
                    versions,
                ],
            )
            .await?;
        Ok(usize::try_from(affected).is_ok_and(|affected| affected == self.ids.len()))
    }
}

/// `DeliveryColumns` of many rows, without the event's time.
#[derive(Default)]
pub(crate) struct Columns {
    statuses: Vec<&'static str>,
    ats: Vec<At>,
    attempts: Vec<i16>,
    manuals: Vec<bool>,
    generations: Vec<i32>,
    versions: Vec<i32>,
}

impl Columns {
    pub(crate) fn push(&mut self, columns: DeliveryColumns) {
        self.statuses.push(columns.status.as_str());
        self.ats.push(At(columns.at));
        self.attempts.push(columns.attempts);
        self.manuals.push(columns.manual);
        self.generations.push(columns.generation);
        self.versions.push(columns.version);
    }

    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 6] {
        [
            &self.statuses,
            &self.ats,
            &self.attempts,
            &self.manuals,
            &self.generations,
            &self.versions,
        ]
    }
}

/// Reads endpoints, with a lock on each by ascending number, or without.
///
/// # Errors
/// [`DbError`]
pub async fn endpoints(
    change: &Transaction<'_>,
    numbers: &[i32],
    locked: bool,
) -> Result<BTreeMap<i32, Row<Endpoint>>, DbError> {
    let sql = match locked {
        true => include_str!("../sql/endpoint_lock.sql"),
        false => include_str!("../sql/endpoint_health.sql"),
    };
    let statement = change.prepare_cached(sql).await?;
    let mut found = BTreeMap::new();
    for row in change.query(&statement, &[&numbers]).await? {
        if let Ok(endpoint) = endpoint_of(&row, "") {
            found.insert(row.try_get("number")?, endpoint.into());
        }
    }
    Ok(found)
}

/// Writes endpoints. Returns whether each stored row had the version that was read.
///
/// # Errors
/// [`DbError`]
pub async fn write_endpoints(
    change: &Transaction<'_>,
    writes: &[(i32, Write<Endpoint>)],
) -> Result<bool, DbError> {
    if writes.is_empty() {
        return Ok(true);
    }
    let columns: Vec<EndpointColumns> =
        writes.iter().map(|(_, write)| write.value.into()).collect();
    let numbers: Vec<i32> = writes.iter().map(|(number, _)| *number).collect();
    let if_versions: Vec<i32> = writes.iter().map(|(_, write)| write.if_version).collect();
    let disabled: Vec<Option<&str>> =
        columns.iter().map(|columns| columns.disabled.map(|reason| reason.as_str())).collect();
    let since: Vec<At> = columns.iter().map(|columns| At(columns.since)).collect();
    let failures: Vec<i16> = columns.iter().map(|columns| columns.failures).collect();
    let generations: Vec<i32> = columns.iter().map(|columns| columns.generation).collect();
    let versions: Vec<i32> = columns.iter().map(|columns| columns.version).collect();
    let firsts: Vec<i16> = columns.iter().map(|columns| columns.first_failures).collect();
    let first_at: Vec<Option<At>> =
        columns.iter().map(|columns| columns.first_failed_at.map(At)).collect();
    let reminders: Vec<i16> = columns.iter().map(|columns| columns.reminders).collect();
    let statement = change.prepare_cached(include_str!("../sql/endpoint_write.sql")).await?;
    let affected = change
        .execute(
            &statement,
            &[
                &numbers,
                &if_versions,
                &disabled,
                &since,
                &failures,
                &generations,
                &versions,
                &firsts,
                &first_at,
                &reminders,
            ],
        )
        .await?;
    Ok(usize::try_from(affected).is_ok_and(|affected| affected == writes.len()))
}

/// Parks what is pending of an endpoint that is disabled, or was enabled since: call it when that is
/// committed. What others hold at this moment is parked when it is next begun.
///
/// # Errors
/// [`DbError`]. Call it again.
pub async fn park(database: &Database, endpoint: i32, now: Timestamp) -> Result<(), DbError> {
    let mut last = i64::MIN;
    loop {
        let next = within(async {
            let mut session = database.session().await?;
            let next = park_some(&mut session, endpoint, last, now).await?;
            session.keep();
            Ok::<_, DbError>(next)
        });
        match next.await? {
            Some(next) => last = next,
            None => return Ok(()),
        }
    }
}

async fn park_some(
    session: &mut crate::db::Session,
    endpoint: i32,
    last: i64,
    now: Timestamp,
) -> Result<Option<i64>, DbError> {
    let change = session.transaction().await?;
    let read = change.prepare_cached(include_str!("../sql/park_read.sql")).await?;
    let rows = change.query(&read, &[&endpoint, &last]).await?;
    let Some(next) = rows.last() else { return Ok(None) };
    let next = next.try_get("id")?;
    let endpoints = endpoints(&change, &[endpoint], false).await?;
    let Some(health) = endpoints.get(&endpoint) else { return Ok(None) };
    let mut writes = Vec::new();
    for row in &rows {
        let Ok(delivery) = delivery_of(row) else { continue };
        let key =
            Key { id: row.try_get("id")?, endpoint, event_created_at: delivery.event_created_at() };
        let mut row = Row::from(delivery);
        row.park(health, now);
        writes.extend(row.write().map(|write| (key, Table::Pending, write)));
    }
    // Each row is locked, so each has the version that was read.
    if write(&change, writes).await? {
        change.commit().await?;
    }
    Ok(Some(next))
}
