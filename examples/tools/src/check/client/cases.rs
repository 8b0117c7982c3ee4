//! What a client has to do, whatever the service answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::script::{Asked, Reply, Script, decoded};
use super::{Client, KEY, none_lost, once};
use crate::check::case::{Case, Not, Seen, case, ensure};

/// All cases of a client.
pub const CASES: &[&[Case<Client>]] = &[&[
    // LIST-6
    case(
        "walk.every_page",
        "Pages and cursors",
        "A copy lacks calls, or has them twice.",
        |client| client.copies(&Script::start(18)?),
    ),
    case(
        "walk.no_calls",
        "Pages and cursors",
        "An account without calls is treated as an error.",
        |client| client.copies(&Script::start(0)?),
    ),
    // LIST-3
    case(
        "walk.cursor_escaped",
        "Pages and cursors",
        "A walk breaks at a cursor with a plus.",
        |client| {
            let script = Script::start(6)?;
            let _ = client.run(&script, &client.state())?;
            let cursors: Vec<String> =
                script.asked().iter().filter_map(|one| given(one, "cursor")).collect();
            ensure(cursors.first().is_some_and(|cursor| cursor.contains("+/=&")), || {
                format!("sent was {cursors:?}")
            })
        },
    ),
    // D-24
    case(
        "walk.empty_page",
        "Pages and cursors",
        "A copy ends at a page that a filter has left empty.",
        |client| {
            let empty = json!({ "data": [], "has_more": true, "next_cursor": "0+/=&" });
            client.copies(&Script::start(6)?.reply(0, Reply::Page(empty)))
        },
    ),
    case(
        "walk.ends_by_flag",
        "Pages and cursors",
        "A client asks for further pages after the last page.",
        |client| {
            let script = Script::start(2)?;
            let page = json!({ "data": script.calls(), "has_more": false, "next_cursor": "2+/=&" });
            let script = script.reply(0, Reply::Page(page));
            client.copies(&script)?;
            ensure(script.asked().len() == 1, || {
                format!("{} requests for one page", script.asked().len())
            })
        },
    ),
    case(
        "walk.ends_by_cursor",
        "Pages and cursors",
        "If the service omits the flag, only some calls are copied.",
        |client| {
            let script = Script::start(6)?;
            let first: Vec<Value> = script.calls().into_iter().take(4).collect();
            client.copies(
                &script.reply(0, Reply::Page(json!({ "data": first, "next_cursor": "4+/=&" }))),
            )
        },
    ),
    case(
        "walk.no_cursor",
        "Pages and cursors",
        "An interrupted walk counts as complete.",
        |client| {
            let script = Script::start(6)?;
            let first: Vec<Value> = script.calls().into_iter().take(4).collect();
            let page = Reply::Page(json!({ "data": first, "has_more": true, "next_cursor": null }));
            // However often it tries.
            let script = (0..40).fold(script, |script, number| script.reply(number, page.clone()));
            incomplete(client, &script)
        },
    ),
    case(
        "walk.circle",
        "Pages and cursors",
        "A walk never ends, and uses up the rate limit.",
        |client| {
            let script = Script::start(6)?;
            let page = json!({ "data": script.calls(), "has_more": true, "next_cursor": "0+/=&" });
            let script = (0..500)
                .fold(script, |script, number| script.reply(number, Reply::Page(page.clone())));
            incomplete(client, &script)?;
            ensure(script.asked().len() < 60, || format!("{} requests", script.asked().len()))
        },
    ),
    // D-74
    case(
        "walk.unreadable",
        "Resources",
        "One unreadable call stops the copy of all other calls.",
        |client| {
            let script = Script::start(6)?;
            let mut page: Vec<Value> = script.calls().into_iter().take(4).collect();
            page.insert(1, json!({ "id": "call_unreadable", "started_at": 5, "created_at": {} }));
            page.insert(2, json!("no object"));
            let script = script.reply(
                0,
                Reply::Page(json!({ "data": page, "has_more": true, "next_cursor": "4+/=&" })),
            );
            once(&client.run(&script, &client.state())?.ids, &script)
        },
    ),
    // SYNC-1, SYNC-2
    case("again.nothing_twice", "Incremental sync", "A copied call is copied again.", |client| {
        let (script, state) = (Script::start(6)?, client.state());
        let mut ids = client.run(&script, &state)?.ids;
        ids.extend(client.run(&script, &state)?.ids);
        once(&ids, &script)
    }),
    case(
        "again.overlap",
        "Incremental sync",
        "Calls that were copied long ago use up the rate limit.",
        |client| {
            let (script, state) = (Script::start(18)?, client.state());
            client.run(&script, &state)?;
            script.clear();
            client.run(&script, &state)?;
            let asked = script.asked().first().and_then(|one| given(one, "created_after"));
            ensure(asked.is_some(), || "the second run asked for all calls again".to_owned())
        },
    ),
    // LIST-7, D-70
    case(
        "again.late",
        "Incremental sync",
        "A call that was written late is never copied.",
        |client| {
            let (script, state) = (Script::start(6)?, client.state());
            let mut ids = client.run(&script, &state)?.ids;
            script.add("call_late", 600 + 45);
            script.add("call_new", 20);
            ids.extend(client.run(&script, &state)?.ids);
            none_lost(&ids, &script)
        },
    ),
    case(
        "again.after_a_broken_walk",
        "Incremental sync",
        "After an interrupted walk, the remaining calls are never copied.",
        |client| {
            let (script, state) = (
                Script::start(18)?
                    .reply(2, Reply::Refusal(401, "invalid_credentials", String::new())),
                client.state(),
            );
            let mut ids = client.run(&script, &state)?.ids;
            script.clear();
            ids.extend(client.run(&script, &state)?.ids);
            none_lost(&ids, &script)
        },
    ),
    case(
        "again.after_a_refused_cursor",
        "Pages and cursors",
        "After a refused cursor, nothing is ever copied again.",
        |client| {
            let (script, state) = (
                Script::start(18)?.reply(2, Reply::Refusal(400, "invalid_cursor", String::new())),
                client.state(),
            );
            let mut ids = client.run(&script, &state)?.ids;
            script.clear();
            ids.extend(client.run(&script, &state)?.ids);
            none_lost(&ids, &script)
        },
    ),
    // RATE-4, D-31
    case(
        "retry.after_seconds",
        "Rate limits",
        "A client that asks too early is refused again.",
        |client| {
            let refusal =
                Reply::Refusal(429, "rate_limit_exceeded", "Retry-After: 3\r\n".to_owned());
            waits(client, refusal, Duration::from_secs(3))
        },
    ),
    case(
        "retry.after_date",
        "Rate limits",
        "A client asks a service that is down, again and again.",
        |client| {
            // A date has whole seconds.
            waits(client, Reply::Until(Duration::from_secs(4)), Duration::from_secs(3))
        },
    ),
    case(
        "retry.server_errors",
        "Rate limits",
        "A short failure of the service ends a copy.",
        |client| {
            let failing = [500, 502, 503].into_iter().enumerate();
            client.copies(&failing.fold(Script::start(9)?, |script, (number, status)| {
                script.reply(number * 2, Reply::Refusal(status, "internal_error", String::new()))
            }))
        },
    ),
    case(
        "retry.broken",
        "Rate limits",
        "A broken connection ends a copy, or leaves a gap.",
        |client| client.copies(&Script::start(9)?.reply(0, Reply::Close).reply(2, Reply::Half)),
    ),
    case("retry.slow", "Rate limits", "A slow page is treated as a failure.", |client| {
        client.copies(&Script::start(9)?.reply(1, Reply::Slowly))
    }),
    // RATE-5
    case(
        "refused.not_repeated",
        "Rate limits",
        "A revoked key is used again and again.",
        |client| {
            for (status, code) in [
                (401, "invalid_credentials"),
                (402, "subscription_inactive"),
                (403, "insufficient_scope"),
                (403, "of_a_later_version"),
                (400, "invalid_parameter"),
            ] {
                let refusal = Reply::Refusal(status, code, String::new());
                let script = (0..9).fold(Script::start(3)?, |script, number| {
                    script.reply(number, refusal.clone())
                });
                incomplete(client, &script)?;
                ensure(script.asked().len() == 1, || {
                    format!("{status} {code}: asked {} times", script.asked().len())
                })?;
            }
            Ok(())
        },
    ),
    // HTTP-4
    case("key.in_the_header", "Keys and scopes", "Every proxy logs the key.", |client| {
        let script = Script::start(6)?;
        client.run(&script, &client.state())?;
        let asked = script.asked();
        ensure(!asked.is_empty(), || "nothing was asked".to_owned())?;
        asked.iter().try_for_each(|one| {
            let sent: Vec<_> = one.headers.get_all("authorization").iter().collect();
            let is_bearer = sent == [format!("Bearer {KEY}").as_str()];
            ensure(is_bearer && !one.target.contains(KEY), || {
                "not Authorization: Bearer KEY, or in the URL".to_owned()
            })
        })
    }),
    case(
        "key.to_no_stranger",
        "Keys and scopes",
        "A redirect sends the key to another host.",
        |client| {
            let stranger = Script::start(3)?;
            let port = stranger.url().rsplit(':').next().unwrap_or_default().to_owned();
            for status in [301, 302, 307, 308] {
                let location = format!("Location: http://localhost:{port}/v1/calls\r\n");
                let script = Script::start(3)?.reply(0, Reply::Refusal(status, "moved", location));
                client.run(&script, &client.state())?;
                let told =
                    stranger.asked().iter().any(|one| one.headers.contains_key("authorization"));
                ensure(!told, || format!("the key went along with a {status}"))?;
            }
            Ok(())
        },
    ),
]];

/// Requires that the command does not say that its copy is complete. It may also wait, for a service that is mended.
fn incomplete(client: &Client, script: &Script) -> Seen {
    let run = client.run_within(script, &client.state(), Duration::from_secs(6))?;
    ensure(!run.is_complete, || "the exit status is 0".to_owned())
}

/// Requires a complete copy, and this wait between the first two requests.
fn waits(client: &Client, refusal: Reply, least: Duration) -> Seen {
    let script = Script::start(3)?.reply(0, refusal);
    client.copies(&script)?;
    let asked = script.asked();
    let [first, second, ..] = asked.as_slice() else {
        return Err(Not::Broken("it did not ask again".to_owned()));
    };
    let waited = second.at.duration_since(first.at);
    ensure(waited >= least, || format!("it asked again after {waited:?}"))
}

/// Returns a parameter of a request.
fn given(asked: &Asked, name: &str) -> Option<String> {
    let (_, query) = asked.target.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|part| part.split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| decoded(value))
}
