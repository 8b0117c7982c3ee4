//! What an owner does to an endpoint: pause, new URL, delete, new secret; and what answers of the old
//! URL still say. D-83, D-90.

use std::time::Duration;

use call_assistant::webhook::sender::{
    BeginError, Delivery, DeliveryStatus, DisabledReason, EndpointChange, EndpointColumns,
    EndpointHealth, EndpointUrl, Outcome, RETENTION, RedeliverError, SignedDestination,
};
use call_assistant::webhook::{SetupError, Signer, Verifier};

use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, record, start};
use support::secret;

/// One failure on record, so that resets show.
fn endpoint_with_a_failure() -> EndpointHealth {
    let mut endpoint = EndpointHealth::new(1, start());
    let _ = record(&mut endpoint, BEFORE_LAST, Outcome::Tls, start());
    assert_eq!(endpoint.failures(), 1);
    endpoint
}

/// D-83, D-90: what is pending goes to the new URL, and the count begins anew.
#[test]
fn a_new_url_is_checked_and_gets_what_is_pending() {
    let mut endpoint = endpoint_with_a_failure();
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let _ = attempted(&mut delivery, &endpoint, answered(500), start(), start());

    assert!(EndpointUrl::parse("https://10.0.0.1/").is_err(), "checked as at registration");
    let moved = EndpointUrl::parse("https://new.example.com/hook").unwrap();
    let before = endpoint;
    assert_eq!(endpoint.moved(at(5)), EndpointChange::Updated);
    assert_eq!((endpoint.failures(), endpoint.since()), (0, at(5)));
    assert_eq!(endpoint.generation(), before.generation());
    assert_eq!(endpoint.version(), before.version() + 1);
    assert!(!delivery.park(&endpoint, at(5)), "carried along");
    let attempt = delivery.begin(&endpoint, at(10)).unwrap();
    let moved = SignedDestination::new(&endpoint, moved, Signer::new(secret("whsec_one")));
    let request = attempt.request(&moved, &event(start()), at(10)).unwrap();
    assert_eq!(request.uri(), "https://new.example.com/hook");
    assert_eq!(attempt.number(), 2);
    // What the new URL answers counts.
    let report = delivery.finish(&attempt, answered(410), at(11)).unwrap();
    let gone = EndpointChange::Disabled(DisabledReason::Gone);
    assert_eq!(endpoint.record(report, at(11)).unwrap(), gone);
    // While it is disabled, a move leaves it as it is: enabling begins a new life.
    let before = endpoint;
    assert_eq!((endpoint.moved(at(12)), endpoint), (EndpointChange::Unchanged, before));
}

/// D-90: what an owner may do between an attempt and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Move,
    Pause,
    Enable,
}

/// D-90: answers to requests to the old URL leave the endpoint as it is, whatever else its owner did
/// meanwhile, at one instant or later, and with a clock that is set back. Their 2xx delivers.
#[test]
fn answers_of_the_old_url_leave_a_moved_endpoint_unchanged() {
    use Does::{Enable, Move, Pause};
    let orders: [&[Does]; 7] = [
        &[Move],
        &[Move, Move],
        &[Move, Move, Move],
        &[Move, Pause, Enable],
        &[Pause, Move, Enable],
        &[Pause, Enable, Move],
        &[Pause, Move, Enable, Move],
    ];
    let clocks: [fn(u64) -> u64; 3] = [|_| 0, |step| step, |step| 100 - step];
    for (does, clock) in orders.into_iter().flat_map(|does| clocks.map(|clock| (does, clock))) {
        for (failed, outcome, expected) in [
            (0, answered(200), DeliveryStatus::Delivered),
            (0, answered(410), DeliveryStatus::Gone),
            (0, answered(500), DeliveryStatus::Waiting),
            (0, Outcome::Unsent, DeliveryStatus::Waiting),
            (BEFORE_LAST, Outcome::TimedOut, DeliveryStatus::Failed),
            (BEFORE_LAST, answered(204), DeliveryStatus::Delivered),
        ] {
            let row = format!("{does:?} {outcome:?} after {failed}, clock {}", clock(1));
            let mut endpoint = endpoint_with_a_failure();
            let mut delivery = failed_before(failed, &endpoint, at(clock(0)));
            let old = delivery.begin(&endpoint, at(clock(0))).unwrap();
            for (step, does) in (1..).zip(does) {
                let now = at(clock(step));
                match does {
                    Move => _ = endpoint.moved(now),
                    Pause => _ = endpoint.pause(now),
                    Enable => _ = endpoint.enable(now).unwrap(),
                }
            }
            // Something to recover from, at the new URL.
            let _ = record(&mut endpoint, BEFORE_LAST, Outcome::Dns, at(200));
            assert_eq!(endpoint.failures(), 1, "{row}");

            let before = endpoint;
            let report = delivery.finish(&old, outcome, at(201)).unwrap();
            assert_eq!((delivery.status(), report.is_late()), (expected, false), "{row}");
            let change = endpoint.record(report, at(201)).unwrap();
            assert_eq!((change, endpoint), (EndpointChange::Unchanged, before), "{row}");
            // In one life with moves it goes on at the new URL; after enabling it is parked.
            if expected == DeliveryStatus::Waiting {
                let parked = does.contains(&Enable);
                assert_eq!(delivery.park(&endpoint, at(202)), parked, "{row}");
                assert_eq!(delivery.redeliver(&endpoint, at(203)).is_ok(), parked, "{row}");
            }
        }
    }
}

