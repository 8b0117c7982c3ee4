//! What this process counts and knows of itself, for monitoring.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::SenderMetrics;
use tokio::time::Instant;

use crate::db::{Class, Database};
use crate::key_ring::in_use::Unfit;
use host::lock;
use host::sender::{History, Load, Notes};
use host::store::Family;

/// What this process counts. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Counted(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tally: Mutex<SenderMetrics>,
    /// The sender's name, and what its planner has; unset without a sender.
    sender: OnceLock<(String, Load)>,
    owned: AtomicU64,
    taken: AtomicU64,
    history: History,
    /// By how many seconds this process's clock is ahead of the database's.
    ahead: Mutex<Option<f64>>,
    /// When each loop last succeeded.
    rounds: Mutex<BTreeMap<&'static str, Instant>>,
    /// The pools of connections, by what they are for.
    pools: Mutex<BTreeMap<&'static str, Database>>,
    /// Why this process's sender sends nothing.
    idle: Mutex<Option<&'static str>>,
    keys: Mutex<Lacking>,
    unreadable: Mutex<Unreadable>,
    /// Whether a later version has migrated the database.
    has_later: AtomicBool,
    /// The roles that this process's login lacks.
    rights: Mutex<Vec<String>>,
}

/// The rows that this process's sender could not read or open, and since when each was due: since everything that is
/// pending began to be read again, and in the round before.
#[derive(Debug, Default)]
struct Unreadable {
    now: BTreeMap<(Kind, i64), Timestamp>,
    before: BTreeMap<(Kind, i64), Timestamp>,
}

/// The most rows of a round that are counted: 10,000.
const MOST_UNREADABLE: usize = 10_000;

/// The kind of a row that a sender reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Endpoint,
    /// Or its event.
    Delivery,
}

/// What this process cannot open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacking {
    /// The keys that are in use, and not in the ring.
    pub(crate) keys: Unfit,
    /// Endpoints whose secrets cannot be opened.
    pub(crate) endpoints: i64,
    /// Deliveries of these endpoints that are due in the shards of this process's sender.
    pub(crate) due: i64,
    /// When the oldest of them became due.
    pub(crate) due_since: Option<Instant>,
}

impl Counted {
    /// Changes the counters.
    pub(crate) fn count(&self, count: impl FnOnce(&mut SenderMetrics)) {
        count(&mut lock(&self.0.tally));
    }

    /// Returns the counts so far.
    pub(crate) fn read(&self) -> SenderMetrics {
        *lock(&self.0.tally)
    }

    /// Notes the name of this process's sender, and what it has to send.
    pub(crate) fn sends(&self, name: String, load: Load) {
        let _ = self.0.sender.set((name, load));
    }

    /// Returns the name of this process's sender; `None` without a sender.
    pub(crate) fn sender(&self) -> Option<&str> {
        self.0.sender.get().map(|(name, _)| name.as_str())
    }

    /// Returns what this process's sender has to send; `None` without a sender.
    pub(crate) fn load(&self) -> Option<&Load> {
        self.0.sender.get().map(|(_, load)| load)
    }

    /// Returns where this process's sender reports that the database went back.
    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    /// Notes by how many seconds this process's clock is ahead of the database's; negative if it is behind.
    pub(crate) fn clock_is_ahead(&self, seconds: f64) {
        *lock(&self.0.ahead) = Some(seconds);
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

    /// Notes what this process cannot open.
    pub(crate) fn lacks(&self, lacking: Lacking) {
        *lock(&self.0.keys) = lacking;
    }

    /// Tells whether this process does not have the key that sealed a text.
    pub(crate) fn lacks_key_of(&self, sealed: &[u8]) -> bool {
        lock(&self.0.keys).keys.is_of(sealed)
    }

    /// Notes a row that this process's sender cannot read, by its number, and since when something of it is due.
    pub(crate) fn cannot_read(&self, kind: Kind, number: i64, due: Timestamp) {
        let mut unreadable = lock(&self.0.unreadable);
        let row = (kind, number);
        let known = unreadable.now.get(&row).or_else(|| unreadable.before.get(&row)).copied();
        if known.is_some() || unreadable.now.len() < MOST_UNREADABLE {
            unreadable.now.insert(row, known.map_or(due, |known| known.min(due)));
        }
    }

    /// Notes that this process's sender begins to read again everything that is pending: what was mended is not
    /// counted after the next round.
    pub(crate) fn reads_again(&self) {
        let mut unreadable = lock(&self.0.unreadable);
        unreadable.before = std::mem::take(&mut unreadable.now);
    }

    /// Notes whether a later version has migrated the database.
    pub(crate) fn sees_later_version(&self, has_later: bool) {
        self.0.has_later.store(has_later, Ordering::Relaxed);
    }

    /// Notes which roles this process's login lacks.
    pub(crate) fn lacks_rights(&self, lacking: Vec<String>) {
        *lock(&self.0.rights) = lacking;
    }

    /// Returns that this process's login lacks rights, and which.
    pub(crate) fn lacked_right(&self) -> Option<String> {
        let rights = lock(&self.0.rights);
        (!rights.is_empty()).then(|| format!("{}: {}", Class::Right, rights.join("; ")))
    }

    /// Returns for how long the oldest delivery has been due that this process's sender cannot begin: what it forgets is
    /// late all the same. While a later version rolls out, it knows when a row is due that this version cannot read.
    pub(crate) fn unreadable_since(&self, now: Timestamp) -> Duration {
        let unsigned = lock(&self.0.keys).due_since.map_or(Duration::ZERO, |since| since.elapsed());
        if self.0.has_later.load(Ordering::Relaxed) {
            return unsigned;
        }
        let unreadable = lock(&self.0.unreadable);
        let due = unreadable.now.values().chain(unreadable.before.values()).min();
        unsigned.max(due.map_or(Duration::ZERO, |due| now.since(*due)))
    }

    /// Returns by how many seconds this process's clock is ahead of the database's, once that is known.
    pub(super) fn ahead(&self) -> Option<f64> {
        *lock(&self.0.ahead)
    }

    /// Returns why this process is not ready, whatever the database does.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let idle = || lock(&self.0.idle).map(str::to_owned);
        self.lacked_right().or_else(idle).or_else(|| {
            // An API alone needs no secret.
            let keys = &lock(&self.0.keys).keys;
            (self.sender().is_some() && !keys.is_empty()).then(|| keys.to_string())
        })
    }

