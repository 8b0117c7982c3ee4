//! The windows of a host that is one process.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::{RateLimitError, RateLimitReason, RateWindow};
use crate::Timestamp;
use crate::id::CredentialId;
use crate::rest::Quota;

/// A window for each credential and quota that was active in the last 60 seconds.
///
/// ```
/// use call_assistant::id::CredentialId;
/// use call_assistant::rest::Quota;
/// use call_assistant::rest::server::RateWindows;
/// use call_assistant::Timestamp;
///
/// let mut windows = RateWindows::new(1_000_000);
/// let credential = CredentialId::parse("cred_1")?;
/// let now = Timestamp::UNIX_EPOCH;
/// assert_eq!(windows.check(&credential, Quota::READS, now), Ok(()));
/// assert_eq!(windows.check(&credential, Quota::ACCOUNT, now), Ok(()));
/// assert_eq!(windows.len(), 2);
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
///
/// For a host that is one process. Several processes keep each [`RateWindow`] in a shared store:
/// otherwise every one of them admits the whole quota. Put it behind a lock, or several behind
/// several locks, by credential.
///
/// # Memory
///
/// Each check forgets a few windows that have been idle for 60 seconds, so nobody has to clean up.
/// It never holds more windows than its maximum, at up to 300 bytes each besides their
/// [`heap_bytes`](RateWindow::heap_bytes).
///
/// When it is full and each window could still refuse, none is dropped: its credential would be
/// admitted twice its quota. A credential without a window is refused instead
/// ([`RateLimitReason::Room`]); the others are not affected. Only existing credentials come this far,
/// so a maximum above the number of issued keys is never reached.
///
/// A check takes constant time, averaged over many, whether it is full or not. Ids that a caller could
/// choose so that their hashes are equal would be found slowly: let the service make them.
pub struct RateWindows {
    max: usize,
    len: usize,
    /// Short lists, each with the windows of some hashes. There is a power of two of them. One
    /// `BTreeMap` of all windows takes three times as long.
    shards: Vec<Shard>,
    /// Each window once, by when to look whether it is idle: never later than it becomes idle.
    due: BTreeMap<Tick, Vec<Key>>,
}

type Shard = Vec<(Key, RateWindow)>;

/// A hundredth of a second since 1970: small enough for short lists, and few of them in a minute.
type Tick = i64;

/// Compares by a hash first, because comparing numbers is faster than comparing texts elsewhere in
/// memory. Equal hashes are told apart by the texts.
#[derive(Clone)]
struct Key {
    hash: u64,
    quota: &'static str,
    credential: CredentialId,
}

/// How many due windows a check looks at. Each one is due again after a minute at the earliest, so
/// that checks keep up with any number of windows.
const LOOKS: usize = 4;

/// No window is due later than in two minutes, rounded up: its newest admission may be a minute ahead.
const LATEST: Tick = 2 * 60 * 100 + 1;

/// How many windows a list has on average before there are twice as many lists.
const PER_SHARD: usize = 1;

