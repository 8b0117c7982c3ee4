//! Step 4 for many attempts at once: as one by one, whatever the batch, in the order to lock in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use call_assistant::webhook::Signer;
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, DeliveryColumns, DeliveryStatus, DisabledReason, EndedAttempt,
    EndpointColumns, EndpointHealth, FAILURES_TO_WARN, MismatchError, Outcome, RETRY_WAITS,
    RedeliverError, RetrySchedule, Settled, settle,
};

use super::attempt::destination;
use super::{
    BEFORE_LAST, answered, at, entry, failed_before, failing, longest_wait, record, start,
};
use crate::dice::Dice;

type Batch = (Vec<EndedAttempt<'static, u32, u8>>, Rows, Owners);
type Rows = BTreeMap<u32, Delivery>;
type Owners = BTreeMap<u8, EndpointHealth>;

fn ended(
    delivery: u32,
    endpoint: u8,
    attempt: Attempt,
    outcome: Outcome,
) -> EndedAttempt<'static, u32, u8> {
    EndedAttempt { delivery, endpoint, attempt, outcome, at: at(5), response: None }
}

/// Deliveries of these many failures, all of one endpoint, begun in memory.
#[track_caller]
fn begun(failed: &[u8], endpoint: EndpointHealth) -> (Vec<Attempt>, Rows) {
    let mut attempts = Vec::new();
    let rows = failed.iter().zip(1..).map(|(failed, id)| {
        let mut row = failed_before(*failed, &endpoint, start()).into_stored();
        attempts.push(row.begin(&endpoint, start()).unwrap());
        (id, row)
    });
    let rows = rows.collect();
    (attempts, rows)
}

/// A write has the condition of the stored version, however many transitions there were.
#[test]
fn a_row_remembers_the_version_that_is_stored() {
    let mut endpoint = EndpointHealth::new(1, start());
    let mut row = failed_before(1, &endpoint, start()).into_stored();
    let stored = row.version();
    assert_eq!(row.if_version(), None, "nothing has changed");
    let attempt = row.begin(&endpoint, start()).unwrap();
    let _ = row.finish(&attempt, answered(500), at(1)).unwrap();
    assert_eq!(row.if_version(), Some(i32::try_from(stored).unwrap()));
    let seen = (row.into_stored(), row.version());
    assert_eq!(seen, (row, stored + 2), "the same to whoever reads it");
    assert_eq!(row.into_stored().if_version(), None, "stored");
    // What is put in the place of a row brings its own condition.
    let other = failed_before(2, &endpoint, start()).into_stored();
    row = other;
    assert_eq!((row.if_version(), row), (None, other));

    assert_eq!(endpoint.if_version(), None, "nothing has changed");
    let _ = endpoint.pause(at(1));
    let _ = endpoint.enable(at(2));
    assert_eq!((endpoint.if_version(), endpoint.version()), (Some(0), 2));
    // The last version is followed by the first.
    let columns = EndpointColumns { version: i32::MAX, ..endpoint.into() };
    let mut endpoint = EndpointHealth::from_columns(1, columns).unwrap();
    let _ = endpoint.pause(at(3));
    assert_eq!((endpoint.if_version(), endpoint.version()), (Some(i32::MAX), 0));
}

