//! RFC 3339 read into a [`Timestamp`], and both directions in JSON.
//!
//! The grammar is the RFC's, so `T` and `t`, `Z` and `z`, and every offset from `-23:59` to
//! `+23:59` are read, `-00:00` as UTC. Where the RFC leaves room, this is how it is used:
//!
//! - A fraction has 1 to 9 digits. More are refused, not cut off: no instant is changed by reading.
//! - Second 60 exists at 23:59:60 UTC alone, and is read as the nanosecond before midnight.
//! - The instant lies in the years 0000 to 9999 *in UTC*, so that it can be written again.
//! - There is no blank in place of `T`, and never a time without its offset.
//!
//! REST times are written with `Z`, which is what `Serialize` and `Display` do. The service's event
//! envelopes carry `+00:00`: [`offset`] writes that. Readers take either.
//!
//! ```
//! use call_assistant::time::ParseTimestampError;
//! use call_assistant::Timestamp;
//!
//! let instant = Timestamp::parse("2026-07-24T12:00:02.500+02:00")?;
//! assert_eq!(instant.to_string(), "2026-07-24T10:00:02.5Z");
//!
//! // A `+` left unescaped in a query arrives as a blank.
//! let wrong = Timestamp::parse("2026-07-24T12:00:02 02:00").unwrap_err();
//! assert_eq!(wrong, ParseTimestampError::BlankOffset { at: 19 });
//! assert!(wrong.to_string().contains("%2B"));
//! # Ok::<(), ParseTimestampError>(())
//! ```

use core::str::FromStr;

use ::time::{Date, Month, OffsetDateTime};
use serde::{Serialize, Serializer};

use super::timestamp::{Timestamp, Written, Z};
use crate::json::json_text;

/// Why a text is not an RFC 3339 instant.
///
/// It says what is wrong and at which byte, counted from 0, and never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTimestampError {
    /// No digit stands where one should.
    #[error("expected a digit at byte {at}")]
    Digit {
        /// Where.
        at: usize,
    },
    /// Another character stands where `-`, `T` or `:` should.
    #[error("expected {expected:?} at byte {at}")]
    Character {
        /// The character that should stand there.
        expected: char,
        /// Where.
        at: usize,
    },
    /// The month is 00 or above 12.
    #[error("month at byte {at} is not from 01 to 12")]
    Month {
        /// Where the month begins.
        at: usize,
    },
    /// The day is 00, or the month is shorter than that.
    #[error("day at byte {at} is not a day of that month")]
    Day {
        /// Where the day begins.
        at: usize,
    },
    /// The hour, of the time or of the offset, is above 23.
    #[error("hour at byte {at} is above 23")]
    Hour {
        /// Where the hour begins.
        at: usize,
    },
    /// The minute, of the time or of the offset, is above 59.
    #[error("minute at byte {at} is above 59")]
    Minute {
        /// Where the minute begins.
        at: usize,
    },
    /// The second is above 60.
    #[error("second at byte {at} is above 59")]
    Second {
        /// Where the second begins.
        at: usize,
    },
    /// The second is 60, but it is not 23:59:60 in UTC.
    #[error("second at byte {at} is 60, which exists at 23:59:60 UTC only")]
    LeapSecond {
        /// Where the second begins.
        at: usize,
    },
    /// No digit follows the point.
    #[error("fraction at byte {at} has no digits")]
    EmptyFraction {
        /// Where the first digit should stand.
        at: usize,
    },
    /// The fraction goes on beyond nanoseconds.
    #[error("fraction has more than 9 digits, the tenth at byte {at}")]
    LongFraction {
        /// Where the tenth digit stands.
        at: usize,
    },
    /// Neither `Z` nor an offset ends the text.
    #[error("expected Z or an offset like +01:00 at byte {at}")]
    MissingOffset {
        /// Where it should begin.
        at: usize,
    },
    /// A blank stands where the offset should begin: a `+` that was not escaped in a query.
    #[error("expected Z or an offset at byte {at}, found a blank: in a query, write + as %2B")]
    BlankOffset {
        /// Where the blank stands.
        at: usize,
    },
    /// The text goes on after the offset.
    #[error("unexpected text after the offset at byte {at}")]
    Trailing {
        /// Where the text should have ended.
        at: usize,
    },
    /// The instant is well-formed, but outside the years 0000 to 9999 in UTC.
    #[error("instant is outside the years 0000 to 9999 in UTC")]
    OutsideYears,
}