/// D-90: an answer that is stored before the move counted; a sender that took over goes by the URL it
/// has read, and an attempt read from its row by the endpoint that it was read with.
#[test]
fn an_answer_counts_by_the_url_that_it_came_from() {
    let mut endpoint = endpoint_with_a_failure();
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let stalled = delivery.begin(&endpoint, start()).unwrap();
    assert_eq!(endpoint.moved(at(1)), EndpointChange::Updated);
    let new = delivery.begin(&endpoint, at(31)).unwrap();
    assert_eq!(delivery.in_flight(&endpoint), Some(new));
    let mut late = delivery;
    let report = late.finish(&stalled, answered(410), at(32)).unwrap();
    assert_eq!(endpoint.record(report, at(32)).unwrap(), EndpointChange::Unchanged);
    let report = delivery.finish(&new, answered(410), at(33)).unwrap();
    let gone = EndpointChange::Disabled(DisabledReason::Gone);
    assert_eq!(endpoint.record(report, at(33)).unwrap(), gone);

    // Suspect no more, and nobody is told.
    let mut endpoint = EndpointHealth::new(1, start());
    for second in 0..6 {
        let _ = record(&mut endpoint, 0, Outcome::Refused, at(20 * second));
    }
    assert!(endpoint.is_suspect());
    assert_eq!(endpoint.moved(at(200)).alert(), None);
    assert_eq!((endpoint.is_suspect(), endpoint.first_failed_at()), (false, None));
    // A column has whole microseconds, and the attempt that began before it was read is of it.
    let now = at(300).saturating_add(Duration::from_nanos(1_234_567));
    let _ = endpoint.moved(now);
    let mut delivery = failed_before(0, &endpoint, at(301));
    let attempt = delivery.begin(&endpoint, at(301)).unwrap();
    let columns = EndpointColumns::from(endpoint);
    let columns = EndpointColumns { since: columns.since.floor_to_micros(), ..columns };
    let mut read = EndpointHealth::from_columns(1, columns).unwrap();
    let report = delivery.finish(&attempt, answered(410), at(302)).unwrap();
    assert_eq!(read.record(report, at(302)).unwrap(), gone);
}

