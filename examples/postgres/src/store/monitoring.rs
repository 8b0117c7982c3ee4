//! What monitoring shows of the database: read in the background, however many ask.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use call_assistant::webhook::sender::Gauges;
use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::database as clock;
use crate::counted::Counted;
use crate::db::statements::{self as sql, batch};
use crate::db::{At, Database, DbError, Fields as _, query, query_opt};
use host::log;
use host::rows::{Family, Metrics, Writes};

/// How long to wait before the next reading: 5 s.
const EVERY: Duration = Duration::from_secs(5);

/// How many times as long a count is shown as it took, at least: counting costs a twentieth of a connection
/// at most.
const SHARE: u32 = 20;

/// How long a COMMIT takes at most, unless it waits for a standby server: 1 s.
const COMMIT: Duration = Duration::from_secs(1);

/// The latest readings of the database. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings(Arc<Mutex<Latest>>);

/// What was read last.
#[derive(Clone, Debug, Default)]
struct Latest {
    /// What costs little; `None` while the database does not answer.
    state: Option<Vec<Family>>,
    /// What reads whole tables; `None` before the first count.
    gauges: Option<Gauges>,
}

impl Readings {
    /// Returns what this process knows of itself, and of the database what was read last. It waits for nothing.
    pub(super) fn metrics(&self, counted: &Counted) -> Metrics {
        let Latest { state, gauges } = self.latest().clone();
        let is_up = state.is_some();
        let mut others = state.unwrap_or_default();
        others.extend(counted.families());
        let load = counted.load().map(|load| load.row());
        let behind = load.map(|load| load.behind).unwrap_or_default();
        let gauges = gauges.filter(|_| is_up).map(|mut gauges| {
            gauges.oldest_due = gauges.oldest_due.max(behind);
            gauges
        });
        Metrics { sender: counted.read(), load, is_up, gauges, others }
    }

    /// Reads for as long as the process runs: what costs little is held up by no count.
    pub(super) async fn keep(self, database: Database, counted: Counted) {
        let state = async {
            loop {
                let read = state(&database).await;
                self.latest().state = read.ok();
                sleep(EVERY).await;
            }
        };
        let counts = async {
            loop {
                let began = Instant::now();
                // It has its own time limit, which is longer than that of who waits for an answer.
                match database.unhurried().snapshot(counts).await {
                    Ok(gauges) => {
                        self.latest().gauges = Some(gauges);
                        counted.round("gauges");
                    }
                    Err(error) => log::warn("counting for monitoring").because(&error).write(),
                }
                sleep(EVERY.max(began.elapsed().saturating_mul(SHARE))).await;
            }
        };
        tokio::join!(state, counts);
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Reads what costs little, with how writes are taken.
async fn state(database: &Database) -> Result<Vec<Family>, DbError> {
    let mut families = database.read(async |client: &Object| what_is_set(client).await).await?;
    families.extend(writes(database).await.ok().map(|writes| {
        Family::gauge(
            "call_assistant_writes_waiting",
            "Whether writes wait for a standby server.",
            u8::from(writes == Writes::Waiting),
        )
    }));
    Ok(families)
}

async fn what_is_set(client: &impl GenericClient) -> Result<Vec<Family>, DbError> {
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
            "call_assistant_oldest_lever_seconds",
            "The age of the oldest pause or limit that operators have set.",
            state.field::<i64>("oldest_lever")?,
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

/// Counts what takes whole tables to read.
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