impl Timestamp {
    /// Reads RFC 3339, as [the module](crate::time) describes it.
    ///
    /// # Errors
    ///
    /// The first thing wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Self, ParseTimestampError> {
        let mut text = Lexer { text: text.as_bytes(), rest: text.as_bytes() };
        let days = text.date()?;
        text.separator()?;
        let (second_of_day, leap_at) = text.time_of_day()?;
        let nanos = text.fraction()?;
        let offset = text.offset()?;
        text.end()?;

        // At most 10,000 years of seconds: nothing wraps, here or in what was added up before.
        let seconds = days.wrapping_mul(DAY).wrapping_add(second_of_day).wrapping_sub(offset);
        let nanos = match leap_at {
            None => nanos,
            Some(_) if seconds.rem_euclid(DAY) == DAY - 1 => 999_999_999,
            Some(at) => return Err(ParseTimestampError::LeapSecond { at }),
        };
        Self::from_parts(seconds, nanos).ok_or(ParseTimestampError::OutsideYears)
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Written::new(*self, Z).as_str())
    }
}

json_text!(Timestamp, "an RFC 3339 instant", Timestamp::parse);

/// A field written with `+00:00`, as in event envelopes: `#[serde(with = "time::offset")]`.
///
/// ```
/// use call_assistant::{time, Timestamp};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Envelope {
///     #[serde(with = "time::offset")]
///     created_at: Timestamp,
/// }
///
/// let read: Envelope = serde_json::from_str(r#"{"created_at":"2026-07-24T10:00:00Z"}"#)?;
/// let written = serde_json::to_string(&read)?;
/// assert_eq!(written, r#"{"created_at":"2026-07-24T10:00:00+00:00"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub mod offset {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::super::timestamp::{Timestamp, Written, word};

    const OFFSET: u64 = word(b"+00:00\0\0");

    /// Writes the instant with `+00:00`.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(instant: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Written::new(*instant, OFFSET).as_str())
    }

    /// Reads any RFC 3339 instant.
    ///
    /// # Errors
    ///
    /// Those of [`Timestamp::parse`], and of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(deserializer)
    }
}

const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
const MINUTE: i64 = 60;

/// Goes through the text once. The calendar is left to the `time` crate; its own reader of
/// RFC 3339 takes any separator and cuts long fractions off, so the grammar is kept here.
///
/// The steps are small and each returns a `Result`: without `inline(always)`, handing those over
/// takes a third of all the time.
struct Lexer<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}

