//! Instants: [`Timestamp`], the one type for every time in this crate.
//!
//! There is no clock here. Whatever depends on the time takes `now` as its last argument, so a
//! test decides what time it is.
//!
//! An instant is written as RFC 3339 with `Z` and with as many fraction digits as it needs, so
//! that reading it again gives the same instant. Reading, and both directions in JSON, come with
//! the feature `events`.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::time::Timestamp;
//!
//! let started = Timestamp::from_unix(1_784_887_200).ok_or("out of range")?;
//! assert_eq!(started.to_string(), "2026-07-24T10:00:00Z");
//!
//! let answered = started.saturating_add(Duration::from_millis(2_500));
//! assert_eq!(answered.to_string(), "2026-07-24T10:00:02.5Z");
//! assert_eq!(answered.since(started), Duration::from_millis(2_500));
//! # Ok::<(), &str>(())
//! ```

use core::fmt;
use core::time::Duration;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// An instant in UTC, to the nanosecond, in the years 0000 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
            nanos => {
                Self::from_parts(seconds.checked_add(1)?, nanos.checked_sub(NANOS_PER_SECOND)?)
            }
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

/// RFC 3339 in UTC, with `Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Written::new(*self, "Z").as_str())
    }
}

/// As it is displayed: a failed assertion shows an instant, not a count of seconds.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An instant's text, on the stack: lists write two to four of them for each call.
pub(crate) struct Written {
    bytes: [u8; Self::MAX_LEN],
    len: usize,
}

impl Written {
    const MAX_LEN: usize = "9999-12-31T23:59:59.999999999+00:00".len();
    const WHOLE_SECOND_LEN: usize = "9999-12-31T23:59:59".len();

    /// `utc` is what stands for the offset: `Z` or `+00:00`.
    pub(crate) fn new(instant: Timestamp, utc: &str) -> Self {
        let (day, second) = instant.day_and_second();
        let Date { year, month, day } = Date::of(day);
        let [c1, c2, y1, y2] = four_digits(year);
        let [m1, m2] = two_digits(month);
        let [d1, d2] = two_digits(day);
        let [h1, h2] = two_digits(second / 3600);
        let [i1, i2] = two_digits(second / 60 % 60);
        let [s1, s2] = two_digits(second % 60);
        let [f1, f2, f3, f4] = four_digits(instant.nanos / 100_000);
        let [f5, f6, f7, f8] = four_digits(instant.nanos / 10 % 10_000);
        let f9 = digit(instant.nanos % 10);
        let bytes = [
            c1, c2, y1, y2, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', i1, i2, b':', s1, s2,
            b'.', f1, f2, f3, f4, f5, f6, f7, f8, f9, 0, 0, 0, 0, 0, 0,
        ];
        let len = match instant.nanos {
            0 => Self::WHOLE_SECOND_LEN,
            _ => bytes
                .iter()
                .rposition(|byte| matches!(byte, b'1'..=b'9'))
                .map_or(Self::WHOLE_SECOND_LEN, |last| last.wrapping_add(1)),
        };
        let mut text = Self { bytes, len };
        text.push(utc);
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        let written = self.bytes.get(..self.len);
        written.and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    fn push(&mut self, utc: &str) {
        let end = self.len.wrapping_add(utc.len());
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(utc.as_bytes());
            self.len = end;
        }
    }
}

impl Timestamp {
    /// Days since 0000-01-01 and seconds of that day.
    fn day_and_second(self) -> (u32, u32) {
        let seconds = self.seconds.abs_diff(Self::MIN.seconds);
        // Both are far below 2^32 up to the year 9999, so the fallback is never taken.
        let small = |value: u64| u32::try_from(value).unwrap_or_default();
        (small(seconds / 86_400), small(seconds % 86_400))
    }
}

struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    /// The date so many days after 0000-01-01.
    ///
    /// The arithmetic runs on years that begin on the first of March, so that the leap day is the
    /// last of its year, and begins 400 years (one turn of the calendar) early, so that January of
    /// the year 0 does not go below zero. Four times a day of the year 10399 is below 2^24: nothing
    /// here wraps.
    fn of(day: u32) -> Self {
        const DAYS_IN_400_YEARS: u32 = 146_097;
        const DAYS_IN_4_YEARS: u32 = 1_461;
        const JANUARY_AND_FEBRUARY_OF_0000: u32 = 60;

        let day = day.wrapping_add(DAYS_IN_400_YEARS).wrapping_sub(JANUARY_AND_FEBRUARY_OF_0000);
        let quarter_days = day.wrapping_mul(4).wrapping_add(3);
        let century = quarter_days / DAYS_IN_400_YEARS;
        let quarter_days = (quarter_days % DAYS_IN_400_YEARS) | 3;
        let year_of_century = quarter_days / DAYS_IN_4_YEARS;
        let day_of_year = quarter_days % DAYS_IN_4_YEARS / 4;
        // March to July, August to December, January and February: 153 days in five months.
        let fifths = day_of_year.wrapping_mul(5).wrapping_add(2);
        let march_month = fifths / 153;
        let day = (fifths % 153 / 5).wrapping_add(1);

        let year = century.wrapping_mul(100).wrapping_add(year_of_century).wrapping_sub(400);
        match march_month {
            0..=9 => Self { year, month: march_month.wrapping_add(3), day },
            _ => Self { year: year.wrapping_add(1), month: march_month.wrapping_sub(9), day },
        }
    }
}

fn four_digits(value: u32) -> [u8; 4] {
    let [a, b] = two_digits(value / 100);
    let [c, d] = two_digits(value % 100);
    [a, b, c, d]
}

fn two_digits(value: u32) -> [u8; 2] {
    [digit(value / 10), digit(value % 10)]
}

/// `value` is below ten.
fn digit(value: u32) -> u8 {
    let [value, ..] = value.to_le_bytes();
    b'0' | value
}
