//! The dates of HTTP headers, in the three forms that RFC 9110 makes every reader take.

use ::time::{Date, Month, OffsetDateTime, Time, Weekday};

use crate::Timestamp;

/// Reads a date, or nothing: a header that is no date is as good as none. Blanks and tabs around
/// it are no part of it.
///
/// A weekday that is not the date's own is refused, since then one of the two is wrong. The year
/// of the form with two digits is taken from 1970 to 2069.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    let mut rest = Rest(text);
    let name = rest.until(|byte| !byte.is_ascii_alphabetic());
    let (date, time) = match text.as_bytes().get(name.len()) {
        Some(b',') => {
            rest.literal(", ")?;
            let day = rest.digits(2)?;
            let (separator, year_len) = if name.len() == 3 { (" ", 4) } else { ("-", 2) };
            rest.literal(separator)?;
            let month = rest.month()?;
            rest.literal(separator)?;
            let year = match (rest.digits(year_len)?, year_len) {
                (year @ 0..=69, 2) => year.saturating_add(2000),
                (year, 2) => year.saturating_add(1900),
                (year, _) => year,
            };
            rest.literal(" ")?;
            let time = rest.time()?;
            rest.literal(" GMT")?;
            (date(year, month, day)?, time)
        }
        _ => {
            rest.literal(" ")?;
            let month = rest.month()?;
            rest.literal(" ")?;
            let day = rest.padded_day()?;
            rest.literal(" ")?;
            let time = rest.time()?;
            rest.literal(" ")?;
            (date(rest.digits(4)?, month, day)?, time)
        }
    };
    if !rest.0.is_empty() || weekday(name)? != date.weekday() {
        return None;
    }
    // A leap second is the last second before it, as in RFC 3339 here.
    let (hour, minute, second) = time;
    let time = Time::from_hms(hour, minute, second.min(59)).ok()?;
    Timestamp::from_unix(OffsetDateTime::new_utc(date, time).unix_timestamp())
}

fn date(year: u16, month: Month, day: u16) -> Option<Date> {
    Date::from_calendar_date(year.into(), month, u8::try_from(day).ok()?).ok()
}

fn weekday(name: &str) -> Option<Weekday> {
    let (weekday, full) = match name.get(..3)? {
        "Mon" => (Weekday::Monday, "Monday"),
        "Tue" => (Weekday::Tuesday, "Tuesday"),
        "Wed" => (Weekday::Wednesday, "Wednesday"),
        "Thu" => (Weekday::Thursday, "Thursday"),
        "Fri" => (Weekday::Friday, "Friday"),
        "Sat" => (Weekday::Saturday, "Saturday"),
        "Sun" => (Weekday::Sunday, "Sunday"),
        _ => return None,
    };
    (name.len() == 3 || name == full).then_some(weekday)
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn until(&mut self, end: impl Fn(u8) -> bool) -> &'a str {
        let len = self.0.bytes().position(end).unwrap_or(self.0.len());
        let taken = self.0.get(..len).unwrap_or_default();
        self.0 = self.0.get(len..).unwrap_or_default();
        taken
    }

    fn literal(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn digits(&mut self, len: usize) -> Option<u16> {
        let digits = self.0.get(..len)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = self.0.get(len..)?;
        digits.parse().ok()
    }

    /// Two places, the first a blank where the day has one digit.
    fn padded_day(&mut self) -> Option<u16> {
        if self.literal(" ").is_some() { self.digits(1) } else { self.digits(2) }
    }

    fn month(&mut self) -> Option<Month> {
        const NAMES: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let name = self.until(|byte| !byte.is_ascii_alphabetic());
        let before = NAMES.iter().position(|month| *month == name)?;
        Month::try_from(u8::try_from(before).ok()?.checked_add(1)?).ok()
    }

    fn time(&mut self) -> Option<(u8, u8, u8)> {
        let hour = self.digits(2)?;
        self.literal(":")?;
        let minute = self.digits(2)?;
        self.literal(":")?;
        let second = self.digits(2)?;
        if second > 60 {
            return None;
        }
        Some((u8::try_from(hour).ok()?, u8::try_from(minute).ok()?, u8::try_from(second).ok()?))
    }
}
