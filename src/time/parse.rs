//! RFC 3339 read into a [`Timestamp`].

use core::fmt;
use core::str::FromStr;

use ::time::{Date, Month, OffsetDateTime};

use super::Timestamp;
use crate::json::deserialize;

/// The reason why a text is not an RFC 3339 instant, and the position of the fault.
///
/// The error never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseTimestampError {
    reason: &'static str,
    at: usize,
}

impl ParseTimestampError {
    /// Returns the position of the wrong byte. The first byte has position 0.
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
    /// `T` and `t`, `Z` and `z`, and offsets from `-23:59` to `+23:59` are accepted. The offset
    /// `-00:00` means UTC. These rules apply where the RFC leaves a choice:
    ///
    /// - A fraction has 1 to 9 digits. A longer fraction is an error, because reading must not
    ///   change an instant.
    /// - Second 60 is accepted at 23:59:60 UTC only, and becomes the last nanosecond before
    ///   midnight.
    /// - The instant must be in the years 0000 to 9999 *in UTC*, so that the instant can be written
    ///   again.
    /// - A space instead of `T`, and a time without an offset, are errors.
    ///
    /// # Errors
    /// Returns the fault of the text, and its position.
    pub fn parse(text: &str) -> Result<Self, ParseTimestampError> {
        parse(text.as_bytes())
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        Self::parse(text)
    }
}

deserialize!(Timestamp, "an RFC 3339 instant", Timestamp::parse);

type Parsed<T> = Result<T, ParseTimestampError>;

const DAY: i64 = 86_400;

/// Parses RFC 3339. The calendar comes from the crate `time`. The grammar is in this file, because
/// the parser of `time` accepts any separator and truncates long fractions.
#[expect(clippy::arithmetic_side_effects, reason = "at most 10,000 years of seconds")]
pub(crate) fn parse(text: &[u8]) -> Parsed<Timestamp> {
    const EPOCH: i32 = OffsetDateTime::UNIX_EPOCH.date().to_julian_day();
    let fault = |reason, at| Err(ParseTimestampError { reason, at });

    let misshapen = || mismatch(text, 0, "0000-00-00T00:00:00");
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b't', time @ ..] = text else {
        return Err(misshapen());
    };
    let [h1, h2, b':', n1, n2, b':', s1, s2, rest @ ..] = time else {
        return Err(misshapen());
    };
    let [Some(century), Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] =
        [[y1, y2], [y3, y4], [m1, m2], [d1, d2], [h1, h2], [n1, n2], [s1, s2]].map(two_digits)
    else {
        return Err(misshapen());
    };
    let Ok(month) = Month::try_from(month) else {
        return fault("expected a month from 01 to 12", 5);
    };
    let year = i32::from(century) * 100 + i32::from(year);
    let Ok(date) = Date::from_calendar_date(year, month, day) else {
        return fault("expected a day of that month", 8);
    };
    let minutes = time_of_day(hour, minute, 11)?;
    if second > 60 {
        return fault("expected a second from 00 to 59", 17);
    }
    let (nanos, offset_text) = fraction(text, rest)?;
    let offset = offset(text, offset_text)?;

    let days = i64::from(date.to_julian_day() - EPOCH);
    let seconds = days * DAY + minutes + i64::from(second.min(59)) - offset;
    let nanos = match second {
        60 if seconds.rem_euclid(DAY) == DAY - 1 => 999_999_999,
        60 => return fault("second 60 exists at 23:59:60 UTC only, not here:", 17),
        _ => nanos,
    };
    let reason = "expected a year from 0000 to 9999 in UTC";
    Timestamp::from_parts(seconds, nanos).ok_or(ParseTimestampError { reason, at: 0 })
}

