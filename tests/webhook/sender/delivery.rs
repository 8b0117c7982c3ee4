//! One delivery: every sequence of outcomes, and what comes late, twice or not at all.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, BeginError, ColumnError, Delivery, DeliveryStatus,
    DisabledReason, EndpointChange, EndpointHealth, LONGEST_DELIVERY, MAX_ATTEMPTS, Outcome,
    RETENTION, RETRY_WAITS, RecoveryFilter, RedeliverError,
};
use http::StatusCode;
use serde_json::json;
use support::corpus;

use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, record, start};
use crate::dice::Dice;

/// What the specification says of one attempt: after this many failures, what each kind of outcome
/// leads to. DEL-3, DEL-4, DEL-6, D-53, D-57.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leads {
    Ends(DeliveryStatus),
    Waits(u64),
    SameAgain,
}
use Leads::{Ends, SameAgain, Waits};

/// What follows an attempt after so many failures: with a 2xx, a 410, another failure, and a fault of the sender.
fn leads(failures: u8) -> [Leads; 4] {
    let waits = RETRY_WAITS.get(usize::from(failures)).map(|wait| Waits(wait.as_secs()));
    let other = waits.unwrap_or(Ends(DeliveryStatus::Failed));
    [Ends(DeliveryStatus::Delivered), Ends(DeliveryStatus::Gone), other, SameAgain]
}

const KINDS: [Outcome; 7] = [
    Outcome::Answered(StatusCode::OK),
    Outcome::Answered(StatusCode::GONE),
    Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE),
    Outcome::Answered(StatusCode::FOUND),
    Outcome::TimedOut,
    Outcome::Refused,
    Outcome::Unsent,
];

/// All sequences, each walked until the delivery ends: DEL-4, D-53, D-57.
#[test]
fn every_sequence_of_outcomes_follows_the_table() {
    let endpoint = EndpointHealth::new(1, start());
    let event = event(start());
    let (mut walked, mut ended) = (0, 0);
    let sequences = KINDS.len().pow(MAX_ATTEMPTS.into());
    for code in 0..sequences {
        let mut delivery = Delivery::accept(&event, &endpoint, start());
        let (mut now, mut failures, mut rest) = (start(), 0_u8, code);
        for _ in 0..MAX_ATTEMPTS {
            let outcome = KINDS[rest % KINDS.len()];
            rest /= KINDS.len();
            let attempt = delivery.begin(&endpoint, now).unwrap();
            let row = format!("sequence {code}, {failures} failures, then {outcome:?}");
            assert_eq!((attempt.number(), attempt.is_manual()), (failures + 1, false), "{row}");
            assert_eq!(attempt.deadline().since(now), Duration::from_secs(10), "{row}"); // DEL-5
            // D-51: the wait counts from the end of the attempt, however long that took.
            let end =
                now.saturating_add(Duration::from_millis(u64::try_from(code).unwrap() % 9_973));
            let report = delivery.finish(&attempt, outcome, end).unwrap();
            assert!(!report.is_late(), "{row}");
            let [ok, gone, other, unsent] = leads(failures);
            let leads = match outcome {
                Outcome::Answered(StatusCode::OK) => ok,
                Outcome::Answered(StatusCode::GONE) => gone,
                Outcome::Unsent => unsent,
                _ => other,
            };
            match leads {
                Ends(status) => {
                    assert_eq!(delivery.status(), status, "{row}");
                    assert_eq!(
                        (delivery.ended_at(), delivery.due(end)),
                        (Some(end), None),
                        "{row}"
                    );
                    let again = delivery.begin(&endpoint, Timestamp::MAX);
                    assert_eq!(again, Err(BeginError::Ended), "{row}");
                    assert_eq!(delivery.attempts(), failures + 1, "{row}");
                    ended += 1;
                    break;
                }
                Waits(seconds) => {
                    failures += 1;
                    now = end.saturating_add(Duration::from_secs(seconds));
                }
                SameAgain => now = end,
            }
            let seen = (delivery.status(), delivery.due(end), delivery.attempts());
            assert_eq!(seen, (DeliveryStatus::Waiting, Some(now), failures), "{row}");
            if let Some(before) = now.checked_sub(Duration::from_nanos(1)).filter(|b| *b >= end) {
                let early = delivery.begin(&endpoint, before);
                assert!(matches!(early, Err(BeginError::Early { at, .. }) if at == now), "{row}");
            }
        }
        walked += 1;
    }
    assert_eq!(walked, sequences);
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
    assert_eq!(
        LONGEST_DELIVERY,
        RETRY_WAITS.iter().sum::<Duration>() + u32::from(MAX_ATTEMPTS) * ATTEMPT_TIMEOUT
    );
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
        assert_eq!(ends_as(answered(status)), expected, "{status}");
        let success = expected == DeliveryStatus::Delivered;
        assert_eq!(answered(status).is_success(), success, "{status}");
        assert_eq!(answered(status).to_string(), status.to_string());
        assert_eq!(status.to_string().parse(), Ok(answered(status)), "{status}");
    }
    for (outcome, word, expected) in [
        (Outcome::TimedOut, "timeout", DeliveryStatus::Failed),
        (Outcome::Refused, "refused", DeliveryStatus::Failed),
        (Outcome::Reset, "reset", DeliveryStatus::Failed),
        (Outcome::Dns, "dns", DeliveryStatus::Failed),
        (Outcome::Tls, "tls", DeliveryStatus::Failed),
        (Outcome::Forbidden, "forbidden", DeliveryStatus::Failed),
        (Outcome::Unsent, "unsent", DeliveryStatus::Waiting),
    ] {
        assert_eq!((ends_as(outcome), outcome.is_success()), (expected, false), "{word}");
        assert_eq!(outcome.to_string(), word);
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

/// D-51: a scheduler that comes late begins at once, and the waits after it are not shortened.
#[test]
fn a_late_scheduler_skips_nothing() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let late = at(100_000);
    let mut now = late;
    for number in 1..=MAX_ATTEMPTS {
        now = now.max(delivery.due(now).unwrap());
        let attempt = delivery.begin(&endpoint, now).unwrap();
        assert_eq!(attempt.number(), number, "attempt {number}");
        let _ = delivery.finish(&attempt, Outcome::TimedOut, attempt.deadline()).unwrap();
    }
    assert_eq!(delivery.status(), DeliveryStatus::Failed);
    assert_eq!(delivery.ended_at().unwrap().since(late), LONGEST_DELIVERY);
}

