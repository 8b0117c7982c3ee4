//! Instants: [`Timestamp`], the one type for every time in this crate.
//!
//! There is no clock here. Whatever depends on the time takes `now` as its last argument, so a
//! test decides what time it is.

use core::time::Duration;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// An instant in UTC, to the nanosecond, in the years 0000 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// `0000-01-01T00:00:00Z`, the first instant there is.
    pub const MIN: Self = Self { seconds: -62_167_219_200, nanos: 0 };

    /// `9999-12-31T23:59:59.999999999Z`, the last instant there is.
    pub const MAX: Self = Self { seconds: 253_402_300_799, nanos: NANOS_PER_SECOND - 1 };

    /// `1970-01-01T00:00:00Z`.
    pub const UNIX_EPOCH: Self = Self { seconds: 0, nanos: 0 };

    /// The instant so many seconds after (or before) 1970, unless it is outside the years 0000 to
    /// 9999.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> Option<Self> {
        Self::from_parts(seconds, 0)
    }

    /// [`unix_seconds`](Self::unix_seconds) and [`subsec_nanos`](Self::subsec_nanos) put together
    /// again. `None` outside the years 0000 to 9999, and for a billion nanoseconds or more.
    #[must_use]
    pub const fn from_parts(seconds: i64, nanos: u32) -> Option<Self> {
        if seconds < Self::MIN.seconds || seconds > Self::MAX.seconds || nanos >= NANOS_PER_SECOND {
            return None;
        }
        Some(Self { seconds, nanos })
    }

    /// Whole seconds since 1970, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// The nanoseconds past [`unix_seconds`](Self::unix_seconds), below a billion.
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        self.nanos
    }

    /// This instant so much later, or `None` past [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let seconds = self.seconds.checked_add_unsigned(span.as_secs())?;
        // Two values below a billion: their sum fits.
        match self.nanos.checked_add(span.subsec_nanos())? {
            nanos if nanos < NANOS_PER_SECOND => Self::from_parts(seconds, nanos),
            nanos => Self::from_parts(
                seconds.checked_add(1)?,
                nanos.checked_sub(NANOS_PER_SECOND)?,
            ),
        }
    }

    /// This instant so much earlier, or `None` before [`MIN`](Self::MIN).
    #[must_use]
    pub fn checked_sub(self, span: Duration) -> Option<Self> {
        let seconds = self.seconds.checked_sub_unsigned(span.as_secs())?;
        match self.nanos.checked_sub(span.subsec_nanos()) {
            Some(nanos) => Self::from_parts(seconds, nanos),
            None => Self::from_parts(
                seconds.checked_sub(1)?,
                self.nanos.checked_add(NANOS_PER_SECOND)?.checked_sub(span.subsec_nanos())?,
            ),
        }
    }

    /// This instant so much later, at most [`MAX`](Self::MAX).
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        self.checked_add(span).unwrap_or(Self::MAX)
    }

    /// This instant so much earlier, at least [`MIN`](Self::MIN).
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        self.checked_sub(span).unwrap_or(Self::MIN)
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let Ok(seconds) = u64::try_from(self.seconds.saturating_sub(earlier.seconds)) else {
            return Duration::ZERO;
        };
        Duration::new(seconds, self.nanos)
            .saturating_sub(Duration::from_nanos(u64::from(earlier.nanos)))
    }
}
