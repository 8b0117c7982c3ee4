//! One delivery: every sequence of outcomes, and what comes late, twice or not at all.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, BeginError, ColumnError, Delivery, DeliveryStatus,
    EndpointChange, EndpointHealth, LONGEST_DELIVERY, MAX_ATTEMPTS, Outcome, RETENTION,
    RETRY_WAITS, RedeliverError, oldest_kept,
};
use http::StatusCode;
use serde_json::json;
use support::corpus;

use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, start};
use crate::dice::Dice;

/// All sequences, each walked until the delivery ends, by a scheduler that comes late: DEL-3 to DEL-6, D-51, D-53, D-57.
#[test]
fn every_sequence_of_outcomes_follows_the_table() {
    let endpoint = EndpointHealth::new(1, start());
    let event = event(start());
    let faults = [Outcome::TimedOut, Outcome::Refused, Outcome::Unsent];
    let kinds = [&[200, 410, 503, 302].map(answered)[..], &faults].concat();
    let mut ended = 0;
    for code in 0..kinds.len().pow(MAX_ATTEMPTS.into()) {
        let millis = Duration::from_millis(u64::try_from(code).unwrap() % 9_973);
        let mut delivery = Delivery::accept(&event, &endpoint, start());
        let (mut due, mut failures, mut rest) = (start(), 0_u8, code);
        for _ in 0..MAX_ATTEMPTS {
            let outcome = kinds[rest % kinds.len()];
            rest /= kinds.len();
            // Coming late skips nothing, and shortens nothing.
            let now = due.saturating_add(millis * 1_000);
            let attempt = delivery.begin(&endpoint, now).unwrap();
            let row = format!("sequence {code}, {failures} failures, then {outcome:?}");
            assert_eq!((attempt.number(), attempt.is_manual()), (failures + 1, false), "{row}");
            assert_eq!(attempt.deadline().since(now), Duration::from_secs(10), "{row}"); // DEL-5
            // D-51: the wait counts from the end of the attempt, however long that took.
            let end = now.saturating_add(millis);
            let report = delivery.finish(&attempt, outcome, end).unwrap();
            assert!(!report.is_late(), "{row}");
            let leads = match outcome {
                Outcome::Answered(StatusCode::OK) => Err(DeliveryStatus::Delivered),
                Outcome::Answered(StatusCode::GONE) => Err(DeliveryStatus::Gone),
                Outcome::Unsent => Ok(Duration::ZERO),
                _ => RETRY_WAITS.get(usize::from(failures)).ok_or(DeliveryStatus::Failed).copied(),
            };
            failures += u8::from(outcome != Outcome::Unsent);
            let seen = (delivery.status(), delivery.due(end), delivery.attempts());
            let wait = match leads {
                Ok(wait) => wait,
                Err(status) => {
                    assert_eq!(seen, (status, None, failures), "{row}");
                    assert_eq!(delivery.ended_at(), Some(end), "{row}");
                    let again = delivery.begin(&endpoint, Timestamp::MAX);
                    assert_eq!(again, Err(BeginError::Ended), "{row}");
                    ended += 1;
                    break;
                }
            };
            due = end.saturating_add(wait);
            assert_eq!(seen, (DeliveryStatus::Waiting, Some(due), failures), "{row}");
            if !wait.is_zero() {
                let early = delivery.begin(&endpoint, due.saturating_sub(Duration::from_nanos(1)));
                assert!(matches!(early, Err(BeginError::Early { at, .. }) if at == due), "{row}");
            }
        }
    }
    // All but the sequences with an `Unsent` and no end: those without one end, and more.
    assert!(ended > 5_usize.pow(MAX_ATTEMPTS.into()), "{ended}");
}

