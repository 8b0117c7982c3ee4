//! The public API over real HTTP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use testing::running::{Answer, Service, exchange, request};

const FJORD: &str = "acct_fjord_dental";

fn code(answer: &Answer) -> String {
    let code = answer.json()["error"]["code"].as_str().map(str::to_owned);
    code.unwrap_or_else(|| panic!("no error: {} {}", answer.status, answer.text()))
}

/// Every answer, whatever it is. HTTP-2, HTTP-3, D-81.
#[track_caller]
fn check_form(answer: &Answer) {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let id = answer.header("x-request-id").unwrap();
    assert!(id.starts_with("req_"), "{id}");
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control-")));
    if answer.status >= 400 {
        let error = &answer.json()["error"];
        assert_eq!(error["request_id"], id);
        for field in ["type", "code", "message"] {
            assert!(error[field].is_string(), "{field}");
        }
    }
}

// HTTP-1, HTTP-5, AUTH-2 to AUTH-5, KEY-5, LIST-2 to LIST-4, ERR-2, D-1, D-3, D-5 to D-7, D-9, D-10, D-81
#[test]
fn every_refusal_of_the_table() {
    let service = Service::start(&[]);
    let full = service.key(FJORD, "full");
    let bearer = |key: &str| format!("Authorization: Bearer {key}\r\n");
    let key = |state| bearer(&service.key(FJORD, state));
    let of = |account| bearer(&service.key(account, "full"));
    let full_key = || bearer(&full);
    let twice = format!("{0}{0}", full_key());
    let basic = format!("Authorization: Basic {full}\r\n");
    let cursor = service.get("/v1/calls?limit=1", &full).json()["next_cursor"].clone();
    let cursor = cursor.as_str().unwrap();
    let (start, last) = cursor.split_at(cursor.len() - 1);
    let altered = format!("/v1/calls?cursor={start}{}", if last == "A" { "Q" } else { "A" });
    let other = format!("/v1/calls?cursor={cursor}&created_after=2020-01-01T00:00:00Z");
    let foreign = format!("/v1/calls?cursor={cursor}");
    let long = format!("/v1/calls/{}", "x".repeat(256));

    let table: &[(&str, &str, String, u16, &str)] = &[
        ("GET", "/", full_key(), 404, "resource_not_found"),
        ("GET", "/v1", full_key(), 404, "resource_not_found"),
        ("GET", "/v1/account/", full_key(), 404, "resource_not_found"),
        ("GET", "/v2/account", String::new(), 404, "resource_not_found"),
        ("POST", "/v1/account", String::new(), 405, "method_not_allowed"),
        ("OPTIONS", "/v1/calls", String::new(), 405, "method_not_allowed"),
        ("DELETE", "/v1/calls/call_1", full_key(), 405, "method_not_allowed"),
        ("GET", "/v1/account", String::new(), 401, "invalid_credentials"),
        ("GET", "/v1/account", bearer(""), 401, "invalid_credentials"),
        ("GET", "/v1/account", bearer("nobody"), 401, "invalid_credentials"),
        ("GET", "/v1/account", bearer("\u{e9}"), 401, "invalid_credentials"),
        ("GET", "/v1/account", twice, 401, "invalid_credentials"),
        ("GET", "/v1/account", basic, 401, "invalid_credentials"),
        ("GET", "/v1/account", key("expired"), 401, "invalid_credentials"),
        ("GET", "/v1/account", key("revoked"), 401, "invalid_credentials"),
        ("GET", "/v1/calls?limit=x", key("revoked"), 401, "invalid_credentials"),
        ("GET", "/v1/account", of("acct_closing"), 403, "account_closed"),
        ("GET", "/v1/account", of("acct_inactive"), 402, "subscription_inactive"),
        ("GET", "/v1/account", of("acct_no_plan"), 403, "plan_upgrade_required"),
        ("GET", "/v1/calls?limit=0", of("acct_no_plan"), 403, "plan_upgrade_required"),
        ("GET", "/v1/account", key("calls only"), 403, "insufficient_scope"),
        ("GET", "/v1/account", key("none"), 403, "insufficient_scope"),
        ("GET", "/v1/calls", key("account only"), 403, "insufficient_scope"),
        ("GET", "/v1/calls/call_1", key("account only"), 403, "insufficient_scope"),
        ("GET", "/v1/calls?limit=0", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?limit=101", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?limit=%2B5", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?limit=5&limit=5", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?created_aftr=x", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?created_after=2026-01-01", full_key(), 400, "invalid_parameter"),
        (
            "GET",
            "/v1/calls?created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z",
            full_key(),
            400,
            "invalid_parameter",
        ),
        ("GET", "/v1/calls/%zz", full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls/%ff", full_key(), 400, "invalid_parameter"),
        ("GET", &long, full_key(), 400, "invalid_parameter"),
        ("GET", "/v1/calls?cursor=", full_key(), 400, "invalid_cursor"),
        ("GET", "/v1/calls?cursor=nonsense", full_key(), 400, "invalid_cursor"),
        ("GET", &altered, full_key(), 400, "invalid_cursor"),
        ("GET", &other, full_key(), 400, "invalid_cursor"),
        ("GET", &foreign, of("acct_harbour_hair"), 400, "invalid_cursor"),
        ("GET", &foreign, key("test"), 400, "invalid_cursor"),
        ("GET", "/v1/calls/call_nobody", full_key(), 404, "resource_not_found"),
        ("GET", "/v1/calls/call_harbour_0003", full_key(), 404, "resource_not_found"),
    ];
    for (method, target, headers, status, expected) in table {
        let answer = request(service.api(), method, target, headers, b"");
        assert_eq!((answer.status, code(&answer).as_str()), (*status, *expected), "{target}");
        check_form(&answer);
        let names = ["www-authenticate", "allow"].map(|name| answer.header(name));
        let expected = match status {
            401 => [Some("Bearer"), None],
            405 => [None, Some("GET, HEAD")],
            _ => [None, None],
        };
        assert_eq!(names, expected, "{target}");
    }
    // KEY-7
    assert!(!service.log().contains(&full), "a secret is in the log");
}

// D-82: before anything else, on every path, and without a place in the quota.
#[test]
fn a_request_names_one_host() {
    let service = Service::start(&[]);
    let key = service.key(FJORD, "full");
    for (what, fields) in [
        ("no host", ""),
        ("two hosts", "Host: a.example\r\nHost: a.example\r\n"),
        ("an empty host", "Host: \r\n"),
        ("user info", "Host: user@a.example\r\n"),
        ("a path", "Host: a.example/v1\r\n"),
        ("a port that is none", "Host: a.example:http\r\n"),
    ] {
        for (method, target) in [
            ("GET", "/v1/account"),
            ("GET", "/v1/calls?limit=0"),
            ("POST", "/v1/calls"),
            ("GET", "/nowhere"),
        ]
        .into_iter()
        .chain([("GET", "/v1/account"); 10])
        {
            let head = format!(
                "{method} {target} HTTP/1.1\r\n{fields}Connection: close\r\n\
                 Authorization: Bearer {key}\r\n\r\n"
            );
            let answer = exchange(service.api(), head.as_bytes()).unwrap();
            assert_eq!(answer.status, 400, "{what}, {method} {target}");
            assert_eq!(code(&answer), "invalid_parameter", "{what}, {method} {target}");
            let message = answer.json()["error"]["message"].to_string();
            assert!(message.contains("Host"), "{what}: {message}");
            check_form(&answer);
        }
    }
    for request in 0..60 {
        assert_eq!(service.get("/v1/account", &key).status, 200, "request {request}");
    }
}

// D-87: load balancers ask like that whether a host is well.
#[test]
fn http_1_0_needs_no_host() {
    let service = Service::start(&[]);
    for (fields, status) in
        [("", 401), ("Host: h\r\n", 401), ("Host: h\r\nHost: h\r\n", 400), ("Host: @\r\n", 400)]
    {
        let head = format!("GET /v1/account HTTP/1.0\r\n{fields}\r\n");
        let answer = exchange(service.api(), head.as_bytes()).unwrap();
        assert_eq!(answer.status, status, "{fields:?}");
        check_form(&answer);
    }
}

// HTTP-7, KEY-5: indistinguishable but for the request id.
#[test]
fn refusals_that_must_not_be_told_apart() {
    let service = Service::start(&[]);
    let full = service.key(FJORD, "full");
    let without_id = |answer: Answer| {
        let id = answer.header("x-request-id").unwrap().to_owned();
        let headers: Vec<_> = answer
            .headers
            .iter()
            .filter(|(name, _)| name != "x-request-id" && name != "date")
            .cloned()
            .collect();
        (answer.status, headers, answer.text().replace(&id, "req_"))
    };
    let missing = without_id(service.get("/v1/calls/call_nobody", &full));
    let foreign = without_id(service.get("/v1/calls/call_harbour_0003", &full));
    assert_eq!(missing, foreign);

    let unknown = without_id(service.get("/v1/account", "service_live_unknown"));
    let none = without_id(request(service.api(), "GET", "/v1/account", "", b""));
    assert_eq!(unknown, none);
    for state in ["expired", "revoked"] {
        let key = service.key(FJORD, state);
        assert_eq!(without_id(service.get("/v1/account", &key)), unknown, "{state}");
    }
}

// LIST-1, LIST-6, D-21, D-22
#[test]
fn a_walk_meets_every_call_once_while_calls_are_added() {
    let service = Service::start(&[]);
    let full = service.key(FJORD, "full");
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut cursor = None::<String>;
    for limit in [37_u32, 1, 100].into_iter().cycle() {
        let target = match &cursor {
            None => format!("/v1/calls?limit={limit}"),
            Some(cursor) => format!("/v1/calls?limit={limit}&cursor={cursor}"),
        };
        let page = service.get(&target, &full).json();
        let calls = page["data"].as_array().unwrap();
        assert!(!calls.is_empty() && calls.len() <= limit as usize);
        seen.extend(calls.iter().map(|call| {
            let text = |name: &str| call[name].as_str().unwrap().to_owned();
            (text("started_at"), text("id"))
        }));
        // A call that arrives meanwhile is at the top, and does not move what comes.
        service.ask("POST", &format!("/accounts/{FJORD}/calls"), &json!({}), 201);
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 250);
    // The demonstration's instants are whole seconds, so their texts order as they do.
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, then by id");
    assert!(seen.windows(2).any(|pair| pair[0].0 == pair[1].0), "there are ties");
}

// LIST-5, RES-2, RES-3
#[test]
fn filters_and_objects() {
    let service = Service::start(&[]);
    let full = service.key(FJORD, "full");
    let list = |query: &str| service.get(&format!("/v1/calls?{query}"), &full).json();
    let all = list("limit=100")["data"].as_array().unwrap().clone();
    let at = all[10]["created_at"].as_str().unwrap();
    let ids = |list: &Value| -> Vec<Value> {
        list["data"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect()
    };
    assert!(ids(&list(&format!("limit=100&created_after={at}"))).contains(&all[10]["id"]));
    assert!(!ids(&list(&format!("limit=100&created_before={at}"))).contains(&all[10]["id"]));
    let none = list(&format!("created_after={at}&created_before={at}"));
    assert_eq!(none, json!({ "data": [], "next_cursor": null, "has_more": false }));

    let id = all[10]["id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/v1/calls/{id}"), &full).json(), all[10]);
    let fields: Vec<&String> = all[10].as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 9);

    let account = |state| service.get("/v1/account?ignored=1", &service.key(FJORD, state)).json();
    assert_eq!(
        account("full"),
        json!({
            "id": FJORD,
            "business_name": "Fjord Dental Clinic",
            "timezone": "Europe/Oslo",
            "livemode": true,
        })
    );
    assert_eq!(account("test")["livemode"], false);
    // Test keys reach test data.
    let test = service.get("/v1/calls?limit=100", &service.key(FJORD, "test")).json();
    assert_eq!(test["data"].as_array().unwrap().len(), 5);
}

