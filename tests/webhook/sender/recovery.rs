//! A recovery: what it finds, what each step does, and how it ends. DEL-10, DEL-12, D-56, D-76.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, DeliveryStatus, EndpointHealth, LONGEST_DELIVERY, MismatchError,
    Outcome, RETENTION, RecoverError, Recovery, RecoveryBy, RecoveryFilter, RecoveryStatus,
    RecoveryStep, WebhookPlan,
};

use super::{answered, at, attempted, event, failed_before, start};
use crate::dice::Dice;

const PLAN: WebhookPlan = WebhookPlan::Business;
const BY: RecoveryBy = RecoveryBy::Dashboard;

/// The condition as the page of `RecoveryFilter` has it in SQL, over the columns.
fn sql(missed: &RecoveryFilter, row: &DeliveryColumns) -> bool {
    let created_at = row.event_created_at;
    let is_of_that = missed.ended_generation().is_none_or(|ended| row.generation == ended);
    let is_recent = created_at >= missed.failed_from();
    let ended = missed.statuses().contains(&row.status)
        && is_of_that
        && (["parked", "skipped"].contains(&row.status.as_str()) || is_recent);
    let pending = ["waiting", "sending"].contains(&row.status.as_str())
        && missed.active_generation().is_some_and(|active| row.generation != active);
    created_at >= missed.from() && created_at < missed.until() && (ended || pending)
}

/// A statement finds what the predicate includes, whatever the row is.
#[test]
fn the_condition_for_a_statement_is_the_predicate() {
    use DeliveryStatus::{Delivered, Failed, Skipped};
    let mut dice = Dice::new(7);
    let (mut found, mut pending) = (0, 0);
    for round in 0..200 {
        let mut endpoint = EndpointHealth::new(1, start());
        for second in 0..dice.below(3) {
            let _ = endpoint.pause(at(1_000 * second));
            let _ = endpoint.enable(at(1_000 * second + 500));
        }
        let _ = endpoint.pause(at(100_000));
        let preview = endpoint.missed(at(110_000));
        let enabled = endpoint.enable(at(110_000));
        assert_eq!(preview, enabled, "the same before it is enabled");
        let enabled = enabled.unwrap();
        let (from, until) = (at(dice.below(100_000)), at(dice.below(200_000)));
        let range = RecoveryFilter::between(from, until, at(110_000));
        let of_two = range.clone().with_statuses([Skipped, Delivered, Failed]);
        for missed in [&enabled, &range, &range.clone().with_endpoint(&endpoint), &of_two] {
            let instants = [missed.from(), missed.failed_from(), at(dice.below(200_000))];
            let columns = DeliveryColumns {
                event_created_at: instants[dice.below(3) as usize],
                status: DeliveryStatus::ALL[dice.below(7) as usize],
                at: at(dice.below(200_000)),
                attempts: 1,
                manual: false,
                generation: dice.below(4) as i32,
                version: 3,
            };
            let row = Delivery::from_columns(7, 1, columns).unwrap();
            assert_eq!(sql(missed, &columns), missed.includes(&row), "round {round}: {row:?}");
            found += usize::from(missed.includes(&row));
            pending += usize::from(missed.includes(&row) && row.is_pending());
            assert!(!missed.includes(&row) || row.status() != Delivered, "{row:?}");
        }
    }
    assert!(found > 50 && pending > 10, "{found} {pending}");
}

#[test]
fn a_range_is_left_with_the_statuses_and_types_that_are_asked_for() {
    use DeliveryStatus::{Delivered, Failed, Gone, Parked, Skipped, Waiting};
    let all = RecoveryFilter::between(start(), at(100), at(100));
    assert_eq!(all.statuses(), [Failed, Gone, Parked, Skipped]);
    let some = all.clone().with_statuses([Parked, Delivered, Waiting]);
    assert_eq!(some.statuses(), [Parked]);
    assert!(all.includes_type(&EventType::Ping), "all types");
    let calls = all.with_types([EventType::CallEnded]);
    assert!(calls.includes_type(&EventType::CallEnded) && !calls.includes_type(&EventType::Ping));
    assert_eq!(calls.types(), [EventType::CallEnded]);
}

