//! Every row that some transitions make is read again.

use std::collections::BTreeSet;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DeliveryColumns, DisabledReason, EndpointColumns, EndpointHealth,
    FAILURES_TO_DISABLE, FIRST_FAILURES_TO_SUSPECT, MAX_ATTEMPTS, Outcome,
};

use super::{BEFORE_LAST, answered, event, record, start};

const DAY: Duration = Duration::from_secs(86_400);

/// What cannot be told apart makes the same rows.
type DeliveryRow = (&'static str, i16, bool);
type EndpointRow = (&'static str, i16, i16, bool, i16);

fn delivery_row(columns: &DeliveryColumns) -> DeliveryRow {
    (columns.status.as_str(), columns.attempts, columns.manual)
}

fn endpoint_row(columns: &EndpointColumns) -> EndpointRow {
    let EndpointColumns { failures, first_failures, first_failed_at, reminders, .. } = *columns;
    let disabled = columns.disabled.map_or("", DisabledReason::as_str);
    (disabled, failures, first_failures, first_failed_at.is_some(), reminders)
}

/// Walks through every step of a delivery: in time and late, by a sender that died, by its owner.
fn all_deliveries() -> BTreeSet<DeliveryRow> {
    let active = EndpointHealth::new(1, start());
    let mut paused = active;
    let _ = paused.pause(start());
    let accepted = [&active, &paused].map(|it| Delivery::accept(&event(start()), it, start()));
    let mut left: Vec<(Delivery, Option<Attempt>, Timestamp)> =
        accepted.map(|row| (row, None, start())).into();
    let (mut seen, mut rows) = (BTreeSet::new(), BTreeSet::new());
    while let Some((row, last, then)) = left.pop() {
        let columns = DeliveryColumns::from(row);
        let lease = last
            .as_ref()
            .map(|it| (it.number(), it.is_manual(), row.in_flight(&active).as_ref() == Some(it)));
        if !seen.insert((delivery_row(&columns), lease)) {
            continue;
        }
        assert_eq!(Delivery::from_columns(row.id(), 1, columns), Ok(row.into_stored()), "{row:?}");
        rows.insert(delivery_row(&columns));
        let now = row.due(then).unwrap_or(then);
        let mut step = |change: &dyn Fn(&mut Delivery) -> Option<Attempt>| {
            let mut next = row;
            let begun = change(&mut next);
            left.push((next, begun.or(last), now));
        };
        step(&|row| row.begin(&active, now).ok());
        step(&|row| {
            row.park(&paused, now);
            None
        });
        step(&|row| {
            let _ = row.redeliver(&active, now);
            None
        });
        for outcome in [answered(200), answered(410), answered(500), Outcome::Unsent] {
            step(&|row| {
                let _ = last.as_ref().map(|attempt| row.finish(attempt, outcome, now).unwrap());
                None
            });
        }
    }
    rows
}

/// Walks through every step of an endpoint.
fn all_endpoints() -> BTreeSet<EndpointRow> {
    let mut left = vec![(EndpointHealth::new(1, start()), start())];
    let mut rows = BTreeSet::new();
    while let Some((endpoint, then)) = left.pop() {
        let columns = EndpointColumns::from(endpoint);
        if !rows.insert(endpoint_row(&columns)) {
            continue;
        }
        let read = EndpointHealth::from_columns(1, columns);
        assert_eq!(read, Ok(endpoint.into_stored()), "{endpoint:?}");
        for now in [DAY, 3 * DAY].map(|wait| then.saturating_add(wait)) {
            let mut step = |change: &dyn Fn(&mut EndpointHealth)| {
                let mut next = endpoint;
                change(&mut next);
                left.push((next, now));
            };
            // What is sent to one that is disabled changes nothing.
            let results = if endpoint.is_active() { 4 } else { 0 };
            for (failed, status) in
                [(0, 200), (0, 410), (0, 500), (BEFORE_LAST, 500)][..results].iter().copied()
            {
                step(&|it| _ = record(it, failed, answered(status), now));
            }
            step(&|it| _ = it.pause(now));
            step(&|it| _ = it.delete(now));
            step(&|it| _ = it.moved(now));
            step(&|it| _ = it.enable(now));
            step(&|it| _ = it.remind(now));
        }
    }
    rows
}

// Each kind of row: waiting and sending with each number of attempts, and with a manual one;
// ended; skipped.
#[test]
fn no_row_of_a_delivery_is_made_that_is_refused_when_it_is_read() {
    let attempts = usize::from(MAX_ATTEMPTS);
    let (waiting, sending) = (2 * attempts, 2 * (attempts + 1));
    assert_eq!(all_deliveries().len(), waiting + sending + 4 * (attempts + 1) + 1);
}

// Active, gone, paused, failing, deleted.
#[test]
fn no_row_of_an_endpoint_is_made_that_is_refused_when_it_is_read() {
    let (counts, firsts) =
        (usize::from(FAILURES_TO_DISABLE), usize::from(FIRST_FAILURES_TO_SUSPECT) + 1);
    assert_eq!(all_endpoints().len(), counts * firsts + counts * 3 + counts + 3 + (counts + 1) * 3);
}
