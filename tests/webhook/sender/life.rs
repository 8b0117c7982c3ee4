//! One delivery: every sequence of outcomes, and what comes late, twice or not at all.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_TIMEOUT, ATTEMPTS, BeginError, Delivery, DisabledReason, Endpoint, EndpointChange,
    LEASE, LONGEST, MissedDeliveries, Outcome, RETENTION, RedeliverError, Status, Step, Verdict,
    WAITS, jitter, wait_after,
};
use http::StatusCode;

use super::{answered, at, failed_before, start};

/// What the specification says of one attempt, written out by hand: after so many failures, what
/// each kind of outcome leads to. DEL-3, DEL-4, DEL-6, D-53, D-57.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leads {
    Ends(Status),
    Waits(u64),
    SameAgain,
}
use Leads::{Ends, SameAgain, Waits};

const TABLE: [(u8, Leads, Leads, Leads, Leads); 6] = [
    // failures  2xx                      410                 other failure          not ours
    (0, Ends(Status::Delivered), Ends(Status::Gone), Waits(10), SameAgain),
    (1, Ends(Status::Delivered), Ends(Status::Gone), Waits(60), SameAgain),
    (2, Ends(Status::Delivered), Ends(Status::Gone), Waits(600), SameAgain),
    (3, Ends(Status::Delivered), Ends(Status::Gone), Waits(3_600), SameAgain),
    (4, Ends(Status::Delivered), Ends(Status::Gone), Waits(21_600), SameAgain),
    (5, Ends(Status::Delivered), Ends(Status::Gone), Ends(Status::Failed), SameAgain),
];

const KINDS: [Outcome; 7] = [
    Outcome::Answered(StatusCode::OK),
    Outcome::Answered(StatusCode::GONE),
    Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE),
    Outcome::Answered(StatusCode::FOUND),
    Outcome::TimedOut,
    Outcome::Refused,
    Outcome::Unsent,
];

/// All 7^6 sequences, each walked until the delivery ends: DEL-4, D-53, D-57.
#[test]
fn every_sequence_of_outcomes_follows_the_table() {
    let endpoint = Endpoint::new(start());
    let (mut walked, mut ended) = (0, 0);
    for code in 0..7_usize.pow(6) {
        let mut delivery = Delivery::accept(start(), &endpoint, start());
        let (mut now, mut failures, mut rest) = (start(), 0_u8, code);
        for _ in 0..6 {
            let outcome = KINDS[rest % 7];
            rest /= 7;
            let attempt = delivery.begin(&endpoint, now).unwrap();
            assert_eq!((attempt.number(), attempt.is_by_hand()), (failures + 1, false));
            assert_eq!(attempt.deadline().since(now), Duration::from_secs(10)); // DEL-5
            // D-51: the wait counts from the end of the attempt, however long that took.
            let end =
                now.saturating_add(Duration::from_millis(u64::try_from(code).unwrap() % 9_973));
            let finished = delivery.finish(&attempt, outcome, end);
            let (_, ok, gone, other, unsent) = TABLE[usize::from(failures)];
            let leads = match outcome {
                Outcome::Answered(StatusCode::OK) => ok,
                Outcome::Answered(StatusCode::GONE) => gone,
                Outcome::Unsent => unsent,
                _ => other,
            };
            match leads {
                Ends(status) => {
                    assert_eq!(delivery.status(), status, "{code}");
                    assert_eq!(delivery.ended_at(), Some(end));
                    assert_eq!(delivery.due(), None);
                    assert_eq!(delivery.begin(&endpoint, Timestamp::MAX), Err(BeginError::Ended));
                    assert_eq!(delivery.attempts(), failures + 1);
                    ended += 1;
                    break;
                }
                Waits(seconds) => {
                    failures += 1;
                    now = end.saturating_add(Duration::from_secs(seconds));
                    assert_eq!(finished.step, Step::Again { at: now }, "{code}");
                }
                SameAgain => {
                    now = end;
                    assert_eq!(finished.step, Step::Unsent, "{code}");
                }
            }
            assert_eq!((delivery.status(), delivery.due()), (Status::Waiting, Some(now)));
            assert_eq!(delivery.attempts(), failures);
            if let Some(before) = now.checked_sub(Duration::from_nanos(1)).filter(|b| *b >= end) {
                assert_eq!(delivery.begin(&endpoint, before), Err(BeginError::Early { at: now }));
            }
        }
        walked += 1;
    }
    assert_eq!(walked, 117_649);
    // All but the sequences with an `Unsent` and no end: 5^6 end by failing at least, and more.
    assert!(ended > 5_usize.pow(6), "{ended}");
}