/// A row is of one delivery and one endpoint, and so is an attempt: whatever is given to another is
/// an error, and changes nothing.
#[test]
fn nothing_of_one_delivery_or_endpoint_counts_at_another() {
    let numbered = |number: u64, endpoint: &EndpointHealth| {
        let row = DeliveryColumns::from(failed_before(BEFORE_LAST, endpoint, start()));
        Delivery::from_columns(number, endpoint.id(), row).unwrap()
    };
    let (here, there) = (EndpointHealth::new(1, start()), EndpointHealth::new(2, start()));
    // The same instants, counts and versions: they differ in nothing but their numbers.
    let (mut one, mut other, mut abroad) =
        (numbered(1, &here), numbered(2, &here), numbered(1, &there));
    let attempt = one.begin(&here, start()).unwrap();
    let _ = other.begin(&here, start()).unwrap();
    let _ = abroad.begin(&there, start()).unwrap();
    for (name, wrong) in [("another delivery", &mut other), ("another endpoint", &mut abroad)] {
        let before = *wrong;
        for outcome in [200, 410, 500].map(answered) {
            let refused = wrong.finish(&attempt, outcome, at(1));
            assert_eq!(refused, Err(MismatchError::Delivery), "{name}");
        }
        assert_eq!(*wrong, before, "{name}");
    }
    for outcome in [200, 410, 500].map(answered) {
        let report = { one }.finish(&attempt, outcome, at(1)).unwrap();
        let mut wrong = there;
        assert_eq!(wrong.record(report, at(1)), Err(MismatchError::Endpoint), "{outcome}");
        assert_eq!(wrong, there, "{outcome}");
    }

    let mut waiting = numbered(3, &here);
    let before = waiting;
    let refused = waiting.begin(&there, start());
    assert_eq!(refused, Err(BeginError::Mismatch(MismatchError::Endpoint)));
    assert!(!waiting.park(&paused(there), start()));
    let mut gone = waiting;
    assert!(gone.park(&paused(here), start()));
    let refused = gone.redeliver(&there, start());
    assert_eq!(refused, Err(RedeliverError::Mismatch(MismatchError::Endpoint)));
    assert_eq!(waiting, before);
    assert_eq!(one.in_flight(&there), None);
    assert_eq!(one.in_flight(&here), Some(attempt));

    // Nor is it sent to another endpoint's URL, or signed with its secrets.
    let sent = |attempt: &Attempt, endpoint, created_at| {
        let destination = destination(endpoint, Signer::new(support::secret("whsec_one")));
        attempt.request(&destination, &super::event(created_at), start()).map(drop)
    };
    let created_at = one.event_created_at();
    assert_eq!(sent(&attempt, &there, created_at), Err(MismatchError::Endpoint));
    assert_eq!(sent(&attempt, &here, created_at), Ok(()));
    // Nor are another event's bytes sent under it.
    assert_eq!(sent(&attempt, &here, start()), Err(MismatchError::Event));

    // One that was sent before its row had a number is of that row.
    let mut accepted = Delivery::accept(&super::event(start()), &here, start());
    let early = accepted.begin(&here, start()).unwrap();
    for (number, endpoint, expected) in [(9, 1, Ok(())), (9, 2, Err(MismatchError::Delivery))] {
        let columns = DeliveryColumns::from(accepted);
        let mut read = Delivery::from_columns(number, endpoint, columns).unwrap();
        assert_eq!(read.finish(&early, answered(200), at(1)).map(drop), expected, "{endpoint}");
    }
    assert_eq!(sent(&early, &there, start()), Err(MismatchError::Endpoint));

    // In a batch, whatever is given for it.
    let rows = BTreeMap::from([(1, one), (2, other), (3, abroad)]);
    let owners = BTreeMap::from([(1, here), (2, there)]);
    let failed = |delivery, endpoint| ended(delivery, endpoint, attempt, answered(500));
    let all = [failed(1, 1), failed(2, 1), failed(1, 2), failed(3, 2)];
    let settled = settle(&all, &rows, &owners);
    let wrong =
        [(1, MismatchError::Delivery), (2, MismatchError::Endpoint), (3, MismatchError::Delivery)];
    assert_eq!(settled.mismatched, wrong);
    assert_eq!(settled.log.len(), 1);
    assert_eq!(settled.deliveries.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1]);
    assert_eq!(settled.endpoints.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1]);
    assert!(settled.unknown.is_empty());
}

/// A scaled schedule changes the waits and nothing else: neither counts, versions nor what waits for nothing.
#[test]
fn a_schedule_scales_the_waits_alone() {
    let endpoint = EndpointHealth::new(1, start());
    let owners = BTreeMap::from([(9, endpoint)]);
    for (failed, wait) in (0..).zip(RETRY_WAITS) {
        let (attempts, rows) = begun(&[failed], endpoint);
        let settled = |factor, outcome| {
            let all = [ended(1, 9, attempts[0], outcome)];
            RetrySchedule::default().scaled(factor).settle(&all, &rows, &owners)
        };
        let plain = settle(&[ended(1, 9, attempts[0], answered(500))], &rows, &owners);
        assert_eq!(settled(1.0, answered(500)), plain, "after {failed}");
        // D-80: no due time is later than that, so none is taken for that of a wrong clock.
        let most = 2 * longest_wait();
        let wrong = [1e9, f64::MAX, f64::INFINITY, f64::NAN, -1.0].map(|factor| (factor, most));
        let right = [0.0, 1e-9, 0.000_05, 0.001, 0.5, 2.0];
        let right = right.map(|factor| (factor, wait.mul_f64(factor).as_micros() as u64));
        let right = right.map(|(factor, micros)| (factor, Duration::from_micros(micros)));
        for (factor, wait) in right.into_iter().chain(wrong) {
            let scaled = settled(factor, answered(500));
            let due = at(5).saturating_add(wait);
            assert_eq!(scaled.again, [(1, 9, due)], "{factor} times the wait after {failed}");
            assert_eq!(scaled.log[0].1.next_at, Some(due), "{factor} after {failed}");
            let [row, as_plain] = [&scaled, &plain].map(|settled| settled.deliveries[0].1);
            let expected = DeliveryColumns { at: due, ..as_plain.into() };
            assert_eq!(DeliveryColumns::from(row), expected, "{factor} after {failed}");
            assert_eq!(row.if_version(), as_plain.if_version(), "{factor} after {failed}");
            assert_eq!(settled(factor, Outcome::Unsent).again, [(1, 9, at(5))], "{factor}");
        }
    }
}

