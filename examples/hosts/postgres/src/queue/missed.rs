//! What an endpoint missed, as parameters of statements, and counted.

use std::collections::BTreeMap;

use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::RecoveryFilter;
use deadpool_postgres::GenericClient;

use super::lock::Locked;
use crate::db::{At, DbError};
use crate::sql::queue as sql;

/// How many deliveries are looked at for one page of a count.
const COUNTED_AT_ONCE: i64 = 4_000;

/// Some deliveries that are counted.
#[derive(Debug)]
pub(crate) struct CountedPage {
    pub(crate) by_type: BTreeMap<String, u64>,
    /// The last that was looked at. `None`: all were.
    pub(crate) to: Option<i64>,
}

/// The search of an endpoint's deliveries, as parameters.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    shard: i16,
    endpoint: i32,
    created: [At; 2],
    statuses: Vec<&'a str>,
    ended_generation: Option<i32>,
    failed_from: At,
    active_generation: Option<i32>,
    types: Vec<&'a str>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(shard: i16, endpoint: i32, missed: &'a RecoveryFilter) -> Self {
        Self {
            shard,
            endpoint,
            created: [At(missed.from()), At(missed.until())],
            statuses: missed.statuses().iter().map(|status| status.as_str()).collect(),
            ended_generation: missed.ended_generation(),
            failed_from: At(missed.failed_from()),
            active_generation: missed.active_generation(),
            types: missed.types().iter().map(EventType::as_str).collect(),
        }
    }

    /// Counts a page of them after a delivery, by type.
    pub(crate) async fn count(
        &self,
        client: &impl GenericClient,
        after: i64,
    ) -> Result<CountedPage, DbError> {
        let to = self.window(client, after, COUNTED_AT_ONCE).await?;
        let (until, [created_from, created_until]) = (to.unwrap_or(i64::MAX), self.created);
        let counted = sql::missed_count(
            client,
            self.shard,
            self.endpoint,
            created_from,
            created_until,
            &self.statuses,
            self.ended_generation,
            self.failed_from,
            self.active_generation,
            &self.types,
            after,
            until,
        );
        let counted = counted.await?.into_iter();
        let by_type = counted.map(|(of, count)| (of, count.unsigned_abs())).collect();
        Ok(CountedPage { by_type, to })
    }

    /// Returns the last of the next deliveries that may be missed, however many of them are. `None` if
    /// there are fewer.
    pub(crate) async fn window(
        &self,
        client: &impl GenericClient,
        after: i64,
        most: i64,
    ) -> Result<Option<i64>, DbError> {
        let [from, until] = self.created;
        sql::missed_window(client, self.endpoint, from, until, after, most).await
    }

    /// Locks the first of them after a delivery and up to another one, pending ones first, and returns
    /// them by ascending number.
    pub(crate) async fn lock(
        &self,
        change: &impl GenericClient,
        after: i64,
        to: i64,
        most: u32,
    ) -> Result<Vec<Locked>, DbError> {
        let (most, [from, until]) = (i64::from(most), self.created);
        let pending = sql::missed_pending(
            change,
            self.shard,
            self.endpoint,
            from,
            until,
            self.active_generation,
            &self.types,
            after,
            to,
            most,
        );
        let pending = pending.await?;
        let ended = sql::missed_ended(
            change,
            self.endpoint,
            from,
            until,
            &self.statuses,
            self.ended_generation,
            self.failed_from,
            &self.types,
            after,
            to,
            most,
        );
        let mut found: Vec<_> = pending.into_iter().chain(ended.await?).map(Locked::of).collect();
        found.sort_unstable_by_key(|locked| locked.row.id());
        found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(found)
    }
}
