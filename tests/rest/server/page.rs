//! Pages: the keyset query, the page from its rows, and whole walks over lists that grow.

use call_assistant::id::{AccountId, CallId};
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::{Cursor, CursorError, CursorKey, CursorKeys, Position};
use call_assistant::rest::server::{Page, PageQuery, RowsError};
use call_assistant::rest::{CreatedRange, CreatedRangeError, Limit};
use proptest::prelude::*;

use crate::{at, second};

fn call(id: &str, started: u64, created: u64) -> Call {
    Call::new(CallId::parse(id).unwrap(), second(started), second(created))
}

fn limit(calls: u64) -> Limit {
    Limit::new(calls).unwrap()
}

fn ids(page: &Page) -> Vec<&str> {
    page.calls.iter().map(|call| call.id.as_str()).collect()
}

/// LIST-1 as a sort, which is all a naive list needs.
fn newest_first(calls: &mut [Call]) {
    calls.sort_by(|a, b| (b.started_at, b.id.as_str()).cmp(&(a.started_at, a.id.as_str())));
}

/// A store in memory: it filters, sorts and takes as the SQL of the module's page does.
fn find(store: &[Call], query: &PageQuery) -> Vec<Call> {
    let mut rows: Vec<_> = store.iter().filter(|call| query.matches(call)).cloned().collect();
    newest_first(&mut rows);
    rows.truncate(query.fetch());
    rows
}

// LIST-2: 1 to 100, and 50 where none is given; never clamped.
#[test]
fn limits() {
    assert_eq!(Limit::default().calls(), 50);
    for calls in 1..=100 {
        let query = PageQuery::first(CreatedRange::ALL, limit(calls));
        assert_eq!(query.limit().calls() as u64, calls);
        assert_eq!(query.fetch() as u64, calls + 1);
    }
    for calls in [0, 101, 256, 257, 65_586, u64::MAX] {
        assert_eq!(Limit::new(calls).unwrap_err().calls, calls);
    }
    assert_eq!(Limit::new(0).unwrap_err().to_string(), "limit is 0, not from 1 to 100");
}

// LIST-5: created_after is inclusive, created_before is not, to the nanosecond.
#[test]
fn windows() {
    let (early, late) = (Some(at(100)), Some(at(200)));
    for (after, before, within) in [
        (None, None, [true, true, true, true, true]),
        (early, None, [false, true, true, true, true]),
        (None, late, [true, true, true, false, false]),
        (early, late, [false, true, true, false, false]),
        (early, early, [false; 5]),
    ] {
        let window = CreatedRange::new(after, before).unwrap();
        let found = [99, 100, 199, 200, 201].map(|nanos| window.contains(at(nanos)));
        assert_eq!(found, within, "{window:?}");
        let query = PageQuery::first(window, Limit::MAX);
        assert_eq!((query.created_after(), query.created_before()), (after, before));
    }
}

// D-9: the wrong way round is a mistake, equal is empty.
#[test]
fn bounds_the_wrong_way_round() {
    assert_eq!(CreatedRange::new(Some(at(101)), Some(at(100))), Err(CreatedRangeError));
    assert_eq!(CreatedRangeError.to_string(), "created_before is earlier than created_after");
    assert!(CreatedRange::new(Some(at(100)), Some(at(100))).unwrap().is_empty());
    assert!(!CreatedRange::new(Some(at(100)), Some(at(101))).unwrap().is_empty());
    assert!(!CreatedRange::ALL.is_empty());
}

// A store of microseconds gets bounds that select the same of its rows (LIST-5, D-8).
#[test]
fn bounds_for_a_store_of_microseconds() {
    for nanos in [0, 1, 499, 500, 501, 999, 1_000, 999_999_001, 999_999_999] {
        let full = CreatedRange::new(Some(at(nanos)), Some(at(nanos + 3_000))).unwrap();
        let coarse = full.in_microseconds();
        assert!(coarse.created_after().unwrap().subsec_nanos().is_multiple_of(1_000));
        for micros in (0..10).chain(999_990..1_000_010) {
            let row = at(micros * 1_000);
            assert_eq!(coarse.contains(row), full.contains(row), "{nanos} {micros}");
        }
    }
    let end = call_assistant::Timestamp::MAX;
    let last = CreatedRange::new(Some(end), None).unwrap();
    assert_eq!(last.in_microseconds(), last);
    assert_eq!(CreatedRange::ALL.in_microseconds(), CreatedRange::ALL);
}

// LIST-1, D-20: by started_at and then id, both descending, ids bytewise.
#[test]
fn what_comes_after_a_position() {
    let cursor = Cursor {
        after: Position { started_at: second(5), id: CallId::parse("m").unwrap() },
        window: CreatedRange::ALL,
    };
    let query = PageQuery::next(cursor, CreatedRange::ALL, Limit::DEFAULT).unwrap();
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
        assert_eq!(query.matches(&call(id, started, 0)), matches, "{id} {started}");
    }
}

