//! The list of calls, and its filters.

use std::cmp::Reverse;
use std::time::Duration;

use call_assistant::Timestamp;
use serde_json::Value;

use super::resources::empty_page;
use super::{Api, ids, instant, position, rows, text};
use crate::check::case::{Case, Not, Seen, case, ensure};

pub(super) const CASES: &[Case<Api>] = &[
    // LIST-1
    case("list.order", "Pages and cursors", "The newest call is not on the first page.", |api| {
        let calls = rows(&api.good("/v1/calls?limit=100")?);
        let times: Vec<_> = calls.iter().map(|call| Reverse(instant(call, "started_at"))).collect();
        ensure(times.is_sorted() && !times.is_empty(), || format!("{:?}", ids(&calls)))
    }),
    // D-20
    case(
        "list.ties",
        "Pages and cursors",
        "Calls that began together are lost between two pages.",
        |api| {
            let calls = rows(&api.good("/v1/calls?limit=100")?);
            let tied =
                |pair: &&[Value]| matches!(pair, [a, b] if a["started_at"] == b["started_at"]);
            let ties: Vec<_> = calls.windows(2).filter(tied).collect();
            let lacks = || Not::Unseen("no two calls began together".to_owned());
            ties.first().ok_or_else(lacks)?;
            ties.iter().try_for_each(|pair| {
                ensure(pair.is_sorted_by_key(|call| Reverse(position(call))), || {
                    format!("{:?}", ids(pair))
                })
            })
        },
    ),
    // LIST-2
    case(
        "list.default",
        "Parameters",
        "A client that asks for no limit misses calls, or gets too many.",
        |api| counts(api, "", 50),
    ),
    case(
        "list.limits",
        "Parameters",
        "A client gets another number of calls than it asked for.",
        |api| {
            [1_u32, 7, 99, 100]
                .iter()
                .try_for_each(|limit| counts(api, &format!("?limit={limit}"), *limit))
        },
    ),
    case("list.limit_range", "Parameters", "A shortened page looks like the last page.", |api| {
        let targets =
            ["/v1/calls?limit=0", "/v1/calls?limit=101", "/v1/calls?limit=18446744073709551617"];
        api.refuses_all(&targets, "invalid_parameter", "limit")
    }),
    // D-6
    case("list.limit_grammar", "Parameters", "Two services read one number in two ways.", |api| {
        let bad = ["%2B5", "-5", "%205", "5.0", "1e1", "05", "0x5", "five", "", "%D9%A5", "5,5"];
        let targets = bad.map(|limit| format!("/v1/calls?limit={limit}"));
        api.refuses_all(&targets.each_ref().map(String::as_str), "invalid_parameter", "limit")
    }),
    // D-5
    case(
        "list.unknown",
        "Parameters",
        "A misspelled filter is ignored, and all calls are returned.",
        |api| {
            api.refuses_all(
                &["/v1/calls?created_aftr=2026-01-01T00:00:00Z"],
                "invalid_parameter",
                "created_aftr",
            )?;
            api.refuses_all(&["/v1/calls?Limit=5"], "invalid_parameter", "Limit")
        },
    ),
    case("list.repeated", "Parameters", "One of two filters is ignored.", |api| {
        api.refuses_all(&["/v1/calls?limit=5&limit=5"], "invalid_parameter", "limit")?;
        let twice =
            "/v1/calls?created_after=2026-01-01T00:00:00Z&created_after=2026-01-01T00:00:00Z";
        api.refuses_all(&[twice], "invalid_parameter", "created_after")
    }),
    // D-21
    case(
        "list.form",
        "Pages and cursors",
        "A client does not know whether there are more calls.",
        |api| {
            for page in [
                api.good("/v1/calls?limit=1")?,
                api.good("/v1/calls?created_before=2000-01-01T00:00:00Z")?,
            ] {
                let (more, next) = (&page["has_more"], page.get("next_cursor"));
                let is_good = page["data"].is_array() && more.is_boolean() && next.is_some();
                let is_told = next.is_some_and(|next| next.is_string() == (*more == true));
                ensure(is_good && is_told, || format!("has_more {more}, next_cursor {next:?}"))?;
            }
            Ok(())
        },
    ),
    // LIST-6
    case(
        "list.last_page",
        "Pages and cursors",
        "A client asks for further pages forever.",
        |api| {
            let calls = api.calls("main", "calls")?;
            let bound = calls.iter().map(|call| instant(call, "created_at")).max().flatten();
            let bound =
                bound.unwrap_or(Timestamp::UNIX_EPOCH).saturating_add(Duration::from_nanos(1));
            let half = u32::try_from(calls.len() / 2).unwrap_or(1);
            let first = api.good(&format!("/v1/calls?limit={half}&created_before={bound}"))?;
            let rest = calls.len().saturating_sub(rows(&first).len());
            let cursor = text(&first, "next_cursor");
            let last = api.good(&format!("/v1/calls?limit={rest}&cursor={cursor}"))?;
            let is_last = rows(&last).len() == rest
                && last["has_more"] == false
                && last["next_cursor"].is_null();
            ensure(is_last, || {
                format!("{} rows of {rest}, has_more {}", rows(&last).len(), last["has_more"])
            })
        },
    ),
    case("list.walk", "Pages and cursors", "A copy lacks calls, or has calls twice.", |api| {
        let walked = api.walk("", &[37, 1, 100], || Ok(()))?;
        met_once(api, &walked)
    }),
    case(
        "list.walk_while_added",
        "Pages and cursors",
        "A new call moves another call to a wrong page.",
        |api| {
            let lacks = || Not::Unseen("--add-call is not given".to_owned());
            let add_call = api.add_call.as_ref().ok_or_else(lacks)?;
            met_once(api, &api.walk("", &[23], || Ok(add_call()?))?)
        },
    ),
    case("list.own", "Operations", "A customer sees the calls of another.", |api| {
        let own = api.walk("", &[100], || Ok(()))?;
        let theirs = [api.calls("other", "calls")?, api.calls("main", "test_calls")?].concat();
        let strange: Vec<_> =
            ids(&own).into_iter().filter(|id| ids(&theirs).contains(id)).collect();
        ensure(strange.is_empty(), || format!("{strange:?}"))?;
        let tests = rows(&api.good_with("/v1/calls?limit=100", api.key("main", "test")?)?);
        let given = api.calls("main", "test_calls")?;
        are(&tests, &given, "with a test key")
    }),
];

