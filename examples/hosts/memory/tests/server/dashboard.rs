//! The dashboard's JSON: what it refuses, and what it says.

use std::io::Read as _;

use call_assistant::webhook::event::EventType;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use testing::running::{FJORD, File, Service, delivery_path, exchange, is_other, request};

/// The page that explains signatures is served with the policy that it states: it has no network.
#[test]
fn the_page_that_explains_signatures_is_served_as_it_is() {
    let service = Service::start(&[]);
    let page = include_str!("../../../../explain-web/explain.html");
    let answer = request(service.dashboard(), "GET", "/explain", "", b"");
    assert_eq!((answer.status, answer.text().as_str()), (200, page));
    let policy = answer.header("content-security-policy").unwrap();
    let (stated, framed) = policy.split_once("; frame-ancestors").unwrap();
    assert!(page.contains(&format!("content=\"{stated}\"")), "{policy}");
    assert_eq!(framed, " 'none'");
    assert!(stated.contains("default-src 'none'") && !stated.contains("connect-src"), "{policy}");
}

/// Long pages and long answers to `GET` are compressed if the client accepts gzip. An answer to `POST` may have a secret.
#[test]
fn what_is_read_is_compressed_for_who_accepts_it() {
    let service = Service::start(&[]);
    let ask = |method: &str, path: &str, headers: &str| {
        let answer = request(service.dashboard(), method, path, headers, b"{}");
        let vary = (method != "POST").then_some("accept-encoding");
        assert_eq!(answer.header("vary"), vary, "{path}");
        answer
    };
    let gzip = "Accept-Encoding: deflate, gzip\r\n";
    let overview = format!("{FJORD}/overview");
    for path in ["/", "/portal", "/explain", &overview] {
        let (plain, packed) = (ask("GET", path, ""), ask("GET", path, gzip));
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        let mut text = String::new();
        GzDecoder::new(&*packed.body).read_to_string(&mut text).unwrap();
        // The overview has the time.
        let lasting = |text: &str| match path == overview {
            true => serde_json::from_str::<Value>(text).unwrap()["calls"].clone(),
            false => Value::from(text),
        };
        assert_eq!(lasting(&text), lasting(&plain.text()), "{path}");
        assert!(packed.body.len() * 2 < plain.body.len(), "{path}: {} bytes", packed.body.len());
        for name in ["content-type", "content-security-policy", "cache-control"] {
            assert_eq!(packed.header(name), plain.header(name), "{path}: {name}");
        }
        let head = ask("HEAD", path, gzip);
        assert_eq!(head.header("content-encoding"), Some("gzip"), "{path}");
        assert!(head.body.is_empty() && head.header("content-length").is_some(), "{path}");
        let refused = ask("GET", path, "Accept-Encoding: gzip;q=0\r\n");
        assert_eq!(refused.header("content-encoding"), None, "{path}");
    }
    // One tag for both forms, so it is a weak one. The durable host has none.
    if !is_other() {
        let tag = ask("GET", &overview, gzip).header("etag").unwrap().to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        let again = ask("GET", &overview, &format!("{gzip}If-None-Match: {tag}\r\n"));
        assert_eq!((again.status, again.header("content-encoding")), (304, None));
        assert_eq!(again.header("etag"), Some(&*tag));
    }

    for (method, path) in [("GET", "/login"), ("GET", "/accounts/none"), ("POST", "/recoveries")] {
        assert_eq!(ask(method, path, gzip).header("content-encoding"), None, "{path}");
    }
    // The public API's bytes stay as they are.
    let api = request(service.api(), "GET", "/v1/calls", gzip, b"");
    assert_eq!((api.header("vary"), api.header("content-encoding")), (None, None));
}