#[expect(clippy::expect_used, reason = "each due key has a window, in the list of its hash")]
impl RateWindows {
    /// Creates an empty map of at most `max` windows. A credential that uses both quotas has two.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self { max, len: 0, shards: Vec::new(), due: BTreeMap::new() }
    }

    /// Decides whether a request of this credential is admitted now; if so, counts it.
    ///
    /// # Errors
    /// The quota is used up, or there is no room for another credential.
    pub fn check(
        &mut self,
        credential: &CredentialId,
        quota: Quota,
        now: Timestamp,
    ) -> Result<(), RateLimitError> {
        self.window(credential, quota, now)?.check(quota, now)
    }

    /// Returns the window of this credential and quota, a new one if there was none.
    ///
    /// # Errors
    /// There is no room for another credential.
    pub fn window(
        &mut self,
        credential: &CredentialId,
        quota: Quota,
        now: Timestamp,
    ) -> Result<&mut RateWindow, RateLimitError> {
        for _ in 0..LOOKS {
            if !self.look_at_one(now) {
                break;
            }
        }
        let hash = hash(credential);
        let place = match self.find(hash, quota.name(), credential) {
            Some(place) => place,
            None => {
                self.make_room(now)?;
                // Cloned here only: counting references keeps a processor from reading ahead.
                let credential = credential.clone();
                self.insert(Key { hash, quota: quota.name(), credential }, now)
            }
        };
        Ok(self.window_at(place))
    }

    /// Returns the number of windows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no windows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all idle windows at once, for a host that falls silent: while requests come, checks do
    /// that.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.due.clear();
        self.len = 0;
        for shard in &mut self.shards {
            shard.retain_mut(|(key, window)| {
                let idle = window.idles(now);
                if !idle {
                    self.due.entry(tick(window.idle_at())).or_default().push(key.clone());
                }
                !idle
            });
            self.len = self.len.saturating_add(shard.len());
        }
        self.shrink();
    }

    /// Finds a window: the number of its list, and its place there.
    fn find(&self, hash: u64, quota: &str, credential: &CredentialId) -> Option<(usize, usize)> {
        let shard = bits(hash) & self.shards.len().saturating_sub(1);
        let same =
            |key: &Key| key.hash == hash && key.quota == quota && key.credential == *credential;
        let at = self.shards.get(shard)?.iter().position(|(key, _)| same(key))?;
        Some((shard, at))
    }

    fn window_at(&mut self, (shard, at): (usize, usize)) -> &mut RateWindow {
        let entry = self.shards.get_mut(shard).and_then(|shard| shard.get_mut(at));
        &mut entry.expect("it was just found").1
    }

    fn insert(&mut self, key: Key, now: Timestamp) -> (usize, usize) {
        if self.len >= self.shards.len().saturating_mul(PER_SHARD) {
            self.resize(self.shards.len().saturating_mul(2).max(1));
        }
        let due = tick(now.saturating_add(Quota::SPAN));
        self.due.entry(due).or_default().push(key.clone());
        self.len = self.len.saturating_add(1);
        self.place(key, RateWindow::default())
    }

    fn place(&mut self, key: Key, window: RateWindow) -> (usize, usize) {
        let number = bits(key.hash) & self.shards.len().saturating_sub(1);
        let shard = self.shards.get_mut(number).expect("there is a list for each masked hash");
        shard.reserve_exact(1);
        shard.push((key, window));
        (number, shard.len().saturating_sub(1))
    }

    fn remove(&mut self, (shard, at): (usize, usize)) {
        let shard = self.shards.get_mut(shard).expect("it was just found");
        shard.swap_remove(at);
        self.len = self.len.saturating_sub(1);
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.shards.len() > 1 && self.len < self.shards.len() / 2 {
            self.resize((self.len / PER_SHARD).next_power_of_two());
        }
    }

    fn resize(&mut self, shards: usize) {
        let mut old = Vec::new();
        old.resize_with(shards, Shard::new);
        core::mem::swap(&mut old, &mut self.shards);
        for (key, window) in old.into_iter().flatten() {
            let _ = self.place(key, window);
        }
    }

    /// Looks at due windows until one is idle and goes.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateLimitError> {
        while self.len >= self.max {
            if !self.look_at_one(now) {
                let next = self.due.keys().next().map_or(0, |due| due.saturating_sub(floor(now)));
                let wait = Duration::from_millis(next.unsigned_abs().saturating_mul(10));
                let wait = wait.min(Quota::SPAN);
                return Err(RateLimitError { wait, reason: RateLimitReason::Room });
            }
        }
        Ok(())
    }

    /// Forgets the next due window if it is idle, and otherwise notes when it is due again. Returns
    /// whether there was one.
    fn look_at_one(&mut self, now: Timestamp) -> bool {
        let present = floor(now);
        let first = self.due.keys().next().filter(|due| **due <= present);
        // Due later than any window can be: stamped by a clock that was wrong.
        let latest = present.saturating_add(LATEST);
        let due = first.or_else(|| self.due.keys().next_back().filter(|due| **due > latest));
        let Some(Entry::Occupied(mut due)) = due.copied().map(|due| self.due.entry(due)) else {
            return false;
        };
        let key = due.get_mut().pop();
        if due.get().is_empty() {
            due.remove();
        }
        let key = key.expect("lists of due keys are not empty");
        let place =
            self.find(key.hash, key.quota, &key.credential).expect("each due key has a window");
        let window = self.window_at(place);
        if window.idles(now) {
            self.remove(place);
        } else {
            let again = tick(window.idle_at());
            self.due.entry(again).or_default().push(key);
        }
        true
    }
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateWindows")
            .field("len", &self.len)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

fn hash(credential: &CredentialId) -> u64 {
    let (words, rest) = credential.as_str().as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    words.iter().chain([&last]).fold(0, |hash: u64, word| {
        // An odd factor with bits everywhere: 2^64 divided by the golden ratio.
        (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// The upper half of the hash: its lower bits depend on fewer bits of the id.
fn bits(hash: u64) -> usize {
    let [.., a, b, c, d] = hash.to_le_bytes();
    usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX)
}

/// Rounds down.
fn floor(instant: Timestamp) -> Tick {
    let hundredths = i64::from(instant.subsec_nanos() / 10_000_000);
    instant.unix_seconds().saturating_mul(100).saturating_add(hundredths)
}

/// Rounds up: a window looked at is idle, unless it was used meanwhile.
fn tick(instant: Timestamp) -> Tick {
    floor(instant.saturating_add(Duration::from_nanos(9_999_999)))
}
