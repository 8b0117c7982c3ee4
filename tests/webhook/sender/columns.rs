//! Rows with a column for each field, and the stored forms of every released version.

use std::collections::BTreeSet;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, BeginError, ColumnError, Delivery, DeliveryColumns, DeliveryStatus, DisabledReason,
    EndpointChange, EndpointColumns, EndpointHealth, FIRST_FAILURES_TO_SUSPECT, LogEntry,
    MAX_ATTEMPTS, Outcome,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, record, start};

/// From the release of a version on every later build must read its lines.
/// A version that stores more adds a file.
const FIXTURES: [&str; 1] = [include_str!("fixtures/0.1.0.tsv")];

#[track_caller]
fn read_and_write<T: DeserializeOwned + Serialize>(json: &str) -> T {
    let value: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), json);
    value
}

/// The same with a column that a later version adds.
fn with_more(json: &str) -> String {
    json.replace('}', r#","priority":{"of":[1]}}"#)
}

fn micros(instant: Timestamp) -> String {
    instant.unix_micros().to_string()
}

#[test]
fn stored_forms_of_every_version_are_read_and_written_as_they_were() {
    let mut seen = BTreeSet::new();
    for line in FIXTURES.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<_> = line.split('\t').collect();
        let [kind, json, columns] = fields[..] else { panic!("{line}") };
        match kind {
            "delivery" => {
                let stored: DeliveryColumns = read_and_write(json);
                assert_eq!(serde_json::from_str(&with_more(json)).ok(), Some(stored), "{line}");
                let delivery = Delivery::from_columns(7, 1, stored).unwrap();
                assert_eq!(serde_json::to_string(&delivery).unwrap(), json);
                assert_eq!(DeliveryColumns::from(delivery), stored, "{line}");
                let DeliveryColumns { status, attempts, manual, generation, version, .. } = stored;
                let [created, at] = [stored.event_created_at, stored.at].map(micros);
                let counts = format!("{attempts} {manual} {generation} {version}");
                assert_eq!(format!("{created} {} {at} {counts}", status.as_str()), columns);
                seen.insert(status.as_str());
            }
            "endpoint" => {
                let stored: EndpointColumns = read_and_write(json);
                assert_eq!(serde_json::from_str(&with_more(json)).ok(), Some(stored), "{line}");
                let endpoint = EndpointHealth::from_columns(1, stored).unwrap();
                assert_eq!(serde_json::to_string(&endpoint).unwrap(), json);
                assert_eq!(EndpointColumns::from(endpoint), stored, "{line}");
                let EndpointColumns { failures, generation, version, reminders, .. } = stored;
                let disabled = stored.disabled.map_or("NULL", DisabledReason::as_str);
                let first = stored.first_failed_at.map_or("NULL".into(), micros);
                let since = micros(stored.since);
                let all = format!("{disabled} {since} {failures} {generation} {version}");
                let added = format!(" {} {first} {reminders}", stored.first_failures);
                // A table that had no others has the first five columns, and these by default.
                let is_short = added == " 0 NULL 0";
                assert_eq!(if is_short { all } else { all + &added }, columns);
                seen.insert(stored.disabled.map_or("active", DisabledReason::as_str));
            }
            "attempt" => _ = read_and_write::<Attempt>(json),
            "log" => _ = read_and_write::<LogEntry>(json),
            "outcome" => assert_eq!(read_and_write::<Outcome>(json).to_string(), columns),
            _ => panic!("{line}"),
        }
    }
    let all = DeliveryStatus::ALL.iter().map(|status| status.as_str());
    let reasons = DisabledReason::ALL.iter().map(|reason| reason.as_str());
    let all = all.chain(reasons).chain(["active"]);
    assert_eq!(seen, all.collect(), "the fixtures have each status and each reason");
}

/// What a rolling deployment meets: named, and never guessed at.
#[test]
fn a_text_of_a_later_version_is_an_error_that_names_it() {
    for text in ["queued", "Waiting", "a\nb"] {
        let says = |field| format!("{field} is {text:?}, which this version does not know");
        let error = text.parse::<DeliveryStatus>().unwrap_err();
        let is_named =
            matches!(&error, ColumnError::Text { field: "status", text: t, .. } if **t == *text);
        assert!(is_named && error.to_string() == says("status"), "{error}");
        assert_eq!(text.parse::<DisabledReason>().unwrap_err().to_string(), says("disabled"));
    }
}

#[test]
fn numbers_that_this_crate_cannot_have_stored_are_refused() {
    let good = DeliveryColumns::from(failed_before(1, &EndpointHealth::new(1, start()), start()));
    let (attempts, firsts) = (i16::from(MAX_ATTEMPTS), i16::from(FIRST_FAILURES_TO_SUSPECT));
    let deliveries = [
        (DeliveryColumns { attempts: attempts + 1, ..good }, "attempts", i32::from(attempts) + 1),
        (DeliveryColumns { attempts: -1, ..good }, "attempts", -1),
        (DeliveryColumns { attempts: 256, ..good }, "attempts", 256),
        (DeliveryColumns { generation: -1, ..good }, "generation", -1),
        (DeliveryColumns { version: i32::MIN, ..good }, "version", i32::MIN),
    ]
    .map(|(bad, field, value)| (Delivery::from_columns(7, 1, bad).unwrap_err(), field, value));
    let good = EndpointColumns::from(EndpointHealth::new(1, start()));
    let endpoints = [
        (EndpointColumns { failures: 21, ..good }, "failures", 21),
        (EndpointColumns { failures: -1, ..good }, "failures", -1),
        (
            EndpointColumns { first_failures: firsts + 1, ..good },
            "first_failures",
            i32::from(firsts) + 1,
        ),
        (EndpointColumns { reminders: 3, ..good }, "reminders", 3),
        (EndpointColumns { generation: -7, ..good }, "generation", -7),
        (EndpointColumns { version: -1, ..good }, "version", -1),
    ]
    .map(|(bad, field, value)| (EndpointHealth::from_columns(1, bad).unwrap_err(), field, value));
    for (error, field, value) in deliveries.into_iter().chain(endpoints) {
        let most = match field {
            "attempts" => attempts.into(),
            "first_failures" => firsts.into(),
            "failures" => 20,
            "reminders" => 2,
            _ => i32::MAX,
        };
        assert_eq!(error.to_string(), format!("{field} is {value}, not from 0 to {most}"));
    }
}

