//! What this process counts and knows of itself, for monitoring.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use call_assistant::webhook::sender::SenderTally;
use tokio::time::Instant;

use crate::db::Database;
use host::rows::Family;
use host::sending::Load;

/// What this process counts. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tally: Mutex<SenderTally>,
    /// What the planner has, and the shards; unset without a sender.
    load: OnceLock<Load>,
    owned: AtomicU64,
    taken: AtomicU64,
    went_back: AtomicU64,
    clock: Mutex<Option<Compared>>,
    /// When each loop last succeeded.
    rounds: Mutex<BTreeMap<&'static str, Instant>>,
    /// The pools of connections, by what they are for.
    pools: Mutex<BTreeMap<&'static str, Database>>,
    /// Why this process's sender sends nothing.
    idle: Mutex<Option<&'static str>>,
    /// Whether a key is missing, and how many endpoints have secrets that cannot be opened.
    keys: Mutex<(bool, i64)>,
}

/// How a process's clock compares with its database's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// How many seconds it is ahead; negative if it is behind.
    pub(crate) ahead: f64,
    /// Whether all processes differ alike, so that it is the database's that is wrong.
    pub(crate) database_is_wrong: bool,
}

impl Counted {
    /// Changes the counters.
    pub(crate) fn count(&self, count: impl FnOnce(&mut SenderTally)) {
        count(&mut lock(&self.0.tally));
    }

    /// Returns the counts so far.
    pub(crate) fn read(&self) -> SenderTally {
        *lock(&self.0.tally)
    }

    /// Notes what this process's sender has to send.
    pub(crate) fn sends(&self, load: Load) {
        let _ = self.0.load.set(load);
    }

    /// Returns what this process's sender has to send; `None` without a sender.
    pub(crate) fn load(&self) -> Option<&Load> {
        self.0.load.get()
    }

    /// Notes how many shards this process owns, and how many of them it has taken from an owner that
    /// had not given them back.
    pub(crate) fn owns(&self, shards: usize, taken: usize) {
        self.0.owned.store(u64::try_from(shards).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.0.taken.fetch_add(u64::try_from(taken).unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts that the database went back.
    pub(crate) fn went_back(&self) {
        self.0.went_back.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes how this process's clock compares with the database's.
    pub(crate) fn compared(&self, clock: Compared) {
        *lock(&self.0.clock) = Some(clock);
    }

    /// Notes that a round of this loop has succeeded.
    pub(crate) fn round(&self, of: &'static str) {
        lock(&self.0.rounds).insert(of, Instant::now());
    }

    /// Notes that a round of this loop has succeeded so long ago, in whichever process.
    pub(crate) fn round_before(&self, of: &'static str, ago: Duration) {
        if let Some(at) = Instant::now().checked_sub(ago) {
            lock(&self.0.rounds).insert(of, at);
        }
    }

    /// Notes a pool of connections.
    pub(crate) fn uses(&self, pool: &'static str, database: &Database) {
        lock(&self.0.pools).insert(pool, database.clone());
    }

    /// Notes why this process's sender sends nothing, or that it does.
    pub(crate) fn idles(&self, why: Option<&'static str>) {
        *lock(&self.0.idle) = why;
    }

    /// Returns why this process's sender sends nothing.
    pub(crate) fn idle(&self) -> Option<&'static str> {
        *lock(&self.0.idle)
    }

    /// Notes whether the ring lacks a key that is in use, and how many endpoints have secrets that cannot be
    /// opened.
    pub(crate) fn lacks_keys(&self, is_without: bool, unreadable: i64) {
        *lock(&self.0.keys) = (is_without, unreadable);
    }

    /// Returns whether the ring lacks a key that is in use.
    pub(crate) fn is_without_key(&self) -> bool {
        lock(&self.0.keys).0
    }

    /// Returns what is known without the database.
    pub(crate) fn families(&self) -> Vec<Family> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut families = vec![
            Family::counter(
                "call_assistant_database_went_back",
                "How often the database was found to be at an earlier time.",
                count(&self.0.went_back),
            ),
            Family::gauge(
                "call_assistant_unreadable_secrets",
                "Endpoints whose secrets need a key that this process does not have.",
                lock(&self.0.keys).1,
            ),
        ];
        if self.load().is_some() {
            families.extend([
                Family::gauge(
                    "call_assistant_shards_owned",
                    "Shards for which this process sends.",
                    count(&self.0.owned),
                ),
                Family::counter(
                    "call_assistant_shards_taken",
                    "Shards taken from an owner that had not given them back.",
                    count(&self.0.taken),
                ),
            ]);
        }
        if let Some(clock) = *lock(&self.0.clock) {
            families.extend([
                Family::gauge(
                    "call_assistant_clock_ahead_seconds",
                    "How far this process's clock is ahead of the database's.",
                    clock.ahead,
                ),
                Family::gauge(
                    "call_assistant_database_clock_wrong",
                    "Whether all processes' clocks differ alike from the database's.",
                    u8::from(clock.database_is_wrong),
                ),
            ]);
        }
        families.extend([self.loops(), self.connections(), self.waiting()]);
        families
    }

    fn loops(&self) -> Family {
        let rounds = lock(&self.0.rounds);
        let age = |at: &Instant| at.elapsed().as_secs_f64().to_string();
        Family {
            name: "call_assistant_loop_age_seconds",
            help: "How long ago a round of each loop of this process has succeeded.",
            is_counter: false,
            values: rounds.iter().map(|(of, at)| (Some(("loop", *of)), age(at))).collect(),
        }
    }

    fn connections(&self) -> Family {
        self.of_pools(
            "call_assistant_pool_connections",
            "Connections to the database that are in use.",
            |[in_use, ..]| in_use,
        )
    }

    fn waiting(&self) -> Family {
        self.of_pools(
            "call_assistant_pool_waiting",
            "Callers that wait for a connection to the database.",
            |[.., waiting]| waiting,
        )
    }

    fn of_pools(
        &self,
        name: &'static str,
        help: &'static str,
        value: impl Fn([usize; 2]) -> usize,
    ) -> Family {
        let pools = lock(&self.0.pools);
        let values = pools.iter().map(|(of, pool)| (Some(("pool", *of)), value(pool.load())));
        let values = values.map(|(label, value)| (label, value.to_string())).collect();
        Family { name, help, is_counter: false, values }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
