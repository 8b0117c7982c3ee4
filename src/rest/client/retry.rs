use core::time::Duration;

use super::{Action, ClientError};
use crate::Timestamp;

/// The policy for repeating a failed request.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::rest::client::{ClientError, Retry};
/// # let now = call_assistant::Timestamp::UNIX_EPOCH;
/// # let random = [0; 8];
///
/// let error = ClientError::no_response("timed out"); // or the error of `Client::read`
/// let half_a_second = Duration::from_millis(500);
/// assert_eq!(Retry::new().wait(&error, 1, random, now), Some(half_a_second));
/// assert_eq!(Retry::new().wait(&error, 5, random, now), None); // give up
///
/// // For a nightly program that nobody watches: an hour and more.
/// let patient = Retry::new()
///     .with_tries(20)
///     .with_backoff(Duration::from_secs(1), Duration::from_secs(300));
/// assert_eq!(patient.wait(&error, 19, random, now), Some(Duration::from_secs(300)));
/// ```
///
/// - **Which errors**: no response, a truncated response, 408, 425, 429, and 5xx except 501 and 505 (see
///   [`ClientError::action`]). After any other error, the same request would be refused again. Every
///   request of this API only reads, so repeating a request does no harm.
/// - **How long**: the time of `Retry-After` plus a backoff. `Retry-After` and the backoff each have a
///   maximum. The backoff doubles with every try. Random jitter extends the backoff to at most twice its
///   length. Therefore no client retries before the time in `Retry-After`, and the clients do not all retry
///   at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    tries: u32,
    first_backoff: Duration,
    longest_backoff: Duration,
}

impl Retry {
    /// The longest `Retry-After` that is honoured: an hour. A longer value is capped, because a proxy's wrong
    /// header must not stop a client for a year.
    pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

    /// Creates a policy of five tries. Without jitter, the backoffs are 0.5, 1, 2 and 4 seconds.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tries: 5,
            first_backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(30),
        }
    }

    /// Sets the number of tries, including the first try. With `u32::MAX`, the policy never gives up on a
    /// transient error. Unless changed by [`with_backoff`](Self::with_backoff), the longest backoff is 30
    /// seconds. With this backoff, the 19 waits between 20 tries take seven minutes in total, without jitter.
    #[must_use]
    pub const fn with_tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Sets the backoff after the first try and the longest backoff. The backoff doubles with every
    /// try.
    #[must_use]
    pub const fn with_backoff(self, first: Duration, longest: Duration) -> Self {
        Self { first_backoff: first, longest_backoff: longest, ..self }
    }

    /// Returns how long to wait before the same request is made again. Returns `None` if the answer
    /// would be the same, or if the tries are used up. On `None`, give up.
    ///
    /// `tried` is the number of tries so far, from 1. `random` is eight random bytes, which need not be
    /// cryptographically random. `now` is used only if `Retry-After` is a date.
    #[must_use]
    pub fn wait(
        &self,
        error: &ClientError,
        tried: u32,
        random: [u8; 8],
        now: Timestamp,
    ) -> Option<Duration> {
        if error.action() != Action::Retry {
            return None;
        }
        let asked = error.retry_after.map_or(Duration::ZERO, |after| after.wait_from(now));
        let backoff = self.wait_unasked(tried, random)?;
        Some(asked.min(Self::MAX_RETRY_AFTER).saturating_add(backoff))
    }

    /// Returns how long to wait without a `Retry-After`.
    pub(super) fn wait_unasked(&self, tried: u32, random: [u8; 8]) -> Option<Duration> {
        let spent = tried >= self.tries && self.tries != u32::MAX;
        if spent { None } else { Some(self.backoff(tried, random)) }
    }

    fn backoff(&self, tried: u32, random: [u8; 8]) -> Duration {
        let doublings = tried.saturating_sub(1).min(31);
        let backoff = self
            .first_backoff
            .saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(self.longest_backoff);
        // The random bytes as a fraction of 2^64, of the backoff's nanoseconds.
        let nanos = backoff.as_nanos().min(u64::MAX.into());
        let more = nanos.saturating_mul(u64::from_le_bytes(random).into()) >> 64_u32;
        backoff.saturating_add(Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX)))
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}
