//! The windows of a host that is one process.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{RateLimitError, RateLimitReason, RateWindow};
use crate::Timestamp;
use crate::id::CredentialId;
use crate::rest::Quota;

/// Keeps a window for each credential and quota that was active in the last 60 seconds.
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
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// For a host that is one process. Several processes keep each [`RateWindow`] in a shared store:
/// otherwise every one of them admits the whole quota. Put it behind a lock, or several behind
/// several locks, by credential.
///
/// # Memory
///
/// Each new credential makes the map forget a few windows that have been idle for 60 seconds, so
/// nobody has to clean up.
/// It never holds more windows than its maximum, at up to 300 bytes each besides their
/// [`heap_bytes`](RateWindow::heap_bytes).
///
/// When it is full and each window could still refuse, none is dropped: its credential would be
/// admitted twice its quota. A credential without a window is refused instead
/// ([`RateLimitReason::Room`]); the others are not affected. So is one that would take a look at
/// more than 64 windows to make room for, with a short wait: the next one looks further. Only
/// existing credentials come this far, so a maximum above the number of issued keys is never reached.
///
/// A check takes constant time, averaged over many, whether it is full or not. Ids that a caller could
/// choose so that their hashes are equal would be found slowly: let the service make them.
pub struct RateWindows {
    max: usize,
    len: usize,
    /// Where the list of each hash begins. There is a power of two of them.
    heads: Vec<Link>,
    slots: Vec<Slot>,
    /// The slots without a window.
    free: Vec<u32>,
    /// Each window once, by when to look whether it is idle: never later than it becomes idle.
    due: BTreeMap<Tick, Vec<u32>>,
}

/// The number of a slot plus one, so that a link takes four bytes: many of them fit into a cache,
/// which is what a check waits for.
type Link = Option<NonZeroU32>;

/// Whole cache lines: a check waits for two of them, and for nothing that they point to but the gaps.
#[repr(align(64))]
struct Slot {
    key: Key,
    next: Link,
    /// False for a slot that waits for its next window.
    live: bool,
    window: RateWindow,
}

/// A quota and a credential: their text, or the SHA-256 of a long one.
type Key = [u8; 48];

/// A hundredth of a second since 1970: small enough for short lists, and few of them in a minute.
type Tick = i64;

/// How many due windows a newcomer looks at: more than one, so that newcomers keep up with any number
/// of windows.
const LOOKS: usize = 4;

/// How many windows a newcomer looks at where they are all in use: everybody waits for it.
const MOST_LOOKS: usize = 64;

/// No window is due later than in two minutes, rounded up: its newest admission may be a minute ahead.
const LATEST: Tick = 2 * 60 * 100 + 1;

