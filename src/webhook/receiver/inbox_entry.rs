//! The entry that a store keeps for one event.

use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::Timestamp;
use crate::json::stored_object;

/// The state of one event. A store keeps one entry for each [`EventKey`](super::EventKey).
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
/// [`Receipt::claim`](super::Receipt::claim) reads entries, and [`ActiveClaim`](super::ActiveClaim) writes
/// them.
///
/// Open: a later version may store more states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxEntry {
    /// An event that a handler holds until the lease expires.
    #[non_exhaustive]
    Taken {
        /// The time of the claim.
        at: Timestamp,
        /// The end of the lease. From then on, another handler may process the next copy of the
        /// event.
        until: Timestamp,
    },
    /// An event that was processed.
    #[non_exhaustive]
    Done {
        /// The time at which processing ended.
        at: Timestamp,
    },
}

impl InboxEntry {
    /// The time for which a store keeps the entry of a processed event: 31 days.
    ///
    /// A delivery can be repeated manually for 30 days. The 31st day is for attempts that are still
    /// running after 30 days.
    pub const RETENTION: Duration = Duration::from_secs(31 * 86_400);

    /// Returns whether a store may delete the entry. After [`RETENTION`](Self::RETENTION), no copy
    /// of a processed event can arrive. The entry of an unprocessed event is never deletable,
    /// because this event was not acknowledged.
    #[must_use]
    pub fn is_deletable(&self, now: Timestamp) -> bool {
        match self {
            Self::Done { at } => now.since(*at) > Self::RETENTION,
            Self::Taken { .. } => false,
        }
    }

    /// Returns whether a handler holds the event at `now`.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        let Self::Taken { at, until } = self else { return false };
        // D-80. Twice a length that cannot be doubled is longer than all time.
        now < *until && until.since(now) <= until.since(*at).saturating_mul(2)
    }
}

impl<'de> Deserialize<'de> for InboxEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Stored {
            Taken(Taken),
            Done(Done),
        }

        Ok(match Stored::deserialize(from)? {
            Stored::Taken(Taken { at, until }) => Self::Taken { at, until },
            Stored::Done(Done { at }) => Self::Done { at },
        })
    }
}

stored_object! {
    struct Taken {
        at: Timestamp,
        until: Timestamp,
    }
    check: Taken::check
}

stored_object! {
    struct Done {
        at: Timestamp,
    }
}

impl Taken {
    /// Refuses a lease that ends before it begins.
    fn check(&self) -> Result<(), &'static str> {
        if self.until < self.at { Err("until is before at") } else { Ok(()) }
    }
}