/// DEL-3, DEL-4, DEL-6, DEL-7, D-53 to D-55, D-57: what an independent program writes down of each attempt.
#[test]
fn each_ledger_of_the_corpus_is_kept() {
    for case in corpus(include_str!("../../vectors/ledger.json")) {
        let mut endpoint = EndpointHealth::new(1, start());
        let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
        for step in case["steps"].as_array().unwrap() {
            let row = format!("{}: {step}", case["name"]);
            let now = at(step["at"].as_u64().unwrap());
            match step["do"].as_str().unwrap() {
                "enable" => drop(endpoint.enable(now)),
                "accept" => delivery = Delivery::accept(&event(start()), &endpoint, now),
                _ => {
                    let ends = at(step["ends"].as_u64().unwrap());
                    let outcome = step["answer"].as_str().map_or_else(
                        || answered(u16::try_from(step["answer"].as_u64().unwrap()).unwrap()),
                        |word| word.parse().unwrap(),
                    );
                    let report = attempted(&mut delivery, &endpoint, outcome, now, ends);
                    let _ = endpoint.record(report, ends).unwrap();
                    assert_eq!(json!(delivery.attempts()), step["attempts"], "{row}");
                    assert_eq!(delivery.due(ends), step["due"].as_u64().map(at), "{row}");
                }
            }
            if step["do"] != "enable" {
                assert_eq!(json!(delivery.status()), step["status"], "{row}");
            }
            assert_eq!(json!(endpoint.disabled()), step["disabled"], "{row}");
            if endpoint.is_active() {
                assert_eq!(json!(endpoint.failures()), step["failures"], "{row}");
            }
        }
    }
}

/// The numbers themselves, as the specification writes them. DEL-4, DEL-5, DEL-9.
#[test]
fn the_schedule_is_the_specifications() {
    assert_eq!(RETRY_WAITS, [10, 60, 600, 3_600, 21_600].map(Duration::from_secs));
    assert_eq!(MAX_ATTEMPTS, 6);
    assert_eq!(ATTEMPT_TIMEOUT.as_secs(), 10);
    assert!(ATTEMPT_LEASE > ATTEMPT_TIMEOUT);
    let seen = RETRY_WAITS.iter().sum::<Duration>() + u32::from(MAX_ATTEMPTS) * ATTEMPT_TIMEOUT;
    assert_eq!(LONGEST_DELIVERY, seen);
    assert_eq!(RETENTION.as_secs(), 30 * 86_400);
}

/// Every status there is, and every fault: once there is a status, it decides. DEL-3, DEL-6, D-52,
/// D-57.
#[test]
fn every_status_has_its_verdict() {
    let endpoint = EndpointHealth::new(1, start());
    let last = failed_before(BEFORE_LAST, &endpoint, start());
    let ends_as = |outcome| {
        let mut delivery = last;
        let _ = attempted(&mut delivery, &endpoint, outcome, start(), start());
        delivery.status()
    };
    for status in 100..=999 {
        let expected = match status {
            200..=299 => DeliveryStatus::Delivered,
            410 => DeliveryStatus::Gone,
            _ => DeliveryStatus::Failed,
        };
        let (outcome, success) = (answered(status), expected == DeliveryStatus::Delivered);
        let seen = (ends_as(outcome), outcome.is_success(), outcome.to_string());
        assert_eq!(seen, (expected, success, status.to_string()), "{status}");
        assert_eq!(status.to_string().parse(), Ok(outcome), "{status}");
    }
    for (outcome, word) in [
        (Outcome::TimedOut, "timeout"),
        (Outcome::Refused, "refused"),
        (Outcome::Reset, "reset"),
        (Outcome::Dns, "dns"),
        (Outcome::Tls, "tls"),
        (Outcome::Forbidden, "forbidden"),
        (Outcome::Unsent, "unsent"),
    ] {
        let is_sent = outcome != Outcome::Unsent;
        let expected = if is_sent { DeliveryStatus::Failed } else { DeliveryStatus::Waiting };
        let seen = (ends_as(outcome), outcome.is_success(), outcome.to_string());
        assert_eq!(seen, (expected, false, word.to_owned()));
        assert_eq!(word.parse(), Ok(outcome), "{word}");
    }
    for text in ["", "99", "1000", "+200", "20", "OK", "Timeout", "2 0"] {
        let error = text.parse::<Outcome>().unwrap_err();
        let is_named =
            matches!(&error, ColumnError::Text { field: "outcome", text: t, .. } if **t == *text);
        assert!(is_named, "{error}");
    }
}

