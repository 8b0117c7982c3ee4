//! When to ask again: what `Retry-After` says, and the rule for every failure.

use core::time::Duration;

use http::StatusCode;

use crate::Timestamp;
use crate::rest::ErrorCode;
use crate::time::http_date;

/// When a failed request is made again: `(what happened, which try, randomness) -> wait | give up`.
///
/// - **What is worth another try**: no answer at all, an answer that broke off, 408, 425, 429, and
///   5xx but for 501 and 505. Everything else, 400, 401, 402, 403 and 404 first of all, would be
///   refused the same way again, and never is asked again unchanged. Every request of this API
///   reads, so asking twice does no harm.
/// - **How long**: what `Retry-After` says, if it says anything, up to a cap; and on top of that a
///   backoff that doubles with every try, up to a cap of its own, stretched at random to as much
///   as twice its length. The randomness only ever adds, so nobody comes back before the time the
///   service named, and not everybody at that very moment.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::rest::client::{Failure, Retry, RetryAfter, RetryDecision};
/// use call_assistant::rest::ErrorCode;
/// # let now = call_assistant::Timestamp::UNIX_EPOCH;
/// # let random = [0; 8];
///
/// let retry = Retry::new();
/// let limited = Failure::answered(429)
///     .with_code(ErrorCode::RateLimitExceeded)
///     .with_retry_after(RetryAfter::parse("7"));
/// assert_eq!(
///     retry.decide(&limited, 1, random, now),
///     RetryDecision::Wait(Duration::from_millis(7_500)),
/// );
/// assert_eq!(retry.decide(&Failure::answered(404), 1, random, now), RetryDecision::GiveUp);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    tries: u32,
    first_backoff: Duration,
    longest_backoff: Duration,
    longest_retry_after: Duration,
}

/// What to do after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RetryDecision {
    /// Make the same request again after so long.
    Wait(Duration),
    /// Do not: the answer would be the same, or it was tried often enough.
    GiveUp,
}

impl Retry {
    /// Five tries in all, with backoffs of half a second, one, two and four seconds before they
    /// are stretched; a `Retry-After` of up to an hour is honoured.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tries: 5,
            first_backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(3600),
        }
    }

    /// So many tries in all, the first included. `u32::MAX` never gives up what is worth a try.
    #[must_use]
    pub const fn with_tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// The backoff after the first try, which doubles from there, and the longest one.
    #[must_use]
    pub const fn with_backoff(self, first: Duration, longest: Duration) -> Self {
        Self { first_backoff: first, longest_backoff: longest, ..self }
    }

    /// The longest `Retry-After` that is honoured. A longer one is cut down to it: a wrong header
    /// somewhere on the way must not put a client to sleep for a year.
    #[must_use]
    pub const fn with_longest_retry_after(self, longest: Duration) -> Self {
        Self { longest_retry_after: longest, ..self }
    }

    /// Decides after the `tried`th try, counted from 1. `random` is eight random bytes, which need
    /// not be fit for secrets. `now` is only looked at where `Retry-After` is a date.
    pub fn decide(
        &self,
        failure: &Failure,
        tried: u32,
        random: [u8; 8],
        now: Timestamp,
    ) -> RetryDecision {
        let spent = tried >= self.tries && self.tries != u32::MAX;
        if spent || !failure.is_transient() {
            return RetryDecision::GiveUp;
        }
        let asked = failure.retry_after.map_or(Duration::ZERO, |after| after.from_now(now));
        let asked = asked.min(self.longest_retry_after);
        RetryDecision::Wait(asked.saturating_add(self.backoff(tried, random)))
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

/// What happened to a request that did not succeed.
///
/// A [`ClientError`](super::ClientError) is turned into one with `From`; what the HTTP library
/// reports (no connection, a timeout, a body that broke off) is [`Failure::NO_ANSWER`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    status: Option<StatusCode>,
    code: Option<ErrorCode>,
    retry_after: Option<RetryAfter>,
}

impl Failure {
    /// Nothing came back, or not all of it.
    pub const NO_ANSWER: Self = Self { status: None, code: None, retry_after: None };

    /// An answer with this status. One that is no HTTP status counts as no answer.
    #[must_use]
    pub fn answered(status: u16) -> Self {
        Self { status: StatusCode::from_u16(status).ok(), ..Self::NO_ANSWER }
    }

    /// The code in the answer's envelope.
    #[must_use]
    pub fn with_code(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// What the answer's `Retry-After` said.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Option<RetryAfter>) -> Self {
        Self { retry_after, ..self }
    }

    /// Whether asking again, unchanged, may help.
    ///
    /// Status and code must both allow it: where a proxy has changed one of them, the other still
    /// keeps a refused request from being made again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let code = self.code.as_ref().and_then(ErrorCode::status);
        self.status.is_none_or(passes) && code.is_none_or(passes)
    }
}

fn passes(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => false,
        _ => status.is_server_error(),
    }
}

/// What a `Retry-After` header says: so many seconds from now, or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// In so many seconds.
    Seconds(u64),
    /// Not before this instant, by the clock of who answered.
    At(Timestamp),
}

impl RetryAfter {
    /// Reads the header: whole seconds, or an HTTP date in any of its three forms. Anything else
    /// (a sign, a fraction, a unit) is `None`, and the backoff alone decides.
    ///
    /// ```
    /// use call_assistant::rest::client::RetryAfter;
    ///
    /// assert_eq!(RetryAfter::parse("120"), Some(RetryAfter::Seconds(120)));
    /// let date = RetryAfter::parse("Fri, 24 Jul 2026 10:00:00 GMT");
    /// assert_eq!(date, Some(RetryAfter::At("2026-07-24T10:00:00Z".parse().unwrap())));
    /// assert_eq!(RetryAfter::parse("1.5"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More seconds than fit are capped like any other number that is too large.
            return Some(Self::Seconds(text.parse().unwrap_or(u64::MAX)));
        }
        http_date::parse(text).map(Self::At)
    }

    /// How long that is from now. Zero if it has passed.
    #[must_use]
    pub fn from_now(self, now: Timestamp) -> Duration {
        match self {
            Self::Seconds(seconds) => Duration::from_secs(seconds),
            Self::At(instant) => instant.since(now),
        }
    }

    /// The same, counted from the moment of the answer, if the answer's own `Date` header is
    /// known: then a clock here that is wrong does no harm.
    #[must_use]
    pub fn relative_to(self, date: &str) -> Self {
        match (self, http_date::parse(date)) {
            (Self::At(instant), Some(answered)) => Self::Seconds(instant.since(answered).as_secs()),
            _ => self,
        }
    }
}
