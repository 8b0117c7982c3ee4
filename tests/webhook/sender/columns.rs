//! Rows with a column for each field, and the stored forms of every released version.

use std::collections::BTreeSet;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, BeginError, ColumnError, Delivery, DeliveryColumns, DeliveryStatus, DisabledReason,
    EndpointChange, EndpointColumns, EndpointHealth, FIRST_FAILURES_TO_SUSPECT, LogEntry,
    MAX_ATTEMPTS, Outcome, RETENTION, oldest_kept,
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

fn micros(text: &str) -> Timestamp {
    Timestamp::from_unix_micros(text.parse().unwrap()).unwrap()
}

fn delivery_of(columns: &str) -> DeliveryColumns {
    let columns: Vec<_> = columns.split(' ').collect();
    let [created, status, at, attempts, manual, generation, version] = columns[..] else {
        panic!("{columns:?}")
    };
    DeliveryColumns {
        event_created_at: micros(created),
        status: status.parse().unwrap(),
        at: micros(at),
        attempts: attempts.parse().unwrap(),
        manual: manual.parse().unwrap(),
        generation: generation.parse().unwrap(),
        version: version.parse().unwrap(),
    }
}

fn endpoint_of(columns: &str) -> EndpointColumns {
    let columns: Vec<_> = columns.split(' ').collect();
    // The first five columns of a table that had no others, and what is added to it by default.
    let ([disabled, since, failures, generation, version], added) = match columns[..] {
        [a, b, c, d, e] => ([a, b, c, d, e], ["0", "NULL", "0"]),
        [a, b, c, d, e, f, g, h] => ([a, b, c, d, e], [f, g, h]),
        _ => panic!("{columns:?}"),
    };
    let [first_failures, first_failed_at, reminders] = added;
    EndpointColumns {
        disabled: (disabled != "NULL").then(|| disabled.parse().unwrap()),
        since: micros(since),
        failures: failures.parse().unwrap(),
        first_failures: first_failures.parse().unwrap(),
        first_failed_at: (first_failed_at != "NULL").then(|| micros(first_failed_at)),
        reminders: reminders.parse().unwrap(),
        generation: generation.parse().unwrap(),
        version: version.parse().unwrap(),
    }
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
                assert_eq!(DeliveryColumns::from(delivery), delivery_of(columns), "{line}");
                seen.insert(delivery.status().as_str());
            }
            "endpoint" => {
                let stored: EndpointColumns = read_and_write(json);
                assert_eq!(serde_json::from_str(&with_more(json)).ok(), Some(stored), "{line}");
                let endpoint = EndpointHealth::from_columns(1, stored).unwrap();
                assert_eq!(serde_json::to_string(&endpoint).unwrap(), json);
                assert_eq!(EndpointColumns::from(endpoint), endpoint_of(columns), "{line}");
                seen.insert(endpoint.disabled().map_or("active", DisabledReason::as_str));
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
    for (text, shown) in
        [("queued", "\"queued\""), ("Waiting", "\"Waiting\""), ("a\nb", r#""a\nb""#)]
    {
        let error = text.parse::<DeliveryStatus>().unwrap_err();
        let is_named =
            matches!(&error, ColumnError::Text { field: "status", text: t, .. } if **t == *text);
        assert!(is_named, "{error}");
        assert_eq!(
            error.to_string(),
            format!("status is {shown}, which this version does not know")
        );
        let error = text.parse::<DisabledReason>().unwrap_err();
        let says = format!("disabled is {shown}, which this version does not know");
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn numbers_that_this_crate_cannot_have_stored_are_refused() {
    let good = DeliveryColumns::from(failed_before(1, &EndpointHealth::new(1, start()), start()));
    let too_many = i16::from(MAX_ATTEMPTS) + 1;
    let too_many_firsts = i16::from(FIRST_FAILURES_TO_SUSPECT) + 1;
    for (bad, field, value, max) in [
        (
            DeliveryColumns { attempts: too_many, ..good },
            "attempts",
            too_many.into(),
            MAX_ATTEMPTS.into(),
        ),
        (DeliveryColumns { attempts: -1, ..good }, "attempts", -1, MAX_ATTEMPTS.into()),
        (DeliveryColumns { attempts: 256, ..good }, "attempts", 256, MAX_ATTEMPTS.into()),
        (DeliveryColumns { generation: -1, ..good }, "generation", -1, i32::MAX),
        (DeliveryColumns { version: i32::MIN, ..good }, "version", i32::MIN, i32::MAX),
    ] {
        check(Delivery::from_columns(7, 1, bad).unwrap_err(), field, value, max);
    }
    let good = EndpointColumns::from(EndpointHealth::new(1, start()));
    for (bad, field, value, max) in [
        (EndpointColumns { failures: 21, ..good }, "failures", 21, 20),
        (EndpointColumns { failures: -1, ..good }, "failures", -1, 20),
        (
            EndpointColumns { first_failures: too_many_firsts, ..good },
            "first_failures",
            too_many_firsts.into(),
            FIRST_FAILURES_TO_SUSPECT.into(),
        ),
        (EndpointColumns { reminders: 3, ..good }, "reminders", 3, 2),
        (EndpointColumns { generation: -7, ..good }, "generation", -7, i32::MAX),
        (EndpointColumns { version: -1, ..good }, "version", -1, i32::MAX),
    ] {
        check(EndpointHealth::from_columns(1, bad).unwrap_err(), field, value, max);
    }
}

#[track_caller]
fn check(error: ColumnError, field: &str, value: i32, max: i32) {
    assert!(
        matches!(error, ColumnError::Number { field: f, value: v, max: m, .. } if (f, v, m) == (field, value, max)),
        "{error}"
    );
    assert_eq!(error.to_string(), format!("{field} is {value}, not from 0 to {max}"));
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
    assert_eq!(
        record(&mut endpoint, BEFORE_LAST, Outcome::TimedOut, start()),
        EndpointChange::Disabled(DisabledReason::Failing)
    );
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
        match parks {
            true => assert_eq!(
                (parked.status(), parked.ended_at()),
                (DeliveryStatus::Parked, Some(now))
            ),
            false => assert_eq!(parked, row, "{name}"),
        }
    }
}

/// D-62: rows of older events may be removed, and no others.
#[test]
fn the_oldest_kept_event_is_less_than_thirty_days_old() {
    let created_at = start();
    let end = created_at.saturating_add(RETENTION);
    let nano = Duration::from_nanos(1);
    assert_eq!(oldest_kept(end.saturating_sub(nano)), created_at);
    let mut row =
        Delivery::accept(&event(created_at), &EndpointHealth::new(1, start()), created_at);
    let attempt = row.begin(&EndpointHealth::new(1, start()), start()).unwrap();
    let _ = row.finish(&attempt, answered(200), start()).unwrap();
    for now in [created_at, end.saturating_sub(nano), end, end.saturating_add(nano)] {
        assert_eq!(row.is_kept(now), created_at >= oldest_kept(now), "{now}");
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
