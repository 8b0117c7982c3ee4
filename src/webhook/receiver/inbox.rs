//! What has arrived, and what became of it.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::JsonObject;
use crate::webhook::WebhookResponse;

/// How long acting on an event takes at most, for those who have no better number: a minute. The
/// service gives an attempt ten seconds, and makes its third one a minute after the second.
pub const CLAIM_LEASE: Duration = Duration::from_secs(60);

/// How long an event may come again: 31 days. For 30 of them its delivery can be repeated by hand,
/// and one is for what is then still under way.
pub const KEEP: Duration = Duration::from_secs(31 * 86_400);

/// What a store keeps of one event, under its account's id and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxEntry {
    /// Somebody acts on it, and has until this instant.
    #[non_exhaustive]
    Taken {
        /// When the next copy may be acted on instead.
        until: Timestamp,
    },
    /// It has been acted on, at this instant.
    #[non_exhaustive]
    Done {
        /// When.
        at: Timestamp,
    },
}

/// What to do with an event that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// Store this entry, over the one that was read and nothing newer, then act on the event. It
    /// tells apart who has taken it.
    Process(InboxEntry),
    /// It has been acted on: acknowledge it.
    Duplicate,
    /// Somebody is acting on it: do not acknowledge it yet, for they may fail.
    Busy,
}

impl Claim {
    /// What to answer at once (D-46); `None` where that depends on how acting on the event goes.
    #[must_use]
    pub fn receipt(&self) -> Option<WebhookResponse> {
        match self {
            Self::Process(_) => None,
            Self::Duplicate => Some(WebhookResponse::Duplicate),
            Self::Busy => Some(WebhookResponse::Unavailable),
        }
    }
}

impl InboxEntry {
    /// Decides about an event that has arrived, by what the store has of it. Whoever acts on it has
    /// `lease` to do so.
    pub fn arrive(stored: Option<&Self>, lease: Duration, now: Timestamp) -> Claim {
        match stored {
            Some(Self::Done { .. }) => Claim::Duplicate,
            Some(Self::Taken { until }) if now < *until => Claim::Busy,
            _ => Claim::Process(Self::Taken { until: now.saturating_add(lease) }),
        }
    }

    /// The entry of an event that has been acted on. Store it before acknowledging, best in one
    /// transaction with the effects.
    #[must_use]
    pub fn done(self, now: Timestamp) -> Self {
        match self {
            Self::Taken { .. } => Self::Done { at: now },
            // The first time counts.
            Self::Done { .. } => self,
        }
    }

    /// The entry of an event that could not be acted on: its next copy may be. Store it over the
    /// entry it comes from and nothing newer. One that was done stays done.
    #[must_use]
    pub fn failed(self) -> Self {
        match self {
            Self::Taken { .. } => Self::Taken { until: Timestamp::MIN },
            Self::Done { .. } => self,
        }
    }

    /// Whether a store may forget the entry, since no copy of the event can come any more: see
    /// [`KEEP`]. What was never done is not forgotten; it was never acknowledged either.
    #[must_use]
    pub fn is_forgettable(&self, now: Timestamp) -> bool {
        match self {
            Self::Done { at } => now.since(*at) > KEEP,
            Self::Taken { .. } => false,
        }
    }
}

/// An inbox in memory, for programs that have no store and may act twice on an event when they are
/// restarted.
///
/// It keeps at most so many entries, and forgets first what was done first. Where all of them are
/// being acted on, another event is answered `Busy` and comes again. A capacity for what arrives
/// within seven and a half hours, and an eighth more, recognises every automatic retry, as long as
/// that eighth holds what is taken in a day and never finished. Where it does not, what ran out a
/// day ago is forgotten.
///
/// ```
/// use call_assistant::webhook::receiver::{Claim, Inbox, CLAIM_LEASE};
/// use call_assistant::id::{AccountId, EventId};
/// # let now = call_assistant::Timestamp::UNIX_EPOCH;
///
/// # let act_on_it = || true;
///
/// let mut inbox = Inbox::new(10_000);
/// let (account, event) = (AccountId::parse("acct_1")?, EventId::parse("evt_1")?);
/// if let Claim::Process(taken) = inbox.arrive(&account, &event, CLAIM_LEASE, now) {
///     assert_eq!(inbox.arrive(&account, &event, CLAIM_LEASE, now), Claim::Busy);
///     match act_on_it() {
///         true => inbox.done(&account, &event, now),
///         false => inbox.failed(&account, &event, taken),
///     }
/// }
/// assert_eq!(inbox.arrive(&account, &event, CLAIM_LEASE, now), Claim::Duplicate);
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inbox {
    capacity: usize,
    entries: BTreeMap<Key, InboxEntry>,
    /// The keys of what is done, in that order: each is in `entries` as done, and here once.
    done: VecDeque<Key>,
    /// When it was last looked for what nobody has finished.
    swept: Option<Timestamp>,
}

/// Whoever is so long past their time with an event is not coming back, nor is the event.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How often to look for what is abandoned, at most: that goes over all entries.
const SWEEP: Duration = Duration::from_secs(60);