pub(super) const FILTERS: &[Case<Api>] = &[
    // LIST-5
    case("filters.after_is_included", "Parameters", "The call at a watermark is lost.", |api| {
        let (call, at) = api.one_call()?;
        let found = api.walk(&format!("&created_after={at}"), &[100], || Ok(()))?;
        ensure(ids(&found).contains(&text(&call, "id")), || {
            format!("created_after={at} lacks that call")
        })
    }),
    case(
        "filters.before_is_not",
        "Parameters",
        "A call at the end of a day is in two days.",
        |api| {
            let (call, at) = api.one_call()?;
            let found = api.walk(&format!("&created_before={at}"), &[100], || Ok(()))?;
            ensure(!ids(&found).contains(&text(&call, "id")), || {
                format!("created_before={at} has that call")
            })
        },
    ),
    case("filters.select", "Parameters", "A filter returns wrong calls.", |api| {
        let (query, expected) = between(api)?;
        let found = api.walk(&query, &[100], || Ok(()))?;
        are(&found, &expected, &query)
    }),
    // D-8
    case(
        "filters.precision",
        "Timestamps",
        "A watermark is rounded, and a call is lost or repeated.",
        |api| {
            let (call, _) = api.one_call()?;
            let exact = instant(&call, "created_at").unwrap_or(Timestamp::UNIX_EPOCH);
            let [below, above] = [
                exact.saturating_sub(Duration::from_nanos(1)),
                exact.saturating_add(Duration::from_nanos(1)),
            ];
            for (query, has_it) in [
                (format!("&created_after={below}&created_before={above}"), true),
                (format!("&created_after={above}"), false),
            ] {
                let found = api.walk(&query, &[100], || Ok(()))?;
                ensure(ids(&found).contains(&text(&call, "id")) == has_it, || {
                    format!("{query}: that call")
                })?;
            }
            Ok(())
        },
    ),
    case("filters.texts", "Timestamps", "A valid form of a time is refused.", |api| {
        let texts = [
            "2026-01-06t08:00:00z",
            "2026-01-06T10:30:00%2B02:30",
            "2026-01-06T00:00:00-08:00",
            "2026-01-06T08:00:00-00:00",
            "2026-01-06T08:00:00.000000000Z",
        ];
        let expected = api.good("/v1/calls?created_after=2026-01-06T08:00:00Z")?;
        for text in texts {
            let found = api.good(&format!("/v1/calls?created_after={text}"))?;
            ensure(ids(&rows(&found)) == ids(&rows(&expected)), || format!("{text}: other calls"))?;
        }
        api.good("/v1/calls?created_after=2016-12-31T23:59:60Z").map(drop)
    }),
    case("filters.bad_texts", "Timestamps", "A time without an offset is read as UTC.", |api| {
        let texts = [
            "",
            "2026-01-06",
            "2026-01-06T08:00:00",
            "2026-01-06%2008:00:00Z",
            "2026-01-06T08:00:00.Z",
            "2026-01-06T08:00:00.0000000001Z",
            "2026-02-30T08:00:00Z",
            "2026-01-06T24:00:00Z",
            "2026-01-06T08:00:60Z",
            "10000-01-01T00:00:00Z",
            "1767686400",
            "2026-01-06T08:00:00%2B0200",
        ];
        for name in ["created_after", "created_before"] {
            let targets = texts.map(|text| format!("/v1/calls?{name}={text}"));
            api.refuses_all(&targets.each_ref().map(String::as_str), "invalid_parameter", name)?;
        }
        Ok(())
    }),
    case(
        "filters.plus",
        "Timestamps",
        "The error does not explain why + in an offset is refused.",
        |api| {
            let target = "/v1/calls?created_after=2026-01-06T08:00:00+02:00";
            api.refuses_all(&[target], "invalid_parameter", "created_after")?;
            api.refuses_all(&[target], "invalid_parameter", "%2B")
        },
    ),
    // D-9
    case(
        "filters.wrong_order",
        "Parameters",
        "Swapped bounds look like a day without calls.",
        |api| {
            let target =
                "/v1/calls?created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z";
            api.refuses_all(&[target], "invalid_parameter", "created_before")
        },
    ),
    case("filters.equal", "Parameters", "An empty span is an error.", |api| {
        let at = "2026-01-06T08:00:00.5Z";
        let page = api.good(&format!("/v1/calls?created_after={at}&created_before={at}"))?;
        ensure(page == empty_page(), || page.to_string())
    }),
    // D-22
    case(
        "filters.on_all_pages",
        "Pages and cursors",
        "From the second page on, the filters are ignored.",
        |api| {
            let (query, expected) = between(api)?;
            let (mut found, mut cursor) = (Vec::new(), String::new());
            for _ in 0..expected.len() {
                let page = api.good(&format!(
                    "/v1/calls?limit=3{cursor}{}",
                    if cursor.is_empty() { &query } else { "" }
                ))?;
                found.extend(rows(&page));
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            are(&found, &expected, &query)
        },
    ),
];

/// Expects a page of this many calls.
fn counts(api: &Api, query: &str, count: u32) -> Seen {
    let given = api.calls("main", "calls")?.len();
    let lacks = || Not::Unseen(format!("--keys: fewer than {count} calls"));
    let count = usize::try_from(count).ok().filter(|count| given > *count).ok_or_else(lacks)?;
    let page = api.good(&format!("/v1/calls{query}"))?;
    ensure(rows(&page).len() == count, || format!("{query:?}: {} calls", rows(&page).len()))
}

/// Expects these calls, in any order.
fn are(found: &[Value], expected: &[Value], what: &str) -> Seen {
    let [mut one, mut other] = [ids(found), ids(expected)];
    one.sort_unstable();
    other.sort_unstable();
    ensure(one == other, || format!("{what}: {one:?}"))
}

/// Expects each call that was given once.
fn met_once(api: &Api, walked: &[Value]) -> Seen {
    for given in &api.calls("main", "calls")? {
        let times = walked.iter().filter(|call| call["id"] == given["id"]).count();
        ensure(times == 1, || format!("{}: {times} times", given["id"]))?;
    }
    Ok(())
}

/// Returns two bounds, neither of which is the time of a call, and the calls between them.
fn between(api: &Api) -> Seen<(String, Vec<Value>)> {
    let calls = api.calls("main", "calls")?;
    let mut times: Vec<_> = calls.iter().filter_map(|call| instant(call, "created_at")).collect();
    times.sort_unstable();
    let bound =
        |place: usize| times.get(place).map(|at| at.saturating_sub(Duration::from_nanos(1)));
    let bounds = bound(times.len() / 4).zip(bound(times.len() / 2));
    let (after, before) = bounds.ok_or_else(|| Not::Unseen("--keys: too few calls".to_owned()))?;
    let is_between =
        |call: &Value| instant(call, "created_at").is_some_and(|at| at >= after && at < before);
    let expected = calls.into_iter().filter(is_between).collect();
    Ok((format!("&created_after={after}&created_before={before}"), expected))
}