/// An endpoint that was disabled and enabled, and what it missed meanwhile: skipped, each one of its own second.
fn outage(count: u64) -> (EndpointHealth, RecoveryFilter, Vec<(u64, Delivery)>) {
    let mut endpoint = EndpointHealth::new(1, start());
    let _ = endpoint.pause(start());
    let rows =
        (0..count).map(|id| (id, Delivery::accept(&event(at(id)), &endpoint, at(id)))).collect();
    let missed = endpoint.enable(at(count)).unwrap();
    (endpoint, missed, rows)
}

fn started(endpoint: &EndpointHealth, missed: RecoveryFilter) -> Recovery<u64> {
    missed.recover(BY, PLAN, endpoint, at(60)).unwrap().with_counted(3)
}

/// A step with room for this many, of an account with the plan.
fn step(
    recovery: &mut Recovery<u64>,
    room: u32,
    found: &[(u64, Delivery)],
    endpoint: &EndpointHealth,
    now: Timestamp,
) -> Vec<(u64, Delivery)> {
    recovery.step(RecoveryStep { room, found, endpoint, plan: PLAN }, now).unwrap()
}

fn ids(writes: &[(u64, Delivery)]) -> Vec<u64> {
    writes.iter().map(|(id, _)| *id).collect()
}

#[test]
fn each_step_redelivers_what_there_is_room_for() {
    let (endpoint, missed, rows) = outage(3);
    let mut recovery = started(&endpoint, missed);
    assert_eq!((recovery.room(0, 2), recovery.room(1, 2), recovery.room(5, 2)), (2, 1, 0));
    assert_eq!(step(&mut recovery, 0, &[], &endpoint, at(60)), [], "no room");
    assert_eq!(recovery.version(), 0, "nothing to store");

    let writes = step(&mut recovery, 2, &rows[..2], &endpoint, at(60));
    assert_eq!((ids(&writes), recovery.after()), (vec![0, 1], Some(&1)));
    // The write is conditional on what was read, which is stored without the condition.
    assert_eq!((recovery.if_version(), recovery.version()), (Some(0), 1));
    let json = serde_json::to_string(&recovery).unwrap();
    recovery = serde_json::from_str(&json).unwrap();
    assert_eq!((recovery.if_version(), recovery.started_at()), (None, at(60)));
    for (id, row) in &writes {
        assert_eq!((row.status(), row.is_manual()), (DeliveryStatus::Waiting, true), "{id}");
        assert_eq!(row.due(at(60)), Some(at(60)), "{id}");
    }
    assert_eq!((recovery.status(), recovery.version()), (RecoveryStatus::Running, 1));
    let writes = step(&mut recovery, 2, &rows[2..], &endpoint, at(61));
    assert_eq!((ids(&writes), recovery.status()), (vec![2], RecoveryStatus::Completed));
    let counts = (recovery.counted(), recovery.redelivered(), recovery.left_out());
    assert_eq!((counts, recovery.version()), ((3, 3, 0), 2));
    assert_eq!(recovery.room(0, 2), 0, "it has ended");
    assert_eq!(step(&mut recovery, 2, &rows, &endpoint, at(62)), []);
    assert!(!recovery.cancel() && recovery.version() == 2);
}

/// Rows that somebody else redelivered, or the receiver has, are left out, and nothing is lost of the rest.
#[test]
fn what_is_no_longer_missed_is_left_out() {
    let (endpoint, missed, mut rows) = outage(4);
    let mut redelivered = rows[0].1;
    redelivered.redeliver(&endpoint, at(50)).unwrap();
    rows[0].1 = redelivered;
    let _ = attempted(&mut redelivered, &endpoint, answered(200), at(50), at(51));
    rows[1].1 = redelivered;
    // Not of the range: the condition was forgotten.
    rows[2].1 = Delivery::accept(&event(at(900)), &endpoint, at(900));
    let mut recovery = started(&endpoint, missed);
    let writes = step(&mut recovery, 9, &rows, &endpoint, at(60));
    assert_eq!((ids(&writes), recovery.redelivered(), recovery.left_out()), (vec![3], 1, 3));
}

