//! What an owner does in the dashboard: endpoints, secrets, deliveries that are found and sent.

use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use serde_json::{Value, json};

use testing::receiver::{Got, Receiver, Reply};
use testing::running::{FJORD, Service, endpoint_path, eventually};

/// Waits between attempts are as they are: what is tried again here was sent by order.
fn start() -> (Service, Receiver) {
    (Service::start(&["--allow-loopback-endpoints"]), Receiver::start())
}

// D-55, D-83
#[test]
fn an_endpoint_is_paused_moved_and_deleted() {
    let (service, receiver) = start();
    let bad = service.hook(&receiver.url("/bad", &[Reply::Status(500)]));
    let waiting = service.ping(&bad);
    assert_eq!(service.after_attempts(&waiting, 1)["status"], "waiting");

    // What is pending goes to the new URL, here at once.
    let good = receiver.url("/good", &[Reply::Status(204)]);
    let moved = service.ask("PATCH", &bad, &json!({ "url": good }), 200);
    assert_eq!((&moved["url"], &moved["status"]), (&json!(good), &json!("active")));
    let refused = service.ask("PATCH", &bad, &json!({ "url": "ftp://x/" }), 400);
    assert_eq!(refused["error"]["field"], "url");
    service.ask("POST", &format!("{waiting}/send"), &json!({}), 202);
    let sent = service.after_attempts(&waiting, 2);
    assert_eq!((&sent["status"], sent["attempts_made"].as_u64()), (&json!("delivered"), Some(2)));
    assert_eq!(receiver.got("/good").len(), 1);
    assert_eq!(sent["body"].as_str().unwrap().as_bytes(), receiver.got("/good")[0].body);
    let again = service.ask("POST", &format!("{waiting}/send"), &json!({}), 409);
    assert_eq!(again["error"]["message"], "the delivery is not waiting for an attempt");

    let paused = service.ask("POST", &format!("{bad}/pause"), &json!({}), 200);
    assert_eq!((&paused["status"], &paused["reason"]), (&json!("disabled"), &json!("paused")));
    service.ask("POST", &format!("{bad}/pause"), &json!({}), 409);
    let skipped = service.ping(&bad);
    assert_eq!(service.show(&skipped)["status"], "skipped");
    let enabled = service.ask("POST", &format!("{bad}/enable"), &json!({}), 200);
    assert_eq!(enabled["missed_deliveries"].as_array().unwrap().len(), 1);

    let deleted = service.ask("DELETE", &bad, &json!({}), 200);
    assert_eq!((&deleted["status"], &deleted["reason"]), (&json!("disabled"), &json!("deleted")));
    assert_eq!(service.show(&format!("{FJORD}/endpoints"))["data"], json!([]));
    assert_eq!(service.show(&waiting)["url"], good, "its log is kept");
    for action in ["enable", "ping", "rotate"] {
        let refused = service.ask("POST", &format!("{bad}/{action}"), &json!({}), 409);
        assert_eq!(refused["error"]["message"], "the endpoint is deleted", "{action}");
    }
    let call = service.call();
    assert_eq!(call["deliveries"], json!([]), "nothing is accepted for it");
    for reason in ["paused", "deleted"] {
        service.logged_times(&format!(" reason={reason}"), 1);
    }
}

// D-90: an attempt that is under way to the old address when its owner moves the endpoint.
#[test]
fn what_the_old_url_answers_leaves_a_moved_endpoint_as_it_is() {
    let (service, receiver) = start();
    let old = [Reply::Status(500), Reply::Held(410), Reply::Held(204)];
    let hook = service.hook(&receiver.url("/old", &old));
    let waiting = service.ping(&hook);
    assert_eq!(service.after_attempts(&waiting, 1)["status"], "waiting");
    let [gone, good] = [2, 3].map(|requests| {
        let ping = service.ping(&hook);
        eventually("the request", || (receiver.got("/old").len() == requests).then_some(()));
        ping
    });
    let new = receiver.url("/new", &[Reply::Status(204)]);
    service.ask("PATCH", &hook, &json!({ "url": new }), 200);
    receiver.release();
    assert_eq!(service.after_pending(&gone)["status"], "gone");
    assert_eq!(service.after_pending(&good)["status"], "delivered");
    let shown = service.show(&hook);
    assert_eq!((&shown["status"], &shown["url"]), (&json!("active"), &json!(new)));

    service.ask("POST", &format!("{waiting}/send"), &json!({}), 202);
    assert_eq!(service.after_pending(&waiting)["status"], "delivered");
    assert_eq!((receiver.got("/old").len(), receiver.got("/new").len()), (3, 1));
}