/// What it costs the specification's way: each attempt alone, with the rows that it left.
fn one_by_one(
    (ended, rows, owners): &Batch,
) -> (BTreeMap<u32, Delivery>, BTreeMap<u8, EndpointHealth>) {
    let (mut rows, mut owners) = (rows.clone(), owners.clone());
    for each in ended {
        let (Some(row), Some(owner)) =
            (rows.get_mut(&each.delivery), owners.get_mut(&each.endpoint))
        else {
            continue;
        };
        let report = row.finish(&each.attempt, each.outcome, each.at).unwrap();
        let _ = owner.record(report, each.at).unwrap();
    }
    let of: BTreeMap<_, _> = ended.iter().map(|each| (each.delivery, each.endpoint)).collect();
    for (id, row) in &mut rows {
        if let Some(owner) = of.get(id).and_then(|endpoint| owners.get(endpoint)) {
            row.park(owner, at(5));
        }
    }
    (rows, owners)
}

/// Random batches: several endpoints near a limit, several attempts of one delivery, rows missing.
fn batch(dice: &mut Dice) -> Batch {
    let (mut all, mut rows, mut owners) = (Vec::new(), Rows::new(), Owners::new());
    for id in 0..3 {
        let mut endpoint = EndpointHealth::new(1, start());
        for _ in 0..[0, 4, 18, 19][below(dice, 4)] {
            let _ = record(&mut endpoint, BEFORE_LAST, answered(500), start());
        }
        owners.insert(id, endpoint.into_stored());
    }
    for id in 0..8 {
        let endpoint = u8::try_from(below(dice, 3)).unwrap();
        let failed = [0, BEFORE_LAST - 1, BEFORE_LAST][below(dice, 3)];
        let mut row = failed_before(failed, &owners[&endpoint], start()).into_stored();
        let attempt = row.begin(&owners[&endpoint], start()).unwrap();
        for _ in 0..1 + below(dice, 2) {
            let outcomes = [200, 500, 500, 500, 410].map(answered);
            all.push(ended(id, endpoint, attempt, outcomes[below(dice, 5)]));
        }
        if below(dice, 8) > 0 {
            rows.insert(id, row);
        }
    }
    if below(dice, 8) == 0 {
        owners.remove(&1);
    }
    for last in (1..all.len()).rev() {
        all.swap(last, below(dice, last + 1));
    }
    (all, rows, owners)
}

