//! What monitoring shows of the database: read in the background, however many ask. What costs little, each process
//! reads. What reads whole tables, one process counts and stores, and all show what is stored.
//!
//! Nobody is the counter: whoever finds that it is time takes a lock for one count. The lock ends with its session. So
//! a counter that dies is replaced at the next count, and one that stands still ten seconds after its statement has
//! ended. A count of before the database went back, or of before its clock was set back, is old, and is made again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::SenderGauges;
use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio::time::{Instant, sleep, timeout};

use super::Counted;
use crate::db::{At, Class, Database, DbError, latest_migration};
use crate::sql::{accept, ops as sql, sender};
use host::store::{Family, Metrics, Writes};
use host::{lock, log};

/// How long to wait before the next reading, and between two counts of all processes: 5 s.
pub(super) const EVERY: Duration = Duration::from_secs(5);

/// How many times as long a count is shown as it took, at least: counting costs a twentieth of a connection
/// at most, of all processes together.
const SHARE: u32 = 20;

/// How long a COMMIT takes at most, unless it waits for a standby server: 1 s.
const COMMIT: Duration = Duration::from_secs(1);

/// The latest readings of the database. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings(Arc<Mutex<Latest>>);

/// What came of the last reading.
#[derive(Clone, Debug, Default)]
enum Latest {
    /// No answer.
    #[default]
    Silent,
    /// A refusal, which lasts until somebody repairs what it names.
    Refused(Class),
    /// What the database holds.
    Read(Read),
}

/// What the database holds.
#[derive(Clone, Debug)]
struct Read {
    families: Vec<Family>,
    /// What was counted last, and how long ago; `None` before the first count.
    counts: Option<(SenderGauges, Duration)>,
}

impl Readings {
    /// Returns what this process knows of itself, and of the database what was read last. It waits for nothing.
    pub(super) fn metrics(&self, counted: &Counted, now: Timestamp) -> Metrics {
        let latest = lock(&self.0).clone();
        let is_up = !matches!(latest, Latest::Silent);
        let (mut others, counts) = match latest {
            Latest::Read(read) => (read.families, read.counts),
            Latest::Silent | Latest::Refused(_) => Default::default(),
        };
        others.extend(counted.families());
        let load = counted.load().map(|load| load.row());
        let late = late(counted, now);
        let gauges = counts.map(|(mut gauges, _)| {
            gauges.oldest_due = gauges.oldest_due.max(late);
            gauges
        });
        Metrics { sender: counted.read(), load, is_up, gauges, others }
    }

    /// Returns why the database refused the last reading.
    pub(super) fn refused(&self) -> Option<Class> {
        match &*lock(&self.0) {
            Latest::Refused(class) => Some(*class),
            Latest::Silent | Latest::Read(_) => None,
        }
    }

    /// Reads for as long as the process runs: what costs little is held up by no count.
    pub(super) async fn keep(self, database: Database, counted: Counted) {
        let reads = async {
            loop {
                self.look(&database, &counted).await;
                sleep(EVERY).await;
            }
        };
        let counts = async {
            loop {
                let began = Instant::now();
                // It has its own time limit, which is longer than that of who waits for an answer.
                let counts = database.unhurried().change(count).await;
                log::tried("counting for monitoring", &counts);
                if matches!(counts, Ok(true)) {
                    self.look(&database, &counted).await;
                }
                sleep(EVERY.max(began.elapsed().saturating_mul(SHARE))).await;
            }
        };
        tokio::join!(reads, counts);
    }

    async fn look(&self, database: &Database, counted: &Counted) {
        let read = read(database, counted).await;
        log::tried("reading for monitoring", &read);
        *lock(&self.0) = match read {
            Ok(read) => {
                if let Some((_, age)) = read.counts {
                    counted.round_before("gauges", age);
                }
                Latest::Read(read)
            }
            Err(error) => match error.class() {
                class @ (Class::Right | Class::Schema) => Latest::Refused(class),
                _ => Latest::Silent,
            },
        };
    }
}