type Key = (AccountId, EventId);

impl Inbox {
    /// An inbox of so many entries. With none, every event is `Busy`.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, entries: BTreeMap::new(), done: VecDeque::new(), swept: None }
    }

    /// Decides about an event that has arrived, and takes note of it. See [`InboxEntry::arrive`].
    pub fn arrive(
        &mut self,
        account: &AccountId,
        event: &EventId,
        lease: Duration,
        now: Timestamp,
    ) -> Claim {
        let key = (account.clone(), event.clone());
        let stored = self.entries.get(&key);
        let known = stored.is_some();
        let arrival = InboxEntry::arrive(stored, lease, now);
        if let Claim::Process(entry) = arrival {
            if !known && !self.make_room(now) {
                return Claim::Busy;
            }
            self.entries.insert(key, entry);
        }
        arrival
    }

    /// The event has been acted on, be it by somebody whose time had run out.
    pub fn done(&mut self, account: &AccountId, event: &EventId, now: Timestamp) {
        let key = (account.clone(), event.clone());
        let room = self.entries.contains_key(&key) || self.make_room(now);
        if room && !matches!(self.entries.get(&key), Some(InboxEntry::Done { .. })) {
            self.entries.insert(key.clone(), InboxEntry::Done { at: now });
            self.done.push_back(key);
        }
    }

    /// The event could not be acted on by whoever got this entry to [process](Claim::Process): its
    /// next copy will be. If the time has run out and somebody else has taken it since, it is
    /// theirs, and nothing happens.
    pub fn failed(&mut self, account: &AccountId, event: &EventId, taken: InboxEntry) {
        let key = (account.clone(), event.clone());
        if matches!(taken, InboxEntry::Taken { .. }) && self.entries.get(&key) == Some(&taken) {
            self.entries.remove(&key);
        }
    }

    /// How many entries it keeps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it keeps none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what was abandoned, or else what was done first, or else what somebody took whose time
    /// has run out. False if the inbox is full of what is being acted on.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.entries.len() < self.capacity {
            return true;
        }
        let taken = self.entries.len().saturating_sub(self.done.len());
        let rested = self.swept.is_none_or(|at| now.since(at) >= SWEEP);
        if taken > self.capacity / 8 && rested {
            self.swept = Some(now);
            self.entries.retain(|_, entry| match entry {
                InboxEntry::Taken { until } => now < until.saturating_add(ABANDONED),
                InboxEntry::Done { .. } => true,
            });
            if self.entries.len() < self.capacity {
                return true;
            }
        }
        if let Some(oldest) = self.done.pop_front() {
            self.entries.remove(&oldest);
        } else {
            let under_way =
                |entry: &InboxEntry| !matches!(entry, InboxEntry::Taken { until } if *until <= now);
            self.entries.retain(|_, entry| under_way(entry));
        }
        self.entries.len() < self.capacity
    }
}

/// How recent a state of an object is: by the object's own time, and where that says nothing, by
/// the event that carried it.
///
/// Events arrive in any order, so an update is applied only if it is not older than what is there.
/// Keep the version beside the object; keep it when the object is gone, too, or a late update
/// brings it back.
///
/// ```
/// use call_assistant::webhook::receiver::Version;
/// use call_assistant::json::JsonObject;
/// # use call_assistant::Timestamp;
///
/// let moved = JsonObject::parse(r#"{"id":"appt_1","updated_at":"2026-07-24T10:05:00Z"}"#)?;
/// let booked = JsonObject::parse(r#"{"id":"appt_1","updated_at":"2026-07-24T10:00:00Z"}"#)?;
/// # let (earlier, later) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
///
/// let stored = Version::of(&moved, &["updated_at", "created_at"], earlier);
/// let late = Version::of(&booked, &["updated_at", "created_at"], later);
/// assert!(!late.replaces(Some(stored)));
/// assert!(stored.replaces(Some(late)));
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    object: Timestamp,
    event: Timestamp,
}

impl Version {
    /// The version of an object that says itself when it came to be so.
    #[must_use]
    pub fn new(object: Timestamp, event_created_at: Timestamp) -> Self {
        Self { object, event: event_created_at }
    }

    /// The version of an object whose fields the specification leaves open: the first of these
    /// fields that holds an RFC 3339 instant is its time. One that has none of them is as recent
    /// as its event.
    #[must_use]
    pub fn of(object: &JsonObject, fields: &[&str], event_created_at: Timestamp) -> Self {
        let instant = |field: &&str| Timestamp::parse(&object.get_str(field)?).ok();
        let own = fields.iter().find_map(instant);
        Self::new(own.unwrap_or(event_created_at), event_created_at)
    }

    /// Whether what has this version is to be applied over what has the stored one.
    ///
    /// Of two that are equally recent, as times in whole seconds often are, the one that arrives
    /// later is applied: arrival is no proof of order, but the best guess where there is none.
    #[must_use]
    pub fn replaces(self, stored: Option<Self>) -> bool {
        stored.is_none_or(|stored| stored <= self)
    }
}