/// D-58: nobody else sends while the lease holds; when it is over, the same attempt is made again.
#[test]
fn a_lease_that_runs_out_is_taken_over() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(2, &endpoint, start());
    let first = delivery.begin(&endpoint, start()).unwrap();
    let until = start().saturating_add(ATTEMPT_LEASE);
    assert_eq!(delivery.due(start()), Some(until));
    for early in [start(), at(1), at(29)] {
        let begun = delivery.begin(&endpoint, early);
        let told = matches!(begun, Err(BeginError::Leased { until: told, .. }) if told == until);
        assert!(told, "{early}: {begun:?}");
    }
    let second = delivery.begin(&endpoint, until).unwrap();
    assert_eq!((first.number(), second.number()), (3, 3));
    assert_eq!(delivery.attempts(), 2);
    assert_ne!(first, second);
}

/// D-84: what a sender says whose lease was taken over, by what the other made of it meanwhile.
#[test]
fn late_outcomes_say_what_is_still_true() {
    let ok = answered(200);
    let gone = answered(410);
    let failed = Outcome::Reset;
    let unsent = Outcome::Unsent;
    const LATE: bool = true;
    const UNCHANGED: EndpointChange = EndpointChange::Unchanged;
    const RECOVERED: EndpointChange = EndpointChange::Updated;
    const DISABLED: EndpointChange = EndpointChange::Disabled(DisabledReason::Gone);
    // (what the second sender heard, the late outcome, whether it is too late, status, endpoint)
    let rows: [(Option<Outcome>, Outcome, bool, DeliveryStatus, EndpointChange); 15] = [
        // The second sender is still sending.
        (None, ok, !LATE, DeliveryStatus::Delivered, RECOVERED),
        (None, gone, !LATE, DeliveryStatus::Gone, DISABLED),
        (None, failed, LATE, DeliveryStatus::Sending, UNCHANGED),
        (None, unsent, LATE, DeliveryStatus::Sending, UNCHANGED),
        // It was acknowledged: a second acknowledgement is no news.
        (Some(ok), ok, LATE, DeliveryStatus::Delivered, UNCHANGED),
        (Some(ok), gone, LATE, DeliveryStatus::Delivered, DISABLED),
        (Some(ok), failed, LATE, DeliveryStatus::Delivered, UNCHANGED),
        // It failed for the last time, and was counted: not twice.
        (Some(failed), ok, !LATE, DeliveryStatus::Delivered, RECOVERED),
        (Some(failed), gone, LATE, DeliveryStatus::Failed, DISABLED),
        (Some(failed), failed, LATE, DeliveryStatus::Failed, UNCHANGED),
        // The endpoint is gone already.
        (Some(gone), ok, !LATE, DeliveryStatus::Delivered, UNCHANGED),
        (Some(gone), gone, LATE, DeliveryStatus::Gone, UNCHANGED),
        (Some(gone), failed, LATE, DeliveryStatus::Gone, UNCHANGED),
        // It was not sent, and is to be taken again.
        (Some(unsent), failed, LATE, DeliveryStatus::Waiting, UNCHANGED),
        (Some(unsent), ok, !LATE, DeliveryStatus::Delivered, RECOVERED),
    ];
    for (second, outcome, late, status, change) in rows {
        let row = format!("{second:?}, then late {outcome:?}");
        let mut endpoint = EndpointHealth::new(1, start());
        // Something to recover from.
        for _ in 0..2 {
            let _ = record(&mut endpoint, BEFORE_LAST, failed, start());
        }
        let mut delivery = failed_before(BEFORE_LAST, &endpoint, start());
        let slow = delivery.begin(&endpoint, start()).unwrap();
        let over = delivery.due(start()).unwrap();
        let other = delivery.begin(&endpoint, over).unwrap();
        if let Some(outcome) = second {
            let report = delivery.finish(&other, outcome, at(31)).unwrap();
            let _ = endpoint.record(report, at(31)).unwrap();
            // An acknowledgement has already set the count to zero: fail once more, to see whether
            // the late outcome would do it again.
            if outcome == ok {
                let _ = record(&mut endpoint, BEFORE_LAST, failed, at(32));
                assert_eq!(endpoint.failures(), 1, "{row}");
            }
        }
        let report = delivery.finish(&slow, outcome, at(40)).unwrap();
        let seen = endpoint.record(report, at(40)).unwrap();
        assert!(seen != RECOVERED || endpoint.failures() == 0, "{row}");
        assert_eq!((report.is_late(), delivery.status(), seen), (late, status, change), "{row}");
        // The same said once more changes nothing.
        let before = delivery;
        let again = delivery.finish(&slow, outcome, at(41)).unwrap();
        assert_eq!((again.is_late(), delivery), (true, before), "{row}, twice");
        assert_eq!(endpoint.record(again, at(41)).unwrap(), UNCHANGED, "{row}, twice");
    }
}

