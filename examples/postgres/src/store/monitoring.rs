//! What monitoring shows of the database: read once in a few seconds, however many ask.

use std::sync::Arc;
use std::time::Duration;

use call_assistant::webhook::sender::Gauges;
use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::clock::database as clock;
use crate::counted::Counted;
use crate::db::statements::{self as sql, batch};
use crate::db::{At, Database, DbError, Fields as _, query, query_opt};
use host::rows::{Family, Metrics, Writes};

/// How long a reading is shown at least.
const EVERY: Duration = Duration::from_secs(5);

/// A reading that takes long is shown for twenty times as long: counting costs a twentieth of a
/// connection at most.
const SHARE: u32 = 20;

/// How long a COMMIT takes at most, unless it waits for a standby server: 1 s.
const COMMIT: Duration = Duration::from_secs(1);

/// How long a scrape waits for a reading under way, while there is none to show and while there is.
const FIRST: Duration = Duration::from_secs(2);
const NEXT: Duration = Duration::from_millis(50);

/// The latest reading. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    latest: Arc<watch::Sender<Reading>>,
    turn: Arc<Semaphore>,
}

/// What was read of the database.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// When to read again.
    again: Option<Instant>,
    /// Whether the database has answered.
    is_up: bool,
    gauges: Option<Gauges>,
    others: Vec<Family>,
}

impl Default for Readings {
    fn default() -> Self {
        Self { latest: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Readings {
    /// Returns what this process knows of itself, and of the database what was read last.
    pub(super) async fn metrics(&self, database: &Database, counted: &Counted) -> Metrics {
        let Reading { is_up, gauges, mut others, .. } = self.latest(database).await;
        others.extend(counted.families());
        let load = counted.load().map(|load| load.row());
        let behind = load.map(|load| load.behind).unwrap_or_default();
        let gauges = gauges.map(|mut gauges| {
            gauges.oldest_due = gauges.oldest_due.max(behind);
            gauges
        });
        Metrics { sender: counted.read(), load, is_up, gauges, others }
    }

    async fn latest(&self, database: &Database) -> Reading {
        let mut latest = self.latest.subscribe();
        let shown = latest.borrow_and_update().again;
        if shown.is_none_or(|again| again <= Instant::now()) {
            if let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() {
                let (to, database) = (Arc::clone(&self.latest), database.clone());
                tokio::spawn(async move {
                    to.send_replace(read(&database).await);
                    drop(turn);
                });
            }
            let patience = if shown.is_none() { FIRST } else { NEXT };
            let _ = timeout(patience, latest.changed()).await;
        }
        latest.borrow().clone()
    }
}

async fn read(database: &Database) -> Reading {
    let began = Instant::now();
    let state = database.read(async |client: &Object| state(client).await).await;
    let is_up = state.is_ok();
    let gauges = match is_up {
        // It has its own time limit, which is longer than that of who waits for an answer.
        true => database.unhurried().snapshot(counts).await.ok(),
        false => None,
    };
    let mut others = state.unwrap_or_default();
    others.extend(writes(database).await.ok().map(|writes| {
        Family::gauge(
            "call_assistant_writes_waiting",
            "Whether writes wait for a standby server.",
            u8::from(writes == Writes::Waiting),
        )
    }));
    let wait = EVERY.max(began.elapsed().saturating_mul(SHARE));
    Reading { again: Instant::now().checked_add(wait), is_up, gauges, others }
}

/// Finds out how writes are taken.
pub(super) async fn writes(database: &Database) -> Result<Writes, DbError> {
    let write = database.write(async |client| {
        query(client, sql::COMMIT_WAITS, &[]).await?;
        Ok(Writes::Stored)
    });
    match timeout(COMMIT, write).await {
        Ok(written) => written,
        Err(_) => {
            let answers = database.read(async |client| {
                query(client, sql::API_READY, &[]).await?;
                Ok(Writes::Waiting)
            });
            answers.await
        }
    }
}

/// What costs little.
async fn state(client: &impl GenericClient) -> Result<Vec<Family>, DbError> {
    let now = At(clock::now());
    let today: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&now];
    let (state, oldest) = tokio::try_join!(
        query_opt(client, sql::MONITORING_STATE, &[]),
        query_opt(client, sql::DAYS_OLDEST, &today),
    )?;
    let state = state.ok_or_else(|| DbError::row("there is no state"))?;
    let mut families = vec![
        Family::gauge(
            "call_assistant_shards_unowned",
            "Shards for which nobody sends.",
            state.field::<i64>("unowned")?,
        ),
        Family::gauge(
            "call_assistant_recoveries_running",
            "Recoveries that have not ended.",
            state.field::<i64>("recoveries")?,
        ),
        Family::gauge(
            "call_assistant_sending_paused",
            "Pauses that operators have set.",
            state.field::<i64>("paused")?,
        ),
        Family::gauge(
            "call_assistant_sending_throttled",
            "Limits below the usual that operators have set.",
            state.field::<i64>("throttled")?,
        ),
        Family::gauge(
            "call_assistant_senders_drained",
            "Senders that live and own no shards, as operators have set it.",
            state.field::<i64>("drained")?,
        ),
    ];
    let oldest: Option<i64> = oldest.map(|row| row.field(0)).transpose()?.flatten();
    families.extend(oldest.map(|age| {
        let help = "The age of the oldest day of events that is kept.";
        Family::gauge("call_assistant_oldest_day_seconds", help, age.max(0))
    }));
    Ok(families)
}

/// What reads whole tables.
async fn counts(client: &Transaction<'_>) -> Result<Gauges, DbError> {
    batch(client, sql::MONITORING_WHOLE_TABLES).await?;
    let row = query_opt(client, sql::MONITORING_GAUGES, &[&At(clock::now())]).await?;
    let row = row.ok_or_else(|| DbError::row("there is no count"))?;
    let count = |name: &str| Ok::<_, DbError>(row.field::<i64>(name)?.unsigned_abs());
    let mut gauges = Gauges::default();
    (gauges.pending, gauges.held) = (count("pending")?, count("held")?);
    gauges.oldest_due = Duration::from_millis(count("oldest_due_ms")?);
    (gauges.active, gauges.suspect) = (count("active")?, count("suspect")?);
    (gauges.gone, gauges.failing) = (count("gone")?, count("failing")?);
    gauges.paused = count("paused")?;
    Ok(gauges)
}