/// An `integer` column holds every version: after the largest one comes 0.
#[test]
fn versions_and_generations_fit_a_signed_integer() {
    let last = EndpointColumns {
        generation: i32::MAX,
        version: i32::MAX,
        ..EndpointColumns::from(EndpointHealth::new(1, start()))
    };
    let mut endpoint = EndpointHealth::from_columns(1, last).unwrap();
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let _ = endpoint.pause(start());
    assert_eq!(endpoint.version(), 0);
    assert_eq!(delivery.begin(&endpoint, start()), Err(BeginError::Parked));
    let missed = endpoint.enable(start()).unwrap();
    assert_eq!((endpoint.generation(), endpoint.version()), (0, 1));
    assert!(missed.includes(&delivery), "of the generation before");

    let columns = DeliveryColumns { version: i32::MAX, ..DeliveryColumns::from(delivery) };
    let mut delivery = Delivery::from_columns(7, 1, columns).unwrap();
    delivery.redeliver(&endpoint, start()).unwrap();
    assert_eq!(DeliveryColumns::from(delivery).version, 0);

    // The same in JSON: nothing is read that a column could not hold.
    let json = serde_json::to_string(&endpoint).unwrap();
    let json = json.replace(r#""version":1"#, r#""version":2147483648"#);
    let error = super::endpoint_from(&json).unwrap_err().to_string();
    assert!(error.starts_with("invalid value: integer `2147483648`, expected i32"), "{error}");
}

/// A row that an operator has made active by hand, with the count at its end, stays one that can be read.
#[test]
fn no_count_is_written_that_is_refused_when_it_is_read() {
    let full =
        EndpointColumns { failures: 20, ..EndpointColumns::from(EndpointHealth::new(1, start())) };
    let mut endpoint = EndpointHealth::from_columns(1, full).unwrap();
    let seen = record(&mut endpoint, BEFORE_LAST, Outcome::TimedOut, start());
    assert_eq!(seen, EndpointChange::Disabled(DisabledReason::Failing));
    let written = EndpointColumns::from(endpoint);
    assert_eq!(written.failures, 20);
    assert_eq!(EndpointHealth::from_columns(1, written), Ok(endpoint));
}

/// Parking never begins an attempt, and takes no lease from its sender.
#[test]
fn parking_touches_only_what_no_one_may_send() {
    let active = EndpointHealth::new(1, start());
    let mut disabled = active;
    let _ = disabled.pause(start());
    let mut enabled = disabled;
    let _ = enabled.enable(start());
    let waiting = failed_before(1, &active, start());
    let mut sending = waiting;
    let attempt = sending.begin(&active, start()).unwrap();
    let mut delivered = sending;
    let _ = delivered.finish(&attempt, answered(200), start()).unwrap();
    for (name, row, endpoint, now, parks) in [
        ("due, active", waiting, active, start(), false),
        ("due, disabled", waiting, disabled, start(), true),
        ("due, enabled since", waiting, enabled, start(), true),
        ("leased", sending, disabled, at(29), false),
        ("lease expired", sending, disabled, at(30), true),
        ("lease expired, active", sending, active, at(30), false),
        ("ended", delivered, disabled, at(30), false),
    ] {
        let mut parked = row;
        assert_eq!(parked.park(&endpoint, now), parks, "{name}");
        assert_eq!(parked != row, parks, "{name}");
        let ends = (parked.status(), parked.ended_at());
        assert!(!parks || ends == (DeliveryStatus::Parked, Some(now)), "{name}");
    }
}

#[test]
fn a_report_that_is_empty_changes_no_endpoint() {
    let mut counted = EndpointHealth::new(1, start());
    let mut delivery = failed_before(BEFORE_LAST, &counted, start());
    let report = attempted(&mut delivery, &counted, answered(500), start(), start());
    assert!(!report.is_empty(), "the last failure");
    let _ = counted.record(report, start()).unwrap();
    for (failed, outcome, nothing) in [
        (0, answered(500), false),
        (1, answered(500), true),
        (0, Outcome::Unsent, true),
        (0, answered(200), false),
        (0, answered(410), false),
        (BEFORE_LAST, Outcome::Tls, false),
    ] {
        let mut delivery = failed_before(failed, &counted, start());
        let report = attempted(&mut delivery, &counted, outcome, start(), start());
        assert_eq!(report.is_empty(), nothing, "{outcome} after {failed}");
        let mut endpoint = counted;
        let _ = endpoint.record(report, start()).unwrap();
        assert_eq!(endpoint == counted, nothing, "{outcome} after {failed}");
    }
}