/// D-83: deleted for good; the log stays for thirty days.
#[test]
fn a_deleted_endpoint_parks_what_is_pending_and_never_comes_back() {
    let mut gone = EndpointHealth::new(1, start());
    let _ = record(&mut gone, 0, answered(410), start());
    let mut paused = EndpointHealth::new(1, start());
    let _ = paused.pause(start());
    for (name, mut endpoint) in
        [("active", EndpointHealth::new(1, start())), ("gone", gone), ("paused", paused)]
    {
        let was = EndpointHealth::new(1, start());
        let mut pending = failed_before(1, &was, start());
        let mut sending = Delivery::accept(&event(start()), &was, start());
        let in_flight = sending.begin(&was, start()).unwrap();
        let deleted = EndpointChange::Disabled(DisabledReason::Deleted);
        assert_eq!(endpoint.delete(at(1)), deleted, "{name}");
        let before = endpoint;
        assert_eq!(endpoint.delete(at(2)), EndpointChange::Unchanged, "{name}");
        assert_eq!(endpoint.pause(at(2)), EndpointChange::Unchanged, "{name}");
        assert_eq!(endpoint.enable(at(2)), None, "{name}");
        assert_eq!(endpoint, before, "{name}");

        assert_eq!(pending.begin(&endpoint, at(3)), Err(BeginError::Parked), "{name}");
        let refused = pending.redeliver(&endpoint, at(4));
        assert_eq!(refused, Err(RedeliverError::Disabled), "{name}");
        // The attempt in flight is still logged for what it was.
        let report = sending.finish(&in_flight, answered(200), at(5)).unwrap();
        let entry = super::entry(in_flight, (answered(200), at(5)), &report, &sending, None);
        assert_eq!((entry.status, entry.next_at), (DeliveryStatus::Delivered, None), "{name}");
        assert_eq!(endpoint.record(report, at(5)).unwrap(), EndpointChange::Unchanged, "{name}");
        let over = start().saturating_add(RETENTION);
        let last = over.saturating_sub(Duration::from_nanos(1));
        assert_eq!((sending.is_kept(last), sending.is_kept(over)), (true, false), "{name}");
        let text = serde_json::to_string(&endpoint).unwrap();
        assert!(text.starts_with(r#"{"disabled":"deleted","#), "{text}");
        assert_eq!(super::endpoint_from(&text).unwrap(), endpoint, "{name}");
    }
}

/// Who verifies a request that is signed now.
fn accepted_by(signer: &Signer, seconds: u64) -> Vec<&'static str> {
    let request = event(start()).signed_request(signer, at(seconds));
    let all = ["whsec_1", "whsec_2", "whsec_3", "whsec_4", "whsec_5"];
    let accepts = |text: &&str| {
        Verifier::new(secret(text)).verify(request.headers(), request.body(), at(seconds)).is_ok()
    };
    let accepting: Vec<_> = all.into_iter().filter(accepts).collect();
    assert_eq!(accepting.len(), 1 + signer.previous(at(seconds)).count(), "at {seconds}");
    accepting
}

/// D-83: both sign until the old one's end, 24 hours by default.
#[test]
fn a_replaced_secret_signs_until_its_end() {
    const DAY: u64 = 86_400;
    assert_eq!(Signer::OVERLAP.as_secs(), DAY);
    let mut signer = Signer::new(secret("whsec_1"));
    assert_eq!(accepted_by(&signer, 0), ["whsec_1"]);
    signer.rotate(secret("whsec_2"), Signer::OVERLAP, at(0)).unwrap();
    signer.rotate(secret("whsec_3"), Signer::OVERLAP, at(10)).unwrap();
    for (seconds, expected) in [
        (10, &["whsec_1", "whsec_2", "whsec_3"][..]),
        (DAY - 1, &["whsec_1", "whsec_2", "whsec_3"]),
        (DAY, &["whsec_2", "whsec_3"]),
        (DAY + 9, &["whsec_2", "whsec_3"]),
        (DAY + 10, &["whsec_3"]),
    ] {
        assert_eq!(accepted_by(&signer, seconds), expected, "at {seconds}");
    }
    assert_eq!(signer.newest().reveal(), "whsec_3");

    // What is stored puts it together again, newest first.
    let stored: Vec<_> =
        signer.previous(at(10)).map(|(secret, end)| (secret.reveal().to_owned(), end)).collect();
    assert_eq!(stored, [("whsec_2".into(), at(DAY + 10)), ("whsec_1".into(), at(DAY))]);
    let mut restored = Signer::new(signer.newest().clone());
    for (text, end) in stored {
        restored = restored.with_previous(secret(&text), end, at(10)).unwrap();
    }
    assert_eq!(accepted_by(&restored, 10), ["whsec_1", "whsec_2", "whsec_3"]);
    assert!(!format!("{restored:?}").contains("whsec_1"));
}

/// After a leak the old secret stops at once, however many there are.
#[test]
fn an_overlap_of_zero_ends_the_old_secret_at_once() {
    let overlap = Signer::OVERLAP;
    let mut signer = Signer::new(secret("whsec_1"));
    for text in ["whsec_2", "whsec_3", "whsec_4"] {
        signer.rotate(secret(text), overlap, start()).unwrap();
    }
    assert_eq!(accepted_by(&signer, 0).len(), Signer::MAX_SECRETS);
    let full = signer.rotate(secret("whsec_5"), overlap, start());
    assert_eq!(full, Err(SetupError::TooManySecrets));
    assert_eq!(full.unwrap_err().to_string(), "signer has more than 4 secrets");
    assert_eq!(signer.newest().reveal(), "whsec_4", "nothing has changed");
    let end = at(86_400);
    let full = signer.clone().with_previous(secret("whsec_5"), end, start());
    assert_eq!(full.map(drop), Err(SetupError::TooManySecrets));
    // One that has expired takes no room.
    assert!(signer.clone().with_previous(secret("whsec_5"), start(), start()).is_ok());

    signer.rotate(secret("whsec_5"), Duration::ZERO, start()).unwrap();
    assert_eq!(accepted_by(&signer, 0), ["whsec_1", "whsec_2", "whsec_3", "whsec_5"]);
    signer.rotate(secret("whsec_4"), overlap, end).unwrap();
    assert_eq!(accepted_by(&signer, 86_400), ["whsec_4", "whsec_5"]);
}
