//! Pages: the query for a store, and the page from its rows. `tests/bytes/src/pages.rs` has the property of whole
//! walks.

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::server::{
    Authorized, CallRow, CallsQuery, Cursor, CursorError, RejectionReason,
};
use call_assistant::rest::{CallFilter, ListCalls, Mode, ParameterError};

use super::scenario::{account_id, get};
use crate::{at, second, within};

fn call(id: &str, started: u64, created: u64) -> Call {
    Call::new(CallId::parse(id).unwrap(), second(started), second(created))
}

fn created(at: Timestamp) -> Call {
    Call::new(CallId::parse("call_1").unwrap(), second(0), at)
}

fn row(call: Call) -> CallRow {
    CallRow { account_id: account_id(), mode: Mode::Live, call }
}

fn rows(calls: Vec<Call>) -> Vec<CallRow> {
    calls.into_iter().map(row).collect()
}

fn list(limit: u64) -> ListCalls {
    ListCalls::new().with_limit(limit as usize)
}

/// The cursor after a call, of a list with this filter.
fn after(id: &str, started: u64, filter: &CallFilter) -> String {
    let cursor = Cursor::new(second(started), CallId::parse(id).unwrap());
    let cursor = cursor.with_filter(filter.clone());
    get("").cursors.seal(&account_id(), Mode::Live, &cursor)
}

/// The query of an authorised request, or why it has none.
fn granted(list: &ListCalls) -> Result<CallsQuery, RejectionReason> {
    match get(&format!("/v1/calls?{}", list.query().unwrap())).authorized() {
        Ok(Authorized::Calls(query)) => Ok(query),
        Ok(other) => panic!("{other:?}"),
        Err(rejection) => Err(rejection.reason().clone()),
    }
}

fn query(list: &ListCalls) -> CallsQuery {
    granted(list).unwrap()
}

/// The page that is made of these rows.
fn page(list: &ListCalls, given: Vec<Call>) -> Result<CallList, RejectionReason> {
    let response = granted(list).unwrap().answer(rows(given));
    let response = response.map_err(|rejection| rejection.reason().clone())?;
    Ok(CallList::from_json(response.body()).unwrap())
}

fn ids(page: &CallList) -> Vec<&str> {
    page.calls().map(|call| call.id.as_str()).collect()
}

// LIST-2: 1 to 100, and 50 where none is given.
#[test]
fn a_page_fetches_one_row_more_than_it_holds() {
    assert_eq!(get("/v1/calls").calls_query().rows_to_read(), 51);
    for limit in 1..=100 {
        assert_eq!(query(&list(limit)).rows_to_read() as u64, limit + 1);
    }
}

// LIST-5: created_after is inclusive, created_before is not, to the nanosecond.
#[test]
fn ranges() {
    let (early, late) = (Some(at(100)), Some(at(200)));
    for (after, before, inside) in [
        (None, None, [true, true, true, true, true]),
        (early, None, [false, true, true, true, true]),
        (None, late, [true, true, true, false, false]),
        (early, late, [false, true, true, false, false]),
        (early, early, [false; 5]),
    ] {
        let filter = within(after, before);
        let found = [99, 100, 199, 200, 201].map(|nanos| filter.matches(&created(at(nanos))));
        assert_eq!(found, inside, "{filter:?}");
        let query = query(&list(100).with_filter(filter.clone()));
        assert_eq!(*query.filter(), filter);
        assert_eq!(query.is_filtered(), (after, before) != (None, None), "{filter:?}");
    }
}

// D-9: bounds in the wrong order are an error, equal ones are empty.
#[test]
fn bounds_in_the_wrong_order() {
    let reversed = list(50).with_filter(within(Some(at(101)), Some(at(100))));
    assert_eq!(reversed.query(), Err(ParameterError::CreatedRange));
    assert_eq!(
        ParameterError::CreatedRange.to_string(),
        "created_before is earlier than created_after"
    );
    assert!(within(Some(at(100)), Some(at(100))).selects_nothing());
    assert!(!within(Some(at(100)), Some(at(101))).selects_nothing());
    assert!(!CallFilter::new().selects_nothing());
}

