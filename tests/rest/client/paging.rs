//! D-24: what a page says about the next one, and that a walk ends.

use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::ListCalls;
use call_assistant::rest::client::{CallPages, PagingError};

use crate::dice::at;
use crate::within;

fn page(has_more: Option<bool>, cursor: Option<&str>, calls: usize) -> CallList {
    let call = |index| Call::new(CallId::parse(&format!("call_{index}")).unwrap(), at(0), at(0));
    let mut list = CallList::new((0..calls).map(call).collect(), cursor.map(Into::into));
    list.has_more = has_more;
    list
}

fn first() -> CallPages {
    CallPages::from(ListCalls::new())
}

/// Every combination there is.
#[test]
fn has_more_and_the_cursor() {
    let (t, f, absent) = (Some(true), Some(false), None);
    let (c, empty, none) = (Some("c"), Some(""), None);
    for (has_more, cursor, expected) in [
        (t, c, Ok(true)),
        (t, empty, Err(PagingError::NoCursor)),
        (t, none, Err(PagingError::NoCursor)),
        (f, c, Ok(false)),
        (f, empty, Ok(false)),
        (f, none, Ok(false)),
        (absent, c, Ok(true)),
        (absent, empty, Ok(false)),
        (absent, none, Ok(false)),
    ] {
        // A page without calls says no more and no less than one with calls.
        for calls in [0, 1] {
            let row = format!("has_more {has_more:?}, next_cursor {cursor:?}, {calls} calls");
            let next = first().apply(&page(has_more, cursor, calls)).map(|batch| batch.next);
            let asked = next.clone().map(|next| next.query().cursor);
            let goes_on = next.map(|next| !next.is_done());
            assert_eq!(goes_on, expected, "{row}");
            if goes_on == Ok(true) {
                assert_eq!(asked, Ok(cursor.map(Into::into)), "{row}");
            }
        }
    }
}

/// Follows pages that lead from one to the next by this rule, until something ends the walk.
fn walk(next: impl Fn(u64) -> u64, calls: usize) -> (u64, PagingError) {
    let (mut paging, mut at, mut pages) = (first(), 0, 0);
    loop {
        at = next(at);
        pages += 1;
        match paging.apply(&page(Some(true), Some(&format!("c{at}")), calls)) {
            Ok(batch) if !batch.next.is_done() => paging = batch.next,
            Ok(_) => panic!("ended by itself"),
            Err(error) => return (pages, error),
        }
    }
}

/// Every cycle of up to 40 pages behind a tail of up to 40. A page that leads to itself is found out at once.
#[test]
fn every_cycle_is_found_out() {
    assert_eq!(walk(|_| 1, 1), (2, PagingError::Cycle));
    for tail in 0..40 {
        for cycle in 1..40 {
            let next = |at| if at == tail + cycle { tail + 1 } else { at + 1 };
            let (pages, error) = walk(next, 1);
            assert_eq!(error, PagingError::Cycle, "{tail}, {cycle}");
            let closed = tail + cycle;
            assert!(pages > closed && pages <= 3 * closed + 1, "{tail}, {cycle}: {pages}");
        }
    }
}

#[test]
fn empty_pages_do_not_go_on_for_ever() {
    let (pages, error) = walk(|at| at + 1, 0);
    assert_eq!(error, PagingError::Empty);
    assert_eq!(pages, u64::from(CallPages::MAX_EMPTY_PAGES) + 1);
}

#[test]
fn a_cursor_has_to_fit_into_an_address() {
    let fits = "c".repeat(ListCalls::MAX_CURSOR_LEN);
    let next = first().apply(&page(None, Some(&fits), 1)).unwrap().next;
    assert_eq!(next.query().cursor.as_ref(), Some(&fits));
    let long = format!("{fits}c");
    let error = first().apply(&page(None, Some(&long), 1)).unwrap_err();
    assert!(matches!(error, PagingError::LongCursor { .. }), "{error}");
    assert_eq!(error.to_string(), "next_cursor has 8193 bytes, more than 8192");
}

/// A walk may go on in another process, with the list that it pages through: the stored form.
#[test]
fn a_walk_is_a_value_that_holds_its_list() {
    let list = ListCalls::new().with_limit(7).with_filter(within(Some(at(0)), Some(at(1))));
    let next = CallPages::from(list.clone()).apply(&page(None, Some("c"), 1)).unwrap().next;
    assert_eq!(next.query(), list.clone().with_cursor("c"));
    let text = r#"{"list":"limit=7&created_after=2026-01-01T00:00:00Z&created_before=2026-01-01T00:00:00.001Z","walk":{"paging":{"cursor":"c","anchor":null,"pages":1,"empty":0},"place":{"started_at":"2026-01-01T00:00:00Z","ids":["call_0"]},"frontier":null},"done":false,"mode":null,"is_part":false,"tail":[],"unmet":[],"period":null}"#;
    assert_eq!(serde_json::to_string(&next).unwrap(), text);
    assert_eq!(serde_json::from_str::<CallPages>(text).unwrap(), next);
    let restarted = next.restarted().unwrap();
    assert_eq!(restarted.query(), list);
    let again = restarted.apply(&page(None, Some("d"), 1)).unwrap();
    assert_eq!((again.calls, again.next.query().cursor), (vec![], Some("d".into())));
    assert_eq!(next.apply(&page(None, Some("c"), 1)), Err(PagingError::Cycle));

    for (part, wrong) in [
        ("limit=7", "limit=0"),
        ("limit=7", "limit=7&limit=7"),
        ("created_before=2026", "created_before=2025"),
    ] {
        let wrong = text.replace(part, wrong);
        assert!(serde_json::from_str::<CallPages>(&wrong).is_err(), "{wrong}");
    }
    // A list that the service would refuse can be stored, and says what is wrong with it when read.
    let reversed = ListCalls::new().with_filter(within(Some(at(1)), Some(at(0))));
    for (list, expected) in [
        (ListCalls::new().with_limit(0), "limit is not from 1 to 100"),
        (reversed, "created_before is earlier than created_after"),
    ] {
        let text = serde_json::to_string(&CallPages::from(list)).unwrap();
        let error = serde_json::from_str::<CallPages>(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
