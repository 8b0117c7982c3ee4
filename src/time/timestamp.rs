//! One instant: its range, and arithmetic.

use core::time::Duration;

#[cfg(feature = "std")]
extern crate std;

const NANOS_PER_SECOND: u32 = 1_000_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const DAY: u64 = 86_400;

/// An instant in UTC, to the nanosecond, in the years 0000 to 9999.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
///
/// let started = Timestamp::from_unix(1_784_887_200).ok_or("out of range")?;
/// assert_eq!(started.to_string(), "2026-07-24T10:00:00Z");
///
/// let answered = started.saturating_add(Duration::from_millis(2_500));
/// assert_eq!(answered.to_string(), "2026-07-24T10:00:02.5Z");
/// assert_eq!(answered.since(started), Duration::from_millis(2_500));
/// # Ok::<(), &str>(())
/// ```
///
/// All times in this crate are of this type. The crate has no clock. Functions that depend on the
/// current time take `now` as their last argument. Therefore a test can control the time. With the
/// feature `std`, a host writes `Timestamp::from(SystemTime::now())`.
///
/// # Text form
///
/// A timestamp is written as RFC 3339 with `Z`. The fraction has only the digits that the instant
/// needs. Reading the text again gives the same instant. Reading RFC 3339, and reading and writing
/// JSON, need the feature `events`. [`parse`](Self::parse) documents the grammar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// The first instant: `0000-01-01T00:00:00Z`.
    pub const MIN: Self = Self { seconds: -62_167_219_200, nanos: 0 };

    /// The last instant: `9999-12-31T23:59:59.999999999Z`.
    pub const MAX: Self = Self { seconds: 253_402_300_799, nanos: NANOS_PER_SECOND - 1 };

    /// The epoch of Unix time: `1970-01-01T00:00:00Z`.
    pub const UNIX_EPOCH: Self = Self { seconds: 0, nanos: 0 };

    /// Creates a timestamp from seconds since the Unix epoch, which may be negative.
    ///
    /// Returns `None` outside the years 0000 to 9999.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> Option<Self> {
        Self::from_parts(seconds, 0)
    }

    /// Creates a timestamp from [`unix_seconds`](Self::unix_seconds) and
    /// [`subsec_nanos`](Self::subsec_nanos).
    ///
    /// Returns `None` outside the years 0000 to 9999, and for a billion nanoseconds or more.
    #[must_use]
    pub const fn from_parts(seconds: i64, nanos: u32) -> Option<Self> {
        if seconds < Self::MIN.seconds || seconds > Self::MAX.seconds || nanos >= NANOS_PER_SECOND {
            return None;
        }
        Some(Self { seconds, nanos })
    }

    /// Returns the whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds after [`unix_seconds`](Self::unix_seconds), less than a billion.
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        self.nanos
    }

    /// Creates a timestamp from microseconds since the Unix epoch, which may be negative. Most
    /// databases store microseconds.
    ///
    /// Returns `None` outside the years 0000 to 9999.
    ///
    /// ```
    /// use call_assistant::Timestamp;
    ///
    /// let stored = Timestamp::from_unix_micros(1_784_887_200_000_001).ok_or("out of range")?;
    /// assert_eq!(stored.to_string(), "2026-07-24T10:00:00.000001Z");
    /// assert_eq!(stored.unix_micros(), 1_784_887_200_000_001);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn from_unix_micros(micros: i64) -> Option<Self> {
        let nanos = u32::try_from(micros.rem_euclid(MICROS_PER_SECOND)).ok()?.checked_mul(1_000)?;
        Self::from_parts(micros.div_euclid(MICROS_PER_SECOND), nanos)
    }

    /// Returns the whole microseconds since the Unix epoch, rounded down.
    #[must_use]
    pub fn unix_micros(self) -> i64 {
        // Ten thousand years are 3e17 microseconds: nothing here saturates.
        let micros = i64::from(self.nanos / 1_000);
        self.seconds.saturating_mul(MICROS_PER_SECOND).saturating_add(micros)
    }

    /// Rounds down to a microsecond.
    ///
    /// A database column often keeps only microseconds. Round an instant when a record is
    /// *created*, before anything is derived from the record. Otherwise, the instant in memory and
    /// the instant in the stored row can differ by less than a microsecond, and give different
    /// orders and cursors.
    ///
    /// ```
    /// use call_assistant::Timestamp;
    ///
    /// let now = Timestamp::from_parts(60, 123_456_789).ok_or("out of range")?.floor_to_micros();
    /// assert_eq!(now.to_string(), "1970-01-01T00:01:00.123456Z");
    /// assert_eq!(Timestamp::from_unix_micros(now.unix_micros()), Some(now));
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub const fn floor_to_micros(self) -> Self {
        Self { seconds: self.seconds, nanos: self.nanos.saturating_sub(self.nanos % 1_000) }
    }

    /// Adds a duration, or returns `None` if the result is after [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        Self::after_min(self.since_min().checked_add(span)?)
    }

    /// Subtracts a duration, or returns `None` if the result is before [`MIN`](Self::MIN).
    #[must_use]
    pub fn checked_sub(self, span: Duration) -> Option<Self> {
        Self::after_min(self.since_min().checked_sub(span)?)
    }

    fn since_min(self) -> Duration {
        Duration::new(self.seconds.abs_diff(Self::MIN.seconds), self.nanos)
    }

    fn after_min(span: Duration) -> Option<Self> {
        let seconds = Self::MIN.seconds.checked_add_unsigned(span.as_secs())?;
        Self::from_parts(seconds, span.subsec_nanos())
    }

    /// Adds a duration, or returns [`MAX`](Self::MAX) if the result is later.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        self.checked_add(span).unwrap_or(Self::MAX)
    }

    /// Subtracts a duration, or returns [`MIN`](Self::MIN) if the result is earlier.
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        self.checked_sub(span).unwrap_or(Self::MIN)
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is later than this instant.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.since_min().saturating_sub(earlier.since_min())
    }

    /// Returns the year, the month and the day in UTC.
    ///
    /// The algorithm is by Cassio Neri and Lorenz Schneider, "Euclidean affine functions and their
    /// application to calendar algorithms", Software: Practice and Experience 53 (2023),
    /// <https://doi.org/10.1002/spe.3172>. The algorithm counts years from March, so that the leap
    /// day is the last day of a year.
    #[expect(clippy::arithmetic_side_effects, reason = "four times the days of 10,400 years fit")]
    pub(super) fn date(self) -> (u32, u32, u32) {
        const DAYS_OF_400_YEARS: u32 = 146_097;
        const JANUARY_AND_FEBRUARY: u32 = 60;

        // 400 years are added, so that January and February of year 0 do not come out negative.
        let days = low_half(self.seconds.abs_diff(Self::MIN.seconds) / DAY) + DAYS_OF_400_YEARS
            - JANUARY_AND_FEBRUARY;
        let century = (4 * days + 3) / DAYS_OF_400_YEARS;
        let day_of_century = (4 * days + 3) % DAYS_OF_400_YEARS / 4;

        // 2,939,745 / 2^32 is one year of 365.25 days, in quarters of a day.
        let years = u64::from(4 * day_of_century + 3) * 2_939_745;
        let year = 100 * century + low_half(years >> 32);
        let day_of_year = low_half(years & 0xffff_ffff) / 2_939_745 / 4;

        // 2,141 / 2^16 is one day, in months of 30.6 days.
        let months = 2_141 * day_of_year + 197_913;
        let (month, day) = (months >> 16, (months & 0xffff) / 2_141 + 1);
        if day_of_year < 306 { (year - 400, month, day) } else { (year - 399, month - 12, day) }
    }

    /// Returns the hour, the minute and the second in UTC.
    pub(super) fn time_of_day(self) -> (u32, u32, u32) {
        let second = low_half(self.seconds.abs_diff(Self::MIN.seconds) % DAY);
        (second / 3600, second / 60 % 60, second % 60)
    }
}

/// Converts a number below 2^32.
fn low_half(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A system time outside the years 0000 to 9999 becomes the nearer of [`MIN`](Timestamp::MIN) and
/// [`MAX`](Timestamp::MAX).
///
/// ```
/// use std::time::SystemTime;
/// use call_assistant::Timestamp;
///
/// let now = Timestamp::from(SystemTime::now());
/// assert!(now > Timestamp::UNIX_EPOCH);
/// ```
#[cfg(feature = "std")]
impl From<std::time::SystemTime> for Timestamp {
    fn from(instant: std::time::SystemTime) -> Self {
        match instant.duration_since(std::time::SystemTime::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH.saturating_add(after),
            Err(before) => Self::UNIX_EPOCH.saturating_sub(before.duration()),
        }
    }
}