    /// Returns what is known without the database.
    pub(crate) fn families(&self) -> Vec<Family> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut families = vec![
            Family::counter(
                "call_assistant_database_went_back",
                "How often the database was found to be at an earlier time.",
                self.0.history.times(),
            ),
            Family::gauge(
                "call_assistant_unreadable_secrets",
                "Endpoints whose secrets need a key that this process does not have.",
                lock(&self.0.keys).endpoints,
            ),
            Family::gauge(
                "call_assistant_rights_lacking",
                "Roles of the database that this process needs and its login lacks.",
                lock(&self.0.rights).len(),
            ),
        ];
        if let Some(sender) = self.sender() {
            families.extend([
                Family::labelled(
                    "call_assistant_sender_info",
                    "The sender of this process, by its name.",
                    "sender",
                    [(sender, 1)],
                ),
                Family::gauge(
                    "call_assistant_shards_owned",
                    "Shards that this process owns.",
                    count(&self.0.owned),
                ),
                Family::counter(
                    "call_assistant_shards_taken",
                    "Shards taken from a sender that has vanished.",
                    count(&self.0.taken),
                ),
                Family::gauge(
                    "call_assistant_unreadable_due",
                    "Due deliveries whose secrets need a key that this process does not have.",
                    lock(&self.0.keys).due,
                ),
                Family::gauge(
                    "call_assistant_unreadable_rows",
                    "Damaged endpoints, deliveries and events; their due deliveries count as late.",
                    self.unreadable_rows(),
                ),
            ]);
        }
        if let Some(ahead) = self.ahead() {
            let help = "How far this process's clock is ahead of the database's.";
            families.push(Family::gauge("call_assistant_clock_ahead_seconds", help, ahead));
        }
        let (rounds, pools) = (lock(&self.0.rounds), lock(&self.0.pools));
        let load: Vec<_> = pools.iter().map(|(of, pool)| (*of, pool.load())).collect();
        families.extend([
            Family::labelled(
                "call_assistant_loop_age_seconds",
                "The time since each loop of this process last succeeded.",
                "loop",
                rounds.iter().map(|(of, at)| (*of, at.elapsed().as_secs_f64())),
            ),
            Family::labelled(
                "call_assistant_pool_connections",
                "Connections to the database that are in use.",
                "pool",
                load.iter().map(|(of, [in_use, _])| (*of, *in_use)),
            ),
            Family::labelled(
                "call_assistant_pool_waiting",
                "Callers that wait for a connection to the database.",
                "pool",
                load.iter().map(|(of, [_, waiting])| (*of, *waiting)),
            ),
        ]);
        families
    }

    pub(super) fn unreadable_rows(&self) -> usize {
        let Unreadable { now, before } = &*lock(&self.0.unreadable);
        now.keys().chain(before.keys().filter(|row| !now.contains_key(row))).count()
    }
}

impl Notes for Counted {
    fn count(&self, change: impl FnOnce(&mut SenderMetrics)) {
        self.count(change);
    }

    fn round(&self, of: &'static str) {
        self.round(of);
    }

    fn owns(&self, shards: usize, taken: usize) {
        self.0.owned.store(u64::try_from(shards).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.0.taken.store(u64::try_from(taken).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
