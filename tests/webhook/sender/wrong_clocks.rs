//! Clocks that are wrong: what they stored holds nothing up for longer than it may. D-80.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, BeginError, Delivery, DeliveryStatus, EndpointHealth, Planner, RedeliverError,
    SenderLimits,
};

use super::planner::pending;
use super::{BEFORE_LAST, answered, at, attempted, event, failed_before, longest_wait, start};

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const NANO: Duration = Duration::from_nanos(1);

fn next_year() -> Timestamp {
    start().saturating_add(YEAR)
}

/// The bounds, to the nanosecond: twice a lease, twice the longest wait. Judged at each look.
#[test]
fn a_stored_instant_counts_until_no_correct_clock_can_have_written_it() {
    let endpoint = EndpointHealth::new(1, start());
    let mut waiting = Delivery::accept(&event(start()), &endpoint, next_year());
    let mut sending = failed_before(0, &endpoint, start());
    let _ = sending.begin(&endpoint, next_year()).unwrap();
    let leased_until = next_year().saturating_add(ATTEMPT_LEASE);
    let rows = [
        ("due", &mut waiting, next_year(), 2 * longest_wait()),
        ("lease", &mut sending, leased_until, 2 * ATTEMPT_LEASE),
    ];
    for (name, delivery, stored, longest) in rows {
        let last = stored.saturating_sub(longest);
        let before = last.saturating_sub(NANO);
        assert_eq!(delivery.due(before), Some(before), "{name}: too far ahead");
        for now in [last, stored.saturating_sub(NANO)] {
            assert_eq!(delivery.due(now), Some(stored), "{name} at {now}");
            let is_leased = delivery.status() == DeliveryStatus::Sending;
            let until = match delivery.begin(&endpoint, now).unwrap_err() {
                BeginError::Leased { until, .. } if is_leased => until,
                BeginError::Early { at, .. } if !is_leased => at,
                other => panic!("{name} at {now}: {other}"),
            };
            assert_eq!(until, stored, "{name} at {now}");
        }
        for now in [stored, stored.saturating_add(YEAR)] {
            assert_eq!(delivery.due(now), Some(stored), "{name} at {now}");
            let mut delivery = *delivery;
            assert!(delivery.begin(&endpoint, now).is_ok(), "{name} at {now}");
        }
        assert!(delivery.begin(&endpoint, before).is_ok(), "{name}: too far ahead");
    }
}

/// Postponing refuses what would count as wrong.
#[test]
fn postponing_goes_no_further_than_twice_the_longest_wait() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(BEFORE_LAST - 1, &endpoint, start());
    let _ = attempted(&mut delivery, &endpoint, answered(500), start(), start());
    let wait = longest_wait();
    let before = delivery;
    assert!(!delivery.postpone(wait + NANO, start()));
    assert_eq!(delivery, before);
    assert!(delivery.postpone(wait, start()));
    assert_eq!(delivery.due(start()), Some(start().saturating_add(2 * wait)));
    assert!(!delivery.postpone(NANO, start()));
    assert!(delivery.postpone(NANO, start().saturating_add(NANO)));
    // What a wrong clock stored is due, and is not made later.
    let mut ahead = Delivery::accept(&event(start()), &endpoint, next_year());
    assert!(!ahead.postpone(NANO, start()));
    assert_eq!(ahead.due(start()), Some(start()));
}

/// A lease that a wrong clock stored keeps nobody from redelivering.
#[test]
fn a_lease_from_next_year_does_not_block_a_redelivery() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let _ = delivery.begin(&endpoint, next_year()).unwrap();
    let _ = endpoint.pause(at(1));
    let _ = endpoint.enable(at(2)).unwrap();
    let now = next_year();
    let leased = now.saturating_add(ATTEMPT_LEASE);
    let refused = { delivery }.redeliver(&endpoint, now);
    assert!(matches!(refused, Err(RedeliverError::Leased { until, .. }) if until == leased));
    assert_eq!(delivery.redeliver(&endpoint, at(3)), Ok(()));
}

/// A planner whose host's clock is set back a year does not sleep for a year.
#[test]
fn a_planner_sends_what_is_due_too_far_ahead() {
    let limits = SenderLimits { overall: 100, per_endpoint: 100 };
    let mut planner = Planner::new(limits);
    let in_a_year = |seconds: u64| next_year().saturating_add(Duration::from_secs(seconds));
    // More orders than there are lanes.
    for second in (1..=12).rev() {
        planner.add(pending(second, 0, in_a_year(second)));
    }
    planner.add(pending(100, 0, at(60)));
    let mut sent: Vec<u64> =
        std::iter::from_fn(|| planner.next(start()).map(|planned| planned.delivery)).collect();
    sent.sort_unstable();
    assert_eq!(sent, (1..=12).collect::<Vec<_>>());
    assert_eq!((planner.pending(), planner.next_due()), (1, Some(at(60))));

    let farthest = 2 * longest_wait();
    planner.add(pending(200, 0, start().saturating_add(farthest)));
    assert_eq!(planner.next(start()), None, "a correct clock may have said so");
    // The planner counts in microseconds, and takes nothing that a delivery would call early.
    let mut planner = Planner::new(limits);
    let now = start().saturating_add(NANO);
    planner.add(pending(200, 0, now.saturating_add(farthest)));
    assert_eq!(planner.next(now), None, "exactly as far as may be");
    let mut planner = Planner::new(limits);
    let micro = Duration::from_micros(1);
    planner.add(pending(200, 0, now.saturating_add(farthest)));
    let next = planner.next(now.saturating_sub(micro + micro));
    assert_eq!(next.map(|planned| planned.delivery), Some(200));
}
