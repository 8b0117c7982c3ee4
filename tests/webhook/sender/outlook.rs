//! What comes next of a delivery is what then happens.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    BeginError, Delivery, DeliveryColumns, DeliveryStatus, DisabledReason, EndpointColumns,
    EndpointHealth, MAX_ATTEMPTS, MismatchError, Outcome, Outlook, RedeliverError,
};

use super::{answered, failed_before, longest_wait, start};

fn windows(
    delivery: &Delivery,
    endpoint: &EndpointHealth,
    now: Timestamp,
) -> Vec<(u8, Timestamp, Timestamp)> {
    let left = delivery.attempts_left(endpoint, now).unwrap();
    left.map(|(number, window)| (number, *window.start(), *window.end())).collect()
}

/// When each attempt begins if every one fails after this time; the one in flight ends at `ends`.
fn run(
    mut delivery: Delivery,
    endpoint: &EndpointHealth,
    (now, ends): (Timestamp, Timestamp),
    takes: Duration,
) -> Vec<(u8, Timestamp)> {
    let mut begun = Vec::new();
    let mut now = now;
    if let Outlook::InFlight { .. } = delivery.outlook(endpoint, now).unwrap() {
        let attempt = delivery.in_flight(endpoint).unwrap();
        let _ = delivery.finish(&attempt, Outcome::TimedOut, ends).unwrap();
        now = now.max(ends);
    }
    while let Some(due) = delivery.due(now) {
        now = due.max(now);
        let Ok(attempt) = delivery.begin(endpoint, now) else { break };
        begun.push((attempt.number(), now));
        now = now.saturating_add(takes);
        let _ = delivery.finish(&attempt, answered(500), now).unwrap();
    }
    begun
}

fn check(delivery: Delivery, endpoint: &EndpointHealth, now: Timestamp) -> usize {
    let outlook = delivery.outlook(endpoint, now).unwrap();
    let mut machine = delivery;
    let redelivered = delivery.to_owned().redeliver(endpoint, now);
    let can_redeliver = |until: Result<Timestamp, RedeliverError>| {
        assert_eq!(until.map(|_| ()), redelivered, "{outlook:?}");
        if let Ok(until) = until {
            let last = until.saturating_sub(Duration::from_nanos(1));
            assert_eq!(delivery.to_owned().redeliver(endpoint, last), Ok(()));
            let late = delivery.to_owned().redeliver(endpoint, until);
            assert_eq!(late, Err(RedeliverError::Expired));
        }
    };
    let mut ends = (now, now);
    let kind = match outlook {
        Outlook::Waiting { number, manual, due, .. } => {
            if due > now {
                let early = machine.begin(endpoint, now).unwrap_err();
                assert!(matches!(early, BeginError::Early { at, .. } if at == due), "{early}");
            }
            let attempt = machine.begin(endpoint, due.max(now)).unwrap();
            assert_eq!((attempt.number(), attempt.is_manual()), (number, manual));
            0
        }
        Outlook::InFlight { number, manual, deadline, lease_until, parks, .. } => {
            let attempt = machine.in_flight(endpoint).unwrap();
            assert_eq!((attempt.number(), attempt.is_manual()), (number, manual));
            assert_eq!(attempt.deadline(), deadline);
            match machine.begin(endpoint, now).unwrap_err() {
                BeginError::Leased { until, .. } => {
                    assert_eq!((until, parks), (lease_until, false))
                }
                BeginError::Disabled { until, .. } => {
                    assert_eq!((until, parks), (lease_until, true))
                }
                error => panic!("{error}"),
            }
            // The sender is dead.
            match delivery.to_owned().begin(endpoint, lease_until) {
                Ok(again) => assert_eq!((again.number(), parks), (number, false)),
                Err(error) => assert_eq!((error, parks), (BeginError::Parked, true)),
            }
            // The sender lives.
            let _ = machine.finish(&attempt, Outcome::Reset, deadline).unwrap();
            assert_eq!(machine.park(endpoint, deadline), parks && !manual && number < MAX_ATTEMPTS);
            ends = (now.min(deadline), deadline);
            if parks { 1 } else { 2 }
        }
        Outlook::Parks { reason, redeliverable, .. } => {
            assert_eq!(machine.begin(endpoint, now), Err(BeginError::Parked));
            assert_eq!(reason, endpoint.disabled());
            can_redeliver(redeliverable);
            3
        }
        Outlook::Ended { redeliverable, .. } => {
            assert_eq!(machine.begin(endpoint, now), Err(BeginError::Ended));
            can_redeliver(redeliverable);
            4
        }
        other => panic!("{other:?}"),
    };
    let at_once = run(delivery, endpoint, (now, ends.0), Duration::ZERO);
    let slowly = run(delivery, endpoint, (now, ends.1), Duration::from_secs(10));
    let told = windows(&delivery, endpoint, now);
    let from: Vec<_> = told.iter().map(|(number, from, _)| (*number, *from)).collect();
    let until: Vec<_> = told.iter().map(|(number, _, until)| (*number, *until)).collect();
    assert_eq!((from, until), (at_once, slowly), "{outlook:?}");
    kind
}

/// Endpoints in every state: active, disabled for each reason, and enabled again.
fn endpoints() -> Vec<EndpointHealth> {
    let new = EndpointHealth::new(1, start());
    let reasons = DisabledReason::ALL.iter().copied().map(Some);
    let all = reasons.chain([None]).flat_map(|disabled| {
        [0, 1].map(|generation| EndpointColumns { disabled, generation, ..new.into() })
    });
    all.map(|columns| EndpointHealth::from_columns(1, columns).unwrap()).collect()
}

#[test]
fn the_outlook_of_a_delivery_is_what_happens_in_every_state() {
    let mut seen = [0; 5];
    let day = 24 * 60 * 60;
    let now = start();
    let when = |seconds: i64| Timestamp::from_unix(now.unix_seconds() + seconds).unwrap();
    // Reached, within a lease, past a lease that a correct clock wrote, and past such a wait.
    let farthest = i64::try_from(2 * longest_wait().as_secs()).unwrap();
    let instants = [-40 * day, -1, 0, 1, 5, 20, 29, 30, 60, 61, 3_600, farthest, farthest + 1];
    for (endpoint, status) in
        endpoints().iter().flat_map(|one| DeliveryStatus::ALL.iter().map(move |it| (one, *it)))
    {
        for (attempts, manual) in (0..=MAX_ATTEMPTS.into()).flat_map(|n| [(n, false), (n, true)]) {
            for (at, age) in instants.iter().flat_map(|at| [(*at, day), (*at, 30 * day)]) {
                let columns = DeliveryColumns {
                    event_created_at: when(-age),
                    status,
                    at: when(at),
                    attempts,
                    manual,
                    generation: 0,
                    version: 0,
                };
                let delivery = Delivery::from_columns(7, 1, columns).unwrap();
                seen[check(delivery, endpoint, now)] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    let [one, other] = [1, 2].map(|id| EndpointHealth::new(id, now));
    let outlook = failed_before(1, &one, now).outlook(&other, now);
    assert_eq!(outlook, Err(MismatchError::Endpoint));
}