// D-92
#[test]
fn an_account_has_so_many_endpoints_and_no_more() {
    for (flags, limit) in [(&[][..], 100), (&["--max-endpoints", "3"][..], 3)] {
        let service = Service::start(flags);
        let endpoints = format!("{FJORD}/endpoints");
        let add = |status| {
            let asked = json!({ "url": "https://hooks.example.com/" });
            service.ask("POST", &endpoints, &asked, status)
        };
        let message = format!("the account has {limit} endpoints, and the limit is {limit}");
        let present = service.show(&endpoints)["data"].as_array().unwrap().len();
        let added: Vec<Value> = (present..limit).map(|_| add(201)).collect();
        assert_eq!(add(409)["error"]["message"], message);
        // One that is deleted makes room for another.
        service.ask("DELETE", &endpoint_path(&added[0]), &json!({}), 200);
        add(201);
        assert_eq!(add(409)["error"]["message"], message);
    }
}

// D-43, D-83
#[test]
fn both_secrets_sign_for_a_while() {
    let (service, receiver) = start();
    let url = receiver.url("/hook", &[Reply::Status(204)]);
    let made = service.endpoint(&url);
    let path = endpoint_path(&made);
    let rotate =
        |asked: Value, status| service.ask("POST", &format!("{path}/rotate"), &asked, status);
    let signs = |got: &Got, by: &Value| got.is_signed_with(by["secret"].as_str().unwrap());
    let sent = || {
        service.after_attempts(&service.ping(&path), 1);
        receiver.got("/hook").pop().unwrap()
    };

    let second = rotate(json!({}), 200);
    assert_eq!(second["previous_secrets_until"].as_array().unwrap().len(), 1);
    let got = sent();
    assert!(signs(&got, &made) && signs(&got, &second));

    // As after a leak: the old one stops at once, and the one before it has its time.
    let third = rotate(json!({ "overlap_seconds": 0, "secret": "whsec_of-the-owners-own" }), 200);
    assert_eq!(third["secret"], "whsec_of-the-owners-own");
    let got = sent();
    assert!(signs(&got, &third) && !signs(&got, &second));

    for (asked, message) in [
        (json!({ "overlap_seconds": 604_801 }), "overlap_seconds: expected whole seconds"),
        (json!({ "overlap_seconds": "1" }), "overlap_seconds: expected whole seconds"),
        (json!({ "secret": "hush" }), "secret: "),
    ] {
        let refused = rotate(asked.clone(), 400);
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.starts_with(message), "{asked}: {said}");
    }
    let shown = service.show(&path).to_string();
    assert!(!shown.contains("whsec_"), "{shown}");
}

