//! RFC 3339 read into a [`Timestamp`].

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use ::time::{Date, Month, OffsetDateTime};

use super::Timestamp;
use crate::json::json_text;

/// Says why a text is not an RFC 3339 instant, and at which byte.
///
/// It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseTimestampError {
    reason: &'static str,
    at: usize,
}

impl ParseTimestampError {
    /// Returns the position of the byte that is wrong, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }
}

impl fmt::Display for ParseTimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

impl core::error::Error for ParseTimestampError {}

impl Timestamp {
    /// Parses RFC 3339.
    ///
    /// ```
    /// use call_assistant::Timestamp;
    ///
    /// let instant = Timestamp::parse("2026-07-24T12:00:02.500+02:00")?;
    /// assert_eq!(instant.to_string(), "2026-07-24T10:00:02.5Z");
    ///
    /// // A `+` that was not escaped in a query arrives as a space.
    /// let error = Timestamp::parse("2026-07-24T12:00:02 02:00").unwrap_err();
    /// assert_eq!(error.position(), 19);
    /// assert!(error.to_string().contains("%2B"));
    /// # Ok::<(), call_assistant::ParseTimestampError>(())
    /// ```
    ///
    /// `T` and `t`, `Z` and `z`, and offsets from `-23:59` to `+23:59` are accepted; `-00:00` is
    /// UTC. Where the RFC leaves room:
    ///
    /// - A fraction has 1 to 9 digits. More digits are an error: reading never changes an instant.
    /// - Second 60 is accepted at 23:59:60 UTC only, and is the last nanosecond before midnight.
    /// - The instant must be in the years 0000 to 9999 *in UTC*, so that it can be written again.
    /// - A space instead of `T`, and a time without an offset, are errors.
    ///
    /// # Errors
    /// Returns the first thing that is wrong with the text, and its position.
    pub fn parse(text: &str) -> Result<Self, ParseTimestampError> {
        Parser { text: text.as_bytes(), at: 0 }.timestamp()
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        Self::parse(text)
    }
}

json_text!(Timestamp, "an RFC 3339 instant", Timestamp::parse);

const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
const MINUTE: i64 = 60;

type Parsed<T> = Result<T, ParseTimestampError>;

/// Goes through the text once. The calendar is that of the `time` crate; its own parser of RFC 3339
/// accepts any separator and cuts long fractions off, so the grammar is here.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

#[expect(clippy::arithmetic_side_effects, reason = "at most 10,000 years of seconds")]
impl Parser<'_> {
    fn timestamp(&mut self) -> Parsed<Timestamp> {
        let days = self.days()?;
        if !self.skip(b"Tt") {
            return Err(self.error("expected 'T'"));
        }
        let minutes = self.hour_and_minute()?;
        self.literal(b':', "expected ':'")?;
        let second_at = self.at;
        let second = self.number(0..=60, "expected a second from 00 to 59")?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if self.at < self.text.len() {
            return Err(self.error("unexpected text after the offset"));
        }

        let seconds = days * DAY + minutes - offset + i64::from(second.min(59));
        let nanos = match second {
            60 if seconds.rem_euclid(DAY) == DAY - 1 => 999_999_999,
            60 => {
                let reason = "second 60 exists at 23:59:60 UTC only, not here:";
                return Err(ParseTimestampError { reason, at: second_at });
            }
            _ => nanos,
        };
        let reason = "expected a year from 0000 to 9999 in UTC";
        Timestamp::from_parts(seconds, nanos).ok_or(ParseTimestampError { reason, at: 0 })
    }

    /// The date, as days since 1970-01-01.
    fn days(&mut self) -> Parsed<i64> {
        const EPOCH: i32 = OffsetDateTime::UNIX_EPOCH.date().to_julian_day();

        let century = self.number(0..=99, "expected a year")?;
        let year = i32::from(century) * 100 + i32::from(self.number(0..=99, "expected a year")?);
        self.literal(b'-', "expected '-'")?;
        let month = self.number(1..=12, "expected a month from 01 to 12")?;
        self.literal(b'-', "expected '-'")?;
        let at = self.at;
        let day = self.number(1..=31, "expected a day of that month")?;
        let date = Month::try_from(month)
            .and_then(|month| Date::from_calendar_date(year, month, day))
            .map_err(|_| ParseTimestampError { reason: "expected a day of that month", at })?;
        Ok((date.to_julian_day() - EPOCH).into())
    }

    /// `hh:mm`, in seconds.
    fn hour_and_minute(&mut self) -> Parsed<i64> {
        let hour = self.number(0..=23, "expected an hour from 00 to 23")?;
        self.literal(b':', "expected ':'")?;
        let minute = self.number(0..=59, "expected a minute from 00 to 59")?;
        Ok(i64::from(hour) * HOUR + i64::from(minute) * MINUTE)
    }

    /// The nanoseconds; 0 if there is no fraction.
    fn fraction(&mut self) -> Parsed<u32> {
        if !self.skip(b".") {
            return Ok(0);
        }
        let (mut nanos, mut unit) = (0, 1_000_000_000);
        while let Some(digit) = self.digit() {
            unit /= 10;
            if unit == 0 {
                self.at -= 1;
                return Err(self.error("expected at most 9 digits in a fraction, found another"));
            }
            nanos += u32::from(digit) * unit;
        }
        if unit == 1_000_000_000 {
            return Err(self.error("expected a digit after the point"));
        }
        Ok(nanos)
    }

    /// How far local time is ahead of UTC, in seconds.
    fn offset(&mut self) -> Parsed<i64> {
        if self.skip(b"Zz") {
            Ok(0)
        } else if self.skip(b"+") {
            self.hour_and_minute()
        } else if self.skip(b"-") {
            Ok(-self.hour_and_minute()?)
        } else if self.text.get(self.at) == Some(&b' ') {
            Err(self.error("expected Z or an offset, found a space (in a query, write + as %2B)"))
        } else {
            Err(self.error("expected Z or an offset like +01:00"))
        }
    }

    /// Two digits. A missing digit is reported at its own place, a number out of range at its first.
    fn number(&mut self, range: RangeInclusive<u8>, expected: &'static str) -> Parsed<u8> {
        let at = self.at;
        let (Some(tens), Some(units)) = (self.digit(), self.digit()) else {
            return Err(self.error("expected a digit"));
        };
        let number = tens * 10 + units;
        if range.contains(&number) {
            Ok(number)
        } else {
            Err(ParseTimestampError { reason: expected, at })
        }
    }

    fn digit(&mut self) -> Option<u8> {
        let digit = self.text.get(self.at)?.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        self.at += 1;
        Some(digit)
    }

    fn literal(&mut self, byte: u8, expected: &'static str) -> Parsed<()> {
        if self.skip(&[byte]) { Ok(()) } else { Err(self.error(expected)) }
    }

    /// Skips one of these bytes, if it is next.
    fn skip(&mut self, bytes: &[u8]) -> bool {
        let found = self.text.get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(found);
        found
    }

    fn error(&self, reason: &'static str) -> ParseTimestampError {
        ParseTimestampError { reason, at: self.at }
    }
}
