//! One endpoint: every sequence of what can happen to it, around the threshold.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    AttemptReport, BeginError, Delivery, DeliveryStatus, DisabledReason, EndpointChange,
    EndpointHealth, FAILURES_TO_DISABLE, FAILURES_TO_WARN, MAX_ATTEMPTS, Outcome, RETENTION,
    RecoveryFilter,
};

use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, failing, record, start};

/// What a delivery of this endpoint reports, begun when the endpoint was as given.
#[track_caller]
fn report(endpoint: &EndpointHealth, failures: u8, outcome: Outcome) -> AttemptReport {
    let mut delivery = failed_before(failures, endpoint, start());
    attempted(&mut delivery, endpoint, outcome, start(), start())
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Success,
    LastFailure,
    EarlyFailure,
    Gone,
    Enable,
    /// A terminal failure of an attempt begun before the endpoint was last enabled.
    StaleFailure,
}
use Event::{EarlyFailure, Enable, Gone, LastFailure, StaleFailure, Success};

const EVENTS: [Event; 6] = [Success, LastFailure, EarlyFailure, Gone, Enable, StaleFailure];

/// The specification, as naively as can be: a count, and why it is disabled.
#[derive(Clone, Copy)]
struct Naive {
    count: u8,
    disabled: Option<DisabledReason>,
    enabled_before: bool,
}

impl Naive {
    /// `None`: a warning with the count.
    fn expect(&mut self, event: Event) -> Option<EndpointChange> {
        if self.disabled.is_some() {
            if let Enable = event {
                *self = Self { count: 0, disabled: None, enabled_before: true };
            }
            return Some(EndpointChange::Unchanged);
        }
        Some(match event {
            Success if self.count > 0 => {
                let warned = self.count >= FAILURES_TO_WARN[0];
                self.count = 0;
                if warned { EndpointChange::Recovered } else { EndpointChange::Updated }
            }
            LastFailure => return self.fail(),
            // Nothing was begun before an endpoint that was never enabled again.
            StaleFailure if !self.enabled_before => return self.fail(),
            Gone => {
                self.disabled = Some(DisabledReason::Gone);
                EndpointChange::Disabled(DisabledReason::Gone)
            }
            Success | EarlyFailure | Enable | StaleFailure => EndpointChange::Unchanged,
        })
    }

    fn fail(&mut self) -> Option<EndpointChange> {
        self.count += 1;
        if self.count == 20 {
            self.disabled = Some(DisabledReason::Failing);
            return Some(EndpointChange::Disabled(DisabledReason::Failing));
        }
        (!FAILURES_TO_WARN.contains(&self.count)).then_some(EndpointChange::Updated)
    }
}

/// From every count, every sequence of five events: 20 x 6^5. DEL-6, DEL-7, D-53, D-54, D-55.
#[test]
fn every_sequence_of_events_from_every_count() {
    assert_eq!((FAILURES_TO_DISABLE, FAILURES_TO_WARN), (20, &[5, 10, 15][..]));
    let first = EndpointHealth::new(1, start());
    let stale = report(&first, BEFORE_LAST, answered(500));
    for count in 0..FAILURES_TO_DISABLE {
        let mut begun = first;
        for _ in 0..count {
            let _ = record(&mut begun, BEFORE_LAST, answered(500), start());
        }
        for code in 0..6_usize.pow(5) {
            let mut endpoint = begun;
            let mut naive = Naive { count, disabled: None, enabled_before: false };
            let mut rest = code;
            for step in 1..=5 {
                let event = EVENTS[rest % 6];
                rest /= 6;
                let before = endpoint;
                let now = at(step);
                // What arrives at a disabled endpoint is of an attempt that was in flight.
                let sender = if endpoint.is_active() { endpoint } else { begun };
                let heard = match event {
                    Success => Some(report(&sender, 0, answered(200))),
                    LastFailure => Some(report(&sender, BEFORE_LAST, Outcome::TimedOut)),
                    EarlyFailure => Some(report(&sender, 4, Outcome::TimedOut)),
                    Gone => Some(report(&sender, 0, answered(410))),
                    StaleFailure => Some(stale),
                    Enable => None,
                };
                let change = match heard {
                    Some(report) => endpoint.record(report, now).unwrap(),
                    None => {
                        let enabled = endpoint.enable(now);
                        assert_eq!(enabled.is_some(), naive.disabled.is_some(), "sequence {code}");
                        EndpointChange::Unchanged
                    }
                };
                let what = format!("count {count}, sequence {code}, step {step}: {event:?}");
                match naive.expect(event) {
                    Some(expected) => assert_eq!(change, expected, "{what}"),
                    None => assert_eq!(change.alert(), Some(failing(naive.count)), "{what}"),
                }
                assert_eq!(endpoint.disabled(), naive.disabled, "{what}");
                // While it is disabled, too: a 410 leaves the count as it was.
                assert_eq!(endpoint.failures(), naive.count, "{what}");
                assert_eq!(endpoint == before, endpoint.version() == before.version(), "{what}");
            }
        }
    }
}

