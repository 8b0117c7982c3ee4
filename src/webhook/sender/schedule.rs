//! The retry schedule and the counts of failures as constants, and when a stored instant counts as reached.

use core::time::Duration;

use crate::Timestamp;

/// Waits between attempts. Each wait counts from the end of the attempt that failed.
///
/// ```
/// use call_assistant::webhook::sender::{MAX_ATTEMPTS, RETRY_WAITS};
///
/// assert_eq!(RETRY_WAITS.map(|wait| wait.as_secs()), [10, 60, 600, 3_600, 21_600]);
/// assert_eq!(usize::from(MAX_ATTEMPTS), RETRY_WAITS.len() + 1);
/// ```
pub const RETRY_WAITS: [Duration; 5] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    LONGEST_WAIT,
];

/// Sets the number of attempts of a delivery: the first, and one after each of the [`RETRY_WAITS`].
pub const MAX_ATTEMPTS: u8 = 6;

/// Limits the time of an attempt, from its beginning to the head of the response.
///
/// The status decides. A body that breaks off later, or never ends, changes nothing.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits the time for which an attempt belongs to the sender that began it.
///
/// The lease is longer than [`ATTEMPT_TIMEOUT`], so that the sender has time to store the outcome.
/// When the lease has expired, the sender is presumed dead, and any sender may make the same
/// attempt again.
pub const ATTEMPT_LEASE: Duration = Duration::from_secs(30);

/// Bounds the time from the first attempt of a delivery to the end of its last one, if no attempt
/// begins late: all waits and six timeouts, 7 h 12 min 10 s.
pub const LONGEST_DELIVERY: Duration = Duration::from_secs(7 * 60 * 60 + 12 * 60 + 10);

/// Sets the number of deliveries in a row that end in failure and disable an endpoint.
pub const FAILURES_TO_DISABLE: u8 = 20;

/// Counts of failures at which to warn the owner of an endpoint.
pub const FAILURES_TO_WARN: [u8; 3] = [5, 10, 15];

/// Sets the number of deliveries in a row whose first attempts fail, over at least
/// [`SUSPECT_SPAN`], that make an endpoint suspect.
pub const FIRST_FAILURES_TO_SUSPECT: u8 = 5;

/// Sets the shortest time from the first to the last of [`FIRST_FAILURES_TO_SUSPECT`].
pub const SUSPECT_SPAN: Duration = Duration::from_secs(60);

/// Days after which to remind the owner of a disabled endpoint.
pub const REMINDER_DAYS: [u8; 2] = [1, 3];

pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60 * 60);

/// Returns the wait after this number of failed attempts; `None` if the last one has failed.
pub(super) fn wait_after(failed: u8) -> Option<Duration> {
    RETRY_WAITS.get(usize::from(failed).checked_sub(1)?).copied()
}

/// Returns how far in the future a stored instant may be, if whoever stored it waits at most
/// `longest`. A later instant comes from a clock that was wrong.
pub(super) const fn farthest(longest: Duration) -> Duration {
    longest.saturating_mul(2)
}

/// Tells whether a stored instant is reached, or is too far in the future to be right.
// D-80.
pub(super) fn is_reached(at: Timestamp, longest: Duration, now: Timestamp) -> bool {
    at <= now || at.since(now) > farthest(longest)
}

/// Returns a random share of `wait`, at most `percent` of it, to be added to it.
///
/// The published schedule has no jitter, so add it only where you have agreed on it, with
/// [`Delivery::postpone`](super::Delivery::postpone). The caller supplies the random number.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::webhook::sender::jitter;
///
/// let minute = Duration::from_secs(60);
/// assert_eq!(jitter(minute, 10, 0), Duration::ZERO);
/// assert_eq!(jitter(minute, 10, u32::MAX / 2).as_secs(), 2);
/// assert!(jitter(minute, 10, u32::MAX) < Duration::from_secs(6));
/// ```
#[must_use]
pub fn jitter(wait: Duration, percent: u8, random: u32) -> Duration {
    let most = wait.as_nanos().saturating_mul(u128::from(percent)) / 100;
    let share = most.saturating_mul(u128::from(random)) >> 32;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

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
