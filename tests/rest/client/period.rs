//! The calls of a period: each once and none missing, whatever the clocks, the writing and the network do.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::client::{CallPages, Flow, ResponseHead, Retry, Step};
use call_assistant::rest::{ListCalls, ParameterError};

use super::flow::client;
use super::world::{Manner, Service, handed};
use crate::dice::{Dice, HOUR, MINUTE, SECOND, at};
use support::simulation::seeds;

fn span(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// Answers the request that is due.
#[track_caller]
fn answer(flow: &mut Flow<CallPages>, page: &CallList, date: Option<&str>, now: Timestamp) {
    let Step::Send { ticket, .. } = flow.next([0; 8], now) else { panic!("no request is due") };
    let mut head = ResponseHead::new(200);
    head.date = date;
    flow.answered(ticket, head, &page.to_json(), now);
}

fn call(id: i64, started: i64) -> Call {
    let id = CallId::parse(&format!("call_{id}")).unwrap();
    Call::new(id, at(started * SECOND), at(started * SECOND + HOUR))
}

fn page(started: &[i64], next: Option<&str>) -> CallList {
    let calls = (0..).zip(started).map(|(id, started)| call(9 - id, *started));
    CallList::new(calls.collect(), next.map(Into::into))
}

/// It waits by the service's clock, asks again, and stops at the first page that goes below the period.
#[test]
fn a_period_is_read_once_it_is_complete() {
    let lag = span(10 * MINUTE);
    let period = CallPages::from_period(at(100 * SECOND), at(200 * SECOND), lag).unwrap();
    // The customer's clock is a year behind, which nobody asks.
    let now = Timestamp::parse("2025-01-01T00:00:00Z").unwrap();
    let mut flow = client().pages(period.clone());
    answer(&mut flow, &page(&[300], None), Some("Thu, 01 Jan 2026 00:03:20 GMT"), now);
    let Step::Wait(until) = flow.next([0; 8], now) else { panic!() };
    assert_eq!(until.since(now), lag);

    let list = page(&[300, 200, 199, 100], Some("c"));
    answer(&mut flow, &list, Some("Thu, 01 Jan 2026 00:13:20 GMT"), until);
    let Step::Store(batch) = flow.next([0; 8], until) else { panic!() };
    assert_eq!(
        batch.calls.iter().map(|call| call.started_at).collect::<Vec<_>>(),
        [at(199 * SECOND), at(100 * SECOND)]
    );
    assert!(!batch.next.is_done(), "another call may have started at the same instant");
    flow.stored();
    // Further pages are not asked what time it is: the first one was.
    let until = until.saturating_add(span(SECOND));
    answer(&mut flow, &page(&[100, 99], Some("d")), None, until);
    let Step::Store(batch) = flow.next([0; 8], until) else { panic!() };
    assert_eq!(batch.calls.len(), 1);
    assert!(batch.next.is_done());
    flow.stored();
    assert!(matches!(flow.next([0; 8], until), Step::Done(Ok(()))));
    assert_eq!(flow.progress().pages, 2);

    // Without a date, the customer's clock tells.
    let mut flow = client().pages(period);
    answer(&mut flow, &page(&[], None), None, at(0));
    assert!(matches!(flow.next([0; 8], at(0)), Step::Wait(until) if until == at(800 * SECOND)));
    answer(&mut flow, &page(&[], None), None, at(800 * SECOND));
    assert!(
        matches!(flow.next([0; 8], at(800 * SECOND)), Step::Store(batch) if batch.next.is_done())
    );
}

#[test]
fn a_period_does_not_end_before_it_begins() {
    let error = CallPages::from_period(at(1), at(0), Duration::ZERO).unwrap_err();
    assert_eq!((&error, error.parameter()), (&ParameterError::Period, Some("until")));
    assert_eq!(error.to_string(), "until is earlier than from");
    let empty = CallPages::from_period(at(1), at(1), Duration::MAX).unwrap();
    assert_eq!(empty.query(), ListCalls::new().with_limit(ListCalls::MAX_LIMIT));
    let text = serde_json::to_string(&empty).unwrap();
    let period = r#""period":{"from":"2026-01-01T00:00:00.001Z","until":"2026-01-01T00:00:00.001Z","complete_at":"9999-12-31T23:59:59.999999999Z"}"#;
    assert!(text.contains(period), "{text}");
    assert_eq!(serde_json::from_str::<CallPages>(&text).unwrap(), empty);
}

const LONGEST: i64 = 2 * HOUR;

/// Services that write late, replicas that are behind, pages with many calls of one instant, answers that are lost,
/// cursors that are refused, and a program that dies: it stores each call once, and misses none.
#[test]
fn every_call_that_started_in_a_period_is_returned_once() {
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let (transaction, staleness) = (dice.up_to(MINUTE), dice.up_to(MINUTE));
        let precision = [1, SECOND, HOUR][dice.up_to(2) as usize];
        let manner = Manner {
            transaction,
            staleness,
            precision,
            ids_upwards: dice.chance(50),
            terse: dice.chance(50),
            unreadable: [0, 0, 10][dice.up_to(2) as usize],
        };
        let mut service = Service::new(manner, 60, (-HOUR, 8 * HOUR), LONGEST, &mut dice);
        let from = dice.up_to(4 * HOUR) / precision * precision;
        let until = from + dice.up_to(4 * HOUR);
        let lag = SECOND + LONGEST + transaction + staleness + precision;
        // Without a date, a clock that is ahead would end the wait early.
        let dates = dice.chance(50);
        let mut clock = dice.up_to(6 * HOUR) - 3 * HOUR;
        if !dates {
            clock = clock.min(0);
        }
        let limit = 1 + dice.up_to(9) as usize;
        let failing = [0, 10, 40][dice.up_to(2) as usize];

        let period = CallPages::from_period(at(from), at(until), span(lag)).unwrap();
        let begin = |state: CallPages| {
            let retry = Retry::new().with_tries(u32::MAX);
            client().pages(state).with_retry(retry).with_restarts(u32::MAX)
        };
        let (mut state, mut stored) = (period, BTreeMap::<CallId, u32>::new());
        let (mut flow, mut now) = (begin(state.clone()), dice.up_to(8 * HOUR));
        for steps in 0.. {
            assert!(steps < 100_000, "seed {seed}: no end");
            if dice.chance(1) {
                service.epoch += 1;
            }
            match flow.next(dice.bytes(), at(now + clock)) {
                Step::Wait(wait) => {
                    now += wait.since(at(now + clock)).as_millis() as i64 + 1;
                }
                Step::Send { ticket, .. } if dice.chance(failing) => flow.lost(ticket, "lost"),
                Step::Send { request, ticket, .. } => {
                    let query = ListCalls::from_query(request.uri().query().unwrap()).unwrap();
                    let date = http_date(now);
                    let page = service.list(&query.with_limit(limit), now, &mut dice);
                    let mut head = ResponseHead::new(if page.is_some() { 200 } else { 400 });
                    head.date = dates.then_some(&*date);
                    let refused =
                        r#"{"error":{"code":"invalid_cursor","message":"","request_id":"req_1"}}"#;
                    let body = page.map_or(refused.into(), |page| page.to_json());
                    now += dice.up_to(20 * SECOND);
                    flow.answered(ticket, head, &body, at(now + clock));
                }
                Step::Store(batch) => {
                    for id in handed(&batch.calls, &batch.unreadable) {
                        *stored.entry(id).or_default() += 1;
                    }
                    let text = serde_json::to_string(&batch.next).unwrap();
                    state = serde_json::from_str(&text).unwrap();
                    flow.stored();
                }
                Step::Done(result) => {
                    result.unwrap();
                    break;
                }
            }
            if dice.chance(3) {
                flow = begin(state.clone());
            }
        }
        for written in service.calls() {
            let call = &written.call;
            let count = stored.get(&call.id).copied().unwrap_or(0);
            let within = (at(from)..at(until)).contains(&call.started_at);
            match service.is_readable(call) {
                true => assert_eq!(count, u32::from(within), "seed {seed}: {call:?}"),
                false => assert!(count <= 1 && (count == 1 || !within), "seed {seed}: {call:?}"),
            }
        }
    }
}

/// The date of an answer: whole seconds of the first day of 2026.
fn http_date(now: i64) -> String {
    let second = now / SECOND;
    let (day, second) = (1 + second / 86_400, second % 86_400);
    let name = ["Thu", "Fri", "Sat"][(day - 1) as usize];
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{name}, {day:02} Jan 2026 {hour:02}:{minute:02}:{:02} GMT", second % 60)
}
