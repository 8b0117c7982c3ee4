//! What the database would refuse: the dashboard, the public API and a file refuse it first, and say where it stands.

use host::dashboard::ROUTES;
use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::{Answer, File, request};
use crate::support::said;
use crate::support::service::Service;

/// What takes the place of a valid value.
fn hostile() -> Vec<Value> {
    let texts = [
        "".to_owned(),
        "a\0b".to_owned(),
        "x".repeat(100_000),
        // It does not compress: an index would have to take all of it.
        (0..20_000_u32).map(|n| char::from_u32(0x4e00 + n * 7919 % 20_000).unwrap()).collect(),
        "\u{10ffff}".repeat(60),
        "0000-01-01T00:00:00Z".to_owned(),
        "9999-12-31T23:59:59.999999999Z".to_owned(),
        "18446744073709551616".to_owned(),
        "-9223372036854775808".to_owned(),
    ];
    let numbers = [json!(-1), json!(0), json!(i64::MIN), json!(u64::MAX), json!(1e308)];
    texts.into_iter().map(Value::from).chain(numbers).chain([json!(null), json!({})]).collect()
}

/// The paths of all values of a body, as JSON pointers.
fn leaves(body: &Value, path: &str) -> Vec<String> {
    match body {
        Value::Object(map) => {
            map.iter().flat_map(|(name, value)| leaves(value, &format!("{path}/{name}"))).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(at, value)| leaves(value, &format!("{path}/{at}"))).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// A JSON pointer as errors write a path.
fn field(pointer: &str) -> String {
    let named =
        pointer.split('/').skip(1).fold(String::new(), |path, part| match part.parse::<usize>() {
            Ok(at) => format!("{path}[{at}]"),
            Err(_) => format!("{path}.{part}"),
        });
    named.trim_start_matches('.').to_owned()
}

#[track_caller]
fn is_refused_or_done(answer: &Answer, what: &str) {
    assert!((200..500).contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_field_of_a_body_reaches_what_the_database_refuses() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    service.ping(&endpoint);
    let list = service.show("/accounts/acct_1/deliveries");
    let delivery = list["data"][0]["id"].as_str().unwrap().to_owned();
    let call = json!({
        "id": "call_a", "summary": "Hello.", "appointment_ids": ["appt_1"], "duration_seconds": 5,
        "caller": { "contact_id": "cont_1", "phone_number": "+47", "display_name": "Kari" },
        "started_at": "2026-01-01T00:00:00Z", "answered_at": "2026-01-01T00:00:01Z",
        "ended_at": "2026-01-01T00:00:02Z", "created_at": "2026-01-01T00:00:03Z",
    });
    let range = json!({
        "from": "2026-01-01T00:00:00Z", "until": "2030-01-01T00:00:00Z",
        "types": ["call.ended"], "statuses": ["failed"],
    });
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let hook = json!({ "url": "http://127.0.0.1:1/a", "description": "ours" });
    let new_key = json!({
        "name": "a", "mode": "live", "scopes": ["account:read"],
        "expires_at": "2030-01-01T00:00:00Z",
    });
    let new_account = json!({
        "id": "acct_a", "business_name": "Fjord", "timezone": "UTC", "plan": "pro",
        "subscription_active": true, "closing": false,
    });
    let (account, at) = ("/accounts/acct_1", |path: &str| format!("/accounts/acct_1{path}"));
    let table = [
        ("POST", "/accounts".to_owned(), new_account),
        ("PATCH", account.to_owned(), json!({ "plan": "pro", "closing": false })),
        ("POST", at("/keys"), new_key),
        ("POST", at("/calls"), call.clone()),
        ("POST", at("/events"), json!({ "type": "call.ended", "data": { "object": call } })),
        ("POST", at("/events"), json!({ "type": "of.ours", "data": { "a": { "b": ["c"] } } })),
        ("POST", at("/endpoints"), with(hook.clone(), "secret", json!("whsec_abc"))),
        ("PATCH", endpoint.clone(), hook),
        ("POST", format!("{endpoint}/rotate"), json!({ "overlap_seconds": 0 })),
        ("POST", format!("{endpoint}/recover"), with(range.clone(), "dry_run", json!(true))),
        ("POST", format!("{endpoint}/recover"), range.clone()),
        ("POST", at("/recover"), with(range.clone(), "after", json!("1"))),
        ("POST", "/recoveries".to_owned(), with(range, "after", json!("1"))),
        ("POST", at("/cancel"), json!({ "type": "ping", "after": "1-1" })),
        ("POST", "/levers".to_owned(), json!({ "account_id": "acct_2", "per_second": 5 })),
        ("POST", "/levers".to_owned(), json!({ "endpoint_id": "whep_2", "per_second": 5 })),
        ("POST", "/senders/nobody/move".to_owned(), json!({ "shard": 7 })),
        ("POST", "/senders/nobody/move".to_owned(), json!({ "endpoint_id": "whep_1" })),
        ("POST", format!("/deliveries/{delivery}/send"), json!({ "unknown": "a" })),
        ("POST", "/alerts/alrt_1/acknowledge".to_owned(), json!({ "by": "Kari" })),
        ("POST", "/login".to_owned(), json!({ "token": "a" })),
        ("POST", "/portal-login".to_owned(), json!({ "link": "a" })),
    ];
    for (method, path, body) in &table {
        for leaf in leaves(body, "") {
            for value in hostile() {
                let mut asked = body.clone();
                *asked.pointer_mut(&leaf).unwrap() = value.clone();
                let bytes = asked.to_string();
                let answer = request(service.api.dashboard(), method, path, "", bytes.as_bytes());
                let value: String = value.to_string().chars().take(40).collect();
                let what = format!("{method} {path} {leaf} = {value}");
                is_refused_or_done(&answer, &what);
                if value.contains("\\u0000") {
                    let field = field(&leaf);
                    let error = &answer.json()["error"];
                    let message = format!("{field}: expected text without NUL characters");
                    assert_eq!(answer.status, 400, "{what}");
                    let told = [&error["field"], &error["message"]];
                    assert_eq!(told, [&json!(field), &json!(message)]);
                }
            }
        }
    }
    // Nothing was stored that cannot be read.
    for path in ["/accounts", "/accounts/acct_1/overview", "/accounts/acct_1/day", "/journal"] {
        service.show(path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_and_no_query_reaches_what_the_database_refuses() {
    let service = Service::new().await;
    let ask = |address: &str, method: &str, target: &str| {
        let bearer = format!("Authorization: Bearer {}\r\n", crate::support::KEY);
        let answer = request(address, method, target, &bearer, b"");
        is_refused_or_done(&answer, &format!("{method} {target}"));
        answer
    };
    let dashboard = service.api.dashboard();
    let segments = ["%00", "acct_1%00", "%ff", "x%0A", "-1", "18446744073709551616"];
    let long = "x".repeat(3000);
    for route in ROUTES.iter().filter(|route| route.path.contains("{id}")) {
        for segment in segments.into_iter().chain([long.as_str()]) {
            let target = format!("/{}", route.path.replace("{id}", segment));
            let answer = ask(dashboard, route.method.as_str(), &target);
            if segment.contains("%00") {
                assert_eq!(answer.status, 404, "{} {target}", route.method);
            }
        }
    }
    for (path, names) in [
        ("/accounts", "search after limit"),
        ("/accounts/acct_1/deliveries", "status endpoint type id from until after limit"),
        ("/alerts", "after limit"),
        ("/journal", "after limit"),
        ("/accounts/acct_1/keys", "after limit"),
    ] {
        for name in names.split(' ') {
            let times =
                ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "7fffffffffffffff"];
            for value in segments.into_iter().chain(times).chain([long.as_str(), "-7f", "1-1"]) {
                let wait = if path == "/alerts" { "wait=0&" } else { "" };
                let answer = ask(dashboard, "GET", &format!("{path}?{wait}{name}={value}"));
                if value.contains("%00") {
                    let field = answer.json()["error"]["field"].take();
                    assert_eq!((answer.status, field), (400, json!(name)), "{path} {value}");
                }
            }
        }
    }
    // D-7: a text that is no id is nobody's.
    let api = service.api.api();
    for (target, status) in [
        ("/v1/calls/%00", 404),
        ("/v1/calls/call_0%00", 404),
        ("/v1/calls?cursor=%00", 400),
        ("/v1/calls?limit=%00", 400),
        ("/v1/calls?created_after=%00", 400),
        ("/v1/calls?created_after=0000-01-01T00:00:00Z", 200),
        ("/v1/calls?created_before=9999-12-31T23:59:59.999999999Z", 200),
    ] {
        assert_eq!(ask(api, "GET", target).status, status, "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_database_would_refuse_is_not_loaded() {
    let service = Service::new().await;
    let call = |id: &str| {
        json!({ "accounts": [{ "id": "acct_a", "timezone": "UTC", "calls": [{
        "id": id, "caller": { "contact_id": null, "phone_number": null, "display_name": null },
        "started_at": "2026-01-01T00:00:00Z", "answered_at": null, "ended_at": null,
        "duration_seconds": 5, "summary": null, "appointment_ids": [],
        "created_at": "2026-01-01T00:00:00Z",
    }] }] })
    };
    let named = |name: String| json!({ "accounts": [{ "id": "acct_a", "timezone": "UTC", "business_name": name }] });
    for (data, words) in [
        (call("a\0b"), "accounts[0].calls[0].id: expected text without NUL characters"),
        (named("a\0b".to_owned()), "accounts[0].business_name: expected text without NUL"),
        (named("x".repeat(1001)), "accounts[0].business_name: expected at most 1000 bytes"),
    ] {
        let file = File::new("refused.json", &data.to_string());
        let said = said(&mut service.world.command("api", &["--data", file.path()]));
        assert!(said.code != Some(0) && said.stderr.contains(words), "{words}: {}", said.stderr);
    }
}