/// The numbers themselves, as the specification writes them. DEL-4, DEL-5, DEL-9.
#[test]
fn the_schedule_is_the_specifications() {
    assert_eq!(WAITS.map(|wait| wait.as_secs()), [10, 60, 600, 3_600, 21_600]);
    assert_eq!(WAITS.map(Some)[..], (1..=5).map(wait_after).collect::<Vec<_>>());
    assert_eq!([0, 6, u8::MAX].map(wait_after), [None; 3]);
    assert_eq!(ATTEMPTS, 6);
    assert_eq!(ATTEMPT_TIMEOUT.as_secs(), 10);
    assert!(LEASE > ATTEMPT_TIMEOUT);
    assert_eq!(LONGEST, WAITS.iter().sum::<Duration>() + 6 * ATTEMPT_TIMEOUT);
    assert_eq!(RETENTION.as_secs(), 30 * 86_400);
}

/// Every status there is, and every fault: once there is a status, it decides. DEL-3, DEL-6, D-52,
/// D-57.
#[test]
fn every_status_has_its_verdict() {
    for status in 100..=999 {
        let expected = match status {
            200..=299 => Verdict::Acknowledged,
            410 => Verdict::Gone,
            _ => Verdict::Failed,
        };
        assert_eq!(answered(status).verdict(), expected, "{status}");
        assert_eq!(answered(status).to_string(), status.to_string());
        assert_eq!(status.to_string().parse(), Ok(answered(status)));
    }
    for (outcome, word, verdict) in [
        (Outcome::TimedOut, "timeout", Verdict::Failed),
        (Outcome::Refused, "refused", Verdict::Failed),
        (Outcome::Reset, "reset", Verdict::Failed),
        (Outcome::Dns, "dns", Verdict::Failed),
        (Outcome::Tls, "tls", Verdict::Failed),
        (Outcome::Forbidden, "forbidden", Verdict::Failed),
        (Outcome::Unsent, "unsent", Verdict::Unsent),
    ] {
        assert_eq!(outcome.verdict(), verdict);
        assert_eq!(outcome.to_string(), word);
        assert_eq!(word.parse(), Ok(outcome));
    }
    for text in ["", "99", "1000", "+200", "20", "OK", "Timeout", "2 0"] {
        assert_eq!(
            text.parse::<Outcome>(),
            Err(call_assistant::webhook::sender::ParseOutcomeError),
            "{text}"
        );
    }
}

/// D-51: a scheduler that comes late begins at once, and the waits after it are not shortened.
#[test]
fn a_late_scheduler_skips_nothing() {
    let endpoint = Endpoint::new(start());
    let mut delivery = Delivery::accept(start(), &endpoint, start());
    let late = at(100_000);
    for number in 1..=6 {
        let attempt = delivery.begin(&endpoint, late.max(delivery.due().unwrap())).unwrap();
        assert_eq!(attempt.number(), number);
        let _ = delivery.finish(&attempt, Outcome::TimedOut, attempt.deadline());
    }
    assert_eq!(delivery.status(), Status::Failed);
    assert_eq!(delivery.ended_at().unwrap().since(late), LONGEST);
}

