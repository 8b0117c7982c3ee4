//! Transactions of a sender, and the log of attempts: tables behind the port.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Delivery, EndpointHealth, Excerpt, FailureReason, LogEntry, REMINDER_DAYS,
};
use deadpool_postgres::GenericClient;
use host::post::signed::Signed;
use host::rows::{
    Change, Changes, CountedPage, Done, Failure, Key, Lock, Locked, MissedPage, Names, Page,
    Progress, RunningRecovery, Search, Shards, Writes,
};

use crate::db::{At, Database, DbError, OpenChange, span};
use crate::queue::{self, write_recovery};
use crate::sql::queue as sql;
use crate::sql::sender::{self as of_sender, Entries, Entry};

/// How many deliveries a step of a recovery looks at, whether they are to be redelivered or not.
const LOOKED_AT: i64 = 2_000;

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl Changes for Database {
    type Change = OpenChange;

    async fn change(&self) -> Done<OpenChange> {
        Ok(self.begin().await?)
    }
}

impl Change for OpenChange {
    async fn lock(&mut self, keys: &[Key]) -> Done<BTreeMap<u64, Locked>> {
        Ok(self.within(queue::lock(self.client(), keys)).await?)
    }

    async fn endpoints(
        &mut self,
        numbers: &[u32],
        lock: Lock,
    ) -> Done<BTreeMap<u32, EndpointHealth>> {
        Ok(match lock {
            Lock::No => self.within(queue::read_endpoints(self.client(), numbers)).await?,
            Lock::Yes => self.within(queue::lock_endpoints(self.client(), numbers)).await?,
        })
    }

    async fn lock_pending(&mut self, endpoint: u32, after: u64) -> Done<Page<Delivery>> {
        let (endpoint, after) = (endpoint.cast_signed(), after.cast_signed());
        let rows = self.within(sql::park(self.client(), endpoint, after)).await?;
        let last = rows.last().map(|row| row.id.cast_unsigned());
        // One that a later version wrote is for that version.
        Ok(Page { rows: rows.into_iter().filter_map(|row| row.read.ok()).collect(), last })
    }

    async fn lock_disabled(
        &mut self,
        shards: &Shards,
        after: Option<u64>,
        now: Timestamp,
    ) -> Done<Page<(EndpointHealth, Names)>> {
        let since = |days: &u8| At(now.saturating_sub(DAY.saturating_mul((*days).into())));
        let [first, second] = [0, 1].map(|nth| REMINDER_DAYS.get(nth).map(since));
        let shards = numbers(shards);
        let after = after.map_or(-1, |after| i32::try_from(after).unwrap_or(i32::MAX));
        let rows = sql::lock_disabled(self.client(), &shards, first, second, after);
        let rows = self.within(rows).await?;
        let last = rows.last().map(|row| row.number.cast_unsigned().into());
        let found = rows.into_iter().filter_map(|row| {
            let shard = row.shard.cast_unsigned();
            let names = Names { account: row.account_id, endpoint: row.id, shard };
            // One that a later version wrote is for that version.
            Some((row.read.ok()?, names))
        });
        Ok(Page { rows: found.collect(), last })
    }

    async fn lock_recovery(&mut self, id: u64) -> Done<Option<RunningRecovery>> {
        let locked = self.within(sql::lock_recovery(self.client(), id.cast_signed())).await?;
        let Some(sql::LockedRecovery { shard, endpoint, searched_to, stored, health, plan }) =
            locked
        else {
            return Ok(None);
        };
        let pending = self.within(sql::count_redeliveries(self.client(), shard, endpoint)).await?;
        let (account, endpoint) = (stored.account_id.as_str(), stored.endpoint_id.as_str());
        let names = Names {
            account: account.to_owned(),
            endpoint: endpoint.to_owned(),
            shard: shard.cast_unsigned(),
        };
        Ok(Some(RunningRecovery {
            is_paused: stored.paused,
            endpoint: health,
            names,
            plan,
            pending: u32::try_from(pending).unwrap_or(u32::MAX),
            progress: Progress {
                counted: stored.counted.unwrap_or_else(|| stored.recovery.counted()),
                counted_to: stored.counted_to.map(i64::cast_unsigned),
                searched_to: searched_to.map(i64::cast_unsigned),
            },
            recovery: stored.recovery,
        }))
    }

