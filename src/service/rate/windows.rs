//! The windows of a host that is one process.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::{RateCause, RateExceeded, RateWindow};
use crate::id::CredentialId;
use crate::quota::Quota;
use crate::time::Timestamp;

/// A window for each credential and quota that was active in the last 60 seconds.
///
/// For a host that is one process; several processes keep each [`RateWindow`] where all of them
/// reach it, or every one of them admits the whole quota. Put it behind a lock, or several behind
/// several, by credential.
///
/// # Memory
///
/// It forgets what has been idle for 60 seconds, within another minute while requests come, so
/// nobody has to clean up. It never holds more windows than it was made for, at about 120 bytes
/// each beside their [`heap_bytes`](RateWindow::heap_bytes), and gives back what it no longer
/// needs.
///
/// When it is full and each window could still refuse, none is dropped, for whoever owned it would
/// be admitted twice its quota. A credential that has no window is refused instead
/// ([`RateCause::Room`]); those that have one notice nothing. Only credentials that exist come this
/// far, so a size above the number of keys issued is never met.
///
/// ```
/// use call_assistant::id::CredentialId;
/// use call_assistant::quota::Quota;
/// use call_assistant::service::rate::RateWindows;
/// use call_assistant::time::Timestamp;
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
    /// Without gaps, so that looking at the next is reading on.
    entries: Vec<Entry>,
    /// Each entry's, to find its slot by when it moves.
    tags: Vec<u32>,
    /// By hash, with linear probing; a power of two of them, at most half of them taken.
    slots: Vec<Slot>,
    /// The entry to look at next, and when.
    hand: usize,
    look_at: Timestamp,
    /// While full: before this instant no window is worth looking for.
    room_at: Option<Timestamp>,
}

/// One line of a cache: 64 bytes, and no two lines for any.
#[repr(align(64))]
struct Entry {
    name: u64,
    window: RateWindow,
}

/// A credential and quota, by a hash that only this process can compute. Slots have its tag and
/// entries the rest, 96 bits together: of a million, two are the same in one process of 10^17.
/// Their text would be one more place in memory to wait for.
#[derive(Clone, Copy)]
struct Name {
    tag: u32,
    rest: u64,
}

/// Which entry, and as much of its hash as shows most others apart without looking at them.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    /// The entry's place and one; 0 if there is none.
    entry: u32,
}

