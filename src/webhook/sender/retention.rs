//! How long events, deliveries and their log are kept.

use core::time::Duration;

use crate::Timestamp;

/// Says how long delivery logs and payloads are kept, from the event's `created_at`.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Returns the oldest `created_at` of an event that is still kept: rows of older events may be
/// removed, except while their delivery is pending.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::sender::{RETENTION, oldest_kept};
///
/// let created_at = Timestamp::UNIX_EPOCH;
/// // At exactly thirty days the event is gone.
/// assert!(created_at < oldest_kept(created_at.saturating_add(RETENTION)));
/// # let day = core::time::Duration::from_secs(86_400);
/// let now = created_at.saturating_add(29 * day);
/// assert!(created_at >= oldest_kept(now));
/// ```
#[must_use]
pub fn oldest_kept(now: Timestamp) -> Timestamp {
    now.saturating_sub(RETENTION).saturating_add(Duration::from_nanos(1))
}

/// Tells whether an event of this age is still kept: until thirty days after it, that instant
/// excluded.
pub(super) fn is_kept(event_created_at: Timestamp, now: Timestamp) -> bool {
    now < event_created_at.saturating_add(RETENTION)
}
