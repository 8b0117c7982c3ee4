//! Pages: the query for a store, and the page from its rows. `tests/bytes/src/pages.rs` has the property of whole
//! walks.

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::server::{
    Authorized, CallRow, CallsQuery, Cursor, CursorError, RejectionReason,
};
use call_assistant::rest::{CallFilter, ListCalls, Mode};

use super::scenario::{account_id, get};
use crate::{at, second, within};

const ORDER: &str = "does not come after the one before it";

fn call(id: &str, started: u64, created: u64) -> Call {
    Call::new(CallId::parse(id).unwrap(), second(started), second(created))
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
    let response = query(list).answer(rows(given));
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
        let created = |nanos| Call::new(CallId::parse("call_1").unwrap(), second(0), at(nanos));
        let found = [99, 100, 199, 200, 201].map(|nanos| filter.matches(&created(nanos)));
        assert_eq!(found, inside, "{filter:?}");
        let query = query(&list(100).with_filter(filter.clone()));
        assert_eq!(*query.filter(), filter);
        assert_eq!(query.is_filtered(), (after, before) != (None, None), "{filter:?}");
    }
}

// D-9: equal bounds are empty. Bounds in the wrong order are refused before there is a query.
#[test]
fn equal_bounds_select_nothing() {
    let bounds = |after, before| within(Some(at(after)), Some(at(before)));
    assert!(bounds(100, 100).selects_nothing() && !bounds(100, 101).selects_nothing());
    assert!(!CallFilter::new().selects_nothing());
}

// A store of microseconds gets bounds that select the same of its rows (LIST-5, D-8).
#[test]
fn bounds_for_a_store_of_microseconds() {
    for (nanos, up) in
        [(0, 0), (1, 1_000), (999, 1_000), (1_000, 1_000), (999_999_001, 1_000_000_000)]
    {
        let coarse = within(Some(at(nanos)), Some(at(nanos + 3_000))).ceil_to_micros();
        assert_eq!(coarse, within(Some(at(up)), Some(at(up + 3_000))), "{nanos}");
    }
    let last = within(Some(Timestamp::MAX), None);
    assert_eq!(last.ceil_to_micros(), last);
}

// LIST-1, D-20: by started_at and then id, both descending, ids bytewise: longer is greater, and a collation
// of words would put `Z` behind.
#[test]
fn what_comes_after_a_position() {
    let query = query(&list(50).with_cursor(after("m", 5, &CallFilter::new())));
    for (matches, calls) in [
        (false, [("m", 5), ("z", 5), ("mm", 5), ("a", 6)]),
        (true, [("l", 5), ("Z", 5), ("_", 5), ("z", 4)]),
    ] {
        for (id, started) in calls {
            let call = call(id, started, 0);
            assert_eq!(query.matches_call(&call), matches, "{id} {started}");
            assert_eq!(query.matches(&row(call)), matches, "{id} {started}");
        }
    }
}

// LIST-6, D-21: limit + 1 rows say whether there is a next page; the cursor is the last row served.
#[test]
fn pages_and_their_ends() {
    let store = [call("c", 9, 1), call("b", 7, 2), call("a", 7, 3)];
    let filter = within(None, Some(second(50)));
    for (limit, stored, served, next) in [
        (1, 2, vec!["c"], Some(("c", 9))),
        (2, 3, vec!["c", "b"], Some(("b", 7))),
        (3, 3, vec!["c", "b", "a"], None),
        (1, 0, vec![], None),
    ] {
        let page = page(&list(limit).with_filter(filter.clone()), store[..stored].to_vec());
        let page = page.unwrap();
        assert_eq!(ids(&page), served, "{limit}");
        assert_eq!(page.has_more, Some(next.is_some()), "{limit}");
        let next = next.map(|(id, started)| after(id, started, &filter));
        assert_eq!(page.next_cursor, next, "{limit}");
    }
}

