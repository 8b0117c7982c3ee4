//! The windows of a host that is one process.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::{RateLimitError, RateLimitReason, RateWindow};
use crate::Timestamp;
use crate::id::CredentialId;
use crate::rest::Quota;

/// A window for each credential and quota that was active in the last 60 seconds.
///
/// For a host that is one process; several processes keep each [`RateWindow`] where all of them
/// reach it, or every one of them admits the whole quota. Put it behind a lock, or several behind
/// several, by credential.
///
/// # Memory
///
/// It forgets what has been idle for 60 seconds, within another minute while requests come, so
/// nobody has to clean up. It never holds more windows than it was made for, at 128 to 512
/// bytes each beside their [`heap_bytes`](RateWindow::heap_bytes), and gives back what it no longer
/// needs.
///
/// When it is full and each window could still refuse, none is dropped, for whoever owned it would
/// be admitted twice its quota. A credential that has no window is refused instead
/// ([`RateLimitReason::Room`]); those that have one notice nothing. Only credentials that exist come this
/// far, so a size above the number of keys issued is never met.
///
/// ```
/// use call_assistant::id::CredentialId;
/// use call_assistant::rest::Quota;
/// use call_assistant::rest::server::RateWindows;
/// use call_assistant::Timestamp;
///
/// // Room for a million; sixteen random bytes, so that ids do not collide by design.
/// let mut windows = RateWindows::new(1_000_000, [0x33; 16]);
/// let credential = CredentialId::parse("cred_1")?;
/// let now = Timestamp::UNIX_EPOCH;
/// assert_eq!(windows.check(&credential, Quota::READS, now), Ok(()));
/// assert_eq!(windows.check(&credential, Quota::ACCOUNT, now), Ok(()));
/// assert_eq!(windows.len(), 2);
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
pub struct RateWindows {
    max: usize,
    seed: [u64; 2],
    /// By hash, with linear probing; a power of two of them, at most half of them taken.
    entries: Vec<Entry>,
    taken: usize,
    /// The entry to look at next, and when.
    hand: usize,
    look_at: Timestamp,
    /// While full: before this instant no window is worth looking for.
    room_at: Option<Timestamp>,
}

/// One line of a cache: 64 bytes, and no two lines for any.
#[derive(Default)]
#[repr(align(64))]
struct Entry {
    /// The credential and quota, by a hash that only this process can compute: of a million, two
    /// are the same in one process of thirty million. Their text would be one more place in memory
    /// to wait for. Zero if the entry is free.
    name: u64,
    window: RateWindow,
}

const FEWEST: usize = 16;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const LOOKS: usize = 1_024;

/// How long a full map waits at least before it looks at all its windows again.
const BETWEEN_SEARCHES: Duration = Duration::from_secs(1);

impl RateWindows {
    /// Room for at most so many windows, which are not allocated before they are needed. A
    /// credential that uses both quotas has two.
    ///
    /// The sixteen bytes are random, drawn once at start, and keep ids from colliding by design.
    #[must_use]
    pub fn new(max: usize, seed: [u8; 16]) -> Self {
        let seed = u128::from_le_bytes(seed);
        Self {
            max: max.max(1),
            seed: halves(seed).map(spread),
            entries: Vec::new(),
            taken: 0,
            hand: 0,
            look_at: Timestamp::MIN,
            room_at: None,
        }
    }

    /// Whether a request of this credential is admitted now; if so it is counted.
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

    /// The window of this credential and quota, a new one if there was none.
    ///
    /// # Errors
    /// There is no room for another credential.
    pub fn window(
        &mut self,
        credential: &CredentialId,
        quota: Quota,
        now: Timestamp,
    ) -> Result<&mut RateWindow, RateLimitError> {
        self.forget_some(now);
        let name = self.name(credential, quota);
        let place = match self.find(name) {
            Some(place) => place,
            None => self.insert(name, now)?,
        };
        // There is always an entry at a place that was just found.
        let full = RateLimitError { wait: BETWEEN_SEARCHES, reason: RateLimitReason::Room };
        self.entries.get_mut(place).map(|entry| &mut entry.window).ok_or(full)
    }