/// Accounts are found by the beginning of an id or of the words of a name, in pages.
#[test]
fn accounts_are_searched_and_come_in_pages() {
    let accounts: Vec<Value> = (0..1_003)
        .map(|n| {
            let name = ["Fjord Dental", "\u{c5}s Legal", "100% _Pets_"][n % 3];
            let id = format!("acct_{:04}", 9_999 - n);
            json!({ "id": id, "timezone": "UTC", "business_name": format!("{name} {n}") })
        })
        .collect();
    let ids: Vec<&Value> = accounts.iter().map(|account| &account["id"]).collect();
    let file = File::new("accounts.json", &json!({ "accounts": accounts }).to_string());
    let service = Service::start(&["--data", file.path()]);
    // Returns what is found, and in how many pages.
    let walk = |query: &str| -> (Vec<Value>, usize) {
        let (mut found, mut after, mut read) = (Vec::new(), String::new(), 0);
        loop {
            let page = service.show(&format!("/accounts?{query}&after={after}"));
            read += 1;
            found.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].clone()));
            assert_eq!(page["has_more"], page["next"].is_string(), "{query}");
            let Some(next) = page["next"].as_str() else { return (found, read) };
            next.clone_into(&mut after);
        }
    };
    for (limit, pages) in [("", 2), ("400", 3), ("1000", 2), ("1", 1_003)] {
        let limit = if limit.is_empty() { "search=".to_owned() } else { format!("limit={limit}") };
        let (found, read) = walk(&limit);
        assert_eq!(read, pages, "{limit}");
        assert!(found.iter().eq(ids.iter().copied()), "{limit}");
    }
    for (search, count) in [
        ("acct_", 1_003),
        ("acct_999", 10),
        ("acct_9997", 1),
        ("ACCT_9997", 0),
        ("cct_9997", 0),
        ("fjord%20dENTAL", 335),
        ("fjord+dental+999", 1),
        ("%C3%85s", 334),
        ("100%25+_", 334),
        ("%25", 0),
        ("_", 334),
        ("dent+FJ", 335),
        ("fjord+legal", 0),
        ("egal", 0),
        ("+", 0),
    ] {
        let (all, _) = walk(&format!("search={search}"));
        assert_eq!(all.len(), count, "{search}");
        assert_eq!(walk(&format!("search={search}&limit=97")).0, all, "{search}");
    }
    let long = format!("search={}", "x".repeat(256));
    for (query, error) in [
        ("limit=0", "limit: not from 1 to 1000"),
        ("limit=1001", "limit: not from 1 to 1000"),
        ("after=x", "after: not the `next` of a page"),
        ("after=-1&until=1", "query: the parameters are search, after and limit"),
        (&long, "search: expected at most 255 bytes of text"),
        ("search=a%0A", "search: expected at most 255 bytes of text"),
    ] {
        let refused = service.ask("GET", &format!("/accounts?{query}"), &Value::Null, 400);
        assert_eq!(refused["error"]["message"], error, "{query}");
    }
}

#[test]
fn bad_input_is_named() {
    let service = Service::start(&[]);
    let refused = |method, path: &str, body: &Value, status, message| {
        let refused = service.ask(method, path, body, status);
        let said = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(said.starts_with(message), "{method} {path} {body}: {said}");
    };
    let many_statuses = format!("{FJORD}/deliveries?status=gone{}", ",gone".repeat(7));
    for (method, path, status, message) in [
        ("GET", "/nowhere", 404, "path not found"),
        ("POST", "/keys", 404, "path not found"),
        ("GET", "/accounts/acct_nobody", 404, "account not found"),
        ("DELETE", "/accounts", 405, "this path allows GET, HEAD"),
        ("POST", "/keys/cred_nobody/revoke", 404, "key not found"),
        ("POST", "/endpoints/whep_1/ping", 404, "endpoint not found"),
        ("POST", "/deliveries/dlv_1/redeliver", 404, "delivery not found"),
        ("GET", "/alerts?before=alrt_x", 409, "before: not an id of an alert"),
        ("GET", &format!("{FJORD}/deliveries?status=lost"), 400, "status: not failing, waiting,"),
        ("GET", &format!("{FJORD}/deliveries?endpoint=x"), 404, "endpoint not found"),
        ("GET", &format!("{FJORD}/deliveries?status=gone&status=gone,failed"), 200, ""),
        ("GET", &many_statuses, 400, "status: expected at most 7 statuses"),
    ] {
        refused(method, path, &json!({}), status, message);
    }
    for (body, message) in [
        (json!([]), "expected an object"),
        (json!({ "plan": "gold" }), "plan: unknown plan; the plans are none, starter"),
        (json!({ "closing": 1 }), "closing: expected true or false"),
        (json!({ "Plan": "pro" }), "Plan: unknown field; the fields are timezone, plan,"),
    ] {
        refused("PATCH", FJORD, &body, 400, message);
    }
    let key = |fields: Value| {
        let mut key = json!({ "name": "a", "mode": "live", "scopes": [] });
        key.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        key
    };
    let no_call = json!({ "object": { "id": "call_1" } });
    let bad_secret = json!({ "url": "https://hooks.example.com/", "secret": "hush" });
    for (path, body, message) in [
        ("keys", json!({ "mode": "live" }), "name: missing"),
        ("keys", key(json!({ "mode": "prod" })), "mode: expected live or test"),
        ("keys", key(json!({ "scopes": ["account:read", 7] })), "scopes[1]: expected a string"),
        ("keys", key(json!({ "scopes": vec!["x"; 33] })), "scopes: expected at most 32 items"),
        ("keys", key(json!({ "expires_at": "soon" })), "expires_at: "),
        ("calls", json!({ "caller": { "phone_number": 7 } }), "caller.phone_number: "),
        ("events", json!({ "data": {} }), "type: missing"),
        ("events", json!({ "type": "call.ended", "data": no_call }), "data.object."),
        ("events", json!({ "type": "a b", "data": {} }), "type: expected 1 to 100"),
        ("endpoints", bad_secret, "secret: signing secret does not begin with whsec_"),
        ("/keys/cred_nobody/revoke", json!({ "a": 1 }), "a: unknown field; there are none"),
        ("/endpoints/whep_1/ping", json!({ "type": "call.lost" }), "type: expected one of "),
    ] {
        // Below the account, unless it begins with a slash.
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{FJORD}/{path}") };
        refused("POST", &path, &body, 400, message);
    }
    // RES-8: what is stored is not written over.
    let again = json!({ "id": "call_fjord_0001" });
    let calls = format!("{FJORD}/calls");
    refused("POST", &calls, &again, 409, "a call with this id already exists");
    let broken = request(service.dashboard(), "PATCH", FJORD, "", b"{\"plan\": ");
    assert_eq!((broken.status, &broken.json()["error"]["code"]), (400, &json!("invalid_input")));
}

