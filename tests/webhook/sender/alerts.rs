//! Alerts: the early sign and its end, warnings, disabling, reminders; each fact once. Random lives are in
//! `tests/bytes/src/delivery.rs`.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    AbandonedReason, Alert, DisabledReason, EndpointChange, EndpointHealth, FAILURES_TO_WARN,
    FIRST_FAILURES_TO_SUSPECT, Outcome, REMINDER_DAYS, SUSPECT_SPAN,
};

use super::{BEFORE_LAST, answered, at, disabled, failing, record, start, still_disabled};

#[test]
fn five_first_attempts_over_a_minute_make_it_suspect_and_a_2xx_ends_it() {
    assert_eq!((FIRST_FAILURES_TO_SUSPECT, SUSPECT_SPAN.as_secs()), (5, 60));
    let failures = [Outcome::TimedOut, answered(500), Outcome::Dns, Outcome::Tls, answered(302)];
    let mut endpoint = EndpointHealth::new(1, start());
    for round in 0..2 {
        let now = |second| at(1_000 * round + second);
        for (second, outcome) in failures.into_iter().enumerate() {
            let change = record(&mut endpoint, 0, outcome, now(10 * second as u64));
            let noted =
                if second < 4 { EndpointChange::Updated } else { EndpointChange::Unchanged };
            assert_eq!(change, noted, "{round}, {second}");
        }
        let before = endpoint;
        let almost = now(60).saturating_sub(Duration::from_nanos(1));
        assert_eq!(record(&mut endpoint, 0, Outcome::Dns, almost), EndpointChange::Unchanged);
        assert_eq!(endpoint, before, "nothing to store, however much fails");
        assert!(!endpoint.is_suspect());
        let change = record(&mut endpoint, 0, Outcome::Dns, now(60));
        assert_eq!(change.alert(), Some(Alert::Suspect));
        assert_eq!(change, EndpointChange::Suspect);
        assert!(endpoint.is_suspect() && endpoint.is_active());
        assert_eq!((endpoint.first_failed_at(), endpoint.failures()), (Some(now(0)), 0));
        let before = endpoint;
        assert_eq!(record(&mut endpoint, 0, Outcome::Dns, now(500)), EndpointChange::Unchanged);
        assert_eq!(endpoint, before, "told once");

        // Any 2xx, that of a retry too.
        let change = record(&mut endpoint, 3, answered(202), now(501));
        assert_eq!(change.alert(), Some(Alert::Recovered));
        assert_eq!(change, EndpointChange::Recovered);
        assert_eq!((endpoint.is_suspect(), endpoint.first_failed_at()), (false, None));
        assert_eq!(record(&mut endpoint, 0, answered(200), now(502)), EndpointChange::Unchanged);
    }
}

/// The early sign leaves the counter alone, and is over when the endpoint is disabled.
#[test]
fn the_count_and_the_early_sign_know_nothing_of_each_other() {
    let mut endpoint = EndpointHealth::new(1, start());
    for number in 0..FIRST_FAILURES_TO_SUSPECT {
        let _ = record(&mut endpoint, 0, Outcome::Dns, at(20 * u64::from(number)));
    }
    assert!(endpoint.is_suspect());
    for failures in 1..=19 {
        let change = record(&mut endpoint, BEFORE_LAST, Outcome::Dns, at(100));
        let warn = FAILURES_TO_WARN.contains(&failures);
        assert_eq!(endpoint.failures(), failures);
        assert_eq!(change.alert(), warn.then_some(failing(failures)));
        assert!(endpoint.is_suspect(), "{failures}");
    }
    let change = record(&mut endpoint, BEFORE_LAST, Outcome::Dns, at(101));
    let reason = DisabledReason::Failing;
    assert_eq!(change.alert(), Some(disabled(reason)));
    assert!(!endpoint.is_suspect() && endpoint.first_failed_at().is_none());
    assert!(endpoint.missed(at(102)).is_some());
    let _ = endpoint.enable(at(103));
    assert_eq!(record(&mut endpoint, 0, answered(200), at(104)), EndpointChange::Unchanged);
}