/// D-57: a sender that never sends charges nothing for thirty days. Then each delivery ends, and charges
/// its endpoint nothing.
#[test]
fn deliveries_end_though_no_attempt_is_ever_sent() {
    let is_kept =
        |delivery: &Delivery, now: Timestamp| now.since(delivery.event_created_at()) < RETENTION;
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let endpoint = EndpointHealth::new(1, start());
        let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
        let is_manual = seed % 3 == 0;
        if is_manual {
            let _ = attempted(&mut delivery, &endpoint, answered(410), start(), start());
            delivery.redeliver(&endpoint, start()).unwrap();
        }
        let (mut now, before) = (start(), delivery.attempts());
        while delivery.is_pending() {
            let day = Duration::from_secs(86_400);
            assert!(now.since(start()) < RETENTION + LONGEST_DELIVERY + day, "seed {seed}");
            now = delivery.due(now).unwrap().max(now);
            let ended = now.saturating_add(Duration::from_millis(dice.below(10_000)));
            let report = attempted(&mut delivery, &endpoint, Outcome::Unsent, now, ended);
            assert!(report.is_empty(), "seed {seed} charges the endpoint");
            now = ended;
            let charged = delivery.attempts();
            assert!(
                charged == before || !is_kept(&delivery, now),
                "seed {seed}: attempt {charged}"
            );
            // The host waits for what it lacks.
            delivery.postpone(Duration::from_millis(dice.below(3_600_000)), now);
        }
        let seen = (delivery.status(), delivery.attempts());
        let charged = if is_manual { before } else { MAX_ATTEMPTS };
        assert_eq!(seen, (DeliveryStatus::Failed, charged), "seed {seed}");
    }
}

/// DEL-10, D-56: one attempt; its failure does not count, its success resets.
#[test]
fn a_manual_redelivery_is_one_attempt_that_can_only_help() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(BEFORE_LAST, &endpoint, start());
    let report = attempted(&mut delivery, &endpoint, answered(500), start(), start());
    assert_eq!(endpoint.record(report, start()).unwrap(), EndpointChange::Updated);
    for (outcome, status, change, failures) in [
        (answered(500), DeliveryStatus::Failed, EndpointChange::Unchanged, 1),
        (Outcome::TimedOut, DeliveryStatus::Failed, EndpointChange::Unchanged, 1),
        // A fault of our own keeps it a manual redelivery.
        (Outcome::Unsent, DeliveryStatus::Waiting, EndpointChange::Unchanged, 1),
        (answered(204), DeliveryStatus::Delivered, EndpointChange::Updated, 0),
    ] {
        if !delivery.is_pending() {
            delivery.redeliver(&endpoint, at(60)).unwrap();
        }
        let seen = (delivery.due(at(60)), delivery.is_manual());
        assert_eq!(seen, (Some(at(60)), true), "{outcome:?}");
        let attempt = delivery.begin(&endpoint, at(60)).unwrap();
        assert_eq!((attempt.number(), attempt.is_manual()), (1, true), "{outcome:?}");
        let report = delivery.finish(&attempt, outcome, at(60)).unwrap();
        let seen = (report.is_late(), delivery.status(), delivery.attempts());
        assert_eq!(seen, (false, status, MAX_ATTEMPTS), "{outcome:?}");
        let seen = (endpoint.record(report, at(60)).unwrap(), endpoint.failures());
        assert_eq!(seen, (change, failures), "{outcome:?}");
    }
    assert!(!delivery.is_manual(), "nothing is pending");
}