const SLOTS: usize = 16;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const LOOKS: usize = 3_000;

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
            // A place and one must fit into 32 bits, and twice the places into a table.
            max: max.clamp(1, 1 << 30),
            seed: halves(seed),
            entries: Vec::new(),
            tags: Vec::new(),
            slots: vec![Slot::default(); SLOTS],
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
    ) -> Result<(), RateExceeded> {
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
    ) -> Result<&mut RateWindow, RateExceeded> {
        self.forget_some(now);
        let name = self.name(credential, quota);
        let place = match self.find(name) {
            Some(place) => place,
            None => self.insert(name, now)?,
        };
        // There is always an entry at a place that was just found.
        let full = RateExceeded { wait: BETWEEN_SEARCHES, cause: RateCause::Room };
        self.entries.get_mut(place).map(|entry| &mut entry.window).ok_or(full)
    }

    /// How many windows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets every idle window at once, for a host that falls silent: while requests come, this
    /// happens by itself.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.hand = 0;
        while self.hand < self.entries.len() {
            self.forget_next(now);
        }
    }

    /// Looks at a part of the windows, so that all have been looked at within a minute: seldom and
    /// many at once, for reading on costs less than coming back.
    fn forget_some(&mut self, now: Timestamp) {
        if now < self.look_at && self.look_at.since(now) <= Quota::SPAN {
            return;
        }
        self.look_at = now.saturating_add(BETWEEN_LOOKS);
        for _ in 0..=self.entries.len() / LOOKS {
            self.forget_next(now);
        }
    }

    /// Looks at the next window: goes past it, or forgets it and stays, for another is there now.
    fn forget_next(&mut self, now: Timestamp) {
        match self.entries.get_mut(self.hand).map(|entry| entry.window.idles(now)) {
            None => self.hand = 0,
            Some(true) => self.remove(self.hand),
            Some(false) => self.hand = self.hand.saturating_add(1),
        }
    }

    fn insert(&mut self, name: Name, now: Timestamp) -> Result<usize, RateExceeded> {
        self.forget_next(now);
        self.forget_next(now);
        if self.entries.len() >= self.max {
            self.make_room(now)?;
        }
        let place = self.entries.len();
        if place.saturating_mul(2) >= self.slots.len() {
            self.rehash(self.slots.len().saturating_mul(2));
        }
        self.entries.push(Entry { name: name.rest, window: RateWindow::default() });
        self.tags.push(name.tag);
        self.take_slot(name.tag, place);
        Ok(place)
    }

    /// Looks at all windows, and if none is idle not again before one can be, nor for a second.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateExceeded> {
        if self.room_at.is_none_or(|room_at| room_at <= now || room_at.since(now) > Quota::SPAN) {
            self.forget_idle(now);
            let ends = self.entries.iter().map(|entry| entry.window.idle_at());
            let search = now.saturating_add(BETWEEN_SEARCHES);
            self.room_at =
                (self.entries.len() >= self.max).then(|| ends.min().unwrap_or(search).max(search));
        }
        match self.room_at {
            Some(room_at) => Err(RateExceeded { wait: room_at.since(now), cause: RateCause::Room }),
            None => Ok(()),
        }
    }

    fn remove(&mut self, place: usize) {
        let Some(tag) = self.tags.get(place).copied() else { return };
        if let Some(at) = self.slot_of(tag, place) {
            self.free_slot(at);
        }
        let last = self.entries.len().saturating_sub(1);
        self.entries.swap_remove(place);
        self.tags.swap_remove(place);
        if let Some(moved) = self.tags.get(place).copied()
            && let Some(at) = self.slot_of(moved, last)
            && let Some(slot) = self.slots.get_mut(at)
        {
            *slot = Slot::new(moved, place);
        }
        self.room_at = None;
        if self.entries.len() < self.entries.capacity() / 4 {
            let keep = self.entries.len().saturating_mul(2);
            self.entries.shrink_to(keep);
            self.tags.shrink_to(keep);
            self.rehash(keep.saturating_mul(2).next_power_of_two().max(SLOTS));
        }
    }

    fn find(&self, name: Name) -> Option<usize> {
        let mut at = self.home(name.tag);
        loop {
            let slot = self.slots.get(at)?;
            let place = slot.place()?;
            if slot.tag == name.tag && self.entries.get(place)?.name == name.rest {
                return Some(place);
            }
            at = self.after(at);
        }
    }

    fn slot_of(&self, tag: u32, place: usize) -> Option<usize> {
        let mut at = self.home(tag);
        while self.slots.get(at)?.place()? != place {
            at = self.after(at);
        }
        Some(at)
    }

    /// There is always a free slot, so this ends.
    fn take_slot(&mut self, tag: u32, place: usize) {
        let mut at = self.home(tag);
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.place().is_none() {
                *slot = Slot::new(tag, place);
                return;
            }
            at = self.after(at);
        }
    }

    /// Moves up those behind that were pushed off their place, so that no search ends too soon.
    fn free_slot(&mut self, mut free: usize) {
        let mut at = self.after(free);
        while let Some(slot) = self.slots.get(at).copied().filter(|slot| slot.place().is_some()) {
            let from_home = self.distance(self.home(slot.tag), at);
            if from_home >= self.distance(free, at) {
                if let Some(to) = self.slots.get_mut(free) {
                    *to = slot;
                }
                free = at;
            }
            at = self.after(at);
        }
        if let Some(slot) = self.slots.get_mut(free) {
            *slot = Slot::default();
        }
    }

    fn rehash(&mut self, slots: usize) {
        self.slots = vec![Slot::default(); slots];
        for place in 0..self.entries.len() {
            if let Some(tag) = self.tags.get(place).copied() {
                self.take_slot(tag, place);
            }
        }
    }

    fn home(&self, tag: u32) -> usize {
        usize::try_from(tag).unwrap_or_default() & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn mask(&self) -> usize {
        self.slots.len().saturating_sub(1)
    }

    fn name(&self, credential: &CredentialId, quota: Quota) -> Name {
        let [one, other] = self.seed;
        // `account` and `reads` differ in their length, so together the lengths tell both.
        let lengths = [credential.as_str().len(), quota.name().len()];
        let [text, name] = lengths.map(|len| u64::try_from(len).unwrap_or_default());
        let mut hash = [one ^ text ^ name << 32, other ^ name ^ text << 32];
        let mut stir = |word: [u8; 8]| {
            let word = u64::from_le_bytes(word);
            hash = [mix(hash[0] ^ word, one), mix(hash[1] ^ word, other)];
        };
        let (words, rest) = credential.as_str().as_bytes().as_chunks();
        words.iter().for_each(|word| stir(*word));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        stir(last);
        let [first, second] = hash;
        let tag = u32::try_from(mix(first, other) >> 32).unwrap_or_default();
        Name { tag, rest: mix(second, one) }
    }
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, entries, .. } = self;
        f.debug_struct("RateWindows")
            .field("len", &entries.len())
            .field("max", max)
            .finish_non_exhaustive()
    }
}

impl Slot {
    fn new(tag: u32, place: usize) -> Self {
        Self { tag, entry: u32::try_from(place).unwrap_or_default().saturating_add(1) }
    }

    fn place(self) -> Option<usize> {
        usize::try_from(self.entry.checked_sub(1)?).ok()
    }
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
