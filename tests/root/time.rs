//! Instants: reading, writing, arithmetic.

#![allow(clippy::arithmetic_side_effects)]

use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use support::corpus;
use time::Date;

use crate::at;

// D-8, D-63, RES-5: what another program reads of each text. It is written as short as it can be.
#[test]
fn each_text_of_the_corpus_is_its_instant() {
    for case in corpus(include_str!("../vectors/times.json")) {
        let text = case["text"].as_str().unwrap();
        let Some(seconds) = case["seconds"].as_i64() else {
            assert!(Timestamp::parse(text).is_err(), "{text}");
            continue;
        };
        let nanos = u32::try_from(case["nanos"].as_u64().unwrap()).unwrap();
        let expected = Timestamp::from_parts(seconds, nanos).unwrap();
        assert_eq!(Timestamp::parse(text), Ok(expected), "{text}");
        assert_eq!(text.parse(), Ok(expected), "{text}");
        assert_eq!(expected.to_string(), case["written"].as_str().unwrap(), "{text}");
    }
}

// D-8
#[test]
fn a_second_60_that_is_none_is_explained() {
    for text in ["2016-12-31T23:58:60Z", "2016-12-31T22:59:60Z", "2016-12-31T23:59:60+01:00"] {
        let error = Timestamp::parse(text).unwrap_err().to_string();
        assert_eq!(error, "second 60 exists at 23:59:60 UTC only, not here: at byte 17", "{text}");
    }
}

// D-8, with the message that says to write %2B, and the rows on `time` in the list of hazards. No
// message repeats the text. The corpus has more texts that are refused.
#[test]
fn what_is_refused_says_what_is_wrong_and_where() {
    let space = "expected Z or an offset, found a space (in a query, write + as %2B)";
    let fraction = "expected at most 9 digits in a fraction, found another";
    for (text, reason, at) in [
        ("", "expected a digit", 0),
        ("226-07-24T10:00:00Z", "expected a digit", 3),
        ("12026-07-24T10:00:00Z", "expected '-'", 4),
        ("2026-13-24T10:00:00Z", "expected a month from 01 to 12", 5),
        ("2026-02-29T10:00:00Z", "expected a day of that month", 8),
        ("1900-02-29T10:00:00Z", "expected a day of that month", 8),
        ("2026-07-24 10:00:00Z", "expected 'T'", 10),
        ("2026-07-24T24:00:00Z", "expected an hour from 00 to 23", 11),
        ("2026-07-24T10:60:00Z", "expected a minute from 00 to 59", 14),
        ("2026-07-24T10:00Z", "expected ':'", 16),
        ("2026-07-24T10:00:61Z", "expected a second from 00 to 59", 17),
        ("2026-07-24T10:00:00.Z", "expected a digit after the point", 20),
        ("2026-07-24T10:00:00.1234567890Z", fraction, 29),
        ("2026-07-24T10:00:00,5Z", "expected Z or an offset like +01:00", 19),
        ("2026-07-24T10:00:00.5", "expected Z or an offset like +01:00", 21),
        ("2026-07-24T10:00:00 00:00", space, 19),
        ("2026-07-24T10:00:00.25 02:00", space, 22),
        ("2026-07-24T10:00:00+0100", "expected ':'", 22),
        ("2026-07-24T10:00:00+24:00", "expected an hour from 00 to 23", 20),
        ("2026-07-24T10:00:00-23:60", "expected a minute from 00 to 59", 23),
        ("2026-07-24T10:00:00+01:00:00", "unexpected text after the offset", 25),
        ("2026-07-24T10:00:00Z ", "unexpected text after the offset", 20),
        ("9999-12-31T23:59:59-01:00", "expected a year from 0000 to 9999 in UTC", 0),
        ("0000-01-01T00:00:00+01:00", "expected a year from 0000 to 9999 in UTC", 0),
        ("0000-01-01T00:59:60+01:00", "expected a year from 0000 to 9999 in UTC", 0),
        ("9999-12-31T23:59:60-00:01", "second 60 exists at 23:59:60 UTC only, not here:", 17),
    ] {
        let error = Timestamp::parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("{reason} at byte {at}"), "{text}");
        assert_eq!(error.position(), at, "{text}");
    }
}

