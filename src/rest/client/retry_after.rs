use core::time::Duration;

use crate::Timestamp;
use crate::time::http_date;

/// The value of a `Retry-After` header.
///
/// Closed: HTTP defines only these two forms of the value.
///
/// ```
/// use call_assistant::rest::client::RetryAfter;
///
/// assert_eq!(RetryAfter::parse("120"), Some(RetryAfter::Seconds(120)));
/// let date = RetryAfter::parse("Fri, 24 Jul 2026 10:00:00 GMT");
/// assert_eq!(date, Some(RetryAfter::At("2026-07-24T10:00:00Z".parse().unwrap())));
/// assert_eq!(RetryAfter::parse("1.5"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// A number of seconds from now.
    Seconds(u64),
    /// An instant, by the clock of the responding machine.
    At(Timestamp),
}

impl RetryAfter {
    /// Reads the header: whole seconds, or an HTTP date in any of its three forms. For any other text,
    /// for example with a sign, a fraction or a unit, returns `None`. The wait is then only the backoff
    /// of the retry.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More seconds than fit are capped like any other number that is too large.
            return Some(Self::Seconds(text.parse().unwrap_or(u64::MAX)));
        }
        http_date::parse(text).map(Self::At)
    }

    /// Returns the time to wait from `now`, or zero if the instant has passed.
    pub(super) fn wait_from(self, now: Timestamp) -> Duration {
        match self {
            Self::Seconds(seconds) => Duration::from_secs(seconds),
            Self::At(instant) => instant.since(now),
        }
    }

    /// Converts an instant into the seconds from the response's own `Date` header to this instant.
    /// Therefore a wrong local clock does no harm. If `date` is unreadable, the value stays unchanged.
    pub(super) fn relative_to(self, date: &str) -> Self {
        match (self, http_date::parse(date)) {
            (Self::At(instant), Some(answered)) => Self::Seconds(instant.since(answered).as_secs()),
            _ => self,
        }
    }
}