/// DEL-10, D-56: one attempt; its failure does not count, its success resets.
#[test]
fn a_manual_redelivery_is_one_attempt_that_can_only_help() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(BEFORE_LAST, &endpoint, start());
    let report = attempted(&mut delivery, &endpoint, answered(500), start(), start());
    assert_eq!(endpoint.record(report, start()).unwrap(), EndpointChange::Updated);
    assert_eq!(endpoint.failures(), 1);

    for round in 0..30 {
        delivery.redeliver(&endpoint, at(60)).unwrap();
        let seen = (delivery.due(at(60)), delivery.is_manual());
        assert_eq!(seen, (Some(at(60)), true), "{round}");
        let attempt = delivery.begin(&endpoint, at(60)).unwrap();
        assert_eq!((attempt.number(), attempt.is_manual()), (1, true));
        let report = delivery.finish(&attempt, answered(500), at(61)).unwrap();
        assert_eq!(
            (report.is_late(), delivery.status()),
            (false, DeliveryStatus::Failed),
            "{round}"
        );
        assert_eq!(endpoint.record(report, at(61)).unwrap(), EndpointChange::Unchanged, "{round}");
        assert_eq!((delivery.attempts(), endpoint.failures()), (MAX_ATTEMPTS, 1), "{round}");
    }

    delivery.redeliver(&endpoint, at(90)).unwrap();
    // A fault of our own keeps it a manual redelivery.
    let _ = attempted(&mut delivery, &endpoint, Outcome::Unsent, at(90), at(90));
    assert_eq!((delivery.status(), delivery.due(at(90))), (DeliveryStatus::Waiting, Some(at(90))));
    let attempt = delivery.begin(&endpoint, at(91)).unwrap();
    assert!(attempt.is_manual());
    let report = delivery.finish(&attempt, answered(204), at(92)).unwrap();
    assert_eq!((delivery.status(), delivery.attempts()), (DeliveryStatus::Delivered, MAX_ATTEMPTS));
    assert!(!delivery.is_manual(), "nothing is pending");
    assert_eq!(endpoint.record(report, at(92)).unwrap(), EndpointChange::Updated);
    assert_eq!(endpoint.failures(), 0);
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

