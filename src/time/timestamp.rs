//! One instant.

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
        f.pad(Written::new(*self, Z).as_str())
    }
}

/// As it is displayed: a failed assertion shows an instant, not a count of seconds.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How REST times write UTC.
pub(crate) const Z: u64 = word(b"Z\0\0\0\0\0\0\0");

/// Eight characters of a text being put together, the first in the lowest byte, 0 for none.
pub(crate) const fn word(text: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*text)
}

/// An instant's text, on the stack: lists write two to four of them for each call.
///
/// It is put together in words: bytes stored one by one, and then read eight at a time to be checked
/// and copied, took twice the time.
pub(crate) struct Written {
    words: [[u8; 8]; 6],
    len: usize,
}

impl Written {
    /// `utc` is what stands behind the time: [`Z`], or `+00:00`.
    pub(crate) fn new(instant: Timestamp, utc: u64) -> Self {
        let (day, second) = instant.day_and_second();
        let Date { year, month, day } = Date::of(day);
        let date = ASCII_ZEROS | digits([year / 100, year % 100, month, day]);
        let time = ASCII_ZEROS | digits([second / 3600, second / 60 % 60, second % 60, 0]);

        let years_and_months =
            date & 0xffff_ffff | (date >> 32 & 0xffff) << 40 | word(b"\0\0\0\0-\0\0-");
        let days_to_minutes = date >> 48
            | (time & 0xffff) << 24
            | (time >> 16 & 0xffff) << 48
            | word(b"\0\0T\0\0:\0\0");
        let seconds = (time >> 32 & 0xffff) << 8 | word(b":\0\0\0\0\0\0\0");

        let ([third, fourth, fifth], len) = match instant.nanos {
            0 => ([seconds | utc << 24, utc >> 40, 0], 19),
            nanos => {
                let ([low, high], kept) = fraction(nanos, utc);
                let seconds = seconds | word(b"\0\0\0.\0\0\0\0");
                ([seconds | low << 32, low >> 32 | high << 32, high >> 32], kept.wrapping_add(20))
            }
        };
        let words = [years_and_months, days_to_minutes, third, fourth, fifth, 0];
        let len = len.wrapping_add(characters(utc));
        Self { words: words.map(u64::to_le_bytes), len: usize::try_from(len).unwrap_or_default() }
    }

    pub(crate) fn as_str(&self) -> &str {
        let text = core::str::from_utf8(self.words.as_flattened()).unwrap_or_default();
        text.get(..self.len).unwrap_or_default()
    }
}

/// The digits after the point up to the last that is not 0, how UTC is written behind them, and
/// the number of those digits.
fn fraction(nanos: u32, utc: u64) -> ([u64; 2], u32) {
    let (high, low) = (nanos / 100_000, nanos / 10 % 10_000);
    let eight = digits([high / 100, high % 100, low / 100, low % 100]);
    let (ninth, kept) = match nanos % 10 {
        0 => (0, characters(eight)),
        ninth => (u64::from(ninth) | 0x30, 9),
    };
    // What is turned out of the first word's end comes in at the second's beginning.
    let behind = u64::MAX.checked_shl(kept.wrapping_mul(8)).unwrap_or(0);
    let utc = utc.rotate_left(kept.wrapping_mul(8));
    let low = eight | ASCII_ZEROS & !behind | utc & behind;
    let high = ninth | utc & !behind;
    ([low, high], kept)
}

const ASCII_ZEROS: u64 = word(b"00000000");

/// How many bytes of a word there are up to the last that is not 0.
fn characters(word: u64) -> u32 {
    8_u32.wrapping_sub(word.leading_zeros() / 8)
}

/// The digits of four numbers below 100, each digit's value in a byte.
///
/// Four lanes of 16 bits: 103/1024 is a tenth for every number below 100, and 99 times 103 stays
/// in its lane.
fn digits(numbers: [u32; 4]) -> u64 {
    let [a, b, c, d] = numbers.map(u64::from);
    let lanes = a | b << 16 | c << 32 | d << 48;
    let tens = lanes.wrapping_mul(103) >> 10 & 0x000f_000f_000f_000f;
    let units = lanes.wrapping_sub(tens.wrapping_mul(10));
    tens | units << 8
}

impl Timestamp {
    /// Days since 0000-01-01 and seconds of that day.
    fn day_and_second(self) -> (u32, u32) {
        let seconds = self.seconds.abs_diff(Self::MIN.seconds);
        (low_half(seconds / 86_400), low_half(seconds % 86_400))
    }
}

/// Of a number that has nothing in its high half.
fn low_half(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    /// The date so many days after 0000-01-01; none is past 9999, so nothing here wraps.
    fn of(day: u32) -> Self {
        const DAYS_IN_400_YEARS: u32 = 146_097;
        const DAYS_IN_4_YEARS: u32 = 1_461;
        const JANUARY_AND_FEBRUARY: u32 = 60;

        // Three of four centuries lack their leap day, at the end of February. Count on as if they
        // had it, and every fourth year is a leap year.
        let since_march = day.wrapping_add(DAYS_IN_400_YEARS).wrapping_sub(JANUARY_AND_FEBRUARY);
        let century = since_march.wrapping_mul(4).wrapping_add(3) / DAYS_IN_400_YEARS;
        let day = day.wrapping_add(century).wrapping_sub(century / 4).wrapping_sub(3);
        let quarter_days = day.wrapping_mul(4);
        let year = quarter_days / DAYS_IN_4_YEARS;
        let day_of_year = quarter_days % DAYS_IN_4_YEARS / 4;

        // From March on, 153 days in every five months are 2141/65536 of a month a day, and what is
        // over of the last month is its days. January and February follow December there.
        let leap = u32::from(year.is_multiple_of(4));
        let february = 59_u32.wrapping_add(leap);
        let (day_of_march_year, months_before) = match day_of_year.checked_sub(february) {
            Some(day) => (day, 0),
            None => (day_of_year.wrapping_add(306), 12),
        };
        let months = day_of_march_year.wrapping_mul(2_141).wrapping_add(197_913);
        let month = (months >> 16).wrapping_sub(months_before);
        Self { year, month, day: ((months & 0xffff) / 2_141).wrapping_add(1) }
    }
}
