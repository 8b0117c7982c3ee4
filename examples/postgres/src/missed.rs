//! What an endpoint missed, as parameters of statements, and counted.

use std::collections::BTreeMap;

use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::MissedDeliveries;
use deadpool_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use crate::db::{At, DbError, query};

/// `MissedSearch` of an endpoint's deliveries, as `$1` to `$9`.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    shard: i16,
    endpoint: i32,
    created: [At; 2],
    statuses: Vec<&'a str>,
    ended_in: Option<i32>,
    failed_from: At,
    not_pending_in: Option<i32>,
    types: Vec<&'a str>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(shard: i16, endpoint: i32, missed: &'a MissedDeliveries) -> Self {
        let search = missed.search();
        Self {
            shard,
            endpoint,
            created: [At(search.created_from), At(search.created_until)],
            statuses: search.statuses.iter().map(|status| status.as_str()).collect(),
            ended_in: search.ended_in,
            failed_from: At(search.failed_from),
            not_pending_in: search.not_pending_in,
            types: search.types.iter().map(EventType::as_str).collect(),
        }
    }

    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 9] {
        let [from, until] = &self.created;
        [
            &self.shard,
            &self.endpoint,
            from,
            until,
            &self.statuses,
            &self.ended_in,
            &self.failed_from,
            &self.not_pending_in,
            &self.types,
        ]
    }

    /// How many there are of each type.
    pub(crate) async fn count(
        &self,
        client: &impl GenericClient,
    ) -> Result<BTreeMap<String, u64>, DbError> {
        let sql = include_str!("../sql/missed_count.sql");
        let mut counted = BTreeMap::new();
        for row in query(client, sql, &self.parameters()).await? {
            counted.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs());
        }
        Ok(counted)
    }
}
