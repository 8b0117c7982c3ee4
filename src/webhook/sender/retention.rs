//! How long events, deliveries and their log are kept.

use core::time::Duration;

use crate::Timestamp;

/// Time for which delivery logs and payloads are kept, from the event's `created_at`.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Tells whether an event of this age is still kept: until thirty days after it, that instant
/// excluded.
pub(super) fn is_kept(event_created_at: Timestamp, now: Timestamp) -> bool {
    now < event_created_at.saturating_add(RETENTION)
}
