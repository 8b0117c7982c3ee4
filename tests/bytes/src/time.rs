//! What holds for every text as a timestamp.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use call_assistant::{ParseTimestampError, Timestamp};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Reading agrees with the `time` crate but for what D-8 lists, and what was read is written back
/// to the same instant, whichever way it is written.
pub fn timestamp(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let read = Timestamp::parse(text);
    let theirs = OffsetDateTime::parse(text, &Rfc3339);
    match (read, theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(nanos(ours), theirs.unix_timestamp_nanos(), "{text}"),
        (Ok(_), Err(_)) => assert_eq!(text.get(17..19), Some("60"), "{text}"),
        (Err(error), Ok(_)) => assert!(refused_on_purpose(text, error), "{text}: {error}"),
        (Err(_), Err(_)) => {}
    }
    match read {
        Ok(instant) => survives_writing(instant),
        Err(error) => assert!(error.position() <= text.len(), "{text}: {error}"),
    }
}

/// `time` takes any separator, cuts long fractions off, and goes beyond the years in UTC.
fn refused_on_purpose(text: &str, error: ParseTimestampError) -> bool {
    match error.position() {
        // The years in UTC.
        0 => text.starts_with("0000-01-01") || text.starts_with("9999-12-31"),
        // The separator, and the tenth digit of a fraction.
        10 | 29 => true,
        _ => false,
    }
}

/// Written as the `time` crate writes it, and read again from `Z`, from `+00:00` and from JSON.
pub fn survives_writing(instant: Timestamp) {
    let text = instant.to_string();
    let theirs = OffsetDateTime::from_unix_timestamp_nanos(nanos(instant)).unwrap();
    assert_eq!(text, theirs.format(&Rfc3339).unwrap());
    assert_eq!(Timestamp::parse(&text), Ok(instant));

    let json = serde_json::to_string(&instant).unwrap();
    assert_eq!(json, format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), instant);

    let with_offset = format!("{}+00:00", text.trim_end_matches('Z'));
    assert_eq!(Timestamp::parse(&with_offset), Ok(instant));
}

fn nanos(instant: Timestamp) -> i128 {
    i128::from(instant.unix_seconds()) * 1_000_000_000 + i128::from(instant.subsec_nanos())
}