#[test]
fn every_cut_of_a_full_timestamp_is_refused_at_the_cut() {
    let text = "2026-07-24T10:00:00.123456789+02:00";
    for len in 0..text.len() {
        let error = Timestamp::parse(&text[..len]).unwrap_err();
        assert_eq!(error.position(), len, "{error}");
    }
    at(text);
}

#[test]
fn the_ends_are_read_and_written() {
    assert_eq!(Timestamp::MIN, at("0000-01-01T00:00:00Z"));
    assert_eq!(Timestamp::MIN, at("0000-01-01T01:00:00+01:00"));
    assert_eq!(Timestamp::MAX, at("9999-12-31T23:59:59.999999999Z"));
    assert_eq!(Timestamp::UNIX_EPOCH, at("1970-01-01T00:00:00Z"));
}

#[test]
fn every_day_of_ten_thousand_years_is_written_as_the_time_crate_has_it() {
    let mut date = Date::from_ordinal_date(0, 1).unwrap();
    for day in 0.. {
        let instant = Timestamp::from_unix(Timestamp::MIN.unix_seconds() + day * 86_400 + 45_296);
        let (year, month, day) = date.to_calendar_date();
        let expected = format!("{year:04}-{:02}-{day:02}T12:34:56Z", u8::from(month));
        assert_eq!(instant.unwrap().to_string(), expected);
        assert_eq!(Timestamp::parse(&expected), Ok(instant.unwrap()));
        match date.next_day() {
            Some(next) if next.year() < 10_000 => date = next,
            _ => break,
        }
    }
    assert_eq!(date.to_string(), "9999-12-31");
}

#[test]
fn it_shows_itself_as_an_instant() {
    let instant = at("2026-07-24T10:00:00Z");
    assert_eq!(format!("{instant:?}"), "2026-07-24T10:00:00Z");
    assert_eq!(format!("{:?}", Some(instant)), "Some(2026-07-24T10:00:00Z)");
    assert_eq!(format!("[{instant:>22}]"), "[  2026-07-24T10:00:00Z]");
}

