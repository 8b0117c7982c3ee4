//! The retry schedule, the counts of failures, and the rule for stored instants that count as reached.

use core::time::Duration;

use crate::Timestamp;

/// The waits between the attempts of a delivery. Each wait begins at the end of the failed attempt
/// before it.
///
/// ```
/// use call_assistant::webhook::sender::{MAX_ATTEMPTS, RETRY_WAITS};
///
/// let seconds: Vec<u64> = RETRY_WAITS.iter().map(|wait| wait.as_secs()).collect();
/// assert_eq!(seconds, [10, 60, 600, 3_600, 21_600]);
/// assert_eq!(usize::from(MAX_ATTEMPTS), RETRY_WAITS.len() + 1);
/// ```
pub const RETRY_WAITS: &[Duration] = &[
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(6 * 60 * 60),
];

/// The most attempts of a delivery: six. Each attempt except the first follows one of the
/// [`RETRY_WAITS`].
#[expect(clippy::as_conversions, reason = "there are few waits")]
pub const MAX_ATTEMPTS: u8 = RETRY_WAITS.len() as u8 + 1;

/// The waits between the attempts of a delivery. The default is the specified [`RETRY_WAITS`].
///
/// Only a sandbox or a test needs this type, to retry sooner.
///
/// ```
/// use core::time::Duration;
/// use std::collections::BTreeMap;
/// use call_assistant::webhook::sender::{EndedAttempt, Outcome, RetrySchedule};
/// # use call_assistant::Timestamp;
/// # use call_assistant::id::{AccountId, EventId};
/// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
/// # use call_assistant::webhook::sender::{Delivery, EndpointHealth};
/// # let now = Timestamp::from_unix(60).unwrap();
/// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
/// # let event = NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), now);
/// # let event = event.ping("It works.")?;
/// # let endpoint = EndpointHealth::new(1, now);
/// # let mut delivery = Delivery::accept(&event, &endpoint, now);
/// # let attempt = delivery.begin(&endpoint, now)?;
/// # let at = attempt.deadline();
/// # let (deliveries, endpoints) = (BTreeMap::from([(7, delivery)]), BTreeMap::from([(1, endpoint)]));
///
/// let fast = RetrySchedule::default().scaled(0.001); // an hour in 3.6 seconds
/// let outcome = Outcome::TimedOut;
/// let ended = [EndedAttempt { delivery: 7, endpoint: 1, attempt, outcome, at, response: None }];
/// let settled = fast.settle(&ended, &deliveries, &endpoints);
/// assert_eq!(settled.again, [(7, 1, at.saturating_add(Duration::from_millis(10)))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySchedule {
    waits: [Duration; RETRY_WAITS.len()],
}

/// The schedule of the specification.
pub(super) const SPECIFIED: RetrySchedule = match RETRY_WAITS.first_chunk() {
    Some(waits) => RetrySchedule { waits: *waits },
    None => panic!("they are as many as they are"),
};

impl Default for RetrySchedule {
    fn default() -> Self {
        SPECIFIED
    }
}

impl RetrySchedule {
    /// Multiplies each wait by a factor. Each product is rounded down to a whole microsecond, which a
    /// database stores exactly.
    ///
    /// A scaled wait is at most twice the longest of the [`RETRY_WAITS`], because a later due time
    /// [counts as reached](super::Delivery::due). If the factor is negative or not a number, each
    /// scaled wait is twice this longest wait.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let waits = self.waits.map(|wait| {
            let scaled = Duration::try_from_secs_f64(wait.as_secs_f64() * factor);
            let scaled = scaled.unwrap_or(FARTHEST_DUE).min(FARTHEST_DUE);
            let below_micro = Duration::from_nanos(u64::from(scaled.subsec_nanos() % 1_000));
            scaled.saturating_sub(below_micro)
        });
        Self { waits }
    }

    /// Returns the wait after this number of failed attempts, or `None` if the last attempt has failed.
    pub(super) fn wait_after(&self, failed: u8) -> Option<Duration> {
        self.waits.get(usize::from(failed).checked_sub(1)?).copied()
    }
}

/// The longest attempt: ten seconds, from its beginning to the head of the response.
///
/// The status of the response decides the outcome. An incomplete or endless body does not change the
/// outcome.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which an attempt belongs to the sender that began it: 30 seconds.
///
/// This time, the *lease*, is longer than [`ATTEMPT_TIMEOUT`], because the sender needs time to store
/// the outcome. When the lease has expired, the sender is presumed dead, and any sender may make the
/// same attempt again.
pub const ATTEMPT_LEASE: Duration = Duration::from_secs(30);

/// The longest time from the first attempt of a delivery to the end of its last attempt, if no attempt
/// begins late: 7 h 12 min 10 s. This time is the sum of the waits and timeouts of all attempts.
pub const LONGEST_DELIVERY: Duration = {
    let (mut longest, mut waits) = (ATTEMPT_TIMEOUT, RETRY_WAITS);
    while let [wait, rest @ ..] = waits {
        longest = longest.saturating_add(*wait).saturating_add(ATTEMPT_TIMEOUT);
        waits = rest;
    }
    longest
};

/// The number of failed deliveries in a row that disable an endpoint: 20.
pub const FAILURES_TO_DISABLE: u8 = 20;

/// The counts of failures at which to warn the owner of an endpoint: 5, 10 and 15.
pub const FAILURES_TO_WARN: &[u8] = &[5, 10, 15];

/// The number of deliveries in a row whose first attempts fail that make an endpoint suspect: five. The
/// failures must extend over at least [`SUSPECT_SPAN`].
pub const FIRST_FAILURES_TO_SUSPECT: u8 = 5;

/// The shortest time between the first and the last of the failures in
/// [`FIRST_FAILURES_TO_SUSPECT`]: one minute.
pub const SUSPECT_SPAN: Duration = Duration::from_secs(60);

/// The days after which to remind the owner of a disabled endpoint: one and three.
pub const REMINDER_DAYS: &[u8] = &[1, 3];

/// The number of reminders: one for each of [`REMINDER_DAYS`].
#[expect(clippy::as_conversions, reason = "there are few days")]
pub(super) const MAX_REMINDERS: u8 = REMINDER_DAYS.len() as u8;

/// The longest of the [`RETRY_WAITS`], which is the last wait.
pub(super) const LONGEST_WAIT: Duration = match RETRY_WAITS {
    [.., last] => *last,
    [] => Duration::ZERO,
};

/// The longest time from now to a correct due time.
pub(super) const FARTHEST_DUE: Duration = farthest(LONGEST_WAIT);

/// Returns the longest time from now to a due time, if no wait exceeds `longest`. A later due time
/// comes from a wrong clock.
pub(super) const fn farthest(longest: Duration) -> Duration {
    longest.saturating_mul(2)
}

/// Returns whether a stored instant is reached, or is too far in the future to be correct.
// D-80.
pub(super) fn is_reached(at: Timestamp, longest: Duration, now: Timestamp) -> bool {
    at <= now || at.since(now) > farthest(longest)
}

/// The time for which delivery logs and payloads are kept, from the event's `created_at`: 30 days.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Returns the oldest `created_at` of an event that is still kept. A row of an older event may be
/// removed if the row's delivery is not pending.
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

/// Returns whether an event is still kept, which means for less than thirty days from
/// `event_created_at`.
pub(super) fn is_kept(event_created_at: Timestamp, now: Timestamp) -> bool {
    now < event_created_at.saturating_add(RETENTION)
}
