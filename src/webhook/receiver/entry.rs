//! What a store keeps of one event, and what an arriving copy may do.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::webhook::WebhookResponse;

/// How long a handler may hold an event, unless the host chooses another lease: one minute.
///
/// The service gives an attempt ten seconds and makes its third attempt a minute after the second.
pub const CLAIM_LEASE: Duration = Duration::from_secs(60);

/// How long a store keeps the entry of a processed event: 31 days.
///
/// A delivery can be repeated manually for 30 days; the last day covers attempts that are then
/// still running.
pub const INBOX_RETENTION: Duration = Duration::from_secs(31 * 86_400);

/// Records what became of one event. A store keeps one entry for each (account id, event id).
///
/// ```
/// use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, InboxEntry};
/// # let now = call_assistant::Timestamp::UNIX_EPOCH;
///
/// let Claim::Process(entry) = InboxEntry::claim(None, CLAIM_LEASE, now) else { panic!() };
/// assert_eq!(InboxEntry::claim(Some(&entry), CLAIM_LEASE, now), Claim::Busy);
///
/// let stored = serde_json::to_string(&entry.done(now))?;
/// let entry: InboxEntry = serde_json::from_str(&stored)?;
/// assert_eq!(InboxEntry::claim(Some(&entry), CLAIM_LEASE, now), Claim::Duplicate);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxEntry {
    /// A handler holds the event until the lease expires.
    #[non_exhaustive]
    Taken {
        /// When the claim was made. Entries stored by earlier versions do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// When the next copy may be processed instead.
        until: Timestamp,
    },
    /// The event was processed.
    #[non_exhaustive]
    Done {
        /// When processing ended.
        at: Timestamp,
    },
}

/// Tells what to do with an event that arrived.
///
/// Match all three variants: a host has to act on each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// Store this entry if the row is still the one that was read, then process the event.
    ///
    /// The entry identifies the claim: see [`Inbox::failed`](super::Inbox::failed).
    Process(InboxEntry),
    /// The event was processed before: acknowledge it.
    Duplicate,
    /// Another handler holds the event and may still fail: do not acknowledge it yet.
    Busy,
}

impl Claim {
    /// Returns the response that can be sent immediately; `None` if the event has to be processed
    /// first.
    #[must_use]
    pub fn response(&self) -> Option<WebhookResponse> {
        match self {
            Self::Process(_) => None,
            Self::Duplicate => Some(WebhookResponse::Duplicate),
            Self::Busy => Some(WebhookResponse::Unavailable),
        }
    }
}

impl InboxEntry {
    /// Decides whether an event that arrived is to be processed, given the stored entry. The handler
    /// then has `lease` to finish.
    ///
    /// A stored claim that ends more than twice its own length after `now` was written by a host
    /// whose clock was wrong, and counts as expired. See [the module's page](super#wrong-clocks).
    pub fn claim(stored: Option<&Self>, lease: Duration, now: Timestamp) -> Claim {
        match stored {
            Some(Self::Done { .. }) => Claim::Duplicate,
            Some(entry) if entry.is_held(lease, now) => Claim::Busy,
            _ => Claim::Process(Self::Taken { at: Some(now), until: now.saturating_add(lease) }),
        }
    }

    /// Returns the entry of an event that was processed. Store it before acknowledging the event,
    /// ideally in one transaction with the effects.
    #[must_use]
    pub fn done(self, now: Timestamp) -> Self {
        match self {
            Self::Taken { .. } => Self::Done { at: now },
            // The first time counts.
            Self::Done { .. } => self,
        }
    }

    /// Returns the entry of an event that could not be processed, so that the next copy will be.
    /// Store it only if the row still is this claim. A processed event stays processed.
    #[must_use]
    pub fn failed(self) -> Self {
        match self {
            Self::Taken { .. } => Self::Taken { at: None, until: Timestamp::MIN },
            Self::Done { .. } => self,
        }
    }

    /// Returns whether a store may delete the entry, because no copy of the event can arrive any
    /// more: see [`INBOX_RETENTION`]. An event that was never processed is never deletable; it was
    /// never acknowledged either.
    #[must_use]
    pub fn is_deletable(&self, now: Timestamp) -> bool {
        match self {
            Self::Done { at } => now.since(*at) > INBOX_RETENTION,
            Self::Taken { .. } => false,
        }
    }

    /// Whether a handler holds the event at `now`. `lease` is the length of claims that do not tell
    /// their own.
    pub(super) fn is_held(&self, lease: Duration, now: Timestamp) -> bool {
        let Self::Taken { at, until } = self else { return false };
        let length = at.map_or(lease, |at| until.since(at));
        // D-80. Twice a length that cannot be doubled is longer than all time.
        now < *until && until.since(now) <= length.saturating_mul(2)
    }
}