// LIST-6, D-21: limit + 1 rows say whether there is a next page; the cursor is the last row served.
#[test]
fn pages_and_their_ends() {
    let rows = || vec![call("c", 9, 1), call("b", 7, 2), call("a", 7, 3)];
    for (calls, served, next) in [
        (1, vec!["c"], Some((9, "c"))),
        (2, vec!["c", "b"], Some((7, "b"))),
        (3, vec!["c", "b", "a"], None),
        (4, vec!["c", "b", "a"], None),
    ] {
        let window = CreatedRange::new(None, Some(second(50))).unwrap();
        let query = PageQuery::first(window, limit(calls));
        let page = query.page(find(&rows(), &query)).unwrap();
        assert_eq!(ids(&page), served);
        assert_eq!(page.has_more(), next.is_some());
        let next = next.map(|(started, id)| Cursor {
            after: Position { started_at: second(started), id: CallId::parse(id).unwrap() },
            window,
        });
        assert_eq!(page.next, next);
    }
    let empty = PageQuery::first(CreatedRange::ALL, Limit::MIN).page(vec![]).unwrap();
    assert_eq!((ids(&empty), empty.has_more()), (vec![], false));
}

// A store that gives something else is found out, and nothing is served.
#[test]
fn wrong_rows_are_not_served() {
    let window = CreatedRange::new(Some(second(10)), Some(second(20))).unwrap();
    let cursor = Cursor {
        after: Position { started_at: second(5), id: CallId::parse("m").unwrap() },
        window,
    };
    let first = PageQuery::first(window, limit(2));
    let next = PageQuery::next(cursor, CreatedRange::ALL, limit(2)).unwrap();
    let good = |id, started| call(id, started, 15);
    let out_of_order = |row| RowsError::OutOfOrder { row };
    for (query, rows, error) in [
        // Another direction, of either key.
        (&first, vec![good("a", 1), good("b", 2)], out_of_order(1)),
        (&first, vec![good("a", 1), good("b", 1)], out_of_order(1)),
        // A collation that ignores case.
        (&first, vec![good("b", 1), good("A", 1), good("a", 1)], out_of_order(2)),
        // A row twice.
        (&first, vec![good("b", 1), good("a", 1), good("a", 1)], out_of_order(2)),
        // The cursor forgotten, or inclusive.
        (&next, vec![good("z", 9)], out_of_order(0)),
        (&next, vec![good("n", 5)], out_of_order(0)),
        (&next, vec![good("m", 5)], out_of_order(0)),
        (&next, vec![good("l", 5), good("l", 5)], out_of_order(1)),
        // Either bound forgotten, or the wrong one inclusive; in the row beyond the page as well.
        (&first, vec![call("a", 1, 9)], RowsError::OutsideWindow { row: 0 }),
        (&first, vec![good("b", 2), call("a", 1, 20)], RowsError::OutsideWindow { row: 1 }),
        (
            &first,
            vec![good("c", 3), good("b", 2), call("a", 1, 21)],
            RowsError::OutsideWindow { row: 2 },
        ),
        // No LIMIT.
        (
            &first,
            vec![good("d", 4), good("c", 3), good("b", 2), good("a", 1)],
            RowsError::TooMany { rows: 4, fetch: 3 },
        ),
    ] {
        assert_eq!(query.page(rows).unwrap_err(), error);
    }
    assert_eq!(
        RowsError::TooMany { rows: 4, fetch: 3 }.to_string(),
        "store gave 4 rows, 3 were asked for"
    );
    // The edges themselves are good.
    let edges = vec![call("l", 5, 10), call("z", 4, 19)];
    assert_eq!(ids(&next.page(edges).unwrap()), ["l", "z"]);
}

// D-22: each filter repeated or left out; another, or one where there was none, is refused.
#[test]
fn filters_of_the_next_request() {
    let (none, one, other) = (None, Some(second(10)), Some(second(20)));
    let id = CallId::parse("m").unwrap();
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
        let of = |(after, before)| CreatedRange::new(after, before).unwrap();
        let after = Position { started_at: second(5), id: id.clone() };
        let cursor = Cursor { after: after.clone(), window: of(cursors) };
        let next = PageQuery::next(cursor, of(asked), Limit::MAX);
        match next {
            Ok(query) => {
                assert!(good, "{cursors:?} {asked:?}");
                assert_eq!((query.after(), *query.window()), (Some(&after), of(cursors)));
            }
            Err(fault) => assert!(!good && fault == CursorError::Filters, "{cursors:?} {asked:?}"),
        }
    }
}