impl Lexer<'_> {
    /// The date, as days since 1970-01-01.
    #[inline(always)]
    fn date(&mut self) -> Result<i64, ParseTimestampError> {
        const EPOCH: i32 = OffsetDateTime::UNIX_EPOCH.date().to_julian_day();

        let century = self.two_digits()?;
        let year = i32::from(century).wrapping_mul(100).wrapping_add(self.two_digits()?.into());
        self.literal('-')?;
        let at = self.at();
        let month =
            Month::try_from(self.two_digits()?).map_err(|_| ParseTimestampError::Month { at })?;
        self.literal('-')?;
        let at = self.at();
        let date = Date::from_calendar_date(year, month, self.two_digits()?)
            .map_err(|_| ParseTimestampError::Day { at })?;
        Ok(date.to_julian_day().wrapping_sub(EPOCH).into())
    }

    #[inline(always)]
    fn separator(&mut self) -> Result<(), ParseTimestampError> {
        match self.rest {
            [b'T' | b't', rest @ ..] => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(ParseTimestampError::Character { expected: 'T', at: self.at() }),
        }
    }

    /// The second of the day, and where second 60 stands if it is one: it counts as 59.
    #[inline(always)]
    fn time_of_day(&mut self) -> Result<(i64, Option<usize>), ParseTimestampError> {
        let minutes = self.hour_and_minute()?;
        self.literal(':')?;
        let at = self.at();
        let (second, leap_at) = match self.two_digits()? {
            second @ 0..=59 => (second, None),
            60 => (59, Some(at)),
            _ => return Err(ParseTimestampError::Second { at }),
        };
        Ok((minutes.wrapping_add(second.into()), leap_at))
    }

    /// `hh:mm`, in seconds.
    #[inline(always)]
    fn hour_and_minute(&mut self) -> Result<i64, ParseTimestampError> {
        let at = self.at();
        let hour = match self.two_digits()? {
            hour @ 0..=23 => i64::from(hour),
            _ => return Err(ParseTimestampError::Hour { at }),
        };
        self.literal(':')?;
        let at = self.at();
        let minute = match self.two_digits()? {
            minute @ 0..=59 => i64::from(minute),
            _ => return Err(ParseTimestampError::Minute { at }),
        };
        Ok(hour.wrapping_mul(HOUR).wrapping_add(minute.wrapping_mul(MINUTE)))
    }

    /// The nanoseconds; 0 if there is no fraction.
    #[inline(always)]
    fn fraction(&mut self) -> Result<u32, ParseTimestampError> {
        /// The nanoseconds in the last of so many digits.
        const UNITS: [u32; 10] =
            [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

        let [b'.', rest @ ..] = self.rest else {
            return Ok(0);
        };
        self.rest = rest;
        let at = self.at();
        let mut fraction = 0_u32;
        // Longer than nine digits it may wrap, and is refused.
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            fraction = fraction.wrapping_mul(10).wrapping_add(value(*digit).into());
            self.rest = rest;
        }
        match self.at().wrapping_sub(at) {
            0 => Err(ParseTimestampError::EmptyFraction { at }),
            digits => match UNITS.get(digits) {
                Some(unit) => Ok(fraction.wrapping_mul(*unit)),
                None => Err(ParseTimestampError::LongFraction { at: at.wrapping_add(9) }),
            },
        }
    }

    /// How far local time is ahead of UTC, in seconds.
    #[inline(always)]
    fn offset(&mut self) -> Result<i64, ParseTimestampError> {
        let at = self.at();
        match self.rest {
            [b'Z' | b'z', rest @ ..] => {
                self.rest = rest;
                Ok(0)
            }
            [b'+', rest @ ..] => {
                self.rest = rest;
                self.hour_and_minute()
            }
            [b'-', rest @ ..] => {
                self.rest = rest;
                Ok(self.hour_and_minute()?.wrapping_neg())
            }
            [b' ', ..] => Err(ParseTimestampError::BlankOffset { at }),
            _ => Err(ParseTimestampError::MissingOffset { at }),
        }
    }

    #[inline(always)]
    fn end(&self) -> Result<(), ParseTimestampError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(ParseTimestampError::Trailing { at: self.at() }),
        }
    }

    #[inline(always)]
    fn two_digits(&mut self) -> Result<u8, ParseTimestampError> {
        match self.rest {
            [tens @ b'0'..=b'9', units @ b'0'..=b'9', rest @ ..] => {
                self.rest = rest;
                Ok(value(*tens).wrapping_mul(10).wrapping_add(value(*units)))
            }
            _ => Err(self.no_digit()),
        }
    }

    #[cold]
    fn no_digit(&self) -> ParseTimestampError {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        ParseTimestampError::Digit { at: self.at().wrapping_add(digits) }
    }

    #[inline(always)]
    fn literal(&mut self, expected: char) -> Result<(), ParseTimestampError> {
        match self.rest {
            [first, rest @ ..] if char::from(*first) == expected => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(ParseTimestampError::Character { expected, at: self.at() }),
        }
    }

    fn at(&self) -> usize {
        self.text.len().wrapping_sub(self.rest.len())
    }
}

/// The value of an ASCII digit.
fn value(digit: u8) -> u8 {
    digit & 0x0f
}