// A store of microseconds gets bounds that select the same of its rows (LIST-5, D-8).
#[test]
fn bounds_for_a_store_of_microseconds() {
    for nanos in [0, 1, 499, 500, 501, 999, 1_000, 999_999_001, 999_999_999] {
        let full = within(Some(at(nanos)), Some(at(nanos + 3_000)));
        let coarse = full.ceil_to_micros();
        assert!(coarse.created_after.unwrap().subsec_nanos().is_multiple_of(1_000));
        for micros in (0..10).chain(999_990..1_000_010) {
            let row = created(at(micros * 1_000));
            assert_eq!(coarse.matches(&row), full.matches(&row), "{nanos} {micros}");
        }
    }
    let end = Timestamp::MAX;
    let last = within(Some(end), None);
    assert_eq!(last.ceil_to_micros(), last);
    assert_eq!(CallFilter::new().ceil_to_micros(), CallFilter::new());
}

// LIST-1, D-20: by started_at and then id, both descending, ids bytewise.
#[test]
fn what_comes_after_a_position() {
    let query = query(&list(50).with_cursor(after("m", 5, &CallFilter::new())));
    for (id, started, matches) in [
        ("m", 5, false),
        ("z", 5, false),
        ("mm", 5, false), // longer is greater
        ("l", 5, true),
        ("Z", 5, true), // bytewise, where a collation of words would put it behind
        ("_", 5, true),
        ("z", 4, true),
        ("a", 6, false),
    ] {
        let call = call(id, started, 0);
        assert_eq!(query.matches_call(&call), matches, "{id} {started}");
        assert_eq!(query.matches(&row(call)), matches, "{id} {started}");
    }
}

// LIST-6, D-21: limit + 1 rows say whether there is a next page; the cursor is the last row served.
#[test]
fn pages_and_their_ends() {
    let store = [call("c", 9, 1), call("b", 7, 2), call("a", 7, 3)];
    for (limit, served, next) in [
        (1, vec!["c"], Some(("c", 9))),
        (2, vec!["c", "b"], Some(("b", 7))),
        (3, vec!["c", "b", "a"], None),
        (4, vec!["c", "b", "a"], None),
    ] {
        let filter = within(None, Some(second(50)));
        let list = list(limit).with_filter(filter.clone());
        let page =
            page(&list, store[..store.len().min(query(&list).rows_to_read())].to_vec()).unwrap();
        assert_eq!(ids(&page), served, "{limit}");
        assert_eq!(page.has_more, Some(next.is_some()), "{limit}");
        let next = next.map(|(id, started)| after(id, started, &filter));
        assert_eq!(page.next_cursor, next, "{limit}");
    }
    let empty = page(&list(1), vec![]).unwrap();
    assert_eq!((ids(&empty), empty.has_more), (vec![], Some(false)));
}

// A store that gives something else is found out, and nothing is served.
#[test]
fn wrong_rows_are_not_served() {
    let filter = within(Some(second(10)), Some(second(20)));
    let next = list(2).with_cursor(after("m", 5, &filter));
    let first = list(2).with_filter(filter);
    let good = |id, started| call(id, started, 15);
    let out_of_order = |row| format!("OutOfOrder {{ row: {row} }}");
    for (label, list, rows, reason) in [
        ("another direction", &first, vec![good("a", 1), good("b", 2)], out_of_order(1)),
        ("another direction of ids", &first, vec![good("a", 1), good("b", 1)], out_of_order(1)),
        (
            "a collation that ignores case",
            &first,
            vec![good("b", 1), good("A", 1), good("a", 1)],
            out_of_order(2),
        ),
        ("a row twice", &first, vec![good("b", 1), good("a", 1), good("a", 1)], out_of_order(2)),
        ("the cursor forgotten", &next, vec![good("z", 9)], out_of_order(0)),
        ("the cursor's id forgotten", &next, vec![good("n", 5)], out_of_order(0)),
        ("the cursor inclusive", &next, vec![good("m", 5)], out_of_order(0)),
        ("a row twice after it", &next, vec![good("l", 5), good("l", 5)], out_of_order(1)),
        (
            "created_after forgotten",
            &first,
            vec![call("a", 1, 9)],
            "OutsideFilter { row: 0 }".to_owned(),
        ),
        (
            "created_before inclusive",
            &first,
            vec![good("b", 2), call("a", 1, 20)],
            "OutsideFilter { row: 1 }".to_owned(),
        ),
        (
            "the row beyond the page",
            &first,
            vec![good("c", 3), good("b", 2), call("a", 1, 21)],
            "OutsideFilter { row: 2 }".to_owned(),
        ),
        (
            "no LIMIT",
            &first,
            vec![good("d", 4), good("c", 3), good("b", 2), good("a", 1)],
            "TooMany { rows: 4, asked: 3 }".to_owned(),
        ),
    ] {
        let refused = page(list, rows).unwrap_err();
        assert_eq!(format!("{refused:?}"), format!("Rows({reason})"), "{label}");
    }
    let four = [("d", 4), ("c", 3), ("b", 2), ("a", 1)].map(|(id, started)| good(id, started));
    let Err(RejectionReason::Rows(reason)) = page(&first, four.to_vec()) else { panic!() };
    assert_eq!(reason.to_string(), "store gave 4 rows, 3 were asked for");
    let Err(RejectionReason::Rows(reason)) = page(&first, vec![call("a", 1, 9)]) else { panic!() };
    assert!(reason.to_string().starts_with("row 0 is outside created_after and created_before"));
    // The edges themselves are good.
    let edges = vec![call("l", 5, 10), call("z", 4, 19)];
    assert_eq!(ids(&page(&next, edges).unwrap()), ["l", "z"]);
}

