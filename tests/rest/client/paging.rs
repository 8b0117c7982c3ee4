//! D-24: what a page says about the next one, and that a walk ends.

use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::ListCalls;
use call_assistant::rest::client::{MAX_EMPTY_PAGES, Paging, PagingError, Turn};

use crate::dice::at;

fn page(has_more: Option<bool>, cursor: Option<&str>, calls: usize) -> CallList {
    let call = |index| Call::new(CallId::parse(&format!("call_{index}")).unwrap(), at(0), at(0));
    let mut list = CallList::new((0..calls).map(call).collect(), cursor.map(Into::into));
    list.has_more = has_more;
    list
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
            let turn = Paging::start().turn(&page(has_more, cursor, calls));
            let goes_on = turn.map(|turn| match turn {
                Turn::Next(next) => {
                    assert_eq!(next.cursor(), cursor);
                    true
                }
                Turn::End => false,
            });
            assert_eq!(goes_on, expected, "has_more {has_more:?}, next_cursor {cursor:?}");
        }
    }
}

/// Follows pages that lead from one to the next by this rule, until something ends the walk.
fn walk(next: impl Fn(u64) -> u64, calls: usize) -> (u64, PagingError) {
    let (mut place, mut at, mut pages) = (Paging::start(), 0, 0);
    loop {
        at = next(at);
        pages += 1;
        match place.turn(&page(Some(true), Some(&format!("c{at}")), calls)) {
            Ok(Turn::Next(next)) => place = next,
            Ok(Turn::End) => panic!("ended by itself"),
            Err(error) => return (pages, error),
        }
    }
}

#[test]
fn a_page_that_leads_to_itself_is_found_out_at_once() {
    assert_eq!(walk(|_| 1, 1), (2, PagingError::Cycle));
}

/// Every cycle of up to 40 pages behind a tail of up to 40.
#[test]
fn every_cycle_is_found_out() {
    for tail in 0..40 {
        for cycle in 1..40 {
            let next = |at| if at == tail + cycle { tail + 1 } else { at + 1 };
            let (pages, error) = walk(next, 1);
            assert_eq!(error, PagingError::Cycle);
            let closed = tail + cycle;
            assert!(pages > closed && pages <= 3 * closed + 1, "{tail}, {cycle}: {pages}");
        }
    }
}

#[test]
fn empty_pages_do_not_go_on_for_ever() {
    let (pages, error) = walk(|at| at + 1, 0);
    assert_eq!(error, PagingError::Empty);
    assert_eq!(pages, u64::from(MAX_EMPTY_PAGES) + 1);
}

#[test]
fn a_cursor_has_to_fit_into_an_address() {
    let fits = "c".repeat(ListCalls::MAX_CURSOR_LEN);
    let turn = Paging::start().turn(&page(None, Some(&fits), 1));
    assert!(matches!(turn, Ok(Turn::Next(next)) if next.cursor() == Some(&fits)));
    let long = format!("{fits}c");
    let error = PagingError::LongCursor { len: ListCalls::MAX_CURSOR_LEN + 1 };
    assert_eq!(Paging::start().turn(&page(None, Some(&long), 1)), Err(error));
    assert_eq!(error.to_string(), "next_cursor has 8193 bytes, more than 8192");
}

/// A walk may go on in another process.
#[test]
fn a_place_is_a_value() {
    let Ok(Turn::Next(place)) = Paging::start().turn(&page(None, Some("c"), 1)) else { panic!() };
    let text = serde_json::to_string(&place).unwrap();
    assert_eq!(serde_json::from_str::<Paging>(&text).unwrap(), place);
}