/// D-58: a sender may still be sending it: it is neither redelivered beside that nor forgotten.
#[test]
fn a_row_that_is_leased_waits_with_all_after_it() {
    let mut endpoint = EndpointHealth::new(1, start());
    let waiting = failed_before(1, &endpoint, at(50));
    let mut sending = Delivery::accept(&event(at(1)), &endpoint, at(50));
    let _ = sending.begin(&endpoint, at(50)).unwrap();
    let _ = endpoint.pause(at(51));
    let missed = endpoint.enable(at(52)).unwrap();
    let rows = [(0, waiting), (1, sending), (2, waiting)].map(|(id, row)| (id, row.into_stored()));
    assert!(rows.iter().all(|(_, row)| missed.includes(row)));
    let mut recovery = started(&endpoint, missed);
    let writes = step(&mut recovery, 9, &rows, &endpoint, at(60));
    assert_eq!((ids(&writes), recovery.after()), (vec![0], Some(&0)));
    assert_eq!(recovery.status(), RecoveryStatus::Running);
    let version = recovery.version();
    assert_eq!(step(&mut recovery, 9, &rows[1..], &endpoint, at(79)), []);
    assert_eq!(recovery.version(), version, "nothing to store");
    let writes = step(&mut recovery, 9, &rows[1..], &endpoint, at(80));
    assert_eq!((ids(&writes), recovery.status()), (vec![1, 2], RecoveryStatus::Completed));
}

/// Rows that a recovery would pass over in silence, or redeliver out of turn, are refused, and it stays as it was.
#[test]
fn rows_that_are_not_the_next_ones_of_the_endpoint_are_refused() {
    let (endpoint, missed, rows) = outage(5);
    let abroad = Delivery::accept(&event(at(3)), &EndpointHealth::new(2, start()), at(3));
    let mut recovery = started(&endpoint, missed);
    let _ = step(&mut recovery, 2, &rows[..2], &endpoint, at(60));
    let before = recovery.clone();
    for (name, found, refused) in [
        ("of another endpoint, first", [(2, abroad), rows[3]], MismatchError::Endpoint),
        ("of another endpoint, last", [rows[2], (3, abroad)], MismatchError::Endpoint),
        ("descending", [rows[3], rows[2]], MismatchError::Order),
        ("the last one again", [rows[1], rows[2]], MismatchError::Order),
        ("before the last one", [rows[0], rows[2]], MismatchError::Order),
    ] {
        let step = RecoveryStep { room: 9, found: &found, endpoint: &endpoint, plan: PLAN };
        assert_eq!(recovery.step(step, at(61)), Err(refused), "{name}");
        assert_eq!((&recovery, recovery.if_version()), (&before, before.if_version()), "{name}");
    }
    assert_eq!(ids(&step(&mut recovery, 9, &rows[2..], &endpoint, at(61))), [2, 3, 4]);
}

/// D-76: recovery by program needs Business, from the dashboard Pro, when it starts and at each step.
#[test]
fn a_recovery_ends_where_its_plan_does() {
    use RecoveryBy::{Dashboard, Program};
    use WebhookPlan::{Basic, Business, Pro};
    for (by, plan, goes_on) in [
        (Dashboard, Basic, false),
        (Dashboard, Pro, true),
        (Dashboard, Business, true),
        (Program, Basic, false),
        (Program, Pro, false),
        (Program, Business, true),
    ] {
        let (endpoint, missed, rows) = outage(2);
        let begun = missed.clone().recover::<u64>(by, plan, &endpoint, at(60));
        assert_eq!(begun.is_ok(), goes_on, "{by:?} {plan:?}");
        assert!(goes_on || matches!(begun, Err(RecoverError::Plan(_))), "{by:?} {plan:?}");

        let mut recovery = missed.recover(by, Business, &endpoint, at(60)).unwrap();
        let _ = step(&mut recovery, 1, &rows[..1], &endpoint, at(60));
        let step = RecoveryStep { room: 1, found: &rows[1..], endpoint: &endpoint, plan };
        let writes = recovery.step(step, at(61)).unwrap();
        let status = if goes_on { RecoveryStatus::Running } else { RecoveryStatus::Downgraded };
        let seen = (recovery.status(), writes.len());
        assert_eq!(seen, (status, usize::from(goes_on)), "{by:?} {plan:?}");
    }
}