#[test]
fn json_names_what_it_expects() {
    let wrong = serde_json::from_str::<Timestamp>("\"2026-07-24\"").unwrap_err();
    assert_eq!(wrong.to_string(), "expected 'T' at byte 10 at line 1 column 12");
    let wrong = serde_json::from_str::<Timestamp>("null").unwrap_err();
    assert!(wrong.to_string().contains("expected an RFC 3339 instant"), "{wrong}");
    // Escapes come from a buffer of the reader's instead of the body.
    let escaped = serde_json::from_str::<Timestamp>(r#""2026-07-24\u005410:00:00Z""#);
    assert_eq!(escaped.unwrap(), at("2026-07-24T10:00:00Z"));
}

// D-42
#[test]
fn arithmetic_ends_at_the_ends() {
    let (nanosecond, second) = (Duration::from_nanos(1), Duration::from_secs(1));
    let (first, last) = (Timestamp::MIN, Timestamp::MAX);
    let all = last.since(first);
    assert_eq!(all, Duration::new(25 * 146_097 * 86_400 - 1, 999_999_999));

    assert_eq!(last.checked_add(Duration::ZERO), Some(last));
    assert_eq!(last.checked_add(nanosecond), None);
    assert_eq!(last.checked_add(Duration::MAX), None);
    assert_eq!(last.saturating_add(nanosecond), last);
    assert_eq!(first.saturating_add(Duration::MAX), last);
    assert_eq!(first.checked_add(all), Some(last));
    assert_eq!(first.checked_add(all + nanosecond), None);

    assert_eq!(first.checked_sub(Duration::ZERO), Some(first));
    assert_eq!(first.checked_sub(nanosecond), None);
    assert_eq!(first.checked_sub(Duration::MAX), None);
    assert_eq!(first.saturating_sub(second), first);
    assert_eq!(last.saturating_sub(Duration::MAX), first);
    assert_eq!(last.checked_sub(all), Some(first));
    assert_eq!(last.checked_sub(all + nanosecond), None);

    assert_eq!(first.since(last), Duration::ZERO);
    assert_eq!(last.since(last), Duration::ZERO);
}

#[test]
fn arithmetic_carries_between_seconds_and_nanoseconds() {
    let nanosecond = Duration::from_nanos(1);
    let (before, whole) = (at("1969-12-31T23:59:59.999999999Z"), Timestamp::UNIX_EPOCH);
    assert_eq!((before.unix_seconds(), before.subsec_nanos()), (-1, 999_999_999));
    assert_eq!(before.checked_add(nanosecond), Some(whole));
    assert_eq!(whole.checked_sub(nanosecond), Some(before));
    assert_eq!(whole.since(before), nanosecond);
    assert_eq!(before.since(whole), Duration::ZERO);
    assert!(before < whole);
    let span = Duration::new(1, 999_999_999);
    assert_eq!(before.checked_add(span), Some(at("1970-01-01T00:00:01.999999998Z")));
    assert_eq!(before.checked_sub(span), Some(at("1969-12-31T23:59:58Z")));
}

/// `now` in one line, whatever the host's clock says.
#[test]
fn a_clock_reading_is_an_instant() {
    let epoch = SystemTime::UNIX_EPOCH;
    let span = Duration::new(1_784_887_200, 1);
    assert_eq!(Timestamp::from(epoch), Timestamp::UNIX_EPOCH);
    assert_eq!(Timestamp::from(epoch + span), at("2026-07-24T10:00:00.000000001Z"));
    assert_eq!(Timestamp::from(epoch - span), at("1913-06-10T13:59:59.999999999Z"));
    // A clock that is out of its mind stands at the end nearer to it.
    let ages = Duration::from_secs(1 << 40);
    assert_eq!(Timestamp::from(epoch + ages), Timestamp::MAX);
    assert_eq!(Timestamp::from(epoch - ages), Timestamp::MIN);
}

#[test]
fn microseconds_are_rounded_down_and_come_back() {
    for (seconds, nanos, micros) in [
        (0, 0, 0),
        (0, 999, 0),
        (0, 1_000, 1),
        (1_767_225_600, 123_456_789, 1_767_225_600_123_456),
        (-1, 999_999_999, -1),
        (-1, 0, -1_000_000),
        (-2, 1, -2_000_000),
        (Timestamp::MIN.unix_seconds(), 0, -62_167_219_200_000_000),
        (Timestamp::MAX.unix_seconds(), 999_999_999, 253_402_300_799_999_999),
    ] {
        let instant = Timestamp::from_parts(seconds, nanos).unwrap();
        let floor = instant.floor_to_micros();
        assert_eq!(instant.unix_micros(), micros, "{instant}");
        assert_eq!(Timestamp::from_unix_micros(micros), Some(floor), "{instant}");
        assert!(instant.since(floor) < Duration::from_micros(1), "{instant}");
        assert!(floor <= instant && floor.floor_to_micros() == floor, "{instant}");
    }
    for micros in [i64::MIN, -62_167_219_200_000_001, 253_402_300_800_000_000, i64::MAX] {
        assert_eq!(Timestamp::from_unix_micros(micros), None, "{micros}");
    }
}

#[test]
fn parts_outside_are_refused() {
    assert_eq!(Timestamp::from_unix(i64::MIN), None);
    assert_eq!(Timestamp::from_unix(i64::MAX), None);
    assert_eq!(Timestamp::from_unix(Timestamp::MIN.unix_seconds() - 1), None);
    assert_eq!(Timestamp::from_unix(Timestamp::MAX.unix_seconds() + 1), None);
    assert_eq!(Timestamp::from_parts(0, 1_000_000_000), None);
    assert_eq!(Timestamp::from_parts(0, 0), Some(Timestamp::UNIX_EPOCH));
}
