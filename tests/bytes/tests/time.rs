//! Instants: what is read and written agrees with the `time` crate.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::time::Duration;

use call_assistant::Timestamp;
use properties::time::{survives_writing, timestamp};
use proptest::prelude::*;

prop_compose! {
    fn instants()(
        seconds in Timestamp::MIN.unix_seconds()..=Timestamp::MAX.unix_seconds(),
        nanos in prop_oneof![
            Just(0),
            0_u32..1_000_000_000,
            (0_u32..1000).prop_map(|millis| millis * 1_000_000),
        ],
    ) -> Timestamp {
        Timestamp::from_parts(seconds, nanos).unwrap()
    }
}

#[test]
fn the_ends_survive_writing() {
    for end in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        survives_writing(end);
    }
}

proptest! {
    #[test]
    fn every_instant_survives_writing(instant in instants()) {
        survives_writing(instant);
    }

    #[test]
    fn adding_and_taking_away_are_inverse(a in instants(), b in instants()) {
        let (earlier, later) = (a.min(b), a.max(b));
        let span = later.since(earlier);
        prop_assert_eq!(earlier.checked_add(span), Some(later));
        prop_assert_eq!(later.checked_sub(span), Some(earlier));
        prop_assert_eq!(earlier.since(later), Duration::ZERO);
    }

    #[test]
    fn reading_agrees_with_the_time_crate(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt _][0-2][0-9]:[0-6][0-9]:[0-6][0-9]\
            (\\.[0-9]{0,11})?([Zz]|[-+ ][0-2][0-9]:[0-6][0-9])?",
    ) {
        timestamp(text.as_bytes());
    }

    #[test]
    fn reading_agrees_with_the_time_crate_at_the_edges(
        text in "(0000-01-01|9999-12-31|2024-02-29|2016-12-3[01])[Tt](00|23):(00|59):(00|59|60)\
            (\\.[09]{1,9})?(Z|[-+](00|01|23):(00|59))",
    ) {
        timestamp(text.as_bytes());
    }
}