/// Returns for how long the oldest delivery has been due that this process's sender has not begun.
pub(super) fn late(counted: &Counted, now: Timestamp) -> Duration {
    let behind = counted.load().map(|load| load.row().behind).unwrap_or_default();
    behind.max(counted.unreadable_since(now))
}

/// Finds out how writes are taken.
pub(super) async fn writes(database: &Database) -> Result<Writes, DbError> {
    let write = database.write(async |client| {
        accept::wait_for_standby(client).await?;
        Ok(Writes::Stored)
    });
    match timeout(COMMIT, write).await {
        Ok(written) => written,
        Err(_) => {
            let answers = database.read(async |client| {
                accept::now(client).await?;
                Ok(Writes::Waiting)
            });
            answers.await
        }
    }
}

/// Reads what is stored, with how writes are taken.
async fn read(database: &Database, counted: &Counted) -> Result<Read, DbError> {
    let mut read = database
        .read(async |client: &Object| {
            let (mut families, gauges) = tokio::try_join!(
                what_is_set(client, counted, At(database.now())),
                sql::monitoring_gauges(client)
            )?;
            families.extend(gauges.as_ref().map(|gauges| {
                let help = "Accounts with a delivery that could be sent, and has been due for ten seconds.";
                Family::gauge("call_assistant_late_accounts", help, gauges.late_accounts)
            }));
            let counts = gauges.map(|gauges| counts_of(&gauges)).transpose()?;
            Ok::<_, DbError>(Read { families, counts })
        })
        .await?;
    read.families.extend(writes(database).await.ok().map(|writes| {
        Family::gauge(
            "call_assistant_writes_waiting",
            "Whether writes wait for a standby server.",
            u8::from(writes == Writes::Waiting),
        )
    }));
    Ok(read)
}

async fn what_is_set(
    client: &impl GenericClient,
    counted: &Counted,
    now: At,
) -> Result<Vec<Family>, DbError> {
    let (state, (oldest,)) = tokio::try_join!(
        sql::monitoring_state(client, latest_migration()),
        sender::days_oldest(client, now),
    )?;
    counted.sees_later_version(state.has_later);
    let mut families = vec![
        Family::gauge("call_assistant_shards_unowned", "Shards without a sender.", state.unowned),
        Family::gauge(
            "call_assistant_recoveries_running",
            "Recoveries that have not ended.",
            state.recoveries,
        ),
        Family::gauge(
            "call_assistant_sending_paused",
            "Pauses that operators have set.",
            state.paused,
        ),
        Family::gauge(
            "call_assistant_sending_throttled",
            "Throttles that operators have set.",
            state.throttled,
        ),
        Family::gauge(
            "call_assistant_oldest_lever_seconds",
            "The age of the oldest pause or throttle that operators have set.",
            state.oldest_lever,
        ),
    ];
    families.extend(oldest.map(|age| {
        let help = "The age of the oldest day of events that is kept.";
        Family::gauge("call_assistant_oldest_day_seconds", help, age.max(0))
    }));
    Ok(families)
}

/// Returns what was counted last, and how long ago.
fn counts_of(row: &sql::Gauges) -> Result<(SenderGauges, Duration), DbError> {
    let age = Duration::try_from_secs_f64(row.age).map_err(DbError::row)?;
    let mut gauges = SenderGauges::default();
    (gauges.pending, gauges.held) = (row.pending, row.held);
    gauges.oldest_due = Duration::from_millis(row.oldest_due_ms);
    (gauges.active, gauges.suspect, gauges.gone) = (row.active, row.suspect, row.gone);
    (gauges.failing, gauges.paused) = (row.failing, row.paused);
    Ok((gauges, age))
}

/// Counts what reads whole tables, and stores it for all processes, if it is time and nobody else does. Returns
/// whether it has.
async fn count(change: &Transaction<'_>) -> Result<bool, DbError> {
    if sql::monitoring_turn(change, EVERY.as_secs_f64(), f64::from(SHARE)).await? != Some(true) {
        return Ok(false);
    }
    sql::monitoring_whole_tables(change).await?;
    match sql::monitoring_count(change).await? {
        0 => Err(DbError::row("there is no row for what is counted")),
        _ => {
            sql::monitoring_hour(change).await?;
            Ok(true)
        }
    }
}