/// D-53, D-55, D-83, D-102: what was pending is parked, what comes is skipped, and enabling sends neither.
#[test]
fn a_disabled_endpoint_is_left_alone_and_not_flooded_when_enabled() {
    for reason in [DisabledReason::Gone, DisabledReason::Paused] {
        let mut endpoint = EndpointHealth::new(1, start());
        let _ = record(&mut endpoint, BEFORE_LAST, Outcome::Tls, start());
        let mut waiting = failed_before(2, &endpoint, start());
        let mut later = Delivery::accept(&event(start()), &endpoint, at(500));
        let mut sending = Delivery::accept(&event(start()), &endpoint, start());
        let in_flight = sending.begin(&endpoint, start()).unwrap();
        let mut dead = Delivery::accept(&event(start()), &endpoint, start());
        let _ = dead.begin(&endpoint, start()).unwrap();

        let version = endpoint.version();
        let change = match reason {
            DisabledReason::Paused => endpoint.pause(at(1)),
            _ => record(&mut endpoint, 0, answered(410), at(1)),
        };
        assert_eq!(change, EndpointChange::Disabled(reason));
        assert_ne!(endpoint.version(), version, "{reason:?}");
        let before = endpoint;
        assert_eq!(endpoint.pause(at(2)), EndpointChange::Unchanged, "{reason:?}");
        assert_eq!((endpoint, endpoint.since()), (before, at(1)), "as it was first disabled");
        assert_eq!((endpoint.disabled(), endpoint.failures()), (Some(reason), 1), "untouched");

        assert_eq!(waiting.begin(&endpoint, at(2)), Err(BeginError::Parked));
        assert_eq!((waiting.status(), waiting.ended_at()), (DeliveryStatus::Parked, Some(at(2))));
        // Before it is due, too: a host may park them all at once.
        assert_eq!(later.begin(&endpoint, at(2)), Err(BeginError::Parked));
        // Also while an attempt is in flight, the endpoint is named first, whether it is disabled or deleted.
        let mut deleted = endpoint;
        let _ = deleted.delete(at(2));
        for disabled in [&endpoint, &deleted] {
            let refused = sending.begin(disabled, at(2)).unwrap_err();
            let named = matches!(refused, BeginError::Disabled { until, .. } if until == at(30));
            assert!(named, "{reason:?}: {refused:?}");
        }
        // The attempt in flight is heard: it enables nothing, but the receiver has the event.
        let report = sending.finish(&in_flight, answered(200), at(3)).unwrap();
        assert_eq!((report.is_late(), sending.status()), (false, DeliveryStatus::Delivered));
        assert_eq!(endpoint.record(report, at(3)).unwrap(), EndpointChange::Unchanged);
        assert!(!endpoint.is_active());

        let mut skipped = Delivery::accept(&event(at(4)), &endpoint, at(4));
        assert_eq!(skipped.status(), DeliveryStatus::Skipped);
        assert_eq!(skipped.begin(&endpoint, at(5)), Err(BeginError::Ended));

        let missed = endpoint.enable(at(100)).unwrap();
        assert_eq!((endpoint.failures(), endpoint.since(), endpoint.generation()), (0, at(100), 1));
        assert_eq!(endpoint.enable(at(101)), None);
        // The sender died before the disabling: its delivery is of the endpoint's former life.
        assert_eq!(dead.begin(&endpoint, at(100)), Err(BeginError::Parked));
        for delivery in [&mut waiting, &mut later, &mut skipped, &mut dead] {
            let row = format!("{reason:?}: {delivery:?}");
            assert_eq!(delivery.begin(&endpoint, at(200)), Err(BeginError::Ended), "{row}");
            assert!(missed.includes(delivery), "{row}");
            assert_eq!(delivery.redeliver(&endpoint, at(300)), Ok(()), "{row}");
            assert!(!missed.includes(delivery), "pending again: {row}");
            let (attempt, before) =
                (delivery.begin(&endpoint, at(300)).unwrap(), delivery.attempts());
            let _ = delivery.finish(&attempt, answered(200), at(301)).unwrap();
            let seen = (attempt.is_manual(), delivery.attempts());
            assert_eq!(seen, (true, before), "{row}");
        }
        assert!(!missed.includes(&sending));

        let fresh = Delivery::accept(&event(at(301)), &endpoint, at(301));
        assert_eq!(fresh.status(), DeliveryStatus::Waiting);
    }
}