#[test]
fn only_for_this_machine() {
    let service = Service::start(&[]);
    let page = request(service.dashboard(), "GET", "/", "", b"");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));

    // Another site's page, and a name that resolves to this address.
    let own = format!("Origin: http://{}\r\n", service.dashboard());
    assert_eq!(request(service.dashboard(), "GET", "/accounts", &own, b"").status, 200);
    let foreign = "Origin: https://evil.example\r\n";
    assert_eq!(request(service.dashboard(), "GET", "/accounts", foreign, b"").status, 403);
    if !is_other() {
        service.logged(" route=/accounts status=403 ");
    }
    let foreign = b"GET /accounts HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(service.dashboard(), foreign).unwrap().status, 403);
}

// AUTH-3 to AUTH-5, D-1: the standing of an account takes effect at once.
#[test]
fn an_account_is_changed() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    let status = || service.get("/v1/account", &key).status;
    for (change, expected) in [
        (json!({ "plan": null }), 403),
        (json!({ "plan": "business", "subscription_active": false }), 402),
        (json!({ "closing": true }), 403),
        (json!({ "subscription_active": true }), 403),
        (json!({ "closing": false }), 200),
        (json!({}), 200),
    ] {
        service.ask("PATCH", FJORD, &change, 200);
        assert_eq!(status(), expected, "{change}");
    }
}

// EVT-9: a call without a summary is recorded, and its event is not emitted before there is one.
#[test]
fn a_call_whose_summary_is_not_ready() {
    let service = Service::start(&[]);
    let call = service.ask("POST", &format!("{FJORD}/calls"), &json!({ "summary": null }), 201);
    assert_eq!(call["event_id"], Value::Null);
    assert!(call["not_emitted"].is_string());
    let key = service.key("acct_fjord_dental", "full");
    let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
    assert_eq!(service.get(&path, &key).json()["summary"], Value::Null);
}

// EVT-3, EVT-7: any type goes out; what the specification says of a known one holds.
#[test]
fn events_of_every_type() {
    let service = Service::start(&["--allow-loopback-endpoints"]);
    service.endpoint("http://127.0.0.1:9/");
    let object = json!({ "object": { "id": "appt_1", "status": "booked" } });
    let known = EventType::KNOWN.iter().map(|of| {
        let data: Value = serde_json::from_str(of.sample().unwrap()).unwrap();
        let status = data["object"]["status"].as_str().unwrap_or_default().to_owned();
        (of.as_str(), data, status)
    });
    for (event_type, data, status) in known.chain([
        ("appointment.cancelled", object, "cancelled".to_owned()),
        ("voicemail.left", json!({ "object": { "status": 7 } }), String::new()),
    ]) {
        let event = json!({ "type": event_type, "data": data });
        let event = service.ask("POST", &format!("{FJORD}/events"), &event, 201);
        let delivery = delivery_path(&event);
        let payload = service.show(&delivery)["payload"].clone();
        assert_eq!((&payload["type"], &payload["id"]), (&json!(event_type), &event["id"]));
        let shown = payload["data"]["object"]["status"].as_str().unwrap_or_default();
        assert_eq!(shown, status, "{event_type}");
        assert!(payload["created_at"].as_str().unwrap().ends_with("+00:00"));
    }
}

// A thousand of the longest bodies would be a gigabyte.
#[test]
fn a_list_leaves_long_bodies_out() {
    let service = Service::start(&["--allow-loopback-endpoints"]);
    service.endpoint("http://127.0.0.1:9/");
    for len in [10, 100_000] {
        let event = json!({ "type": "note", "data": { "text": "x".repeat(len) } });
        service.ask("POST", &format!("{FJORD}/events"), &event, 201);
    }
    let list = format!("{FJORD}/deliveries?limit=2");
    let list = service.show(&list)["data"].clone();
    let overview = service.show(&format!("{FJORD}/overview"));
    for shown in [&list, &overview["deliveries"]] {
        assert!(shown[0]["payload"].is_null());
        assert_eq!(shown[1]["payload"]["data"]["text"], "x".repeat(10));
    }
    let whole = format!("/deliveries/{}", list[0]["id"].as_str().unwrap());
    let whole = service.show(&whole);
    assert_eq!(whole["payload"]["data"]["text"].as_str().map(str::len), Some(100_000));
}
