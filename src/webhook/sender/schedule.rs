//! When a failed attempt is made again: the waits, as one constant.

use core::time::Duration;

/// The waits between attempts: each counts from the end of the attempt that failed.
///
/// From the end, because an attempt may itself take ten seconds: counted from its start, the first
/// wait would be over by the time the attempt is.
pub const WAITS: [Duration; 5] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(6 * 60 * 60),
];

/// How many attempts a delivery gets: the first, and one after each of the [`WAITS`].
pub const ATTEMPTS: u8 = 6;

/// How long an attempt may take, from its beginning to the head of the response.
///
/// The status decides: a body that breaks off later, or never ends, changes nothing.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a begun attempt belongs to the sender that began it.
///
/// It is longer than [`ATTEMPT_TIMEOUT`] by the time a sender has to store the outcome. When it is
/// over, the sender is taken for dead, and any other may make the same attempt again.
pub const LEASE: Duration = Duration::from_secs(30);

/// The longest a delivery takes from its first attempt to the end of its last, where no attempt
/// begins late: all waits and six timeouts, 7 h 12 min 10 s.
pub const LONGEST: Duration = Duration::from_secs(7 * 60 * 60 + 12 * 60 + 10);

/// How long to wait after so many failed attempts; `None` if the next failure is the last.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::webhook::sender::wait_after;
///
/// assert_eq!(wait_after(1), Some(Duration::from_secs(10)));
/// assert_eq!(wait_after(5), Some(Duration::from_secs(6 * 60 * 60)));
/// assert_eq!(wait_after(6), None);
/// ```
#[must_use]
pub fn wait_after(failed: u8) -> Option<Duration> {
    WAITS.get(usize::from(failed).checked_sub(1)?).copied()
}

/// A share of `wait` to add to it, up to `percent` of it, drawn by the caller's random number.
///
/// The specification has no jitter, so there is none until a host asks for it, and what it adds
/// only ever makes a wait longer. Give the result to
/// [`Delivery::postpone`](super::Delivery::postpone).
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