// D-3: HEAD is a GET without its body.
#[test]
fn a_head_is_answered_as_a_get() {
    let service = Service::start(&[]);
    let authorization = format!("Authorization: Bearer {}\r\n", service.key(FJORD, "full"));
    for target in ["/v1/account", "/v1/calls", "/v1/calls/call_nobody"] {
        let get = request(service.api(), "GET", target, &authorization, b"");
        let head = request(service.api(), "HEAD", target, &authorization, b"");
        assert_eq!(get.status, head.status, "{target}");
        assert_eq!(get.header("content-length"), head.header("content-length"), "{target}");
        assert_eq!(head.body, b"", "{target}");
    }
}

// RATE-1, RATE-2, RATE-3, D-1, D-30, D-31
#[test]
fn the_quotas() {
    let service = Service::start(&[]);
    let key = service.key(FJORD, "full");
    for (target, quota) in [("/v1/account", 60), ("/v1/calls?limit=1", 600)] {
        let began = Instant::now();
        for request in 0..quota {
            assert_eq!(service.get(target, &key).status, 200, "{target} {request}");
        }
        let refused = service.get(target, &key);
        if began.elapsed() >= Duration::from_secs(60) {
            // The first one counts no longer, so this machine is too slow to use the quota up.
            return;
        }
        assert_eq!((refused.status, code(&refused).as_str()), (429, "rate_limit_exceeded"));
        check_form(&refused);
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    // Retrieving shares the quota of listing; another key has its own.
    assert_eq!(service.get("/v1/calls/call_fjord_0001", &key).status, 429);
    let other = service.key(FJORD, "calls only");
    assert_eq!(service.get("/v1/calls/call_fjord_0001", &other).status, 200);
}

// KEY-2, KEY-4, KEY-6, D-11
#[test]
fn keys_live_and_end() {
    let service = Service::start(&[]);
    let path = format!("/accounts/{FJORD}/keys");
    let new = |name: &str, expires_at: Value| {
        let scopes = ["account:read", "calls:read"];
        let asked =
            json!({ "name": name, "mode": "live", "scopes": scopes, "expires_at": expires_at });
        service.ask("POST", &path, &asked, 201)
    };
    let (old, next) = (new("old", Value::Null), new("next", Value::Null));
    let status = |key: &Value| service.get("/v1/account", key["secret"].as_str().unwrap()).status;
    assert_eq!((status(&old), status(&next)), (200, 200));
    let id = old["id"].as_str().unwrap();
    let revoked = service.ask("POST", &format!("/keys/{id}/revoke"), &json!({}), 200);
    assert!(revoked["revoked_at"].is_string() && revoked.get("secret").is_none());
    assert_eq!((status(&old), status(&next)), (401, 200));
    assert_eq!(status(&new("past", json!("2020-01-01T00:00:00Z"))), 401);

    let listed = service.show(&path);
    assert!(!listed.to_string().contains(next["secret"].as_str().unwrap()));
    let used = listed["data"].as_array().unwrap().iter().find(|key| key["id"] == next["id"]);
    assert!(used.unwrap()["last_used_at"].is_string());
}
