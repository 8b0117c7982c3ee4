//! D-74, D-78: items that nobody can read, and first pages that do not say what time it is.

use call_assistant::Timestamp;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::client::{Batch, CallSync};

use super::sync::{NOW, call, fresh, page};
use crate::dice::{SECOND, at};

fn with(items: &[&str], cursor: Option<&str>) -> CallList {
    let cursor = serde_json::to_string(&cursor).unwrap();
    let json = format!(r#"{{"data":[{}],"next_cursor":{cursor}}}"#, items.join(","));
    CallList::from_json(json.as_bytes()).unwrap()
}

fn json(call: &Call) -> String {
    String::from_utf8(call.to_json()).unwrap()
}

/// What only half an emoji is left of.
fn cut(call: &Call) -> String {
    json(call).replace(r#""summary":null"#, r#""summary":"\ud83d""#)
}

fn ids(step: &Batch<CallSync>) -> Vec<Option<&str>> {
    step.unreadable.iter().map(|item| item.id().map(|id| id.as_str())).collect()
}

#[track_caller]
fn stored(sync: &CallSync) -> CallSync {
    let text = serde_json::to_string(sync).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, sync, "{text}");
    read
}

/// Every way in which an item may be unreadable: it comes once, whole, with its reason, and neither
/// the page nor the walk stops at it.
#[test]
fn an_unreadable_item_comes_once_and_stops_nothing() {
    let (one, two) = (call(1, 990, 1_000), call(2, 980, 999));
    let odd = json(&call(9, 2_000, 1_001));
    for (item, id, field) in [
        (cut(&call(9, 2_000, 1_001)), Some("call_009"), Some("summary")),
        (
            odd.replace("null,\"summary\"", "0.5,\"summary\""),
            Some("call_009"),
            Some("duration_seconds"),
        ),
        (odd.replace("\"call_009\"", "\"\""), None, Some("id")),
        (odd.replace("\"call_009\"", "9"), None, Some("id")),
        (odd.replace("call_009", r"\ud83d"), None, Some("id")),
        (odd.replace("2026", "year 2026"), Some("call_009"), Some("started_at")),
        ("{}".into(), None, Some("id")),
        ("[]".into(), None, None),
        ("null".into(), None, None),
        ("\"call_009\"".into(), None, None),
    ] {
        let list = with(&[&json(&one), &item, &json(&two)], Some("c"));
        let step = CallSync::new().apply(&list, None, at(NOW)).unwrap();
        assert_eq!(fresh(&step), ["call_001", "call_002"], "{item}");
        assert_eq!(ids(&step), [id], "{item}");
        assert_eq!(step.unreadable[0].json().get(), item);
        assert_eq!(step.unreadable[0].error().field(), field, "{item}");
        // On the next page once more, after a restart, and in the next walk.
        let sync = stored(&step.next);
        let again = sync.apply(&with(&[&item], Some("d")), None, at(NOW)).unwrap();
        assert_eq!(ids(&again), [], "{item}");
        let again = sync.restarted().apply(&list, None, at(NOW)).unwrap();
        assert_eq!((ids(&again), fresh(&again)), (vec![], vec![]), "{item}");
        let last = sync.apply(&with(&[], None), None, at(NOW)).unwrap();
        assert_eq!(last.next.watermark(), Some(one.created_at), "{item}");
        let again = stored(&last.next).apply(&list, None, at(NOW)).unwrap();
        assert_eq!((ids(&again), fresh(&again)), (vec![], vec![]), "{item}");
    }
}

/// It moves no watermark, it is no part of the order, and it is forgotten a lag after.
#[test]
fn an_unreadable_item_is_forgotten_once_no_query_lists_it() {
    let late = cut(&call(9, 50, 5_000));
    let no_id = late.replace("\"call_009\"", "9").replace("created_at", "at");
    let list = with(&[&late, &json(&call(1, 990, 1_000)), &no_id], None);
    let step = CallSync::new().apply(&list, None, at(NOW)).unwrap();
    assert_eq!(ids(&step), [Some("call_009"), None]);
    assert_eq!(step.next.watermark(), Some(at(1_000 * SECOND)));
    assert_eq!(step.next.ids(), 3);
    // By its `created_at`, 5000 s; without one, by the time of the walk, 10,000 s.
    for (created, kept) in [(5_060, 2), (5_061, 1), (10_060, 1), (10_061, 0)] {
        let list = page(&[&call(created, i64::from(created) - 10, created.into())], None);
        let next = step.next.apply(&list, None, at(20_000 * SECOND)).unwrap().next;
        assert_eq!(stored(&next).ids(), 1 + kept, "{created}");
    }
}

/// What the service has mended is a call like any other; what it has broken is known.
#[test]
fn a_call_that_is_mended_is_fresh() {
    let one = call(1, 990, 1_000);
    let broken = CallSync::new().apply(&with(&[&cut(&one)], None), None, at(NOW)).unwrap();
    assert_eq!((fresh(&broken), ids(&broken)), (vec![], vec![Some("call_001")]));
    let mended = broken.next.apply(&page(&[&one], None), None, at(NOW)).unwrap();
    assert_eq!((fresh(&mended), ids(&mended)), (vec!["call_001"], vec![]));
    let again = mended.next.apply(&with(&[&cut(&one)], None), None, at(NOW)).unwrap();
    assert_eq!((fresh(&again), ids(&again)), (vec![], vec![]));
}

/// More of them than a page has calls is no page: what is kept of a text stays bounded.
#[test]
fn a_page_of_nothing_but_unreadable_items_is_bounded() {
    let page = |items: usize| {
        CallList::from_json(format!(r#"{{"data":[{}]}}"#, vec!["0"; items].join(",")).as_bytes())
    };
    let most = 100;
    assert_eq!(page(most).unwrap().unreadable().count(), most);
    let error = page(most + 1).unwrap_err();
    assert_eq!(error.field(), Some("data[100]"));
}

/// Walks through a history of a call each half minute, and through it again. Returns how many calls
/// came in each walk, and the longest text of a state.
fn backfill(
    calls: i64,
    empty_first: bool,
    date: Option<Timestamp>,
    now: Timestamp,
    mut sync: CallSync,
) -> (usize, usize, CallSync) {
    let (mut returned, mut longest) = (0, 0);
    let mut left = (0..calls).rev().peekable();
    let mut first = empty_first;
    while left.peek().is_some() {
        let count = if std::mem::take(&mut first) { 0 } else { 100 };
        let calls: Vec<Call> = (left.by_ref().take(count))
            .map(|index| call(u32::try_from(index).unwrap(), index * 30, index * 30 + 20))
            .collect();
        let cursor = left.peek().map(|next| format!("c{next} {count}"));
        let step = sync.apply(&CallList::new(calls, cursor), date, now).unwrap();
        returned += step.calls.len();
        sync = step.next;
        longest = longest.max(serde_json::to_string(&sync).unwrap().len());
    }
    (returned, longest, sync)
}

/// D-71, D-78, D-91: few ids are kept where the first page says what time it is. Where it does not, all are
/// kept, nothing is returned twice, and the watermark follows once the time has come.
#[test]
fn ids_are_kept_instead_of_a_date_that_nobody_believes() {
    const CALLS: i64 = 5_000;
    let right = at(CALLS * 30 * SECOND);
    let unset = Timestamp::UNIX_EPOCH;
    for (row, empty_first, date, now, believed) in [
        ("a right clock", false, None, right, true),
        ("a clock in 1970", false, None, unset, false),
        ("a clock in 1970, and a date", false, Some(right), unset, true),
        ("an empty first page", true, None, right, false),
        ("an empty first page, and a date", true, Some(right), unset, true),
        ("an empty first page, a clock in 1970", true, None, unset, false),
    ] {
        let all = usize::try_from(CALLS).unwrap();
        let (returned, longest, sync) = backfill(CALLS, empty_first, date, now, CallSync::new());
        assert_eq!(returned, all, "{row}");
        assert_eq!(sync.watermark().is_some(), believed, "{row}");
        assert!(if believed { longest < 512 } else { sync.ids() == all }, "{row}: {longest} bytes");
        // The next walk asks for as much again, if it has to, and returns what is new.
        let (returned, _, sync) = backfill(CALLS + 1, empty_first, date, now, stored(&sync));
        assert_eq!(returned, 1, "{row}");
        // Once the clock is right and the first page shows calls, the watermark follows.
        let (returned, _, sync) = backfill(CALLS + 2, false, None, right, stored(&sync));
        assert_eq!(returned, 1, "{row}");
        assert!(sync.watermark().is_some() && sync.ids() <= 5, "{row}");
    }
}

/// D-78: the largest of the first page is the watermark once the clock has passed it.
#[test]
fn a_slow_clock_catches_up() {
    let list = page(&[&call(2, 990, 1_000), &call(1, 900, 950)], None);
    let slow = CallSync::new().apply(&list, None, at(0)).unwrap().next;
    assert_eq!((slow.watermark(), slow.ids()), (None, 2));
    // Still slow, and a call more: all of it is asked for, and that one returned.
    assert_eq!(slow.query().filter.created_after, None);
    let list = page(&[&call(3, 991, 1_001), &call(2, 990, 1_000), &call(1, 900, 950)], None);
    let step = slow.apply(&list, None, at(999 * SECOND)).unwrap();
    assert_eq!(fresh(&step), ["call_003"]);
    assert_eq!(step.next.watermark(), Some(at(950 * SECOND)));
    let none = page(&[], None);
    let passed = at(1_000 * SECOND);
    for (row, sync) in [("slow once", &slow), ("slow twice", &step.next)] {
        let early = sync.apply(&none, None, at(1_000 * SECOND - 1)).unwrap();
        assert_ne!(early.next.watermark(), Some(passed), "{row}");
        let step = sync.apply(&none, None, passed).unwrap();
        assert_eq!(step.next.watermark(), Some(passed), "{row}");
    }
}