/// D-55, D-56: what an endpoint missed is told by its life, whatever the clocks of those who accepted
/// it said; what failed long before it was disabled is not of that.
#[test]
fn what_was_missed_is_told_by_the_life_it_was_of() {
    let mut endpoint = EndpointHealth::new(1, start());
    let disable = |endpoint: &mut EndpointHealth, now| {
        let gone = report(endpoint, 0, answered(410));
        let seen = endpoint.record(gone, now).unwrap();
        assert_eq!(seen, EndpointChange::Disabled(DisabledReason::Gone));
    };
    // Skipped in an earlier life, and left there by the owner.
    disable(&mut endpoint, at(1));
    let left = Delivery::accept(&event(at(2)), &endpoint, at(2));
    endpoint.enable(at(3)).unwrap();

    let days = |days: u64| start().saturating_add(Duration::from_secs(days * 86_400));
    // Pending for ten days, by senders that were late and waits with jitter.
    let mut old = Delivery::accept(&event(at(4)), &endpoint, at(4));
    let mut pending = Delivery::accept(&event(at(4)), &endpoint, at(4));
    let [long_ago, lately] = [at(5), days(10)].map(|created| {
        let mut failed = Delivery::accept(&event(created), &endpoint, created);
        failed.redeliver(&endpoint, created).unwrap_err();
        let mut now = created;
        for _ in 0..MAX_ATTEMPTS {
            let _ = attempted(&mut failed, &endpoint, Outcome::Reset, now, now);
            now = failed.due(now).unwrap_or(now);
        }
        assert_eq!(failed.status(), DeliveryStatus::Failed);
        failed
    });
    disable(&mut endpoint, days(10));
    assert_eq!(old.begin(&endpoint, days(10)), Err(BeginError::Parked));
    // Accepted by a clock that is ahead, and by who has not heard yet that it is enabled.
    let ahead = Delivery::accept(&event(days(11)), &endpoint, days(11));
    let before = endpoint;
    let now = days(11);
    let missed = endpoint.enable(now).unwrap();
    let unheard = Delivery::accept(&event(days(12)), &before, days(12));
    for included in [old, pending, lately, ahead, unheard] {
        assert!(missed.includes(&included), "{included:?}");
    }
    let fresh = Delivery::accept(&event(now), &endpoint, now);
    for excluded in [left, long_ago, fresh] {
        assert!(!missed.includes(&excluded), "{excluded:?}");
    }
    pending.redeliver(&endpoint, now).unwrap();
    assert!(!missed.includes(&pending), "on its way again");
}

/// D-56, D-62: a range of missed events, from its start on, its end excluded, thirty days at most.
#[test]
fn a_range_of_missed_events_ends_where_retention_does() {
    let mut endpoint = EndpointHealth::new(1, start());
    let _ = record(&mut endpoint, 0, answered(410), start());
    let missed = endpoint.enable(at(60)).unwrap();
    let oldest = at(60).saturating_sub(RETENTION).saturating_add(Duration::from_nanos(1));
    assert_eq!((missed.from(), missed.until()), (oldest, Timestamp::MAX));

    let _ = record(&mut endpoint, 0, answered(410), start());
    let skipped = |created: Timestamp| Delivery::accept(&event(created), &endpoint, created);
    let now = start().saturating_add(RETENTION);
    let nano = Duration::from_nanos(1);

    let all = RecoveryFilter::between(Timestamp::MIN, now, now);
    assert!(!all.includes(&skipped(start())), "thirty days old to the nanosecond");
    assert!(all.includes(&skipped(start().saturating_add(nano))));
    assert!(all.includes(&skipped(now.saturating_sub(nano))));
    assert!(!all.includes(&skipped(now)));

    let some = RecoveryFilter::between(at(10), at(20), at(30));
    for (second, included) in [(9, false), (10, true), (19, true), (20, false)] {
        assert_eq!(some.includes(&skipped(at(second))), included, "{second}");
    }
    let none = RecoveryFilter::between(at(20), at(10), at(30));
    assert!(!none.includes(&skipped(at(15))) && none.from() == none.until());
}