// LIST-6, D-24: a store that has looked no further than to a place serves what it has found, and says where to go on.
#[test]
fn a_part_of_a_page_leads_on_from_its_place() {
    let filter = within(None, Some(second(50)));
    let first = list(2).with_filter(filter.clone());
    let later = list(2).with_cursor(after("m", 5, &filter));
    let part = |list: &ListCalls, given: Vec<Call>, (id, started): (&str, u64)| {
        let place = (second(started), CallId::parse(id).unwrap());
        let response = granted(list).unwrap().answer_part(rows(given), place);
        let response = response.map_err(|rejection| format!("{:?}", rejection.reason()))?;
        Ok::<_, String>(CallList::from_json(response.body()).unwrap())
    };
    let [c, b, a] = [call("c", 9, 1), call("b", 7, 2), call("a", 6, 3)];
    for (given, place, served, next) in [
        (vec![], ("m", 5), vec![], ("m", 5)),
        (vec![c.clone()], ("m", 5), vec!["c"], ("m", 5)),
        (vec![c.clone(), b.clone()], ("b", 7), vec!["c", "b"], ("b", 7)),
        // A page that is full ends with its last row.
        (vec![c.clone(), b.clone(), a], ("m", 5), vec!["c", "b"], ("b", 7)),
    ] {
        let page = part(&first, given, place).unwrap();
        assert_eq!(ids(&page), served, "{place:?}");
        assert_eq!(page.has_more, Some(true), "{place:?}");
        assert_eq!(page.next_cursor, Some(after(next.0, next.1, &filter)), "{place:?}");
    }
    for (label, list, given, place, row) in [
        ("where the page begins", &later, vec![], ("m", 5), 0),
        ("in front of the page", &later, vec![], ("z", 9), 0),
        ("in front of a row", &first, vec![c], ("d", 9), 1),
    ] {
        let refused = part(list, given, place).unwrap_err();
        assert_eq!(refused, format!("Rows(OutOfOrder {{ row: {row} }})"), "{label}");
    }
}

// D-22: each filter repeated or left out; another, or one where there was none, is refused.
#[test]
fn filters_of_the_next_request() {
    let (none, one, other) = (None, Some(second(10)), Some(second(20)));
    for (cursors, asked, good) in [
        ((none, none), (none, none), true),
        ((one, other), (one, other), true),
        ((one, other), (none, none), true),
        ((one, other), (one, none), true),
        ((one, other), (none, other), true),
        ((one, none), (one, other), false),
        ((none, none), (one, none), false),
        ((none, none), (none, one), false),
        ((one, none), (other, none), false),
        ((none, one), (none, other), false),
        ((one, other), (one, Some(at(20_000_000_001))), false),
    ] {
        let filter = within(cursors.0, cursors.1);
        let next = list(100).with_filter(within(asked.0, asked.1));
        let next = next.with_cursor(after("m", 5, &filter));
        match granted(&next) {
            Ok(query) => {
                assert!(good, "{cursors:?} {asked:?}");
                let (started_at, id) = query.after().unwrap();
                assert_eq!((started_at, id.as_str()), (second(5), "m"));
                assert_eq!(*query.filter(), filter, "{cursors:?} {asked:?}");
            }
            Err(reason) => {
                assert!(!good, "{cursors:?} {asked:?}");
                assert_eq!(reason, RejectionReason::Cursor(CursorError::Filters));
            }
        }
    }
}