/// Reads the nanoseconds (0 without a fraction), and returns the rest of the text.
#[expect(clippy::arithmetic_side_effects, reason = "nine digits are below a billion")]
fn fraction<'a>(text: &[u8], rest: &'a [u8]) -> Parsed<(u32, &'a [u8])> {
    let [b'.', digits @ ..] = rest else { return Ok((0, rest)) };
    let (mut nanos, mut unit) = (0, 1_000_000_000);
    let mut rest = digits;
    while let [digit @ b'0'..=b'9', more @ ..] = rest {
        unit /= 10;
        if unit == 0 {
            return Err(fault_at(
                text,
                rest,
                "expected at most 9 digits in a fraction, found another",
            ));
        }
        nanos += u32::from(digit & 0x0f) * unit;
        rest = more;
    }
    if rest.len() == digits.len() {
        return Err(fault_at(text, rest, "expected a digit after the point"));
    }
    Ok((nanos, rest))
}

/// Reads the offset of local time from UTC in seconds, positive if local time is ahead.
#[expect(clippy::arithmetic_side_effects, reason = "less than a day")]
fn offset(text: &[u8], rest: &[u8]) -> Parsed<i64> {
    let at = text.len() - rest.len();
    let (seconds, rest) = match rest {
        [b'Z' | b'z', rest @ ..] => (0, rest),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, rest @ ..] => {
            let [Some(hour), Some(minute)] = [[h1, h2], [m1, m2]].map(two_digits) else {
                return Err(mismatch(text, at, "+00:00"));
            };
            let seconds = time_of_day(hour, minute, at + 1)?;
            (if *sign == b'-' { -seconds } else { seconds }, rest)
        }
        [b'+' | b'-', ..] => return Err(mismatch(text, at, "+00:00")),
        [b' ', ..] => {
            let reason = "expected Z or an offset, found a space (in a query, write + as %2B)";
            return Err(ParseTimestampError { reason, at });
        }
        _ => return Err(fault_at(text, rest, "expected Z or an offset like +01:00")),
    };
    if rest.is_empty() {
        Ok(seconds)
    } else {
        Err(fault_at(text, rest, "unexpected text after the offset"))
    }
}

/// Returns the seconds of an hour and a minute. `at` is the position of the hour.
#[expect(clippy::arithmetic_side_effects, reason = "less than a day")]
fn time_of_day(hour: u8, minute: u8, at: usize) -> Parsed<i64> {
    match (hour, minute) {
        (24.., _) => Err(ParseTimestampError { reason: "expected an hour from 00 to 23", at }),
        (_, 60..) => {
            Err(ParseTimestampError { reason: "expected a minute from 00 to 59", at: at + 3 })
        }
        _ => Ok(i64::from(hour) * 3_600 + i64::from(minute) * 60),
    }
}

fn two_digits([tens, units]: [&u8; 2]) -> Option<u8> {
    let [tens, units] = [tens, units].map(|digit| digit.wrapping_sub(b'0'));
    (tens <= 9 && units <= 9).then(|| tens.wrapping_mul(10).wrapping_add(units))
}

/// Finds the first byte from `at` on that differs from a shape. In the shape, `0` is any digit.
#[cold]
fn mismatch(text: &[u8], at: usize, shape: &str) -> ParseTimestampError {
    for (at, expected) in (at..).zip(shape.bytes()) {
        let found = text.get(at).copied().unwrap_or(0);
        let reason = match expected {
            b'0' if !found.is_ascii_digit() => "expected a digit",
            b'T' if !found.eq_ignore_ascii_case(&b'T') => "expected 'T'",
            b'-' if found != b'-' => "expected '-'",
            b':' if found != b':' => "expected ':'",
            _ => continue,
        };
        return ParseTimestampError { reason, at };
    }
    ParseTimestampError { reason: "expected an RFC 3339 instant", at }
}

/// Creates a fault at the beginning of `rest`.
fn fault_at(text: &[u8], rest: &[u8], reason: &'static str) -> ParseTimestampError {
    ParseTimestampError { reason, at: text.len().wrapping_sub(rest.len()) }
}
