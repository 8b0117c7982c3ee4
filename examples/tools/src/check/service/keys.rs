//! Keys, scopes, and the order of refusals.

use super::{Api, bearer};
use crate::check::case::{Case, Seen, case, ensure};
use crate::check::http::Answer;

const ACCOUNT: &str = "/v1/account";

pub(super) const CASES: &[Case<Api>] = &[
    // KEY-5, D-10
    case("keys.missing", "Keys and scopes", "Calls can be read without a key.", |api| {
        let none = api.send("GET", "/v1/calls", "")?;
        ensure(none.status == 401, || none.in_words())
    }),
    case("keys.unknown", "Keys and scopes", "An invented key opens an account.", |api| {
        let known = api.key("main", "full")?;
        let (start, _) = known.split_at_checked(known.len().saturating_sub(1)).unwrap_or_default();
        let upper = known.to_uppercase();
        ["service_live_nobody", start, &format!("{known}0"), &upper]
            .iter()
            .try_for_each(|key| unusable(api, &bearer(key)))
    }),
    // D-11
    case("keys.expired", "Keys and scopes", "An expired key still reads calls.", |api| {
        unusable(api, &bearer(api.key("main", "expired")?))
    }),
    // KEY-4
    case("keys.revoked", "Keys and scopes", "A revoked key still reads calls.", |api| {
        unusable(api, &bearer(api.key("main", "revoked")?))
    }),
    case(
        "keys.malformed",
        "Keys and scopes",
        "Two programs read two keys in one request.",
        |api| {
            let key = api.key("main", "second")?;
            let (good, other) = (bearer(key), bearer(api.key("other", "full")?));
            for fields in [
                format!("{good}{other}"),
                format!("{good}{good}"),
                format!("Authorization: Basic {key}\r\n"),
                format!("Authorization: {key}\r\n"),
                format!("Authorization: Bearer {key} x\r\n"),
                format!("Authorization: Bearer {key}\u{e9}\r\n"),
                format!("Authorization: Bearer, {key}\r\n"),
                "Authorization: Bearer \r\n".to_owned(),
                "Authorization: \r\n".to_owned(),
            ] {
                unusable(api, &fields)?;
            }
            Ok(())
        },
    ),
    // HTTP-4
    case("keys.in_url", "Keys and scopes", "Every proxy logs keys.", |api| {
        let key = api.key("main", "second")?;
        for name in ["key", "api_key", "access_token", "token"] {
            let answer = api.send("GET", &format!("{ACCOUNT}?{name}={key}"), "")?;
            ensure(answer.status == 401, || format!("{name}=: {}", answer.in_words()))?;
        }
        Ok(())
    }),
    case("keys.scheme", "Keys and scopes", "A client that writes bearer is refused.", |api| {
        let key = api.key("main", "second")?;
        for scheme in ["bearer ", "BEARER ", "Bearer   "] {
            let answer = api.send("GET", ACCOUNT, &format!("Authorization: {scheme}{key}\r\n"))?;
            ensure(answer.status == 200, || format!("{scheme:?}: {}", answer.in_words()))?;
        }
        Ok(())
    }),
    // KEY-5
    case(
        "keys.alike",
        "Keys and scopes",
        "An attacker with a key learns whether the key was ever valid.",
        |api| {
            let unknown = api.get(ACCOUNT, "service_live_nobody")?;
            same("no key", &api.send("GET", ACCOUNT, "")?, &unknown)?;
            same(
                "another scheme",
                &api.send("GET", ACCOUNT, "Authorization: Basic eDp5\r\n")?,
                &unknown,
            )?;
            for state in ["expired", "revoked"] {
                same(state, &api.get(ACCOUNT, api.key("main", state)?)?, &unknown)?;
            }
            Ok(())
        },
    ),
    // KEY-6
    case(
        "keys.side_by_side",
        "Keys and scopes",
        "A key cannot be replaced without a gap.",
        |api| {
            let [first, second] =
                ["full", "second"].map(|name| api.good_with(ACCOUNT, api.key("main", name)?));
            let (first, second) = (first?, second?);
            ensure(first == second, || format!("{first} and {second}"))
        },
    ),
    // AUTH-1
    case("scopes.grant", "Keys and scopes", "A key with the required scope is refused.", |api| {
        let (call, _) = api.one_call()?;
        api.good_with(ACCOUNT, api.key("main", "account only")?)?;
        api.good_with("/v1/calls", api.key("main", "calls only")?)?;
        api.good_with(&super::path_of(&call), api.key("main", "calls only")?).map(drop)
    }),
    // AUTH-2
    case(
        "scopes.lacking",
        "Keys and scopes",
        "A key reads data without the required scope.",
        |api| {
            let (call, _) = api.one_call()?;
            let one = super::path_of(&call);
            for (key, target) in [
                ("calls only", ACCOUNT),
                ("account only", "/v1/calls"),
                ("account only", &one),
                ("none", ACCOUNT),
                ("none", "/v1/calls"),
                ("none", &one),
            ] {
                api.refuses(target, api.key("main", key)?, "insufficient_scope", "")?;
            }
            Ok(())
        },
    ),
];

