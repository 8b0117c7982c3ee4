//! An inbox in memory.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use super::inbox_entry::InboxEntry;
use super::receipt::{ActiveClaim, ClaimOutcome, EventKey, Receipt};
use crate::Timestamp;
use crate::webhook::WebhookResponse;

/// An inbox in memory, for programs that have no store and can tolerate processing an event twice
/// after a restart.
///
/// ```
/// use std::fs::File;
/// use std::io::{self, Write};
///
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::WebhookResponse;
/// use call_assistant::webhook::event::EventData;
/// use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox, Receipt};
///
/// fn answer(
///     inbox: &mut Inbox,
///     receipt: Receipt,
///     body: &[u8],
///     now: fn() -> Timestamp,
/// ) -> WebhookResponse {
///     match inbox.claim(receipt, ActiveClaim::LEASE, now()) {
///         ClaimOutcome::Process(claimed) => match handle(claimed.receipt(), body) {
///             Ok(()) => inbox.done(claimed, now()), // 204
///             Err(_) => inbox.failed(claimed), // 503: the next copy is handled
///         },
///         ClaimOutcome::Answer(response) => response,
///     }
/// }
///
/// fn handle(receipt: &Receipt, body: &[u8]) -> io::Result<()> {
///     match receipt.event().map(|event| &event.data) {
///         Ok(EventData::CallEnded(call)) => println!("{}: {:?}", call.id, call.summary),
///         Ok(EventData::Unreadable { .. }) | Err(_) => { // genuine: keep it for a later version
///             let mut kept = File::options().create(true).append(true).open("unreadable.jsonl")?;
///             kept.write_all(&[body, b"\n"].concat())?;
///         }
///         Ok(_) => {} // another type, or one of a later version
///     }
///     Ok(())
/// }
/// ```
///
/// **An inbox keeps keys and no bodies.** An acknowledged event is never sent again. Therefore the
/// handler must keep the body of an event that it cannot read.
///
/// Choose a capacity of at least the number of events that arrive within seven and a half hours.
/// With this capacity, the inbox recognises every automatic retry.
///
/// If the inbox is full, a new event replaces an expired claim. If no claim has expired, the new
/// event replaces the entry of the event that was processed first. If handlers hold all entries,
/// the inbox answers a new event with 503, and the service sends the event again. The time of each
/// call grows with the logarithm of the capacity.
///
/// # An inbox over SQL
///
/// An SQL table works for several processes, and survives restarts. The table needs no capacity,
/// because its rows are deleted after 31 days. These are the statements for PostgreSQL:
///
/// ```sql
#[doc = include_str!("../../guide/sql/receiver/inbox.sql")]
/// ```
#[derive(Clone, Debug)]
pub struct Inbox {
    capacity: usize,
    /// The entries, each with the number of its insertion.
    entries: BTreeMap<EventKey, (InboxEntry, u64)>,
    /// The keys of the claims, by the end of their lease and then by the number of insertion.
    claims: BTreeMap<(Timestamp, u64), EventKey>,
    /// The keys of the processed events, in the order of processing.
    done: VecDeque<EventKey>,
    /// The number of the last insertion.
    last: u64,
}

impl Inbox {
    /// Creates an inbox for `capacity` entries. With a capacity of 0, the inbox answers every event
    /// with 503.
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

    /// Decides whether an event that arrived is to be handled, and records the claim. See
    /// [`Receipt::claim`].
    pub fn claim(&mut self, receipt: Receipt, lease: Duration, now: Timestamp) -> ClaimOutcome {
        let key = receipt.key().clone();
        let stored = self.stored(&key);
        let is_new = stored.is_none();
        let claim = receipt.claim(stored, lease, now);
        if let ClaimOutcome::Process(claimed) = &claim {
            if is_new && !self.make_room(now) {
                return ClaimOutcome::Answer(WebhookResponse::Unavailable);
            }
            self.put(key, claimed.entry());
        }
        claim
    }

    /// Acknowledges an event that was handled, even if its claim has expired.
    pub fn done(&mut self, claimed: ActiveClaim, now: Timestamp) -> WebhookResponse {
        let key = claimed.receipt().key().clone();
        let (entry, response) = claimed.done(now);
        let stored = self.stored(&key);
        let is_done = matches!(stored, Some(InboxEntry::Done { .. }));
        let is_new = stored.is_none();
        // A claim that expired and made room is not recorded if handlers hold all entries.
        if !is_done && (!is_new || self.make_room(now)) {
            self.put(key, entry);
        }
        response
    }

    /// Releases an event that could not be handled, and returns 503. The next copy of the event is
    /// then handled. If the claim has expired and another handler holds the event, the other
    /// handler's entry stays unchanged.
    pub fn failed(&mut self, claimed: ActiveClaim) -> WebhookResponse {
        let key = claimed.receipt().key().clone();
        if self.stored(&key) == Some(&claimed.entry()) {
            self.remove(&key);
        }
        claimed.failed().1
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

    /// Removes one entry if the inbox is full. If handlers hold all entries, returns false.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.entries.len() < self.capacity {
            return true;
        }
        // To a copy that arrives, an expired claim is the same as none. The first claim is the first
        // to expire; the last one is where a clock that was ahead has put its own.
        let ends = [self.claims.first_key_value(), self.claims.last_key_value()];
        let expired = ends
            .into_iter()
            .flatten()
            .map(|(_, key)| key)
            .find(|key| !self.stored(key).is_some_and(|entry| entry.is_held(now)));
        match expired.cloned().or_else(|| self.done.pop_front()) {
            Some(key) => {
                self.remove(&key);
                true
            }
            None => false,
        }
    }

    fn stored(&self, key: &EventKey) -> Option<&InboxEntry> {
        self.entries.get(key).map(|(entry, _)| entry)
    }

    fn put(&mut self, key: EventKey, entry: InboxEntry) {
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
    fn remove(&mut self, key: &EventKey) {
        let old = self.entries.remove(key);
        self.unlist(old);
    }

    fn unlist(&mut self, old: Option<(InboxEntry, u64)>) {
        if let Some((InboxEntry::Taken { until, .. }, number)) = old {
            self.claims.remove(&(until, number));
        }
    }
}