// After an outage the failed ones are not among the latest.
#[test]
fn filters_look_at_all_deliveries() {
    let (service, receiver) = start();
    let good = service.hook(&receiver.url("/good", &[Reply::Status(204)]));
    let gone = service.hook(&receiver.url("/gone", &[Reply::Status(410)]));
    let lost = service.ping(&gone);
    service.after_attempts(&lost, 1);
    let lost = service.show(&lost);
    for number in 0..70 {
        service.emit(if number % 7 == 0 { "note" } else { "other" });
    }
    let list = |query: &str| service.show(&format!("{FJORD}/deliveries?{query}"));
    let count = |query: &str| list(query)["data"].as_array().unwrap().len();
    let endpoint_id = good.rsplit('/').next().unwrap();
    eventually("all are sent", || (count("status=delivered") == 70).then_some(()));
    for (query, expected) in [
        ("status=gone", 1),
        ("status=gone,skipped", 71),
        // One has failed, and none is to come; the others were never tried.
        ("status=failing", 1),
        ("type=note", 20),
        (&format!("type=note&endpoint={endpoint_id}"), 10),
        (&format!("id={}", lost["event_id"].as_str().unwrap()), 1),
        (&format!("id={}", lost["id"].as_str().unwrap()), 1),
        ("id=evt_nobody", 0),
        (&format!("until={}", lost["event_created_at"].as_str().unwrap()), 0),
        (&format!("from={}", lost["event_created_at"].as_str().unwrap()), 141),
        ("from=&until=&type=&id=&status=", 141),
    ] {
        assert_eq!(count(query), expected, "{query}");
    }

    // The same by the hour in which the events happened.
    let day = service.show(&format!("{FJORD}/day"));
    let sums = |endpoint: usize| {
        let hours = day["data"][endpoint]["hours"].as_array().unwrap();
        assert_eq!(hours.len(), 24);
        ["delivered", "failing", "missed", "waiting"]
            .map(|name| hours.iter().map(|hour| hour[name].as_u64().unwrap()).sum::<u64>())
    };
    assert_eq!((sums(0), sums(1)), ([70, 0, 0, 0], [0, 0, 71, 0]));
    assert_eq!((&day["data"][0]["counted"], &day["data"][0]["since"]), (&json!(70), &Value::Null));
    assert_eq!(day["data"][0]["endpoint_id"], endpoint_id);

    // Pages meet each once, also while there are more.
    let (mut seen, mut after) = (Vec::new(), String::new());
    for page in 0.. {
        let shown = list(&format!("status=delivered&limit=32&after={after}"));
        seen.extend(shown["data"].as_array().unwrap().iter().map(|row| row["id"].to_string()));
        service.ping(&good);
        assert_eq!(shown["has_more"], page < 2, "page {page}");
        match shown["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let met = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((met, seen.len()), (70, 70));
    service.ask("GET", &format!("{FJORD}/deliveries?after=x"), &json!({}), 400);

    let overview = service.show(&format!("{FJORD}/overview"));
    let hour = &overview["endpoints"][1]["last_hour"];
    assert_eq!((&hour["attempts"], &hour["succeeded"]), (&json!(1), &json!(0)));
    assert!(hour["p50_ms"].is_u64() && hour["p99_ms"].is_u64(), "{hour}");
    assert_eq!(hour["more"], false);

    // An attempt without an answer has no time.
    let closed = service.hook("http://127.0.0.1:9/");
    service.ping(&closed);
    let hour = eventually("the attempt", || {
        let overview = service.show(&format!("{FJORD}/overview"));
        let endpoints = overview["endpoints"].as_array().unwrap();
        let closed =
            endpoints.iter().find(|row| closed.ends_with(row["id"].as_str().unwrap())).unwrap();
        (closed["last_hour"]["attempts"].as_u64() > Some(0)).then(|| closed["last_hour"].clone())
    });
    assert_eq!((&hour["attempts"], &hour["p99_ms"]), (&json!(1), &Value::Null));
}

// As its receiver sees it: whatever delays a request, the n-th of ten a second is not there before
// n - 1 tenths of a second have passed. (tests/webhook/sender holds each wait, in virtual time.)
#[test]
fn an_endpoint_has_a_rate_of_its_own() {
    let flags = ["--allow-loopback-endpoints", "--endpoint-rate", "10"];
    let (service, receiver) = (Service::start(&flags), Receiver::start());
    let hook = service.hook(&receiver.url("/hook", &[Reply::Status(204)]));
    let began = Timestamp::from(SystemTime::now()).floor_to_micros();
    (0..8).for_each(|_| drop(service.ping(&hook)));
    eventually("all are sent", || (receiver.got("/hook").len() == 8).then_some(()));
    for (earlier, got) in (0..).zip(receiver.got("/hook")) {
        let waited = got.at.since(began);
        assert!(waited >= earlier * Duration::from_millis(100), "after {earlier}: {waited:?}");
    }
}