/// Each case has two faults, of which the first in the order is the answer. D-1
pub(super) const ORDER: &[Case<Api>] = &[
    case(
        "order.path_then_key",
        "Order of refusals",
        "A request to an unknown path needs a look-up of the key.",
        |api| {
            let answer = api.send("GET", "/v1/nobody", "")?;
            super::refused("an unknown path without a key", &answer, "resource_not_found", "")
        },
    ),
    case(
        "order.method_then_key",
        "Order of refusals",
        "A wrong method looks like a wrong key.",
        |api| {
            let answer = api.send("POST", ACCOUNT, "")?;
            super::refused("POST without a key", &answer, "method_not_allowed", "")
        },
    ),
    case(
        "order.key_then_parameters",
        "Order of refusals",
        "Without a key, an attacker learns about parameters.",
        |api| {
            api.refuses("/v1/calls?limit=0", api.key("main", "revoked")?, "invalid_credentials", "")
        },
    ),
    // AUTH-4
    case(
        "order.closed_first",
        "Order of refusals",
        "An owner pays for an account that will be deleted.",
        |api| api.refuses(ACCOUNT, api.key("closing", "full")?, "account_closed", ""),
    ),
    // AUTH-5
    case(
        "order.inactive_then_plan",
        "Order of refusals",
        "An owner changes a plan that nobody pays for.",
        |api| api.refuses(ACCOUNT, api.key("inactive", "full")?, "subscription_inactive", ""),
    ),
    // AUTH-3, ERR-5
    case(
        "order.plan_then_parameters",
        "Order of refusals",
        "A developer changes the program, although the plan is missing.",
        |api| {
            api.refuses(
                "/v1/calls?limit=0",
                api.key("no plan", "full")?,
                "plan_upgrade_required",
                "",
            )
        },
    ),
    case(
        "order.account_then_scope",
        "Order of refusals",
        "An owner changes a scope, although the account is closed.",
        |api| {
            for (role, code) in [
                ("closing", "account_closed"),
                ("inactive", "subscription_inactive"),
                ("no plan", "plan_upgrade_required"),
            ] {
                api.refuses("/v1/calls", api.key(role, "none")?, code, "")?;
            }
            Ok(())
        },
    ),
    case(
        "order.scope_then_parameters",
        "Order of refusals",
        "A key without the scope probes parameters.",
        |api| {
            let key = api.key("main", "account only")?;
            api.refuses("/v1/calls?limit=0", key, "insufficient_scope", "")?;
            api.refuses("/v1/calls/%zz", key, "insufficient_scope", "")
        },
    ),
    case(
        "order.scope_then_missing",
        "Order of refusals",
        "A key without the scope learns which calls there are.",
        |api| {
            api.refuses(
                "/v1/calls/call_of_nobody",
                api.key("main", "account only")?,
                "insufficient_scope",
                "",
            )
        },
    ),
    case(
        "order.parameters_then_cursor",
        "Order of refusals",
        "A wrong limit looks like an expired cursor.",
        |api| {
            let targets = ["/v1/calls?cursor=nonsense&limit=x"];
            api.refuses_all(&targets, "invalid_parameter", "")
        },
    ),
];

/// Requires that two answers differ by their request ids and their dates alone.
pub(super) fn same(what: &str, one: &Answer, other: &Answer) -> Seen {
    let told = |answer: &Answer| {
        let id = answer.header("x-request-id").unwrap_or_default().to_owned();
        let of_its_own =
            |name: &str| matches!(name, "x-request-id" | "date" | "cf-ray" | "server-timing");
        let fields: Vec<_> =
            answer.headers.iter().filter(|(name, _)| !of_its_own(name)).cloned().collect();
        let body = if id.is_empty() { answer.text() } else { answer.text().replace(&id, "") };
        format!("{} {fields:?} {body}", answer.status)
    };
    let (one, other) = (told(one), told(other));
    ensure(one == other, || format!("{what}: {one} and {other}"))
}

fn unusable(api: &Api, fields: &str) -> Seen {
    let answer = api.send("GET", "/v1/calls?limit=1", fields)?;
    let shown = fields.split("service_").next().unwrap_or_default().trim_end();
    ensure(answer.status == 401, || format!("{shown:?} and more: {}", answer.in_words()))
}
