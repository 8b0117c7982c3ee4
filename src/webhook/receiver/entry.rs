//! What a store keeps of one event.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Says how long a handler may hold an event, unless the host chooses another lease: one minute.
///
/// The service gives an attempt ten seconds and makes its third attempt a minute after the second.
pub const CLAIM_LEASE: Duration = Duration::from_secs(60);

/// Says how long a store keeps the entry of a processed event: 31 days.
///
/// A delivery can be repeated manually for 30 days; the last day covers attempts that are then
/// still running.
pub const INBOX_RETENTION: Duration = Duration::from_secs(31 * 86_400);

/// Records what became of one event. A store keeps one entry for each
/// [`EventKey`](super::EventKey).
///
/// ```
/// use call_assistant::webhook::receiver::InboxEntry;
///
/// let stored = r#"{"done":{"at":"2026-01-01T00:00:00Z"}}"#;
/// let entry: InboxEntry = serde_json::from_str(stored)?;
/// assert_eq!(serde_json::to_string(&entry)?, stored);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// [`Receipt::claim`](super::Receipt::claim) reads entries, and [`Claimed`](super::Claimed) writes
/// them.
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

impl InboxEntry {
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
