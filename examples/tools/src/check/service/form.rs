//! What every answer has. These cases ask little: they look at the answers to all requests of the others, so that
//! one fault is one finding.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::Api;
use crate::check::case::{Case, Not, Seen, case, ensure};
use crate::check::http::Answer;

/// Each code with its status and type. ERR-2, ERR-3, D-2, D-3
const CODES: [(&str, u16, &str); 11] = [
    ("invalid_parameter", 400, "invalid_request"),
    ("invalid_cursor", 400, "invalid_request"),
    ("invalid_credentials", 401, "authentication_error"),
    ("subscription_inactive", 402, "permission_error"),
    ("insufficient_scope", 403, "permission_error"),
    ("plan_upgrade_required", 403, "permission_error"),
    ("account_closed", 403, "permission_error"),
    ("resource_not_found", 404, "invalid_request"),
    ("method_not_allowed", 405, "invalid_request"),
    ("rate_limit_exceeded", 429, "rate_limit_error"),
    ("internal_error", 500, "api_error"),
];

pub(super) const CASES: &[Case<Api>] = &[
    // HTTP-2
    case(
        "form.type",
        "Headers of every answer",
        "A client does not know that the answer is JSON.",
        |api| {
            all(
                api,
                |answer| answer.header("content-type") == Some("application/json"),
                "content-type",
            )
        },
    ),
    case(
        "form.length",
        "Headers of every answer",
        "A client cannot recognize an incomplete answer.",
        |api| all(api, |answer| answer.header("content-length").is_some(), "content-length"),
    ),
    case(
        "form.request_id",
        "Headers of every answer",
        "Support cannot find the request that failed.",
        |api| {
            let has_id = |answer: &Answer| {
                answer
                    .header("x-request-id")
                    .is_some_and(|id| id.len() > 8 && id.starts_with("req_"))
            };
            all(api, has_id, "x-request-id")
        },
    ),
    case("form.request_id_once", "Headers of every answer", "Two requests have one id.", |api| {
        let mut ids = BTreeSet::new();
        each(api, |answer| match answer.header("x-request-id") {
            Some(id) if !ids.insert(id.to_owned()) => Err(format!("{id} comes twice")),
            _ => Ok(()),
        })
    }),
    // D-13
    case(
        "form.request_id_own",
        "Operations",
        "A client chooses the ids of other requests.",
        |api| {
            let answer = api.send("GET", "/v1/account", "X-Request-Id: req_of_the_client\r\n")?;
            let id = answer.header("x-request-id");
            ensure(id != Some("req_of_the_client"), || "the client's own came back".to_owned())
        },
    ),
    // D-81
    case(
        "form.no_store",
        "Headers of every answer",
        "A cache gives a caller's number to other clients.",
        |api| {
            all(api, |answer| answer.header("cache-control") == Some("no-store"), "cache-control")
        },
    ),
    // D-3
    case("form.no_cors", "Operations", "Browser pages can use keys.", |api| {
        let is_open = |answer: &Answer| {
            answer.headers.iter().any(|(name, _)| name.starts_with("access-control-"))
        };
        all(api, |answer| !is_open(answer), "access-control-allow-origin")
    }),
    // ERR-1
    case("form.envelope", "Errors", "A client cannot read an error.", |api| {
        errors(api, |answer, error| {
            let lacks = ["type", "code", "message", "request_id"]
                .into_iter()
                .find(|field| !error[field].is_string());
            lacks.map_or(Ok(()), |field| Err(format!("{}: no error.{field}", answer.status)))
        })
    }),
    // HTTP-3
    case(
        "form.error_id",
        "Errors",
        "The id in an error leads support to another request.",
        |api| {
            errors(api, |answer, error| {
                let is_same = answer.header("x-request-id") == error["request_id"].as_str();
                if is_same {
                    Ok(())
                } else {
                    Err(format!("{}: {}", answer.in_words(), error["request_id"]))
                }
            })
        },
    ),
    // ERR-2
    case(
        "form.status",
        "Errors",
        "A client repeats a request that it must not repeat, or gives up too early.",
        |api| {
            errors(api, |answer, error| {
                match CODES.iter().find(|(code, ..)| error["code"] == *code) {
                    Some((_, status, _)) if *status == answer.status => Ok(()),
                    Some((code, status, _)) => {
                        Err(format!("{code} with {}, not {status}", answer.status))
                    }
                    None => Err(format!("a code of nobody: {}", answer.in_words())),
                }
            })
        },
    ),
    // ERR-3, D-2
    case("form.error_type", "Errors", "A client asks the wrong person to act.", |api| {
        errors(api, |_, error| match CODES.iter().find(|(code, ..)| error["code"] == *code) {
            Some((code, _, kind)) if error["type"] != *kind => {
                Err(format!("{code} has the type {}", error["type"]))
            }
            _ => Ok(()),
        })
    }),
    // D-10
    case(
        "form.challenge",
        "Headers of every answer",
        "An attacker learns why a key is refused.",
        |api| only_with(api, 401, "www-authenticate", |value| value == "Bearer"),
    ),
    case("form.allow", "Operations", "A client does not learn the allowed methods.", |api| {
        only_with(api, 405, "allow", |value| value == "GET, HEAD")
    }),
    // D-31
    case("form.retry_after", "Rate limits", "A client has to guess how long to wait.", |api| {
        let is_good = |value: &str| {
            value.bytes().all(|byte| byte.is_ascii_digit())
                && value.parse().is_ok_and(|n: u32| (1..=60).contains(&n))
        };
        only_with(api, 429, "retry-after", is_good)
    }),
    // KEY-7
    case("form.no_key", "Keys and scopes", "Every log of answers has the key.", |api| {
        let secrets: Vec<&str> = api.secrets().collect();
        all(
            api,
            |answer| !secrets.iter().any(|secret| answer.text().contains(secret)),
            "content-type",
        )
    }),
];

/// Looks at each answer. Without one, the others were left out, so it asks for some itself.
fn each(api: &Api, mut look: impl FnMut(&Answer) -> Result<(), String>) -> Seen {
    let asked = || api.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if asked().len() < 3 {
        api.good("/v1/calls?limit=1")?;
        api.send("GET", "/v1/account", "")?;
        api.send("POST", "/v1/account", "")?;
    }
    asked().iter().try_for_each(|(request, answer)| {
        look(answer).map_err(|why| Not::Broken(format!("{request}: {why}")))
    })
}

/// Requires something of each answer, and shows the header where it is not so.
fn all(api: &Api, is_good: impl Fn(&Answer) -> bool, header: &str) -> Seen {
    each(api, |answer| match is_good(answer) {
        true => Ok(()),
        false => Err(format!("{}, {header}: {:?}", answer.in_words(), answer.header(header))),
    })
}

/// Looks at each error that has a body.
fn errors(api: &Api, look: impl Fn(&Answer, &serde_json::Value) -> Result<(), String>) -> Seen {
    each(api, |answer| match answer.status {
        400.. if !answer.body.is_empty() => look(answer, &answer.json()["error"]),
        _ => Ok(()),
    })
}

/// Requires a header of the answers with this status, and of no others.
fn only_with(api: &Api, status: u16, name: &str, is_good: impl Fn(&str) -> bool) -> Seen {
    all(
        api,
        |answer| match answer.header(name) {
            Some(value) => answer.status == status && is_good(value),
            None => answer.status != status,
        },
        name,
    )
}
