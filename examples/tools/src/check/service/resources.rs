//! The account and the single call.

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use serde_json::{Value, json};

use super::{Api, instant, path_of, rows, text};
use crate::check::case::{Case, Seen, case, ensure};

pub(super) const CASES: &[Case<Api>] = &[
    // RES-1, RES-7
    case("account.fields", "Resources", "A field is missing, or private data is public.", |api| {
        let account = api.good("/v1/account")?;
        let names = names(&account);
        ensure(names == ["business_name", "id", "livemode", "timezone"], || format!("{names:?}"))
    }),
    case("account.values", "Resources", "An integration shows the wrong business.", |api| {
        let (given, account) = (api.account("main")?, api.good("/v1/account")?);
        for field in ["id", "business_name", "timezone"] {
            let same = given[field].is_null() || given[field] == account[field];
            ensure(same, || format!("{field}: {}, given was {}", account[field], given[field]))?;
        }
        Ok(())
    }),
    // RES-2, D-12
    case("account.livemode", "Resources", "A test key looks like a live key.", |api| {
        for (key, live) in [("full", true), ("test", false)] {
            let account = api.good_with("/v1/account", api.key("main", key)?)?;
            ensure(account["livemode"] == live, || {
                format!("the key {key}: {}", account["livemode"])
            })?;
        }
        Ok(())
    }),
    // D-4, D-5
    case(
        "account.parameters",
        "Parameters",
        "A proxy that adds a parameter breaks the first request.",
        |api| api.good("/v1/account?limit=0&nobody=1").map(drop),
    ),
    // D-3
    case(
        "head.as_get",
        "Operations",
        "A health check by HEAD gets another answer, or a body.",
        |api| {
            let fields = super::bearer(api.key("main", "full")?);
            for target in ["/v1/account", "/v1/calls?limit=3", "/v1/calls/call_of_nobody"] {
                let [get, head] =
                    [api.send("GET", target, &fields)?, api.send("HEAD", target, &fields)?];
                let length = |answer: &crate::check::http::Answer| {
                    answer.header("content-length").map(str::to_owned)
                };
                ensure(get.status == head.status, || {
                    format!("{target}: {} and {}", get.status, head.status)
                })?;
                ensure(length(&get) == length(&head), || {
                    format!("{target}: another Content-Length")
                })?;
                ensure(head.body.is_empty(), || format!("{target}: HEAD has a body"))?;
            }
            Ok(())
        },
    ),
    // RES-3, RES-4, RES-7
    case("call.fields", "Resources", "A field is missing, or private data is public.", |api| {
        let sample = a_call();
        for call in rows(&api.good("/v1/calls?limit=100")?) {
            let found = [names(&call), names(&call["caller"])];
            let expected = [names(&sample), names(&sample["caller"])];
            ensure(found == expected, || format!("{}: {found:?}", call["id"]))?;
        }
        Ok(())
    }),
    // RES-5, D-63
    case("call.times", "Timestamps", "A local time is read as UTC.", |api| {
        for call in rows(&api.good("/v1/calls?limit=100")?) {
            for field in ["started_at", "answered_at", "ended_at", "created_at"] {
                let may_be_null = !matches!(field, "started_at" | "created_at");
                let is_good = instant(&call, field).is_some() && text(&call, field).ends_with('Z');
                ensure(is_good || may_be_null && call[field].is_null(), || {
                    format!("{}: {field}: {}", call["id"], call[field])
                })?;
            }
        }
        Ok(())
    }),
    // RES-6, RES-8, D-63
    case(
        "call.as_given",
        "Resources",
        "A copy of the calls differs from what was recorded.",
        |api| {
            let sample = a_call();
            for given in api.calls("main", "calls")?.iter().step_by(7) {
                let call = api.good(&path_of(given))?;
                for field in names(&sample) {
                    let [a, b] = [instant(&call, field), instant(given, field)];
                    ensure(call[field] == given[field] || a.is_some() && a == b, || {
                        format!(
                            "{}: {field}: {}, given was {}",
                            given["id"], call[field], given[field]
                        )
                    })?;
                }
            }
            Ok(())
        },
    ),
    case("call.as_listed", "Resources", "A call and the same call in the list differ.", |api| {
        for listed in rows(&api.good("/v1/calls?limit=3")?) {
            let call = api.good(&path_of(&listed))?;
            ensure(call == listed, || format!("{call} and {listed}"))?;
        }
        Ok(())
    }),
    // D-7
    case("call.encoded", "Operations", "An escaped id is not found.", |api| {
        let (call, _) = api.one_call()?;
        let id: String = text(&call, "id").bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = api.good(&format!("/v1/calls/{id}"))?;
        ensure(found["id"] == call["id"], || format!("{id}: {}", found["id"]))
    }),
    case("call.parameters", "Parameters", "A proxy that adds a parameter loses a call.", |api| {
        let (call, _) = api.one_call()?;
        api.good(&format!("{}?nobody=1", path_of(&call))).map(drop)
    }),
    case("call.bad_id", "Parameters", "An invalid id looks like a missing call.", |api| {
        let long = format!("/v1/calls/{}", "x".repeat(256));
        api.refuses_all(
            &["/v1/calls/%zz", "/v1/calls/%ff", "/v1/calls/%e", &long],
            "invalid_parameter",
            "call_id",
        )
    }),
    case("call.missing", "Errors", "A client repeats a request for a missing call.", |api| {
        let longest = format!("/v1/calls/{}", "x".repeat(255));
        let targets = ["/v1/calls/call_of_nobody", "/v1/calls/a%2Fb", "/v1/calls/%25zz", &longest];
        api.refuses_all(&targets, "resource_not_found", "")
    }),
    // HTTP-7
    case(
        "call.foreign",
        "Errors",
        "A key reads another account's calls, or learns which calls exist.",
        |api| hidden(api, &api.calls("other", "calls")?),
    ),
    case("call.other_mode", "Errors", "A live key reads test data.", |api| {
        hidden(api, &api.calls("main", "test_calls")?)
    }),
    case("paths.unknown", "Operations", "For a wrong path, a client gets an HTML page.", |api| {
        let targets = [
            "/",
            "/v1",
            "/v1/account/",
            "/v1/calls/",
            "/v2/account",
            "/v1/calls/a/b",
            "/v1/contacts",
        ];
        api.refuses_all(&targets, "resource_not_found", "")
    }),
    // HTTP-1, HTTP-5
    case("methods.others", "Operations", "A write request looks successful.", |api| {
        let fields = super::bearer(api.key("main", "full")?);
        for target in ["/v1/account", "/v1/calls", "/v1/calls/call_of_nobody"] {
            for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
                let answer = api.send(method, target, &fields)?;
                super::refused(&format!("{method} {target}"), &answer, "method_not_allowed", "")?;
            }
        }
        Ok(())
    }),
];

/// Requires that a call of somebody else is answered as one of nobody.
fn hidden(api: &Api, calls: &[Value]) -> Seen {
    let key = api.key("main", "full")?;
    let nobodys = api.get("/v1/calls/call_of_nobody", key)?;
    let theirs = path_of(calls.first().unwrap_or(&Value::Null));
    super::keys::same(&theirs, &api.get(&theirs, key)?, &nobodys)
}

/// Returns a call, which has all fields.
fn a_call() -> Value {
    let now = Timestamp::UNIX_EPOCH;
    json!(Call::new(CallId::from_random([0; 16]), now, now))
}

/// Returns the names of an object's fields, in the order of the alphabet.
fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = match object {
        Value::Object(fields) => fields.keys().map(String::as_str).collect(),
        _ => vec![],
    };
    names.sort_unstable();
    names
}

/// Returns an empty page.
pub(super) fn empty_page() -> Value {
    json!({ "data": [], "next_cursor": null, "has_more": false })
}