/// D-56, D-62: what may be redelivered, and until when.
#[test]
fn redelivery_is_refused_with_its_reason() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut pending = Delivery::accept(&event(start()), &endpoint, start());
    assert_eq!(pending.redeliver(&endpoint, start()), Err(RedeliverError::Pending));
    let attempt = pending.begin(&endpoint, start()).unwrap();
    assert_eq!(pending.redeliver(&endpoint, start()), Err(RedeliverError::Pending));
    let mut delivered = pending;
    let _ = delivered.finish(&attempt, answered(200), start()).unwrap();
    assert_eq!(delivered.redeliver(&endpoint, start()), Err(RedeliverError::Delivered));

    let mut gone = pending;
    let report = gone.finish(&attempt, answered(410), start()).unwrap();
    let _ = endpoint.record(report, start()).unwrap();
    assert_eq!(gone.redeliver(&endpoint, at(1)), Err(RedeliverError::Disabled));
    let _ = endpoint.enable(at(2));
    let thirty_days = start().saturating_add(RETENTION);
    assert_eq!(gone.redeliver(&endpoint, thirty_days), Err(RedeliverError::Expired));
    let last = thirty_days.saturating_sub(Duration::from_nanos(1));
    assert_eq!(gone.redeliver(&endpoint, last), Ok(()));
}

/// DEL-9, D-62: kept for thirty days, and longer only while pending. Rows of older events may be removed.
#[test]
fn retention_counts_from_the_event_and_waits_for_its_end() {
    let endpoint = EndpointHealth::new(1, start());
    let over = start().saturating_add(RETENTION);
    let before = over.saturating_sub(Duration::from_nanos(1));
    // Accepted on the last day of its thirty.
    let mut delivery = Delivery::accept(&event(start()), &endpoint, before);
    assert!(delivery.is_kept(over));
    let attempt = delivery.begin(&endpoint, over).unwrap();
    assert!(delivery.is_kept(Timestamp::MAX));
    let _ = delivery.finish(&attempt, answered(200), over).unwrap();
    for (now, is_kept) in [(start(), true), (before, true), (over, false), (Timestamp::MAX, false)]
    {
        assert_eq!(
            (delivery.is_kept(now), start() >= oldest_kept(now)),
            (is_kept, is_kept),
            "{now}"
        );
    }
    assert_eq!(oldest_kept(before), start());
}

/// D-51: jitter is what a host adds, and only makes a wait longer.
#[test]
fn postponing_only_makes_a_wait_longer() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(0, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let before = delivery;
    assert!(!delivery.postpone(Duration::from_secs(5), start()));
    assert_eq!(delivery, before, "an attempt that is under way is not postponed");
    let _ = delivery.finish(&attempt, answered(500), start()).unwrap();
    assert!(delivery.postpone(Duration::from_secs(5), start()));
    assert_eq!(delivery.due(start()), Some(at(15)));
    assert_ne!(delivery.version(), before.version());
    let before = delivery;
    assert!(!delivery.postpone(Duration::ZERO, start()));
    assert_eq!(delivery, before, "there is nothing to store");
}

/// No time is too late and no state too odd for an answer.
#[test]
fn the_ends_of_time_are_ordinary() {
    for now in [Timestamp::MIN, Timestamp::MAX] {
        let mut endpoint = EndpointHealth::new(1, now);
        let mut delivery = Delivery::accept(&event(now), &endpoint, now);
        let report = attempted(&mut delivery, &endpoint, Outcome::Dns, now, Timestamp::MAX);
        assert_eq!(delivery.due(Timestamp::MAX), Some(Timestamp::MAX), "{now}");
        let seen = endpoint.record(report, Timestamp::MIN).unwrap();
        assert_eq!(seen, EndpointChange::Updated, "{now}");
    }
}