#[test]
fn a_batch_is_what_its_attempts_are_one_by_one() {
    let mut seen = BTreeSet::new();
    for seed in 0..2_000 {
        let batch = batch(&mut Dice::new(seed));
        let (all, rows, owners) = &batch;
        let settled = settle(all, rows, owners);
        let (rows_after, owners_after) = one_by_one(&batch);

        let written: BTreeMap<_, _> = settled.deliveries.iter().copied().collect();
        for (id, row) in rows {
            let after = written.get(id).unwrap_or(row);
            assert_eq!(*after, rows_after[id], "seed {seed}: delivery {id}");
        }
        let changed: BTreeMap<_, _> = settled.endpoints.iter().copied().collect();
        for (id, row) in owners {
            assert_eq!(changed.contains_key(id), *row != owners_after[id], "seed {seed}: {id}");
            let after = changed.get(id).unwrap_or(row);
            assert_eq!(*after, owners_after[id], "seed {seed}: endpoint {id}");
        }
        // The order to lock in, each row once.
        assert!(settled.deliveries.is_sorted_by(|(a, _), (b, _)| a < b), "seed {seed}");
        assert!(settled.endpoints.is_sorted_by(|(a, _), (b, _)| a < b), "seed {seed}");
        // Every attempt is in the log or left.
        assert_eq!(settled.log.len() + settled.unknown.len(), all.len(), "seed {seed}");
        for left in &settled.unknown {
            let (delivery, endpoint) = (all[*left].delivery, all[*left].endpoint);
            let known = rows.contains_key(&delivery) && owners.contains_key(&endpoint);
            assert!(!known, "seed {seed}: {left}");
        }
        // What waits is sent again, and nothing else.
        for (id, row) in &rows_after {
            let touched = settled.log.iter().any(|(logged, _)| logged == id);
            let again = settled.again.iter().find(|(again, ..)| again == id);
            let waits = touched && row.status() == DeliveryStatus::Waiting;
            assert_eq!(again.map(|(_, _, due)| Some(*due)), waits.then(|| row.due(at(5))), "{id}");
        }
        for (id, reason) in &settled.disabled {
            assert_eq!(owners_after[id].disabled(), Some(*reason), "seed {seed}: {id}");
            seen.insert(reason.as_str());
        }
        seen.extend(rows_after.values().map(|row| row.status().as_str()));
        if !settled.unknown.is_empty() {
            seen.insert("left");
        }
        if settled.alerts.iter().any(|(_, alert)| *alert == failing(FAILURES_TO_WARN[0])) {
            seen.insert("warn");
        }
        // Pure: again it is the same.
        assert_eq!(settle(all, rows, owners), settled, "seed {seed}");
    }
    for each in ["gone", "failing", "delivered", "failed", "parked", "waiting", "left", "warn"] {
        assert!(seen.contains(each), "no batch had {each}: {seen:?}");
    }
}

/// The log promises no attempt that will not come, also to deliveries earlier in the batch.
#[test]
fn what_a_batch_disables_is_parked_in_it() {
    let endpoint = EndpointHealth::new(1, start());
    let (attempts, rows) = begun(&[1, 2, 0], endpoint);
    let all = [
        ended(1, 9, attempts[0], answered(503)),
        ended(2, 9, attempts[1], Outcome::Unsent),
        ended(3, 9, attempts[2], answered(410)),
    ];
    let settled = settle(&all, &rows, &BTreeMap::from([(9, endpoint)]));
    use DeliveryStatus::{Gone, Parked};
    let statuses: Vec<_> = settled.deliveries.iter().map(|(id, row)| (*id, row.status())).collect();
    assert_eq!(statuses, [(1, Parked), (2, Parked), (3, Gone)]);
    let log: Vec<_> = settled.log.iter().map(|(_, entry)| (entry.status, entry.next_at)).collect();
    assert_eq!(log, [(Parked, None), (Parked, None), (Gone, None)]);
    assert_eq!(settled.disabled, [(9, DisabledReason::Gone)]);
    assert!(settled.again.is_empty());
    assert_eq!(settled.deliveries[0].1.attempts(), 2, "the failure before it counts");
}

/// One delivery alone gives what the steps give, with the response in its log.
#[test]
fn a_batch_of_one_is_the_steps_of_the_page() {
    let endpoint = EndpointHealth::new(1, start());
    let (attempts, rows) = begun(&[3], endpoint);
    let mut each = ended(1, 9, attempts[0], answered(503));
    each.response = Some(b"down");
    let settled: Settled<u32, u8> = settle(&[each], &rows, &BTreeMap::from([(9, endpoint)]));

    let mut delivery = rows[&1];
    let report = delivery.finish(&attempts[0], answered(503), at(5)).unwrap();
    let entry = entry(attempts[0], (answered(503), at(5)), &report, &delivery, Some(b"down"));
    assert_eq!(settled.log, [(1, entry)]);
    assert_eq!(settled.deliveries[0].1, delivery);
    assert_eq!(settled.again, [(1, 9, at(5).saturating_add(Duration::from_secs(3_600)))]);
    assert!(
        settled.endpoints.is_empty() && settled.alerts.is_empty() && settled.unknown.is_empty()
    );
}

fn paused(mut endpoint: EndpointHealth) -> EndpointHealth {
    let _ = endpoint.pause(start());
    endpoint
}

fn below(dice: &mut Dice, bound: usize) -> usize {
    dice.below(bound as u64) as usize
}