    async fn count(&mut self, search: &Search, after: u64) -> Done<CountedPage> {
        let search = searched(search);
        let page = self.within(search.count(self.client(), after.cast_signed())).await?;
        let counted = page.by_type.values().fold(0, |sum: u64, more| sum.saturating_add(*more));
        Ok(CountedPage { counted, to: page.to.map(i64::cast_unsigned) })
    }

    async fn lock_missed(
        &mut self,
        search: &Search,
        after: u64,
        to: Option<u64>,
        most: u32,
    ) -> Done<MissedPage> {
        let (search, after) = (searched(search), after.cast_signed());
        let window = self.within(search.window(self.client(), after, LOOKED_AT)).await?;
        let to = window.into_iter().chain(to.map(u64::cast_signed)).min();
        let until = to.unwrap_or(i64::MAX);
        let found = self.within(search.lock(self.client(), after, until, most)).await?;
        Ok(MissedPage { rows: found, to: to.map(i64::cast_unsigned) })
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Done<()> {
        let client = self.client();
        let attempts = write_log(client, &writes.attempts, writes.may_be_there);
        // In one round trip.
        let written = async {
            tokio::try_join!(
                queue::write(client, writes.deliveries.iter().copied()),
                queue::write_endpoints(client, writes.endpoints),
                attempts,
            )
        };
        let (of_deliveries, of_endpoints, ()) = self.within(written).await?;
        if !(of_deliveries && of_endpoints) {
            return Err(Failure::Outdated);
        }
        let rest = async {
            queue::store_alerts(client, writes.alerts, writes.endpoints, writes.now).await?;
            if writes.are_news {
                queue::tell_again(client, &writes.deliveries).await?;
            }
            if let Some((id, recovery, progress)) = writes.recovery {
                write_recovery(client, id.cast_signed(), recovery, writes.now).await?;
                if let Some(progress) = progress {
                    queue::write_progress(client, id.cast_signed(), &progress).await?;
                }
            }
            if let Some((endpoint, missed)) = writes.missed {
                queue::write_missed(client, endpoint, missed).await?;
            }
            Ok(())
        };
        Ok(self.within(rest).await?)
    }

    async fn commit(self) -> Done<()> {
        Self::commit(self).await.map_err(|error| Failure::Unknown(Box::new(error)))
    }

    async fn roll_back(self) {
        Self::roll_back(self).await;
    }
}

/// Returns the numbers of shards, as they are stored.
pub(super) fn numbers(shards: &Shards) -> Vec<i16> {
    shards.keys().map(|shard| shard.cast_signed()).collect()
}

fn searched(search: &Search) -> queue::Search<'_> {
    queue::Search::new(search.shard.cast_signed(), search.endpoint.cast_signed(), &search.missed)
}

/// Writes entries of the log of deliveries. One may be there already where a COMMIT was not
/// answered.
async fn write_log(
    change: &impl GenericClient,
    log: &[(Key, &LogEntry, Option<&Signed>)],
    may_be_there: bool,
) -> Result<(), DbError> {
    if log.is_empty() {
        return Ok(());
    }
    let (first, last) = span(log.iter().map(|(key, ..)| key.event_created_at));
    let mut entries = Entries::default();
    for (key, entry, signed) in log {
        let ((response, response_cut), (headers, headers_cut)) =
            (stored(entry.response.as_ref()), stored(entry.headers.as_ref()));
        entries.push(Entry {
            delivery: key.delivery.cast_signed(),
            event_created_at: At(key.event_created_at),
            number: entry.attempt.into(),
            manual: entry.manual,
            began_at: At(entry.began_at),
            took_ms: i64::try_from(entry.took_ms).unwrap_or(i64::MAX),
            outcome: entry.outcome.to_string(),
            late: entry.late,
            status: entry.status.as_str(),
            next_at: entry.next_at.map(At),
            response,
            response_cut,
            headers,
            headers_cut,
            reason: entry.reason.as_ref().map(FailureReason::as_str).map(str::to_owned),
            signed_t: signed.map(|signed| signed.t),
            signed_by: signed.map(|signed| signed.secrets.iter().flat_map(|mark| mark.0).collect()),
        });
    }
    of_sender::log(change, &entries, may_be_there, first, last).await.map(drop)
}

/// Returns a part of an answer, and whether there was more. PostgreSQL's text holds every character but one.
fn stored(part: Option<&Excerpt>) -> (Option<String>, bool) {
    (part.map(|part| part.text.replace('\0', "\u{fffd}")), part.is_some_and(|part| part.cut))
}
