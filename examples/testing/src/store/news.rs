//! What a sender reads outside of transactions.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::RecoveryStatus;
use host::rows::{Done, Key, News, PendingRow, Rows, SetLimit, Shards, ToBegin};

use super::tables::{DeliveryRow, PENDING, Place, Tables};
use super::{Step, Store};

/// How long a recovery waits for transactions that had begun before it.
const OLDER: Duration = Duration::from_secs(60);

/// How far a sender has seen what became pending.
#[derive(Debug, Default)]
pub struct Seen {
    shards: Shards,
    /// The last commit that was seen.
    last: u64,
    /// How often those who look had been nudged.
    nudged: u64,
}

impl Rows for Store {
    type Seen = Seen;

    async fn news(&self, shards: &Shards, seen: &mut Seen) -> Done<News> {
        poll_fn(|context| {
            let mut tables = self.tables();
            if tables.nudged != seen.nudged || tables.has_news(shards, seen) {
                return Poll::Ready(());
            }
            tables.looking.push(context.waker().clone());
            Poll::Pending
        })
        .await;
        self.read(Step::News).await?;
        Ok(self.tables().news(shards, seen))
    }

    async fn limits(&self) -> Done<Vec<SetLimit>> {
        self.read(Step::Limits).await?;
        Ok(self.tables().limits.clone())
    }

    async fn to_begin(&self, keys: &[Key], _: Timestamp) -> Done<Vec<Option<ToBegin>>> {
        // Two statements, each of which sees what is committed when it begins.
        self.read(Step::ReadDeliveries).await?;
        let mut found = BTreeMap::new();
        for id in keys.iter().map(|key| key.delivery) {
            if let Some(row) = self.tables().delivery(0, Place::Pending(id)) {
                found.insert(id, row.clone());
            }
        }
        self.read(Step::ReadEndpoints).await?;
        let tables = self.tables();
        let created = || keys.iter().map(|key| key.event_created_at);
        let days =
            created().min().unwrap_or(Timestamp::MAX)..=created().max().unwrap_or(Timestamp::MIN);
        let to_begin = |key: &Key| {
            // What is not of these days is in no partition that is read.
            let row = found.get(&key.delivery);
            let row = row.filter(|row| days.contains(&Key::of(&row.delivery).event_created_at))?;
            let endpoint = tables.endpoint(0, Key::of(&row.delivery).endpoint)?;
            Some(ToBegin {
                delivery: row.delivery,
                name: format!("dlv_{}", key.delivery),
                health: endpoint.health,
                opened: endpoint.opened.clone(),
                body: row.event.clone(),
                traceparent: None,
            })
        };
        Ok(keys.iter().map(to_begin).collect())
    }

    async fn recoveries(&self, shards: &Shards, now: Timestamp) -> Done<Vec<u64>> {
        self.read(Step::Recoveries).await?;
        let tables = self.tables();
        let oldest = tables.open.keys().next().copied().unwrap_or(u64::MAX);
        let runs = tables.recoveries().filter(|(_, row)| {
            let recovery = &row.recovery;
            let is_old = recovery.started_at() < now.saturating_sub(OLDER);
            let runs = recovery.status() == RecoveryStatus::Running && !row.is_paused;
            let endpoint = tables.endpoint(0, row.endpoint);
            let is_own = endpoint.is_some_and(|it| shards.contains_key(&it.opened.names.shard));
            runs && is_own && (row.tx < oldest || is_old)
        });
        Ok(runs.map(|(id, _)| id).collect())
    }
}

impl Tables {
    fn has_news(&self, shards: &Shards, seen: &Seen) -> bool {
        let number = self.commits.len() as u64;
        number < seen.last
            || shards.iter().any(|(shard, epoch)| seen.shards.get(shard) != Some(epoch))
            || self.queued(seen.last).any(|row| shards.contains_key(&row.shard))
    }

    /// Returns what became pending after a commit.
    fn queued(&self, after: u64) -> impl Iterator<Item = &DeliveryRow> {
        let since = self.queue.range((after + 1, 0)..);
        since.filter_map(|(queued, id)| {
            self.delivery(0, Place::Pending(*id)).filter(|row| row.queued == *queued)
        })
    }

    fn news(&self, shards: &Shards, seen: &mut Seen) -> News {
        let number = self.commits.len() as u64;
        seen.nudged = self.nudged;
        if number < seen.last {
            let went_back = Some(format!("commit {} was seen, and now {number}", seen.last));
            return News { went_back, ..News::default() };
        }
        let is_new = |shard: &u16| seen.shards.get(shard) != shards.get(shard);
        let found = |row: &DeliveryRow| {
            let DeliveryRow { shard, account, delivery, .. } = *row;
            PendingRow { shard, account, delivery }
        };
        let mut rows = Vec::new();
        if shards.keys().any(is_new) {
            let all = self.deliveries(0, PENDING);
            let all = all.map(|(_, row)| row);
            let new = all.filter(|row| shards.contains_key(&row.shard) && is_new(&row.shard));
            rows.extend(new.map(found));
        }
        let since = self.queued(seen.last).filter(|row| shards.contains_key(&row.shard));
        rows.extend(since.map(found));
        (seen.shards, seen.last) = (shards.clone(), number);
        News { rows, ..News::default() }
    }
}