#[test]
fn owners_are_reminded_after_a_day_and_after_three_and_no_more() {
    assert_eq!(REMINDER_DAYS, [1, 3]);
    let reason = DisabledReason::Gone;
    let still = |days| Some(still_disabled(reason, days));
    let mut endpoint = EndpointHealth::new(1, start());
    assert_eq!(endpoint.remind(Timestamp::MAX), None, "active");
    let _ = record(&mut endpoint, 0, answered(410), start());
    let day = 86_400;
    let seconds = [0, day - 1, day, day, 2 * day, 3 * day - 1, 3 * day, 4 * day, 400 * day];
    let told: Vec<_> = seconds
        .iter()
        .map(|second| {
            endpoint = endpoint.into_stored();
            let told = endpoint.remind(at(*second));
            // Of two who find it due, one can store it.
            assert_eq!(endpoint.if_version().is_some(), told.is_some(), "{second}");
            told
        })
        .collect();
    assert_eq!(told, [None, None, still(1), None, None, None, still(3), None, None]);

    // Nobody looked for a week: one is enough. After enabling it begins again.
    let _ = endpoint.enable(at(400 * day));
    let _ = record(&mut endpoint, 0, answered(410), at(401 * day));
    assert_eq!(endpoint.remind(at(408 * day)), still(3));
    assert_eq!(endpoint.remind(at(409 * day)), None);
    // A clock that was ahead does not silence it.
    let mut ahead = EndpointHealth::new(1, start());
    let _ = record(&mut ahead, 0, answered(410), at(365 * day));
    assert!(ahead.remind(start()).is_some());

    for (name, reason) in [("paused", DisabledReason::Paused), ("deleted", DisabledReason::Deleted)]
    {
        let mut endpoint = EndpointHealth::new(1, start());
        let change = match reason {
            DisabledReason::Paused => endpoint.pause(start()),
            _ => endpoint.delete(start()),
        };
        assert_eq!(change.alert(), None, "{name}");
        assert_eq!(change, EndpointChange::Disabled(reason), "{name}");
        assert_eq!(endpoint.remind(at(9 * day)), None, "{name}: its owner knows");
    }
}

// D-88 among them.
#[test]
fn alerts_are_stored_and_told_like_this() {
    for (alert, json, says) in [
        (
            Alert::Suspect,
            r#"{"kind":"suspect"}"#,
            "the first attempts of several deliveries in a row failed",
        ),
        (Alert::Recovered, r#"{"kind":"recovered"}"#, "deliveries arrive again"),
        (
            failing(10),
            r#"{"kind":"failing","failures":10}"#,
            "10 deliveries in a row failed; 20 disable the endpoint",
        ),
        (
            disabled(DisabledReason::Failing),
            r#"{"kind":"disabled","reason":"failing"}"#,
            "disabled: too many deliveries in a row failed",
        ),
        (
            still_disabled(DisabledReason::Gone, 1),
            r#"{"kind":"still_disabled","reason":"gone","days":1}"#,
            "disabled for 1 day: the endpoint answered 410",
        ),
        (
            Alert::abandoned(AbandonedReason::Secret, 2),
            r#"{"kind":"abandoned","reason":"secret","deliveries":2}"#,
            "2 deliveries were given up after 31 days: the signing secrets cannot be decrypted",
        ),
        (
            Alert::abandoned(AbandonedReason::Event, 1),
            r#"{"kind":"abandoned","reason":"event","deliveries":1}"#,
            "1 delivery was given up after 31 days: the event is missing",
        ),
    ] {
        assert_eq!(serde_json::to_string(&alert).unwrap(), json);
        assert_eq!(serde_json::from_str::<Alert>(json).unwrap(), alert);
        assert!(json.contains(&format!("\"kind\":{:?}", alert.kind())), "{json}");
        assert_eq!(alert.to_string(), says);
    }
}