#[test]
fn a_recovery_ends_with_its_endpoint_its_owner_and_its_events() {
    let (active, missed, rows) = outage(2);
    let mut paused = active;
    let _ = paused.pause(at(61));
    let mut enabled = paused;
    let _ = enabled.enable(at(62));
    let seen = missed.clone().recover::<u64>(BY, PLAN, &paused, at(61));
    assert_eq!(seen, Err(RecoverError::Disabled));
    let last = at(60).saturating_add(RETENTION);
    let before = last.saturating_sub(Duration::from_nanos(1));
    for (name, endpoint, now, status) in [
        ("disabled", paused, at(63), RecoveryStatus::Disabled),
        // What it missed by then is for another recovery.
        ("enabled again", enabled, at(63), RecoveryStatus::Disabled),
        ("thirty days", active, last, RecoveryStatus::Expired),
        ("nearly thirty days", active, before, RecoveryStatus::Completed),
    ] {
        let mut recovery = started(&active, missed.clone());
        let writes = step(&mut recovery, 9, &rows, &endpoint, now);
        // The events are older than the recovery: they have gone before.
        assert_eq!((recovery.status(), writes.len()), (status, 0), "{name}");
        assert_eq!(recovery.version(), 1, "{name}");
    }
    let mut recovery = started(&active, missed);
    assert!(recovery.cancel());
    assert_eq!((recovery.status(), recovery.version()), (RecoveryStatus::Cancelled, 1));
    assert_eq!(step(&mut recovery, 9, &rows, &active, at(61)), []);
}

/// D-56: one manual attempt each; what fails again has failed, and this recovery leaves it there.
#[test]
fn a_failure_of_a_recovery_counts_for_nothing() {
    let (mut endpoint, missed, rows) = outage(1);
    let mut recovery = started(&endpoint, missed);
    let writes = step(&mut recovery, 1, &rows, &endpoint, at(60));
    let mut row = writes[0].1;
    let report = attempted(&mut row, &endpoint, Outcome::TimedOut, at(60), at(70));
    let before = endpoint;
    let _ = endpoint.record(report, at(70)).unwrap();
    assert_eq!((row.status(), endpoint), (DeliveryStatus::Failed, before));
    assert_eq!(recovery.after(), Some(&0), "the next step searches after it");
}

/// What lives in people's databases.
#[test]
fn a_recovery_is_stored_like_this() {
    let (endpoint, missed, rows) = outage(2);
    let missed = missed.with_types([EventType::CallEnded]);
    let mut recovery = missed
        .recover::<u64>(RecoveryBy::Program, PLAN, &endpoint, at(60))
        .unwrap()
        .with_counted(2);
    let _ = step(&mut recovery, 1, &rows[..1], &endpoint, at(60));
    let json = concat!(
        r#"{"missed":{"from":"2025-12-02T00:00:02.000000001Z","until":"9999-12-31T23:59:59.999999999Z","#,
        r#""statuses":["failed","gone","parked","skipped"],"types":["call.ended"],"generation":1,"#,
        r#""failed_from":"FAILED_FROM"},"by":"program","started_at":"2026-01-01T00:01:00Z","#,
        r#""generation":1,"counted":2,"redelivered":1,"left_out":0,"after":0,"status":"running","#,
        r#""version":1}"#
    );
    let json = json.replace("FAILED_FROM", &start().saturating_sub(LONGEST_DELIVERY).to_string());
    assert_eq!(serde_json::to_string(&recovery).unwrap(), json);
    assert_eq!(serde_json::from_str::<Recovery<u64>>(&json).unwrap(), recovery);
    let later = json.replace(r#""version":1"#, r#""of_later":[],"version":1"#);
    assert_eq!(serde_json::from_str::<Recovery<u64>>(&later).unwrap(), recovery);

    let range = RecoveryFilter::between(start(), at(100), at(100));
    let json = r#"{"from":"2026-01-01T00:00:00Z","until":"2026-01-01T00:01:40Z","statuses":["failed","gone","parked","skipped"]}"#;
    assert_eq!(serde_json::to_string(&range).unwrap(), json);
    assert_eq!(serde_json::from_str::<RecoveryFilter>(json).unwrap(), range);
    let wrong = json.replace("gone", "delivered");
    let error = serde_json::from_str::<RecoveryFilter>(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("statuses has delivered, which is not missed"), "{error}");
    for status in [RecoveryStatus::Running, RecoveryStatus::Downgraded] {
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("{:?}", status.as_str()));
    }
}
