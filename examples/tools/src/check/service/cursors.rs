//! Cursors: opaque, and bound to their account, mode and filters.

use super::{Api, ids, rows};
use crate::check::case::{Case, Seen, case, ensure};

const FILTER: &str = "&created_after=2026-01-05T00:00:00Z";

// LIST-3, LIST-4, D-22, D-23
pub(super) const CASES: &[Case<Api>] = &[
    case(
        "cursors.altered",
        "Pages and cursors",
        "A damaged cursor leads to a wrong page.",
        |api| {
            let cursor = api.cursor("")?;
            let middle = cursor.len() / 2;
            let (start, end) = cursor.split_at_checked(middle).unwrap_or_default();
            let swapped = |text: &str| text.replacen(|c: char| c.is_ascii_alphanumeric(), "-", 1);
            for bad in [format!("{start}{}", swapped(end)), format!("{}{end}", swapped(start))] {
                refused(api, &bad)?;
            }
            Ok(())
        },
    ),
    case(
        "cursors.cut",
        "Pages and cursors",
        "A truncated cursor leads to the wrong call.",
        |api| {
            let cursor = api.cursor("")?;
            (1..4).try_for_each(|less| {
                refused(api, cursor.get(..cursor.len().saturating_sub(less)).unwrap_or_default())
            })
        },
    ),
    case(
        "cursors.longer",
        "Pages and cursors",
        "One page has many cursors, so a cache never finds it.",
        |api| {
            let cursor = api.cursor("")?;
            ["A", "=", "%20", "%00"]
                .iter()
                .try_for_each(|more| refused(api, &format!("{cursor}{more}")))
        },
    ),
    case(
        "cursors.canonical",
        "Pages and cursors",
        "A cursor can be changed without anybody noticing.",
        |api| {
            let cursor = api.cursor("")?;
            let (start, last) =
                cursor.split_at_checked(cursor.len().saturating_sub(1)).unwrap_or_default();
            let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let others = letters.chars().filter(|letter| !last.starts_with(*letter));
            others.map(|letter| format!("{start}{letter}")).try_for_each(|bad| refused(api, &bad))
        },
    ),
    case(
        "cursors.nonsense",
        "Pages and cursors",
        "An invented cursor leads to the first page.",
        |api| {
            let long = "A".repeat(5000);
            ["", "nonsense", "eyJpZCI6MX0", "1", "%F0%9F%A6%B7", &long]
                .iter()
                .try_for_each(|bad| refused(api, bad))
        },
    ),
    case("cursors.of_others", "Pages and cursors", "A stolen cursor opens a list.", |api| {
        with_key(api, api.key("other", "full")?)
    }),
    case(
        "cursors.of_other_mode",
        "Pages and cursors",
        "A cursor of live data is accepted for test data.",
        |api| with_key(api, api.key("main", "test")?),
    ),
    case(
        "cursors.of_second_key",
        "Keys and scopes",
        "After a change of the key, every walk breaks.",
        |api| {
            let target = format!("/v1/calls?limit=2&cursor={}", api.cursor("")?);
            api.good_with(&target, api.key("main", "second")?).map(drop)
        },
    ),
    case(
        "cursors.of_other_filters",
        "Pages and cursors",
        "A walk changes its filters between two pages.",
        |api| {
            let (bare, filtered) = (api.cursor("")?, api.cursor(FILTER)?);
            for (cursor, filter) in [
                (&bare, FILTER),
                (&filtered, "&created_after=2026-01-05T00:00:01Z"),
                (&filtered, "&created_before=2027-01-01T00:00:00Z"),
            ] {
                refused(api, &format!("{cursor}{filter}"))?;
            }
            Ok(())
        },
    ),
    case(
        "cursors.repeat_filters",
        "Pages and cursors",
        "A client that repeats its filters is refused.",
        |api| {
            let cursor = api.cursor(FILTER)?;
            let [repeated, bare] =
                [FILTER, ""].map(|filter| api.good(&format!("/v1/calls?cursor={cursor}{filter}")));
            let [repeated, bare] = [rows(&repeated?), rows(&bare?)];
            ensure(repeated == bare, || format!("{:?} and {:?}", ids(&repeated), ids(&bare)))
        },
    ),
    case("cursors.again", "Pages and cursors", "A repeated request gets another page.", |api| {
        let target = format!("/v1/calls?limit=5&cursor={}", api.cursor("")?);
        let [first, second] = [rows(&api.good(&target)?), rows(&api.good(&target)?)];
        ensure(first == second, || format!("{:?} and {:?}", ids(&first), ids(&second)))
    }),
    case(
        "cursors.unlike",
        "Pages and cursors",
        "The answers help an attacker to forge a cursor.",
        |api| {
            let (cursor, key) = (api.cursor("")?, api.key("main", "full")?);
            let nonsense = api.get("/v1/calls?cursor=nonsense", key)?;
            let cut = cursor.get(..cursor.len() / 2).unwrap_or_default();
            for bad in [cut, &format!("{cursor}A")] {
                let answer = api.get(&format!("/v1/calls?cursor={bad}"), key)?;
                super::keys::same("two cursors that are refused", &answer, &nonsense)?;
            }
            Ok(())
        },
    ),
];

fn refused(api: &Api, cursor: &str) -> Seen {
    api.refuses_all(&[&format!("/v1/calls?cursor={cursor}")], "invalid_cursor", "")
}

fn with_key(api: &Api, key: &str) -> Seen {
    let target = format!("/v1/calls?cursor={}", api.cursor("")?);
    api.refuses(&target, key, "invalid_cursor", "")
}
