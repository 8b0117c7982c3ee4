//! What holds for every text as a timestamp.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use call_assistant::Timestamp;
use call_assistant::time::{ParseTimestampError, offset};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Reading agrees with the `time` crate but for what D-8 lists, and what was read is written back
/// to the same instant, whichever way it is written.
pub(crate) fn timestamp(bytes: &[u8]) {
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
        Err(error) => assert!(position(error).is_none_or(|at| at <= text.len()), "{text}: {error}"),
    }
}

/// `time` takes any separator, cuts long fractions off, and goes beyond the years in UTC.
fn refused_on_purpose(text: &str, error: ParseTimestampError) -> bool {
    match error {
        ParseTimestampError::Character { expected: 'T', at: 10 } => true,
        ParseTimestampError::LongFraction { at: 29 } => true,
        ParseTimestampError::OutsideYears => {
            text.starts_with("0000-01-01") || text.starts_with("9999-12-31")
        }
        _ => false,
    }
}

/// Written as the `time` crate writes it, and read again from `Z`, from `+00:00` and from JSON.
pub(crate) fn survives_writing(instant: Timestamp) {
    let text = instant.to_string();
    let theirs = OffsetDateTime::from_unix_timestamp_nanos(nanos(instant)).unwrap();
    assert_eq!(text, theirs.format(&Rfc3339).unwrap());
    assert_eq!(Timestamp::parse(&text), Ok(instant));

    let json = serde_json::to_string(&instant).unwrap();
    assert_eq!(json, format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), instant);

    let mut json = Vec::new();
    offset::serialize(&instant, &mut serde_json::Serializer::new(&mut json)).unwrap();
    assert_eq!(json, format!("\"{}+00:00\"", text.trim_end_matches('Z')).as_bytes());
    let read = offset::deserialize(&mut serde_json::Deserializer::from_slice(&json));
    assert_eq!(read.unwrap(), instant);
}

fn nanos(instant: Timestamp) -> i128 {
    i128::from(instant.unix_seconds()) * 1_000_000_000 + i128::from(instant.subsec_nanos())
}

/// Where the message says it is wrong.
pub(crate) fn position(error: ParseTimestampError) -> Option<usize> {
    let message = error.to_string();
    let (_, at) = message.split_once("at byte ")?;
    at.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