    /// How many windows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The bytes it holds beside its own, those of its windows included.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let table = self.entries.capacity().saturating_mul(size_of::<Entry>());
        let windows = self.entries.iter().map(|entry| entry.window.heap_bytes());
        windows.fold(table, usize::saturating_add)
    }

    /// Forgets every idle window at once, for a host that falls silent: while requests come, this
    /// happens by itself.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.hand = 0;
        while self.hand < self.entries.len() {
            self.forget_next(now);
        }
        self.shrink();
    }

    /// Looks at a part of the windows, so that all have been looked at within a minute: seldom and
    /// many at once, for reading on costs less than coming back.
    fn forget_some(&mut self, now: Timestamp) {
        if now < self.look_at && self.look_at.since(now) <= Quota::SPAN {
            return;
        }
        self.look_at = now.saturating_add(BETWEEN_LOOKS);
        for _ in 0..(self.entries.len() / LOOKS).saturating_add(FEWEST) {
            self.forget_next(now);
        }
        self.shrink();
    }

    /// Looks at the next entry: goes past it, or forgets it and stays, for another may be there now.
    fn forget_next(&mut self, now: Timestamp) {
        let idle = |entry: &mut Entry| entry.name != 0 && entry.window.idles(now);
        match self.entries.get_mut(self.hand).map(idle) {
            None => self.hand = 0,
            Some(true) => self.remove(self.hand),
            Some(false) => self.hand = self.hand.saturating_add(1),
        }
    }

    fn insert(&mut self, name: u64, now: Timestamp) -> Result<usize, RateLimitError> {
        // As many as a newcomer adds to the table, and more: the idle go as fast as others come.
        for _ in 0..8 {
            self.forget_next(now);
        }
        if self.taken >= self.max {
            self.make_room(now)?;
        }
        if self.taken >= self.entries.len() / 2 {
            self.rehash(self.entries.len().saturating_mul(2).max(FEWEST));
        }
        Ok(self.place(Entry { name, window: RateWindow::default() }))
    }

    /// Looks at all windows, and if none is idle not again before one can be, nor for a second.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateLimitError> {
        if self.room_at.is_none_or(|room_at| room_at <= now || room_at.since(now) > Quota::SPAN) {
            self.forget_idle(now);
            let ends = self.entries.iter().filter(|entry| entry.name != 0);
            let ends = ends.map(|entry| entry.window.idle_at());
            let search = now.saturating_add(BETWEEN_SEARCHES);
            self.room_at =
                (self.taken >= self.max).then(|| ends.min().unwrap_or(search).max(search));
        }
        match self.room_at {
            Some(room_at) => {
                Err(RateLimitError { wait: room_at.since(now), reason: RateLimitReason::Room })
            }
            None => Ok(()),
        }
    }

    fn find(&self, name: u64) -> Option<usize> {
        let mut at = self.home(name);
        loop {
            match self.entries.get(at)?.name {
                found if found == name => return Some(at),
                0 => return None,
                _ => at = self.after(at),
            }
        }
    }

    /// At least half of the entries are free, so this ends.
    fn place(&mut self, entry: Entry) -> usize {
        let mut at = self.home(entry.name);
        while let Some(there) = self.entries.get_mut(at) {
            if there.name == 0 {
                *there = entry;
                self.taken = self.taken.saturating_add(1);
                break;
            }
            at = self.after(at);
        }
        at
    }

    /// Moves up those behind that were pushed off their place, so that no search ends too soon.
    fn remove(&mut self, mut free: usize) {
        let mut at = self.after(free);
        while let Some(name) = self.entries.get(at).map(|entry| entry.name)
            && name != 0
        {
            if self.distance(self.home(name), at) >= self.distance(free, at) {
                self.entries.swap(free, at);
                free = at;
            }
            at = self.after(at);
        }
        if let Some(entry) = self.entries.get_mut(free) {
            *entry = Entry::default();
            self.taken = self.taken.saturating_sub(1);
        }
        self.room_at = None;
    }

    fn shrink(&mut self) {
        let enough = self.taken.saturating_mul(4).next_power_of_two().max(FEWEST);
        if enough < self.entries.len() {
            self.rehash(enough);
        }
    }

    fn rehash(&mut self, entries: usize) {
        let mut old = Vec::new();
        old.resize_with(entries, Entry::default);
        core::mem::swap(&mut old, &mut self.entries);
        (self.taken, self.hand) = (0, 0);
        for entry in old.into_iter().filter(|entry| entry.name != 0) {
            self.place(entry);
        }
    }

    fn home(&self, name: u64) -> usize {
        let [a, b, c, d, ..] = name.to_le_bytes();
        usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or_default() & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn mask(&self) -> usize {
        self.entries.len().saturating_sub(1)
    }

    fn name(&self, credential: &CredentialId, quota: Quota) -> u64 {
        let [start, factor] = self.seed;
        // `account` and `reads` differ in their length, so together the lengths tell both.
        let lengths = [credential.as_str().len(), quota.name().len()];
        let [text, kind] = lengths.map(|len| u64::try_from(len).unwrap_or_default());
        let mut hash = start ^ text ^ (kind << 32);
        let mut stir = |word| hash = mix(hash ^ u64::from_le_bytes(word), factor);
        let (words, rest) = credential.as_str().as_bytes().as_chunks();
        words.iter().for_each(|word| stir(*word));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        stir(last);
        mix(hash, start).max(1)
    }
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, taken, .. } = self;
        f.debug_struct("RateWindows").field("len", taken).field("max", max).finish_non_exhaustive()
    }
}

/// Makes a factor of any seed, one of few bits or of a pattern included, that reaches every bit.
fn spread(seed: u64) -> u64 {
    let mut bits = seed ^ 0x9e37_79b9_7f4a_7c15;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
    }
    bits ^ (bits >> 31)
}

/// Both halves of a product, folded: every bit of either factor reaches every bit.
fn mix(a: u64, b: u64) -> u64 {
    let [low, high] = halves(u128::from(a).wrapping_mul(u128::from(b | 1)));
    low ^ high
}

fn halves(number: u128) -> [u64; 2] {
    let low = u64::try_from(number & u128::from(u64::MAX)).unwrap_or_default();
    [low, u64::try_from(number >> 64).unwrap_or_default()]
}
