//! Flows: which step comes next, and that misuse does no harm (RATE-4, RATE-5, D-24, D-31, D-71). A host that is
//! killed anywhere ends with each call once: `tests/bytes/src/flow.rs`, `tests/world`.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::client::{
    Action, Batch, CallPages, CallSync, Client, ClientError, Flow, FlowError, FlowTask, Progress,
    Retry, Step, Ticket, testing,
};
use call_assistant::rest::{GetAccount, GetCall, ListCalls};
use http::{Request, Response};

use crate::dice::{HOUR, MINUTE, SECOND, at};

const RANDOM: [u8; 8] = [0; 8];

pub(super) fn client() -> Client {
    Client::new("https://api.example.com", "service_live_kept-where-secrets-are").unwrap()
}

fn response(status: u16, body: impl Into<Vec<u8>>) -> Response<Vec<u8>> {
    let mut response = Response::new(body.into());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}

fn account(id: &str) -> Response<Vec<u8>> {
    response(200, Account::new(AccountId::parse(id).unwrap(), "UTC").to_json())
}

fn refused(status: u16, code: &str) -> Response<Vec<u8>> {
    let error = format!(r#"{{"error":{{"code":"{code}","message":"","request_id":"req_1"}}}}"#);
    response(status, error)
}

fn answer<T: FlowTask>(
    flow: &mut Flow<T>,
    ticket: Ticket,
    response: Response<Vec<u8>>,
    now: Timestamp,
) {
    let (head, body) = response.into_parts();
    flow.answered(ticket, &head, &body, now);
}

#[track_caller]
fn sent<T: FlowTask>(step: Step<'_, T>) -> (Request<()>, Ticket) {
    let Step::Send { request, ticket, .. } = step else { panic!("{step:?}, and no request") };
    (request, ticket)
}

#[track_caller]
fn waits<T: FlowTask>(step: Step<'_, T>) -> Timestamp {
    let Step::Wait(until) = step else { panic!("{step:?}, and no wait") };
    until
}

#[track_caller]
fn stopped<T: FlowTask>(step: Step<'_, T>) -> FlowError {
    let Step::Done(Err(error)) = step else { panic!("{step:?}, and no error") };
    error
}

/// Sends the request that is due, answers it, and returns what is to be stored.
#[track_caller]
fn batch_of<T: FlowTask>(
    flow: &mut Flow<T>,
    response: Response<Vec<u8>>,
    now: Timestamp,
) -> &T::Batch {
    let (_, ticket) = sent(flow.next(RANDOM, now));
    answer(flow, ticket, response, now);
    let step = flow.next(RANDOM, now);
    let Step::Store(batch) = step else { panic!("{step:?}, and no batch") };
    batch
}

/// Follows a flow to its end: every request is answered, and every batch is stored.
pub(super) fn follow<T: FlowTask>(
    flow: &mut Flow<T>,
    mut now: Timestamp,
    mut service: impl FnMut(&Request<()>) -> Response<Vec<u8>>,
    mut store: impl FnMut(&T::Batch),
) -> Result<T::Output, FlowError> {
    loop {
        match flow.next(RANDOM, now) {
            Step::Send { request, ticket, .. } => {
                answer(flow, ticket, service(&request), now);
            }
            Step::Wait(until) => now = until,
            Step::Store(batch) => {
                store(batch);
                flow.stored();
            }
            Step::Done(result) => return result,
        }
    }
}

/// The cursor that a request for a list has.
fn cursor(request: &Request<()>) -> Option<&str> {
    request.uri().query().unwrap().split_once("cursor=").map(|(_, cursor)| cursor)
}

fn json(call: &Call) -> String {
    String::from_utf8(call.to_json()).unwrap()
}

/// A page of these items, before another one.
fn items(items: &str, cursor: &str) -> Response<Vec<u8>> {
    response(200, format!(r#"{{"data":[{items}],"next_cursor":"{cursor}"}}"#))
}

fn call(number: i64) -> Call {
    let id = CallId::parse(&format!("call_{number}")).unwrap();
    Call::new(id, at(number * SECOND), at(number * SECOND + 500))
}

fn page(numbers: &[i64], cursor: Option<&str>) -> Response<Vec<u8>> {
    let calls = numbers.iter().map(|number| call(*number)).collect();
    response(200, CallList::new(calls, cursor.map(String::from)).to_json())
}

#[test]
fn one_request_and_its_answer() {
    let mut flow = client().fetch(GetAccount).with_time_limit(Duration::from_secs(7));
    let Step::Send { request, time_limit, ticket } = flow.next(RANDOM, at(0)) else { panic!() };
    assert_eq!(request.uri(), "https://api.example.com/v1/account");
    assert_eq!(time_limit, Duration::from_secs(7));
    let mut default = client().fetch(GetAccount);
    let Step::Send { time_limit, .. } = default.next(RANDOM, at(0)) else { panic!() };
    assert_eq!(time_limit, Duration::from_secs(30));
    answer(&mut flow, ticket, account("acct_1"), at(1));
    for again in 0..2 {
        let Step::Done(Ok(account)) = flow.next(RANDOM, at(2)) else { panic!("{again}") };
        assert_eq!(account.id.as_str(), "acct_1", "{again}");
    }
}

#[test]
fn what_may_help_is_tried_again_and_nothing_else() {
    for (status, code, action) in
        [(404, "resource_not_found", Action::NotFound), (500, "internal_error", Action::Retry)]
    {
        let mut flow = client().fetch(GetCall::new(CallId::parse("call_1").unwrap()));
        let mut tries = 0;
        let service = |_: &_| {
            tries += 1;
            refused(status, code)
        };
        let error = follow(&mut flow, at(0), service, |never| match *never {}).unwrap_err();
        assert_eq!(error.action(), action, "{code}");
        assert_eq!(tries, if action == Action::Retry { 5 } else { 1 }, "{code}");
        assert_eq!(flow.progress().failures, tries, "{code}");
    }
}

#[test]
fn retry_after_is_waited_for() {
    let mut flow = client().fetch(GetAccount);
    let (_, ticket) = sent(flow.next(RANDOM, at(0)));
    answer(&mut flow, ticket, testing::rate_limited(17), at(0));
    assert_eq!(waits(flow.next(RANDOM, at(0))), at(17_500));
    // A clock that is set back makes nobody wait longer.
    assert_eq!(waits(flow.next(RANDOM, at(-HOUR))), at(-HOUR + 17_500));
}

/// A request that succeeds starts the count of tries anew.
#[test]
fn tries_are_counted_per_request() {
    let mut flow = client().pages(ListCalls::new()).with_retry(Retry::new().with_tries(2));
    let (mut asked, mut stored) = (0, Vec::new());
    let service = |_: &_| {
        asked += 1;
        let number = 20 - asked / 2;
        match asked % 2 {
            0 => page(&[number], (number > 0).then_some(&*format!("c{number}"))),
            _ => refused(500, "internal_error"),
        }
    };
    follow(&mut flow, at(0), service, |batch| stored.extend_from_slice(&batch.calls)).unwrap();
    assert_eq!(stored, (0..20).rev().map(call).collect::<Vec<_>>());
    assert_eq!(flow.progress().failures, 20);
}

#[test]
fn a_list_whose_cursor_is_refused_restarts_and_repeats_nothing() {
    let mut flow = client().pages(ListCalls::new()).with_restarts(2);
    let (mut stored, mut first_pages) = (Vec::new(), 0);
    let service = |request: &_| {
        if cursor(request).is_some() {
            return refused(400, "invalid_cursor");
        }
        first_pages += 1;
        // While the list is repeated, another call has arrived at its top.
        page(if first_pages == 1 { &[5, 4] } else { &[6, 5, 4, 3] }, Some("c"))
    };
    let result = follow(&mut flow, at(0), service, |batch| stored.extend_from_slice(&batch.calls));
    let error = result.unwrap_err();
    assert!(matches!(error, FlowError::Restarts { restarts: 2, .. }), "{error}");
    assert_eq!(error.action(), Action::ContactSupport);
    assert_eq!(stored, [call(5), call(4), call(3)]);
    assert_eq!(first_pages, 4, "the second pass came further, to call 3: two more");
}

/// A long walk outlives any number of cursor keys, as long as it comes further.
#[test]
fn restarts_are_counted_from_where_the_list_came_furthest() {
    let mut flow = client().sync(CallSync::new()).with_restarts(1);
    let (mut stored, mut pass) = (0, 0);
    let service = |request: &_| {
        let index = cursor(request).map_or(0, |cursor| cursor[1..].parse().unwrap());
        // Each pass comes a page further than the one before.
        let answered = if index == 0 || index < pass {
            page(&[90 - index, 80 - index], Some(&format!("c{}", index + 10)))
        } else {
            refused(400, "invalid_cursor")
        };
        if index == 0 && pass < 70 {
            pass += 20;
        }
        answered
    };
    let result = follow(&mut flow, at(0), service, |batch| stored += batch.calls.len());
    assert!(matches!(result, Err(FlowError::Restarts { restarts: 1, .. })), "{result:?}");
    assert_eq!((flow.progress().restarts, stored), (4, 9), "four passes came further, one did not");
}

/// D-71: a state that an event has changed meanwhile is not written over.
#[test]
fn a_sync_continues_from_what_was_stored_meanwhile() {
    let (now, mut flow) = (at(MINUTE), client().sync(CallSync::new()));
    let (_, ticket) = sent(flow.next(RANDOM, now));
    // While a request is under way: its answer is applied to the new state.
    let taken = CallSync::new().take_call(&call(3)).unwrap();
    flow.continue_from(taken.clone());
    answer(&mut flow, ticket, page(&[3, 2, 1], None), now);
    let Step::Store(batch) = flow.next(RANDOM, now) else { panic!() };
    assert_eq!(batch.calls, [call(2), call(1)]);
    // While a batch is to be stored: its page is asked for again.
    flow.continue_from(taken.take_call(&call(2)).unwrap());
    flow.stored(); // of nothing
    let now = waits(flow.next(RANDOM, now));
    let batch = batch_of(&mut flow, page(&[3, 2, 1], None), now);
    assert_eq!(batch.calls, [call(1)]);
    let stored = batch.next.clone();
    assert!([1, 2, 3].iter().all(|number| stored.take_call(&call(*number)).is_none()));
    flow.stored();
    assert!(matches!(flow.next(RANDOM, now), Step::Done(Ok(()))));
    flow.continue_from(CallSync::new());
    assert!(matches!(flow.next(RANDOM, now), Step::Done(Ok(()))));

    // While a request is under way for a page that another worker has taken further: its answer is
    // not taken for that to the page that the state asks for now.
    let mut flow = client().sync(CallSync::new());
    batch_of(&mut flow, page(&[9, 8], Some("c")), now);
    flow.stored();
    let now = waits(flow.next(RANDOM, now));
    let (_, old) = sent(flow.next(RANDOM, now));
    flow.continue_from(stored);
    answer(&mut flow, old, page(&[7, 6], None), now);
    flow.stored();
    let now = waits(flow.next(RANDOM, now));
    let (request, ticket) = sent(flow.next(RANDOM, now));
    assert_eq!(cursor(&request), None);
    assert_ne!(old, ticket);

    // The state stays bound, and another account's is refused.
    let [one, two] =
        ["acct_1", "acct_2"].map(|id| Account::new(AccountId::parse(id).unwrap(), "UTC"));
    let bound = |account| {
        let mut flow = client().sync_of(account, CallSync::new());
        flow.continue_from(CallSync::new());
        batch_of(&mut flow, page(&[1], None), now).next.clone()
    };
    let mut flow = client().sync_of(&one, bound(&one));
    flow.continue_from(bound(&two));
    assert_eq!(stopped(flow.next(RANDOM, now)), FlowError::OtherAccount);
}

/// An item that cannot be read is returned once, also where its page comes again.
#[test]
fn unreadable_items_are_returned_once() {
    let (odd, none) = (r#"{"id":"odd"}"#, "null");
    let mut flow = client().pages(ListCalls::new()).with_restarts(1);
    let (mut seen, mut calls, mut first_pages) = (Vec::new(), 0, 0);
    let service = |request: &_| {
        if cursor(request).is_some() {
            return refused(400, "invalid_cursor");
        }
        first_pages += 1;
        let third = if first_pages == 1 { odd.into() } else { format!("{odd},{none},7") };
        let (two, one) = (json(&call(2)), json(&call(1)));
        items(&format!("{none},{two},{odd},{one},{third}"), "c")
    };
    let result = follow(&mut flow, at(0), service, |batch| {
        calls += batch.calls.len();
        seen.extend(batch.unreadable.iter().map(|item| item.json().get().to_owned()));
    });
    assert!(result.is_err());
    assert_eq!(calls, 2);
    assert_eq!(seen, [none, odd, odd, none, "7"], "odd above and below call 1 are two items");
}

/// LIST-7: what becomes visible at the place where the list was restarted, or just below it, makes
/// nothing that was returned come again.
#[test]
fn a_restarted_list_returns_nothing_again_at_ties() {
    let tied = |id: i64, started: i64| {
        let mut call = call(id);
        call.started_at = at(started * SECOND);
        json(&call)
    };
    let [top, tie, late, below] = [(5, 5), (4, 4), (9, 4), (3, 3)].map(|(id, at)| tied(id, at));
    let (odd, other) = (r#"{"id":"odd"}"#.to_owned(), "null".to_owned());
    let [top, tie, late, below, odd, other] = [&top, &tie, &late, &below, &odd, &other];
    for (row, first, second, fresh) in [
        ("a call at the tie", vec![top, tie], vec![top, late, tie, below], vec![late, below]),
        ("after it", vec![top, tie], vec![top, tie, late, below], vec![late, below]),
        (
            "an unreadable item at the tie",
            vec![top, tie, odd],
            vec![top, tie, late, odd, below],
            vec![late, below],
        ),
        (
            "an unreadable item without a tie",
            vec![top, odd],
            vec![top, tie, odd, other, below],
            vec![tie, other, below],
        ),
    ] {
        let list = |all: &[&String]| {
            items(&all.iter().map(|item| &***item).collect::<Vec<_>>().join(","), "c")
        };
        let cursor = || refused(400, "invalid_cursor");
        // The flow goes on until nothing is left to answer, and is refused there.
        let end = refused(404, "resource_not_found");
        let mut answers =
            [list(&first), cursor(), list(&second), cursor(), list(&second), end].into_iter();
        let (mut flow, mut seen) = (client().pages(ListCalls::new()), Vec::new());
        let service = |_: &_| answers.next().unwrap();
        let result = follow(&mut flow, at(HOUR), service, |batch| {
            seen.extend(batch.calls.iter().map(json));
            seen.extend(batch.unreadable.iter().map(|item| item.json().get().to_owned()));
        });
        assert_eq!(result.unwrap_err().action(), Action::NotFound, "{row}");
        let mut expected: Vec<String> = first.iter().chain(&fresh).copied().cloned().collect();
        expected.sort();
        seen.sort();
        assert_eq!(seen, expected, "{row}");
    }
}

/// D-24: a walk ends, also where the same page comes for ever under cursors that never repeat.
#[test]
fn pages_that_repeat_under_fresh_cursors_end_with_an_error() {
    fn end<T: FlowTask<Batch = Batch<T>>>(mut flow: Flow<T>, all: &str, row: &str, count: usize) {
        let (mut requests, mut handed) = (0, 0);
        let service = |_: &_| {
            requests += 1;
            assert!(requests < 100_000, "{row}: a walk without an end");
            items(all, &format!("c{requests}"))
        };
        let result = follow(&mut flow, at(HOUR), service, |batch| {
            handed += batch.calls.len() + batch.unreadable.len();
        });
        let error = result.err().unwrap();
        assert!(matches!(error, FlowError::Paging(_)), "{row}: {error}");
        assert!(requests <= 4 * (CallPages::MAX_EMPTY_PAGES + 10), "{row}: {requests}");
        assert_eq!(handed, count, "{row}");
    }
    let json = |number: i64| json(&call(number));
    let cut = json(2).replace(r#""summary":null"#, r#""summary":0"#);
    for (row, items, count) in [
        ("nothing", String::new(), 0),
        ("one call", json(1), 1),
        ("two calls", format!("{},{}", json(2), json(1)), 2),
        ("an item that cannot be read", cut, 1),
        ("one without an id", "null".into(), 1),
    ] {
        end(client().pages(ListCalls::new()), &items, row, count);
        end(client().sync(CallSync::new()), &items, row, count);
    }
}

/// RATE-5: a refused cursor is no reason to repeat a request that has none.
#[test]
fn a_request_without_a_cursor_is_not_repeated_for_its_cursor() {
    fn requests<T: FlowTask>(mut flow: Flow<T>) -> (u32, Action) {
        let mut requests = 0;
        let service = |_: &_| {
            requests += 1;
            refused(400, "invalid_cursor")
        };
        let result = follow(&mut flow, at(0), service, |_| panic!("nothing to store"));
        (requests, result.err().unwrap().action())
    }
    let client = client();
    let once = (1, Action::RestartList);
    assert_eq!(requests(client.pages(ListCalls::new())), once);
    assert_eq!(requests(client.sync(CallSync::new())), once);
    assert_eq!(requests(client.fetch(GetAccount)), once);
    // Nor is a list read from its top that was to begin further down.
    assert_eq!(requests(client.pages(ListCalls::new().with_cursor("c"))), once);
}

/// A list that began at a cursor restarts once it has a place to go on from.
#[test]
fn a_list_from_a_cursor_returns_nothing_from_before_it() {
    let mut flow = client().pages(ListCalls::new().with_cursor("c"));
    let mut answers = [
        page(&[5, 4], Some("d")),
        refused(400, "invalid_cursor"),
        page(&[7, 6, 5], Some("e")),
        page(&[4, 3], None),
    ]
    .into_iter();
    let mut stored = Vec::new();
    let service = |_: &_| answers.next().unwrap();
    follow(&mut flow, at(0), service, |batch| stored.extend_from_slice(&batch.calls)).unwrap();
    assert_eq!(stored, [call(5), call(4), call(3)]);
}

/// RATE-4: what another worker stores shortens no wait that the service asked for.
#[test]
fn a_state_that_moved_keeps_the_wait() {
    for waited in [false, true] {
        let mut flow = client().sync(CallSync::new());
        let (_, ticket) = sent(flow.next(RANDOM, at(0)));
        answer(&mut flow, ticket, testing::rate_limited(60), at(0));
        if waited {
            waits(flow.next(RANDOM, at(0)));
        }
        let list = CallList::new(vec![call(1)], None);
        flow.continue_from(CallSync::new().apply(&list, None, at(HOUR)).unwrap().next);
        assert!(waits(flow.next(RANDOM, at(0))) >= at(MINUTE), "{waited}");
    }
}

/// The bound that the docs give where nothing can be read: about a hundred bytes an item.
#[test]
fn a_state_of_unreadable_items_has_its_bound() {
    let items: Vec<String> = (0..100).map(|number| format!(r#"{{"at":{number}}}"#)).collect();
    let body = format!(r#"{{"data":[{}],"next_cursor":"c"}}"#, items.join(","));
    let mut pages = client().pages(ListCalls::new());
    let batch = batch_of(&mut pages, response(200, body.clone()), at(0));
    let pages = serde_json::to_string(&batch.next).unwrap().len();
    let list = CallList::from_json(body.as_bytes()).unwrap();
    let sync = CallSync::new().apply(&list, None, at(0)).unwrap().next;
    let sync = serde_json::to_string(&sync).unwrap().len();
    assert!(pages < 100 * 100 && sync < 110 * 100, "{pages} and {sync} bytes");
}

/// A page that does not follow is asked for again; then the list is restarted, and nothing comes
/// twice. The next flow needs no help of its host either.
#[test]
fn a_list_that_leads_astray_is_restarted() {
    fn goes_round<T: FlowTask<Batch = Batch<T>>>(mut flow: Flow<T>, astray: u32) {
        let (mut pages, mut stored) = ([0; 2], Vec::new());
        let service = |request: &_| {
            let second = cursor(request) == Some("c");
            let page = match second {
                false => page(&[5, 4], Some("c")),
                // The same calls again, or a page that leads to itself.
                true if pages[1] < astray => page(&[6, 5], Some("c")),
                true => page(&[3, 2], None),
            };
            pages[usize::from(second)] += 1;
            page
        };
        let result = follow(&mut flow, at(0), service, |batch| stored.extend(batch.calls.clone()));
        let restarts = flow.progress().restarts;
        assert_eq!(restarts, (astray / 5).min(3), "{astray} astray");
        assert_eq!(pages[0], 1 + restarts, "{astray} astray");
        match astray {
            20 => assert!(matches!(result, Err(FlowError::Paging(_))), "{astray} astray"),
            _ => assert_eq!((result.err(), stored), (None, [5, 4, 3, 2].map(call).to_vec())),
        }
    }
    for astray in [0, 4, 5, 15, 20] {
        goes_round(client().pages(ListCalls::new()), astray);
        goes_round(client().sync(CallSync::new()), astray);
    }
}

/// A page that cannot be followed is asked for again, and then given up.
#[test]
fn a_page_that_cannot_be_followed_ends_the_flow() {
    let mut flow = client().pages(ListCalls::new());
    let mut tries = 0;
    let service = |_: &_| {
        tries += 1;
        response(200, r#"{"data":[],"has_more":true,"next_cursor":null}"#)
    };
    let result = follow(&mut flow, at(0), service, |_| panic!("there is nothing to store"));
    let error = result.unwrap_err();
    assert!(matches!(error, FlowError::Paging(_)), "{error}");
    assert_eq!(tries, 5);
}

#[test]
fn a_request_that_no_url_can_carry_is_not_sent() {
    let mut flow = client().fetch(GetCall::new(CallId::parse("..").unwrap()));
    let error = stopped(flow.next(RANDOM, at(0)));
    assert_eq!((error.action(), error.to_string().contains("call_id")), (Action::FixRequest, true));
}

/// A test key shows other calls than a live one, and a key of another account all others: without
/// this, such a key would make a copy of two accounts.
#[test]
fn a_state_refuses_the_key_of_another_mode_or_account() {
    let test =
        Client::new("https://api.example.com", "service_test_kept-where-secrets-are").unwrap();
    let mine = Account::new(AccountId::parse("acct_1").unwrap(), "UTC");
    let other = Account::new(AccountId::parse("acct_2").unwrap(), "UTC");

    let mut flow = client().sync_of(&mine, CallSync::new());
    let batch = batch_of(&mut flow, page(&[1], None), at(0));
    let stored = serde_json::to_string(&batch.next).unwrap();
    let stored = || serde_json::from_str::<CallSync>(&stored).unwrap();

    assert_eq!(stopped(test.sync(stored()).next(RANDOM, at(0))), FlowError::OtherMode);
    assert_eq!(stopped(test.sync_of(&mine, stored()).next(RANDOM, at(0))), FlowError::OtherMode);
    let refused = stopped(client().sync_of(&other, stored()).next(RANDOM, at(0)));
    assert_eq!((refused.action(), refused), (Action::ReplaceKey, FlowError::OtherAccount));
    let _ = sent(client().sync_of(&mine, stored()).next(RANDOM, at(0)));
    let _ = sent(client().sync(stored()).next(RANDOM, at(0)));

    let mut flow = client().pages(ListCalls::new());
    let batch = batch_of(&mut flow, page(&[1], Some("c")), at(0));
    let stored: CallPages =
        serde_json::from_str(&serde_json::to_string(&batch.next).unwrap()).unwrap();
    let _ = sent(client().pages(stored.clone()).next(RANDOM, at(0)));
    assert_eq!(stopped(test.pages(stored).next(RANDOM, at(0))), FlowError::OtherMode);
}

#[test]
fn a_list_that_was_stored_as_done_is_done() {
    let mut flow = client().pages(ListCalls::new());
    let batch = batch_of(&mut flow, page(&[1], None), at(0));
    assert!(batch.next.is_done());
    let mut resumed = client().pages(batch.next.clone());
    assert!(matches!(resumed.next(RANDOM, at(0)), Step::Done(Ok(()))));
    flow.stored();
    assert!(matches!(flow.next(RANDOM, at(0)), Step::Done(Ok(()))));
}

#[test]
fn why_the_last_try_failed_is_there_for_a_log() {
    let mut flow = client().pages(ListCalls::new());
    let (_, ticket) = sent(flow.next(RANDOM, at(0)));
    assert_eq!(flow.last_error(), None);
    flow.report(ticket, Err::<Response<Vec<u8>>, _>("reset"), at(0));
    let lost = FlowError::Client(ClientError::no_response("reset"));
    assert_eq!(flow.last_error(), Some(&lost));
    let until = waits(flow.next(RANDOM, at(0)));
    assert_eq!(flow.last_error(), Some(&lost), "while it waits");
    batch_of(&mut flow, page(&[1], None), until);
    assert_eq!(flow.last_error(), None);
}

#[test]
fn progress_says_how_far_it_is() {
    let mut flow = client().sync(CallSync::since(at(0)));
    assert_eq!(flow.progress().wanted, Some(at(0)));
    batch_of(&mut flow, page(&[30, 20], Some("c")), at(HOUR));
    let Progress { pages, calls, failures, reached, .. } = flow.progress();
    assert_eq!((pages, calls, failures, reached), (1, 2, 0, Some(at(20 * SECOND))));
}

/// D-91: what was in the future when a page was asked for is not believed when it comes.
#[test]
fn a_date_reached_while_the_answer_was_on_its_way_is_not_believed() {
    let mut flow = client().sync(CallSync::new());
    let (_, ticket) = sent(flow.next(RANDOM, at(9 * SECOND)));
    answer(&mut flow, ticket, page(&[300, 5], None), at(HOUR));
    let Step::Store(batch) = flow.next(RANDOM, at(HOUR)) else { panic!() };
    assert_eq!(batch.next.watermark(), Some(call(5).created_at));
}

#[test]
fn nothing_of_a_flow_or_a_step_shows_a_key() {
    let mut flow = client().fetch(GetAccount);
    let step = format!("{:?}", flow.next(RANDOM, at(0)));
    let shown = format!("{flow:?} {step}");
    assert!(!shown.contains("kept-where") && shown.contains("/v1/account"), "{shown}");
}

/// A program that polls with one flow after another stays below the quota all the same.
#[test]
fn the_pace_is_handed_on() {
    let mut first = client().fetch(GetAccount);
    let (_, ticket) = sent(first.next(RANDOM, at(0)));
    answer(&mut first, ticket, account("acct_1"), at(0));
    let mut second = client().fetch(GetAccount).with_pace(first.pace().clone());
    assert!(waits(second.next(RANDOM, at(0))) > at(SECOND));
    let _ = sent(client().fetch(GetAccount).next(RANDOM, at(0)));
}
