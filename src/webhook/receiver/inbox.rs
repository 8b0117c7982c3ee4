//! An inbox in memory.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use super::entry::{Claim, InboxEntry};
use crate::Timestamp;
use crate::id::{AccountId, EventId};

/// Keeps an inbox in memory, for programs without a store that may process an event twice when
/// they are restarted.
///
/// ```
/// use call_assistant::id::{AccountId, EventId};
/// use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, Inbox};
/// # let now = call_assistant::Timestamp::UNIX_EPOCH;
/// # let process = || true;
///
/// let mut inbox = Inbox::new(10_000);
/// let (account, event) = (AccountId::parse("acct_1")?, EventId::parse("evt_1")?);
/// if let Claim::Process(claim) = inbox.claim(&account, &event, CLAIM_LEASE, now) {
///     assert_eq!(inbox.claim(&account, &event, CLAIM_LEASE, now), Claim::Busy);
///     match process() {
///         true => inbox.done(&account, &event, now),
///         false => inbox.failed(&account, &event, claim),
///     }
/// }
/// assert_eq!(inbox.claim(&account, &event, CLAIM_LEASE, now), Claim::Duplicate);
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
///
/// Choose a capacity of at least the number of events that arrive within seven and a half hours:
/// then every automatic retry is recognised.
///
/// A full inbox makes room for a new event: it removes an expired claim or else the event that was
/// processed first. If handlers hold all entries, a new event is answered `Busy`, and the service
/// sends it again. Each call takes time that grows with the logarithm of the capacity.
#[derive(Clone, Debug)]
pub struct Inbox {
    capacity: usize,
    /// Each entry with the number it was put in under.
    entries: BTreeMap<Key, (InboxEntry, u64)>,
    /// The keys of the claims by the end of their lease, then by number: each is in `entries` as
    /// taken.
    claims: BTreeMap<(Timestamp, u64), Key>,
    /// The keys of the processed events, first come first: each is in `entries` as done.
    done: VecDeque<Key>,
    /// The number of the entry that was put in last.
    last: u64,
}

type Key = (AccountId, EventId);

impl Inbox {
    /// Creates an inbox for `capacity` entries. With a capacity of 0, every event is `Busy`.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: BTreeMap::new(),
            claims: BTreeMap::new(),
            done: VecDeque::new(),
            last: 0,
        }
    }

    /// Decides whether an event that arrived is to be processed, and records the claim. See
    /// [`InboxEntry::claim`].
    pub fn claim(
        &mut self,
        account: &AccountId,
        event: &EventId,
        lease: Duration,
        now: Timestamp,
    ) -> Claim {
        let key = (account.clone(), event.clone());
        let stored = self.stored(&key);
        let is_new = stored.is_none();
        let claim = InboxEntry::claim(stored, lease, now);
        if let Claim::Process(entry) = claim {
            if is_new && !self.make_room(now) {
                return Claim::Busy;
            }
            self.put(key, entry);
        }
        claim
    }

    /// Records that the event was processed, even if the claim had expired.
    pub fn done(&mut self, account: &AccountId, event: &EventId, now: Timestamp) {
        let key = (account.clone(), event.clone());
        let stored = self.stored(&key);
        let is_done = matches!(stored, Some(InboxEntry::Done { .. }));
        let is_new = stored.is_none();
        // An event without a claim is not recorded if handlers hold all entries.
        if !is_done && (!is_new || self.make_room(now)) {
            self.put(key, InboxEntry::Done { at: now });
        }
    }

    /// Records that the handler that got `claim` from [`Claim::Process`] could not process the
    /// event, so that the next copy will be. Does nothing if the claim had expired and another
    /// handler holds the event.
    pub fn failed(&mut self, account: &AccountId, event: &EventId, claim: InboxEntry) {
        let key = (account.clone(), event.clone());
        if matches!(claim, InboxEntry::Taken { .. }) && self.stored(&key) == Some(&claim) {
            self.remove(&key);
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes one entry if the inbox is full. Returns false if handlers hold all of them.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.entries.len() < self.capacity {
            return true;
        }
        // To a copy that arrives, an expired claim is the same as none. The first claim is the first
        // to expire; the last one is where a clock that was ahead has put its own.
        let ends = [self.claims.first_key_value(), self.claims.last_key_value()];
        let expired =
            ends.into_iter().flatten().map(|(_, key)| key).find(|key| {
                !self.stored(key).is_some_and(|entry| entry.is_held(Duration::ZERO, now))
            });
        match expired.cloned().or_else(|| self.done.pop_front()) {
            Some(key) => {
                self.remove(&key);
                true
            }
            None => false,
        }
    }

    fn stored(&self, key: &Key) -> Option<&InboxEntry> {
        self.entries.get(key).map(|(entry, _)| entry)
    }

    fn put(&mut self, key: Key, entry: InboxEntry) {
        self.last = self.last.wrapping_add(1);
        match entry {
            InboxEntry::Taken { until, .. } => {
                self.claims.insert((until, self.last), key.clone());
            }
            InboxEntry::Done { .. } => self.done.push_back(key.clone()),
        }
        let old = self.entries.insert(key, (entry, self.last));
        self.unlist(old);
    }

    /// Removes an entry that is not in `done`.
    fn remove(&mut self, key: &Key) {
        let old = self.entries.remove(key);
        self.unlist(old);
    }

    fn unlist(&mut self, old: Option<(InboxEntry, u64)>) {
        if let Some((InboxEntry::Taken { until, .. }, number)) = old {
            self.claims.remove(&(until, number));
        }
    }
}