/// D-55, D-56: what was pending when its endpoint was disabled is never sent of itself, so it can be
/// redelivered, whether or not anybody has looked at it and parked it.
#[test]
fn what_is_as_good_as_parked_is_redelivered() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut waiting = failed_before(BEFORE_LAST, &endpoint, start());
    let mut sending = Delivery::accept(&event(start()), &endpoint, start());
    let lost = sending.begin(&endpoint, start()).unwrap();
    let mut gone = Delivery::accept(&event(start()), &endpoint, start());
    let report = attempted(&mut gone, &endpoint, answered(410), start(), at(1));
    let _ = endpoint.record(report, at(1)).unwrap();

    assert_eq!(waiting.redeliver(&endpoint, at(2)), Err(RedeliverError::Disabled));
    let leased = sending.redeliver(&endpoint, at(2));
    assert!(matches!(leased, Err(RedeliverError::Leased { until, .. }) if until == at(30)));
    let missed = endpoint.enable(at(3)).unwrap();
    assert!([waiting, sending, gone].iter().all(|delivery| missed.includes(delivery)));
    // A span that knows of no endpoint goes by what the rows say.
    assert!(!RecoveryFilter::between(start(), at(3), at(3)).includes(&waiting));

    assert_eq!(waiting.redeliver(&endpoint, at(4)), Ok(()));
    assert!(!missed.includes(&waiting), "on its way again");
    assert_eq!(waiting.redeliver(&endpoint, at(5)), Err(RedeliverError::Pending));
    assert!(waiting.begin(&endpoint, at(5)).unwrap().is_manual());

    // Its sender may still be at it, until the lease is over.
    assert_eq!(sending.redeliver(&endpoint, at(29)), leased);
    assert_eq!(sending.redeliver(&endpoint, at(30)), Ok(()));
    let again = sending.begin(&endpoint, at(30)).unwrap();
    // The failure that comes so late is of an attempt that no longer counts.
    assert!(sending.finish(&lost, Outcome::Reset, at(31)).unwrap().is_late());
    assert!(!sending.finish(&again, answered(200), at(31)).unwrap().is_late());
    assert_eq!(sending.status(), DeliveryStatus::Delivered);
    assert!(!missed.includes(&sending));

    let thirty_days = start().saturating_add(RETENTION);
    let mut old = failed_before(1, &EndpointHealth::new(1, start()), start());
    assert_eq!(old.redeliver(&endpoint, thirty_days), Err(RedeliverError::Expired));
}

/// DEL-9, D-62: kept for thirty days, and longer only while pending.
#[test]
fn retention_counts_from_the_event_and_waits_for_its_end() {
    let endpoint = EndpointHealth::new(1, start());
    let created = start();
    let over = created.saturating_add(RETENTION);
    let before = over.saturating_sub(Duration::from_nanos(1));
    // Accepted on the last day of its thirty.
    let mut delivery = Delivery::accept(&event(created), &endpoint, before);
    assert!(delivery.is_kept(over));
    let attempt = delivery.begin(&endpoint, over).unwrap();
    assert!(delivery.is_kept(Timestamp::MAX));
    let _ = delivery.finish(&attempt, answered(200), over).unwrap();
    assert!(delivery.is_kept(before));
    assert!(!delivery.is_kept(over));
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
        assert_eq!(
            endpoint.record(report, Timestamp::MIN).unwrap(),
            EndpointChange::Updated,
            "{now}"
        );
    }
}

/// Every transition changes the version, and nothing else does: so a conditional write is enough
/// to keep senders apart (D-54, D-58).
#[test]
fn the_version_changes_exactly_with_the_value() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let mut seen = vec![delivery.version()];
    let mut changed = |delivery: &Delivery| {
        assert!(!seen.contains(&delivery.version()));
        seen.push(delivery.version());
    };
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    changed(&delivery);
    let _ = delivery.finish(&attempt, Outcome::Unsent, start()).unwrap();
    changed(&delivery);
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    changed(&delivery);
    let _ = delivery.finish(&attempt, Outcome::Tls, start()).unwrap();
    changed(&delivery);
    let attempt = delivery.begin(&endpoint, at(10)).unwrap();
    changed(&delivery);
    let report = delivery.finish(&attempt, answered(410), at(11)).unwrap();
    changed(&delivery);
    let _ = endpoint.record(report, at(11)).unwrap();
    let _ = endpoint.enable(at(12));
    delivery.redeliver(&endpoint, at(12)).unwrap();
    changed(&delivery);
}