#[expect(clippy::expect_used, reason = "links and due numbers are those of slots with a window")]
impl RateWindows {
    /// Creates an empty map of at most `max` windows. A credential that uses both quotas has two.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self {
            max,
            len: 0,
            heads: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            due: BTreeMap::new(),
        }
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
        let key = key(credential, quota);
        let number = match self.find(&key) {
            Some(number) => number,
            None => {
                // Newcomers clean up: where there are none, nothing grows.
                self.make_room(now)?;
                let due = tick(now.saturating_add(Quota::SPAN));
                let window = RateWindow::default();
                self.insert(Slot { key, next: None, live: true, window }, due)
            }
        };
        Ok(&mut self.slot(number).window)
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

    /// Forgets all idle windows at once, for a host that falls silent: while new credentials come,
    /// they do that.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.rebuild(|window| !window.idles(now));
    }

    fn slot(&mut self, number: u32) -> &mut Slot {
        let slot = usize::try_from(number).ok().and_then(|number| self.slots.get_mut(number));
        slot.expect("there is a slot of each number")
    }

    /// Where the list of a key begins.
    fn head(&mut self, key: &Key) -> &mut Link {
        let place = hash(key) & self.heads.len().saturating_sub(1);
        self.heads.get_mut(place).expect("there is a list for each masked hash")
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let place = hash(key) & self.heads.len().saturating_sub(1);
        let mut link = *self.heads.get(place)?;
        loop {
            let number = number(link?);
            let slot = self.slots.get(usize::try_from(number).ok()?)?;
            if slot.key == *key {
                return Some(number);
            }
            link = slot.next;
        }
    }

    fn insert(&mut self, slot: Slot, due: Tick) -> u32 {
        if self.len >= self.heads.len() {
            self.relink(self.heads.len().saturating_mul(2).max(1));
        }
        let key = slot.key;
        let number = match self.free.pop() {
            Some(number) => {
                *self.slot(number) = slot;
                number
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len().saturating_sub(1)).expect("fewer than 2^32 windows")
            }
        };
        self.push(number, &key);
        self.due.entry(due).or_default().push(number);
        self.len = self.len.saturating_add(1);
        number
    }

    /// Puts a slot in front of the list of its hash.
    fn push(&mut self, number: u32, key: &Key) {
        let first = self.head(key).replace(link(number));
        self.slot(number).next = first;
    }

    fn relink(&mut self, heads: usize) {
        self.heads = vec![None; heads];
        for number in 0..u32::try_from(self.slots.len()).expect("fewer than 2^32 windows") {
            let Slot { key, live, .. } = *self.slot(number);
            if live {
                self.push(number, &key);
            }
        }
    }

    /// Takes a window out of the list of its hash.
    fn remove(&mut self, gone: u32) {
        let Slot { key, next, .. } = *self.slot(gone);
        let mut link = *self.head(&key);
        if link.map(number) == Some(gone) {
            *self.head(&key) = next;
        } else {
            while let Some(number) = link.map(number) {
                let slot = self.slot(number);
                link = slot.next;
                if link.map(self::number) == Some(gone) {
                    slot.next = next;
                    break;
                }
            }
        }
        let slot = self.slot(gone);
        (slot.live, slot.window) = (false, RateWindow::default());
        self.free.push(gone);
        self.len = self.len.saturating_sub(1);
        if self.len < self.slots.len() / 4 {
            self.rebuild(|_| true);
        }
    }

    /// Keeps these windows, and no room beyond what they need.
    fn rebuild(&mut self, mut keep: impl FnMut(&mut RateWindow) -> bool) {
        let old = core::mem::replace(self, Self::new(self.max));
        for mut slot in old.slots {
            if slot.live && keep(&mut slot.window) {
                let due = tick(slot.window.idle_at());
                self.insert(slot, due);
            }
        }
        self.slots.shrink_to_fit();
    }

    /// Looks at some due windows, and at more until one is idle and goes.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateLimitError> {
        for looks in 0..MOST_LOOKS {
            let is_enough = looks >= LOOKS && self.len < self.max;
            if is_enough || !self.look_at_one(now) {
                break;
            }
        }
        if self.len < self.max {
            return Ok(());
        }
        // One that is due and was not looked at may go at the next look.
        let next = self.due.keys().next().map_or(0, |due| due.saturating_sub(floor(now)));
        let wait = Duration::from_millis(next.max(1).unsigned_abs().saturating_mul(10));
        Err(RateLimitError { wait: wait.min(Quota::SPAN), reason: RateLimitReason::Room })
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
        let number = due.get_mut().pop();
        if due.get().is_empty() {
            due.remove();
        }
        let number = number.expect("lists of due windows are not empty");
        let window = &mut self.slot(number).window;
        if window.idles(now) {
            self.remove(number);
        } else {
            let again = tick(window.idle_at());
            self.due.entry(again).or_default().push(number);
        }
        true
    }
}

#[expect(clippy::expect_used, reason = "there are never 2^32 - 1 windows")]
fn link(number: u32) -> NonZeroU32 {
    number.checked_add(1).and_then(NonZeroU32::new).expect("fewer than 2^32 - 1 windows")
}

fn number(link: NonZeroU32) -> u32 {
    link.get().wrapping_sub(1)
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateWindows")
            .field("len", &self.len)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

fn key(credential: &CredentialId, quota: Quota) -> Key {
    let mut key = [0; 48];
    let [kind, len, text @ ..] = &mut key;
    *kind = quota.name().as_bytes().first().copied().unwrap_or_default();
    let id = credential.as_str().as_bytes();
    if let (Some(text), Ok(id_len)) = (text.get_mut(..id.len()), u8::try_from(id.len())) {
        *len = id_len;
        text.copy_from_slice(id);
    } else {
        *len = u8::MAX; // more than fits, so no text has this length
        text.iter_mut().zip(Sha256::digest(id)).for_each(|(to, from)| *to = from);
    }
    key
}

/// The upper half of a product: the lower bits depend on fewer bits of the key.
fn hash(key: &Key) -> usize {
    let hash = key.as_chunks::<8>().0.iter().fold(0, |hash: u64, word| {
        // An odd factor with bits everywhere: 2^64 divided by the golden ratio.
        (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    usize::try_from(hash >> 32).unwrap_or(usize::MAX)
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