/// D-58: nobody else sends while the lease holds; when it is over, the same attempt is made again.
#[test]
fn a_lease_that_runs_out_is_taken_over() {
    let endpoint = Endpoint::new(start());
    let mut delivery = failed_before(2, &endpoint, start());
    let first = delivery.begin(&endpoint, start()).unwrap();
    let until = start().saturating_add(LEASE);
    assert_eq!(delivery.due(), Some(until));
    for early in [start(), at(1), at(29)] {
        assert_eq!(delivery.begin(&endpoint, early), Err(BeginError::Leased { until }));
    }
    let second = delivery.begin(&endpoint, until).unwrap();
    assert_eq!((first.number(), second.number()), (3, 3));
    assert_eq!(delivery.attempts(), 2);
    assert_ne!(first, second);
}

/// A lease that ran out but was not taken over is still good: the outcome was merely slow.
#[test]
fn an_outcome_after_the_lease_counts_if_nobody_took_over() {
    let endpoint = Endpoint::new(start());
    let mut delivery = failed_before(0, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let finished = delivery.finish(&attempt, answered(500), at(3_600));
    assert_eq!(finished.step, Step::Again { at: at(3_610) });
}

/// What a sender says whose lease was taken over, by what the other made of it meanwhile.
#[test]
fn late_outcomes_say_what_is_still_true() {
    let ok = answered(200);
    let gone = answered(410);
    let failed = Outcome::Reset;
    let unsent = Outcome::Unsent;
    // (what the second sender heard, the late outcome, step, status, endpoint)
    let rows: [(Option<Outcome>, Outcome, Step, Status, EndpointChange); 15] = [
        // The second sender is still at it.
        (None, ok, Step::Delivered, Status::Delivered, EndpointChange::Recovered),
        (None, gone, Step::Gone, Status::Gone, EndpointChange::Disabled(DisabledReason::Gone)),
        (None, failed, Step::Late, Status::Sending, EndpointChange::Unchanged),
        (None, unsent, Step::Late, Status::Sending, EndpointChange::Unchanged),
        // It was acknowledged: a second acknowledgement is no news.
        (Some(ok), ok, Step::Late, Status::Delivered, EndpointChange::Unchanged),
        (
            Some(ok),
            gone,
            Step::Late,
            Status::Delivered,
            EndpointChange::Disabled(DisabledReason::Gone),
        ),
        (Some(ok), failed, Step::Late, Status::Delivered, EndpointChange::Unchanged),
        // It failed for the last time, and was counted: not twice.
        (Some(failed), ok, Step::Delivered, Status::Delivered, EndpointChange::Recovered),
        (
            Some(failed),
            gone,
            Step::Late,
            Status::Failed,
            EndpointChange::Disabled(DisabledReason::Gone),
        ),
        (Some(failed), failed, Step::Late, Status::Failed, EndpointChange::Unchanged),
        // The endpoint is gone already.
        (Some(gone), ok, Step::Delivered, Status::Delivered, EndpointChange::Unchanged),
        (Some(gone), gone, Step::Late, Status::Gone, EndpointChange::Unchanged),
        (Some(gone), failed, Step::Late, Status::Gone, EndpointChange::Unchanged),
        // It was not sent, and is to be taken again.
        (Some(unsent), failed, Step::Late, Status::Waiting, EndpointChange::Unchanged),
        (Some(unsent), ok, Step::Delivered, Status::Delivered, EndpointChange::Recovered),
    ];
    for (second, late, step, status, change) in rows {
        let mut endpoint = Endpoint::new(start());
        // Something to recover from.
        for _ in 0..2 {
            let mut other = failed_before(5, &endpoint, start());
            let attempt = other.begin(&endpoint, start()).unwrap();
            let _ = endpoint.record(other.finish(&attempt, failed, start()).report, start());
        }
        let mut delivery = failed_before(5, &endpoint, start());
        let slow = delivery.begin(&endpoint, start()).unwrap();
        let over = delivery.due().unwrap();
        let other = delivery.begin(&endpoint, over).unwrap();
        if let Some(outcome) = second {
            let finished = delivery.finish(&other, outcome, at(31));
            let _ = endpoint.record(finished.report, at(31));
            // An acknowledgement has already set the count to zero: fail once more, to see whether
            // the late outcome would do it again.
            if outcome == ok {
                let mut third = failed_before(5, &endpoint, at(32));
                let attempt = third.begin(&endpoint, at(32)).unwrap();
                let _ = endpoint.record(third.finish(&attempt, failed, at(32)).report, at(32));
                assert_eq!(endpoint.failures(), 1);
            }
        }
        let finished = delivery.finish(&slow, late, at(40));
        let seen = endpoint.record(finished.report, at(40));
        let row = format!("{second:?}, then late {late:?}");
        assert_eq!((finished.step, delivery.status(), seen), (step, status, change), "{row}");
        // The same said once more changes nothing.
        let before = (delivery, endpoint);
        let again = delivery.finish(&slow, late, at(41));
        assert_eq!((again.step, delivery), (Step::Late, before.0), "{row}, twice");
        assert_eq!(
            endpoint.record(again.report, at(41)),
            EndpointChange::Unchanged,
            "{row}, twice"
        );
    }
}

/// DEL-10, D-56: one attempt; its failure does not count, its success resets.
#[test]
fn a_redelivery_by_hand_is_one_attempt_that_can_only_help() {
    let mut endpoint = Endpoint::new(start());
    let mut delivery = failed_before(5, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let finished = delivery.finish(&attempt, answered(500), start());
    assert_eq!(
        endpoint.record(finished.report, start()),
        EndpointChange::Counted { failures: 1, warn: false }
    );

    for _ in 0..30 {
        delivery.redeliver(&endpoint, at(60)).unwrap();
        assert_eq!((delivery.due(), delivery.is_by_hand()), (Some(at(60)), true));
        let attempt = delivery.begin(&endpoint, at(60)).unwrap();
        assert_eq!((attempt.number(), attempt.is_by_hand()), (1, true));
        let finished = delivery.finish(&attempt, answered(500), at(61));
        assert_eq!((finished.step, delivery.status()), (Step::Failed, Status::Failed));
        assert_eq!(endpoint.record(finished.report, at(61)), EndpointChange::Unchanged);
        assert_eq!((delivery.attempts(), endpoint.failures()), (6, 1));
    }

    delivery.redeliver(&endpoint, at(90)).unwrap();
    // A fault of our own keeps it a redelivery by hand.
    let attempt = delivery.begin(&endpoint, at(90)).unwrap();
    assert_eq!(delivery.finish(&attempt, Outcome::Unsent, at(90)).step, Step::Unsent);
    let attempt = delivery.begin(&endpoint, at(91)).unwrap();
    assert!(attempt.is_by_hand());
    let finished = delivery.finish(&attempt, answered(204), at(92));
    assert_eq!((finished.step, delivery.attempts()), (Step::Delivered, 6));
    assert!(!delivery.is_by_hand(), "nothing is pending");
    assert_eq!(endpoint.record(finished.report, at(92)), EndpointChange::Recovered);
}

/// D-53: a 410 is final on any attempt, by hand too.
#[test]
fn gone_by_hand_disables_too() {
    let mut endpoint = Endpoint::new(start());
    let mut delivery = failed_before(5, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let _ = delivery.finish(&attempt, answered(500), start());
    delivery.redeliver(&endpoint, at(1)).unwrap();
    let attempt = delivery.begin(&endpoint, at(1)).unwrap();
    let finished = delivery.finish(&attempt, answered(410), at(2));
    assert_eq!((finished.step, delivery.status()), (Step::Gone, Status::Gone));
    assert_eq!(delivery.attempts(), 6);
    assert_eq!(
        endpoint.record(finished.report, at(2)),
        EndpointChange::Disabled(DisabledReason::Gone)
    );
}

/// D-53, D-58: a 410 that comes after others have taken over ends it, and takes back nothing of
/// what they have counted.
#[test]
fn a_late_gone_counts_no_attempt() {
    let endpoint = Endpoint::new(start());
    let mut delivery = failed_before(2, &endpoint, start());
    let slow = delivery.begin(&endpoint, start()).unwrap();
    for _ in 0..2 {
        let attempt = delivery.begin(&endpoint, delivery.due().unwrap()).unwrap();
        let _ = delivery.finish(&attempt, Outcome::Reset, attempt.began_at());
    }
    assert_eq!((slow.number(), delivery.attempts()), (3, 4));
    let finished = delivery.finish(&slow, answered(410), at(10_000));
    assert_eq!((finished.step, delivery.status()), (Step::Gone, Status::Gone));
    assert_eq!(delivery.attempts(), 4);
}

/// D-56, D-62: what may be redelivered, and until when.
#[test]
fn redelivery_is_refused_with_its_reason() {
    let mut endpoint = Endpoint::new(start());
    let mut pending = Delivery::accept(start(), &endpoint, start());
    assert_eq!(pending.redeliver(&endpoint, start()), Err(RedeliverError::Pending));
    let attempt = pending.begin(&endpoint, start()).unwrap();
    assert_eq!(pending.redeliver(&endpoint, start()), Err(RedeliverError::Pending));
    let mut delivered = pending;
    let _ = delivered.finish(&attempt, answered(200), start());
    assert_eq!(delivered.redeliver(&endpoint, start()), Err(RedeliverError::Delivered));

    let mut gone = pending;
    let finished = gone.finish(&attempt, answered(410), start());
    let _ = endpoint.record(finished.report, start());
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
    let mut endpoint = Endpoint::new(start());
    let mut waiting = failed_before(5, &endpoint, start());
    let mut sending = Delivery::accept(start(), &endpoint, start());
    let lost = sending.begin(&endpoint, start()).unwrap();
    let mut gone = Delivery::accept(start(), &endpoint, start());
    let attempt = gone.begin(&endpoint, start()).unwrap();
    let finished = gone.finish(&attempt, answered(410), at(1));
    let _ = endpoint.record(finished.report, at(1));

    assert_eq!(waiting.redeliver(&endpoint, at(2)), Err(RedeliverError::Disabled));
    let leased = Err(RedeliverError::Leased { until: at(30) });
    assert_eq!(sending.redeliver(&endpoint, at(2)), leased);
    let missed = endpoint.enable(at(3)).unwrap();
    assert!([waiting, sending, gone].iter().all(|delivery| missed.includes(delivery)));
    // A span that knows of no endpoint goes by what the rows say.
    assert!(!MissedDeliveries::between(start(), at(3), at(3)).includes(&waiting));

    assert_eq!(waiting.redeliver(&endpoint, at(4)), Ok(()));
    assert!(!missed.includes(&waiting), "on its way again");
    assert_eq!(waiting.redeliver(&endpoint, at(5)), Err(RedeliverError::Pending));
    assert!(waiting.begin(&endpoint, at(5)).unwrap().is_by_hand());

    // Its sender may still be at it, until the lease is over.
    assert_eq!(sending.redeliver(&endpoint, at(29)), leased);
    assert_eq!(sending.redeliver(&endpoint, at(30)), Ok(()));
    let again = sending.begin(&endpoint, at(30)).unwrap();
    // The failure that comes so late is of an attempt that no longer counts.
    assert_eq!(sending.finish(&lost, Outcome::Reset, at(31)).step, Step::Late);
    assert_eq!(sending.finish(&again, answered(200), at(31)).step, Step::Delivered);
    assert!(!missed.includes(&sending));

    let thirty_days = start().saturating_add(RETENTION);
    let mut old = failed_before(1, &Endpoint::new(start()), start());
    assert_eq!(old.redeliver(&endpoint, thirty_days), Err(RedeliverError::Expired));
}

/// DEL-9, D-62: kept for thirty days, and longer only while pending.
#[test]
fn retention_counts_from_the_event_and_waits_for_its_end() {
    let endpoint = Endpoint::new(start());
    let created = start();
    let over = created.saturating_add(RETENTION);
    let before = over.saturating_sub(Duration::from_nanos(1));
    // Accepted on the last day of its thirty.
    let mut delivery = Delivery::accept(created, &endpoint, before);
    assert!(delivery.is_kept(over));
    let attempt = delivery.begin(&endpoint, over).unwrap();
    assert!(delivery.is_kept(Timestamp::MAX));
    let _ = delivery.finish(&attempt, answered(200), over);
    assert!(delivery.is_kept(before));
    assert!(!delivery.is_kept(over));
}

/// D-51: jitter is asked for by name, and only makes a wait longer.
#[test]
fn postponing_only_makes_a_wait_longer() {
    let endpoint = Endpoint::new(start());
    let mut delivery = failed_before(0, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let before = delivery;
    delivery.postpone(Duration::from_secs(5));
    assert_eq!(delivery, before, "an attempt that is under way is not postponed");
    let _ = delivery.finish(&attempt, answered(500), start());
    delivery.postpone(Duration::from_secs(5));
    assert_eq!(delivery.due(), Some(at(15)));
    assert_ne!(delivery.version(), before.version());
    let before = delivery;
    delivery.postpone(Duration::ZERO);
    assert_eq!(delivery, before, "there is nothing to store");

    for random in [0, 1, u32::MAX / 3, u32::MAX] {
        for wait in WAITS {
            assert!(jitter(wait, 20, random) <= wait / 5);
            assert_eq!(jitter(wait, 0, random), Duration::ZERO);
        }
    }
    assert_eq!(jitter(Duration::MAX, 255, u32::MAX), Duration::from_nanos(u64::MAX));
}

/// No time is too late and no state too odd for an answer.
#[test]
fn the_ends_of_time_are_ordinary() {
    for now in [Timestamp::MIN, Timestamp::MAX] {
        let mut endpoint = Endpoint::new(now);
        let mut delivery = Delivery::accept(now, &endpoint, now);
        let attempt = delivery.begin(&endpoint, now).unwrap();
        let finished = delivery.finish(&attempt, Outcome::Dns, Timestamp::MAX);
        assert_eq!(finished.step, Step::Again { at: Timestamp::MAX });
        assert_eq!(endpoint.record(finished.report, Timestamp::MIN), EndpointChange::Unchanged);
    }
}

/// Every transition changes the version, and nothing else does: so a conditional write is enough
/// to keep senders apart (D-54, D-58).
#[test]
fn the_version_changes_exactly_with_the_value() {
    let mut endpoint = Endpoint::new(start());
    let mut delivery = Delivery::accept(start(), &endpoint, start());
    let mut seen = vec![delivery.version()];
    let mut changed = |delivery: &Delivery| {
        assert!(!seen.contains(&delivery.version()));
        seen.push(delivery.version());
    };
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    changed(&delivery);
    let _ = delivery.finish(&attempt, Outcome::Unsent, start());
    changed(&delivery);
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    changed(&delivery);
    let _ = delivery.finish(&attempt, Outcome::Tls, start());
    changed(&delivery);
    let attempt = delivery.begin(&endpoint, at(10)).unwrap();
    changed(&delivery);
    let finished = delivery.finish(&attempt, answered(410), at(11));
    changed(&delivery);
    let _ = endpoint.record(finished.report, at(11));
    let _ = endpoint.enable(at(12));
    delivery.redeliver(&endpoint, at(12)).unwrap();
    changed(&delivery);
}
