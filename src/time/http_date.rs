//! The dates of HTTP headers, in the three forms that RFC 9110 requires every reader to accept.

use alloc::format;
use alloc::vec::Vec;

use super::Timestamp;

/// The days of the week, from the day of the Unix epoch on.
const WEEKDAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses a date. Spaces and tabs around it are ignored.
///
/// A weekday that does not fit the date is refused. A year of two digits means a year between 1970
/// and 2069.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if let Some((weekday, rest)) = text.split_once(", ") {
        // Sun, 06 Nov 1994 08:49:37 GMT, or Sunday, 06-Nov-94 08:49:37 GMT
        let separators: &[char] = if weekday.len() == 3 { &[' '] } else { &['-', ' '] };
        let parts: Vec<&str> = rest.split(separators).collect();
        let [day, month, year, time, "GMT"] = *parts else { return None };
        match (weekday.len(), year) {
            (3, _) => instant(weekday, "", year, month, day, time),
            (_, year) if year < "70" => instant(weekday, "20", year, month, day, time),
            _ => instant(weekday, "19", year, month, day, time),
        }
    } else {
        // Sun Nov  6 08:49:37 1994
        let text = text.replacen("  ", " 0", 1);
        let parts: Vec<&str> = text.split(' ').collect();
        let [weekday, month, day, time, year] = *parts else { return None };
        instant(weekday, "", year, month, day, time)
    }
}

fn instant(
    weekday: &str,
    century: &str,
    year: &str,
    month: &str,
    day: &str,
    time: &str,
) -> Option<Timestamp> {
    let month = MONTHS.iter().position(|name| *name == month)?.checked_add(1)?;
    let text = format!("{century}{year}-{month:02}-{day}T{time}Z");
    if text.len() != "1994-11-06T08:49:37Z".len() {
        return None;
    }
    // Headers have whole seconds: a leap second is the second before it.
    let seconds = Timestamp::parse(&text).ok()?.unix_seconds();
    let name = WEEKDAYS.get(usize::try_from(seconds.div_euclid(86_400).rem_euclid(7)).ok()?)?;
    if *name != weekday && name.get(..3) != Some(weekday) {
        return None;
    }
    Timestamp::from_unix(seconds)
}
