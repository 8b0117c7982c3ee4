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
/// A check costs O(log n), averaged over many, whether it is full or not.
pub struct RateWindows {
    max: usize,
    windows: BTreeMap<Key, RateWindow>,
    /// Each window once, by when to look whether it is idle: never later than it becomes idle.
    due: BTreeMap<Tick, Vec<Key>>,
}

/// A hundredth of a second since 1970: small enough for short lists, and few of them in a minute.
type Tick = i64;

/// Compares by a hash first, because comparing numbers is faster than comparing texts elsewhere in
/// memory. Equal hashes are told apart by the texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    hash: u64,
    quota: &'static str,
    credential: CredentialId,
}

/// How many due windows a check looks at. Each one is due again after a minute at the earliest, so
/// that checks keep up with any number of windows.
const LOOKS: usize = 4;

impl RateWindows {
    /// Creates an empty map of at most `max` windows. A credential that uses both quotas has two.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { max: if max == 0 { 1 } else { max }, windows: BTreeMap::new(), due: BTreeMap::new() }
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
        let key = Key::new(credential, quota);
        if self.windows.len() >= self.max && !self.windows.contains_key(&key) {
            self.make_room(now)?;
        }
        match self.windows.entry(key) {
            Entry::Occupied(window) => Ok(window.into_mut()),
            Entry::Vacant(place) => {
                let due = tick(now.saturating_add(Quota::SPAN));
                self.due.entry(due).or_default().push(place.key().clone());
                Ok(place.insert(RateWindow::default()))
            }
        }
    }

    /// Returns the number of windows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns whether there are no windows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Forgets all idle windows at once, for a host that falls silent: while requests come, checks do
    /// that.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.due.clear();
        let due = &mut self.due;
        self.windows.retain(|key, window| {
            let idle = window.idles(now);
            if !idle {
                due.entry(tick(window.idle_at())).or_default().push(key.clone());
            }
            !idle
        });
    }

    /// Looks at due windows until one is idle and goes.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateLimitError> {
        while self.windows.len() >= self.max {
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
        let first = self.due.keys().next().filter(|due| **due <= floor(now));
        // Due later than any window can be: stamped by a clock that was wrong.
        let latest = tick(now.saturating_add(Quota::SPAN.saturating_mul(2)));
        let due = first.or_else(|| self.due.keys().next_back().filter(|due| **due > latest));
        let Some(Entry::Occupied(mut due)) = due.copied().map(|due| self.due.entry(due)) else {
            return false;
        };
        let key = due.get_mut().pop();
        if due.get().is_empty() {
            due.remove();
        }
        if let Some(key) = key
            && let Entry::Occupied(mut window) = self.windows.entry(key)
        {
            if window.get_mut().idles(now) {
                window.remove();
            } else {
                let again = tick(window.get().idle_at());
                self.due.entry(again).or_default().push(window.key().clone());
            }
        }
        true
    }
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateWindows")
            .field("len", &self.windows.len())
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

impl Key {
    fn new(credential: &CredentialId, quota: Quota) -> Self {
        let (words, rest) = credential.as_str().as_bytes().as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let hash = words.iter().chain([&last]).fold(0_u64, |hash, word| {
            // An odd factor with bits everywhere: 2^64 divided by the golden ratio.
            (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Self { hash, quota: quota.name(), credential: credential.clone() }
    }
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