// A store that gives something else is found out, and nothing is served.
#[test]
fn wrong_rows_are_not_served() {
    let filter = within(Some(second(10)), Some(second(20)));
    let next = list(2).with_cursor(after("m", 5, &filter));
    let first = list(2).with_filter(filter);
    let given = |rows: &[(&str, u64, u64)]| {
        rows.iter().map(|(id, started, created)| call(id, *started, *created)).collect()
    };
    let filters = "is outside created_after and created_before";
    for (label, list, rows, row, reason) in [
        ("another direction", &first, &[("a", 1, 15), ("b", 2, 15)][..], 1, ORDER),
        ("another direction of ids", &first, &[("a", 1, 15), ("b", 1, 15)], 1, ORDER),
        ("a collation", &first, &[("b", 1, 15), ("A", 1, 15), ("a", 1, 15)], 2, ORDER),
        ("a row twice", &first, &[("b", 1, 15), ("a", 1, 15), ("a", 1, 15)], 2, ORDER),
        ("the cursor forgotten", &next, &[("z", 9, 15)], 0, ORDER),
        ("the cursor's id forgotten", &next, &[("n", 5, 15)], 0, ORDER),
        ("the cursor inclusive", &next, &[("m", 5, 15)], 0, ORDER),
        ("created_after forgotten", &first, &[("a", 1, 9)], 0, filters),
        ("created_before inclusive", &first, &[("b", 2, 15), ("a", 1, 20)], 1, filters),
        ("beyond the page", &first, &[("c", 3, 15), ("b", 2, 15), ("a", 1, 21)], 2, filters),
    ] {
        let refused = page(list, given(rows)).unwrap_err();
        assert_eq!(refused.to_string(), format!("row {row} {reason}"), "{label}");
    }
    let four = given(&[("d", 4, 15), ("c", 3, 15), ("b", 2, 15), ("a", 1, 15)]);
    let refused = page(&first, four).unwrap_err();
    assert_eq!(refused.to_string(), "store gave 4 rows, 3 were asked for", "no LIMIT");
    // The edges themselves are good.
    let edges = given(&[("l", 5, 10), ("z", 4, 19)]);
    assert_eq!(ids(&page(&next, edges).unwrap()), ["l", "z"]);
}

// LIST-6, D-24: a store that has looked no further than to a place serves what it has found, and says where to go on.
#[test]
fn a_part_of_a_page_leads_on_from_its_place() {
    let filter = within(None, Some(second(50)));
    let first = list(2).with_filter(filter.clone());
    let later = list(2).with_cursor(after("m", 5, &filter));
    let part = |list: &ListCalls, given: &[Call], (id, started): (&str, u64)| {
        let place = (second(started), CallId::parse(id).unwrap());
        let response = query(list).answer_part(rows(given.to_vec()), place);
        let response = response.map_err(|rejection| rejection.reason().to_string())?;
        Ok::<_, String>(CallList::from_json(response.body()).unwrap())
    };
    let calls = [call("c", 9, 1), call("b", 7, 2), call("a", 6, 3)];
    for (given, place, served, next) in [
        (0, ("m", 5), vec![], ("m", 5)),
        (1, ("m", 5), vec!["c"], ("m", 5)),
        (2, ("b", 7), vec!["c", "b"], ("b", 7)),
        // A page that is full ends with its last row.
        (3, ("m", 5), vec!["c", "b"], ("b", 7)),
    ] {
        let page = part(&first, &calls[..given], place).unwrap();
        assert_eq!(ids(&page), served, "{place:?}");
        assert_eq!(page.has_more, Some(true), "{place:?}");
        assert_eq!(page.next_cursor, Some(after(next.0, next.1, &filter)), "{place:?}");
    }
    for (label, list, given, place) in [
        ("where the page begins", &later, 0, ("m", 5)),
        ("in front of the page", &later, 0, ("z", 9)),
        ("in front of a row", &first, 1, ("d", 9)),
    ] {
        let refused = part(list, &calls[..given], place).unwrap_err();
        assert_eq!(refused, format!("row {given} {ORDER}"), "{label}");
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
        let granted = granted(&next.with_cursor(after("m", 5, &filter)));
        let read = granted.map(|query| (query.after().unwrap().0, query.filter().clone()));
        let refused = RejectionReason::Cursor(CursorError::Filters);
        let expected = if good { Ok((second(5), filter)) } else { Err(refused) };
        assert_eq!(read, expected, "{cursors:?} {asked:?}");
    }
}