/// How one request of a walk is made.
#[derive(Clone, Debug)]
struct Step {
    limit: u64,
    repeat_filters: bool,
    /// Calls added after it is answered.
    added: Vec<(u64, u64)>,
}

fn any_calls(most: usize) -> impl Strategy<Value = Vec<(u64, u64)>> {
    // Few instants, so that most calls share theirs with others.
    proptest::collection::vec((0..6_u64, 0..10_u64), 0..most)
}

fn any_step() -> impl Strategy<Value = Step> {
    (1..8_u64, any::<bool>(), any_calls(4)).prop_map(|(limit, repeat_filters, added)| Step {
        limit,
        repeat_filters,
        added,
    })
}

/// Calls with ids that no order of arrival explains.
fn add(store: &mut Vec<Call>, calls: &[(u64, u64)]) {
    for &(started, created) in calls {
        let number = (store.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        store.push(call(&format!("call_{number:x}"), started, created));
    }
}

proptest! {
    // LIST-1, LIST-5, LIST-6, LIST-7, D-22: through sealed cursors, with ties, filters, changes of
    // limit, and calls that appear anywhere in the list meanwhile.
    #[test]
    fn a_walk_meets_every_call_once(
        calls in any_calls(40),
        steps in proptest::collection::vec(any_step(), 1..12),
        after in proptest::option::of(0..5_u64),
        before in proptest::option::of(5..10_u64),
    ) {
        let keys = CursorKeys::new(CursorKey::new(1, [9; 32]));
        let account = AccountId::parse("acct_1").unwrap();
        let window = CreatedRange::new(after.map(second), before.map(second)).unwrap();
        let mut store = Vec::new();
        add(&mut store, &calls);
        let there_at_first = PageQuery::first(window, Limit::MAX);
        let mut expected: Vec<_> =
            store.iter().filter(|call| there_at_first.matches(call)).cloned().collect();
        newest_first(&mut expected);

        let mut met: Vec<Call> = Vec::new();
        let mut cursor: Option<String> = None;
        let mut steps = steps.iter().cycle();
        loop {
            let step = steps.next().unwrap();
            let asked = if cursor.is_none() || step.repeat_filters { window } else { CreatedRange::ALL };
            let query = match &cursor {
                None => PageQuery::first(asked, limit(step.limit)),
                Some(text) => {
                    let cursor = keys.open(&account, Mode::Live, text).unwrap();
                    PageQuery::next(cursor, asked, limit(step.limit)).unwrap()
                }
            };
            let page = query.page(find(&store, &query)).unwrap();
            // Another page exactly if there is more that matches (LIST-6).
            let matching = store.iter().filter(|call| query.matches(call)).count();
            prop_assert_eq!(page.has_more(), matching > page.calls.len());
            prop_assert!(page.calls.len() as u64 <= step.limit);
            met.extend(page.calls);
            match page.next {
                Some(next) => cursor = Some(keys.seal(&account, Mode::Live, &next)),
                None => break,
            }
            if met.len() < 200 {
                add(&mut store, &step.added);
            }
        }
        // In order, none twice, and without those added meanwhile exactly the sorted list.
        let mut sorted = met.clone();
        newest_first(&mut sorted);
        sorted.dedup();
        prop_assert_eq!(&sorted, &met);
        met.retain(|call| expected.contains(call));
        prop_assert_eq!(met, expected);
    }

    // The rows that match, and the rows the SQL names, written out without any of our types.
    #[test]
    fn matching_is_the_predicate(
        calls in any_calls(20),
        position in proptest::option::of((0..6_u64, 0..20_usize)),
        after in proptest::option::of(0..5_u64),
        before in proptest::option::of(5..10_u64),
    ) {
        let mut store = Vec::new();
        add(&mut store, &calls);
        let window = CreatedRange::new(after.map(second), before.map(second)).unwrap();
        let position = position.and_then(|(started, nth)| {
            Some((second(started), store.get(nth)?.id.clone()))
        });
        let query = match position.clone() {
            None => PageQuery::first(window, Limit::MAX),
            Some((started_at, id)) => {
                let cursor = Cursor { after: Position { started_at, id }, window };
                PageQuery::next(cursor, CreatedRange::ALL, Limit::MAX).unwrap()
            }
        };
        for call in &store {
            let sql = after.is_none_or(|after| call.created_at >= second(after))
                && before.is_none_or(|before| call.created_at < second(before))
                && position.as_ref().is_none_or(|(started_at, id)| {
                    call.started_at < *started_at
                        || (call.started_at == *started_at
                            && call.id.as_str().as_bytes() < id.as_str().as_bytes())
                });
            prop_assert_eq!(query.matches(call), sql);
        }
    }
}
