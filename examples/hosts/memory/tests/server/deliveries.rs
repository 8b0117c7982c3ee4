//! Webhooks from the dashboard's call to a customer's receiver.

use std::time::Duration;

use call_assistant::Timestamp;
use serde_json::{Value, json};

use testing::receiver::{Got, Receiver, Reply};
use testing::running::{FJORD, Service, connect, delivery_path, endpoint_path, eventually};

/// Hours in about a second. Who answers has the ten seconds that it always has.
const FAST: [&str; 3] = ["--allow-loopback-endpoints", "--time-scale", "0.00005"];

fn outcomes(delivery: &Value) -> Vec<String> {
    let attempts = delivery["attempts"].as_array().unwrap();
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Verifies what came, as a customer does.
fn verify(got: &Got, endpoint: &Value) -> Value {
    assert!(got.is_signed_with(endpoint["secret"].as_str().unwrap()), "{got:?}");
    let event: Value = serde_json::from_slice(&got.body).unwrap();
    // DEL-1
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("user-agent"), "Service-Webhooks/1.0");
    assert_eq!(got.header("x-service-event"), event["type"]);
    assert_eq!(got.header("x-service-delivery"), event["id"]);
    event
}

// DEL-3 to DEL-6, DEL-10, DEL-13, D-50, D-53, D-55, D-56
#[test]
fn through_500_timeout_302_and_410_to_2xx() {
    let (service, receiver) = (Service::start(&FAST), Receiver::start());
    let [failed, moved, gone, good] = [500, 302, 410, 204].map(Reply::Status);
    let url = receiver.url("/hook?token=1", &[failed, Reply::Nothing, moved, gone, good]);
    let endpoint = service.endpoint(&url);
    let call = json!({ "summary": "Asked for <b>Friday</b>.", "duration_seconds": 61 });
    let call = service.ask("POST", &format!("{FJORD}/calls"), &call, 201);
    let sent = call["deliveries"][0].as_str().unwrap();
    let path = delivery_path(&call);

    let gone = service.after_pending(&path);
    assert_eq!(gone["status"], "gone");
    assert_eq!(outcomes(&gone), ["500", "timeout", "302", "410"]);
    assert_eq!(gone["attempts"][0]["response"]["text"], "<b>hello</b>");
    let disabled = service.show(&endpoint_path(&endpoint));
    assert_eq!((&disabled["status"], &disabled["reason"]), (&json!("disabled"), &json!("gone")));
    assert_eq!(disabled["consecutive_failures"], 0);

    // While it is disabled, events are recorded as skipped, and nothing is redelivered.
    let hook = endpoint_path(&endpoint);
    let skipped = service.show(&service.ping(&hook));
    assert_eq!(skipped["status"], "skipped");
    let again = format!("{path}/redeliver");
    let refused = service.ask("POST", &again, &json!({}), 409);
    assert_eq!(refused["error"]["message"], "the endpoint is disabled");

    // Enabling floods nobody; what was missed is there to be redelivered.
    let enabled = service.ask("POST", &format!("{hook}/enable"), &json!({}), 200);
    assert_eq!(enabled["status"], "active");
    assert_eq!(enabled["missed_deliveries"], json!([skipped["id"], sent]));
    assert_eq!(service.ask("POST", &again, &json!({}), 202)["by_hand"], true);
    let delivered = service.after_pending(&path);
    assert_eq!(delivered["status"], "delivered");
    assert_eq!(outcomes(&delivered), ["500", "timeout", "302", "410", "204"]);
    assert_eq!(delivered["attempts"][4]["by_hand"], true);
    assert_eq!(service.ask("POST", &again, &json!({}), 409)["error"]["code"], "conflict");

    let got = receiver.got("/hook?token=1");
    assert_eq!(got.len(), 5, "one request an attempt; redirects are not followed");
    assert!(receiver.got("/elsewhere").is_empty());
    let event = verify(&got[0], &endpoint);
    assert_eq!((&event["type"], &event["id"]), (&json!("call.ended"), &call["event_id"]));
    assert_eq!(event["data"]["object"]["summary"], "Asked for <b>Friday</b>.");
    assert_eq!(event["origin"]["source"], "voice");
    for again in &got {
        assert_eq!(again.body, got[0].body);
        verify(again, &endpoint);
    }
    // KEY-7
    assert!(!service.log().contains(endpoint["secret"].as_str().unwrap()));
}

// What is said of a call is not contradicted by what is added.
#[test]
fn a_call_took_what_its_times_say() {
    let service = Service::start(&[]);
    let (nine, later) = ("2026-03-01T09:00:00Z", "2026-03-01T09:05:30Z");
    for (said, times) in [
        (json!({ "started_at": nine }), json!([nine, "2026-03-01T09:01:00Z", 60])),
        (json!({ "started_at": nine, "ended_at": later }), json!([nine, later, 330])),
        (json!({ "answered_at": nine, "ended_at": later }), json!([nine, later, 330])),
        (
            json!({ "ended_at": later, "duration_seconds": 30 }),
            json!(["2026-03-01T09:05:00Z", later, 30]),
        ),
        (json!({ "ended_at": later }), json!(["2026-03-01T09:04:30Z", later, 60])),
        (json!({ "started_at": nine, "ended_at": null }), json!([nine, null, null])),
        (
            json!({ "started_at": nine, "ended_at": null, "duration_seconds": 7 }),
            json!([nine, null, 7]),
        ),
    ] {
        let call = service.ask("POST", &format!("{FJORD}/calls"), &said, 201);
        let found = ["started_at", "ended_at", "duration_seconds"].map(|field| &call[field]);
        assert_eq!(json!(found), times, "{said}");
    }
}

// EVT-4
#[test]
fn a_ping_says_that_it_is_a_test() {
    let (service, receiver) = (Service::start(&FAST), Receiver::start());
    let endpoint = service.endpoint(&receiver.url("/hook", &[Reply::Status(200)]));
    let sent = service.ping(&endpoint_path(&endpoint));
    assert_eq!(service.after_pending(&sent)["status"], "delivered");
    let message = &verify(&receiver.got("/hook")[0], &endpoint)["data"]["message"];
    assert!(message.as_str().is_some_and(|message| !message.is_empty()), "{message}");
}

// D-58: an attempt begins in memory. What becomes of its delivery meanwhile counts, and no second one begins beside it.
#[test]
fn an_attempt_in_flight_is_not_stored() {
    let (service, receiver) = (Service::start(&FAST), Receiver::start());
    let endpoint = service.hook(&receiver.url("/hook", &[Reply::Held(503), Reply::Status(204)]));
    let other = service.hook(&receiver.url("/other", &[Reply::Status(204)]));
    let sent = service.ping(&endpoint);
    eventually("it is in flight", || (receiver.got("/hook").len() == 1).then_some(()));
    let delivery = service.show(&sent);
    assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("waiting"), &json!([])));
    assert!(delivery["next_at"].is_string(), "{delivery}");

    service.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    assert_eq!(service.after_pending(&sent)["status"], "parked");
    service.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    service.ask("POST", &format!("{sent}/redeliver"), &json!({}), 202);
    let beside = service.ping(&other);
    assert_eq!(service.after_pending(&beside)["status"], "delivered");
    assert_eq!(receiver.got("/hook").len(), 1, "it waits for the attempt in flight");
    receiver.release();
    let delivered = service.after_pending(&sent);
    assert_eq!(outcomes(&delivered), ["503", "204"]);
    assert_eq!(receiver.got("/hook").len(), 2);
}

// DEL-5, DEL-10, D-51, D-52: what a receiver may do, what becomes of it, and why.
#[test]
fn receivers_of_every_kind() {
    let (service, receiver) = (Service::start(&FAST), Receiver::start());
    // The port of a connection is nobody else's, and nobody listens there.
    let held = connect(service.api());
    let refusing = format!("http://{}/", held.local_addr().unwrap());
    const MIB: usize = 1024 * 1024;
    let kinds = [
        (receiver.url("/endless", &[Reply::Endless]), "200", ""),
        (receiver.url("/stuck", &[Reply::Stuck(200)]), "200", ""),
        (receiver.url("/fields", &[Reply::Fields(204, 256, 400)]), "204", ""),
        (receiver.url("/long", &[Reply::Fields(204, 10, MIB / 10 - 100)]), "204", ""),
        (receiver.url("/more-fields", &[Reply::Fields(204, 257, 20)]), "reset", "head_too_large"),
        (receiver.url("/longer", &[Reply::Fields(204, 10, MIB / 9)]), "reset", "head_too_large"),
        (receiver.url("/garbage", &[Reply::Garbage]), "reset", "not_http"),
        (receiver.url("/close", &[Reply::Close]), "reset", "closed_early"),
        (receiver.url("/silent", &[Reply::Nothing]), "timeout", "no_response"),
        (receiver.url("/early", &[Reply::Status(103)]), "reset", ""),
        (refusing, "refused", ""),
        // Whether or not this machine has IPv6: it is not tried for ever as a fault of ours.
        ("http://[::1]:9/".to_owned(), "refused", ""),
    ];
    for (url, ..) in &kinds {
        service.endpoint(url);
    }
    let call = service.call();
    for ((url, expected, reason), sent) in kinds.iter().zip(call["deliveries"].as_array().unwrap())
    {
        let path = format!("/deliveries/{}", sent.as_str().unwrap());
        let tried = &service.after_attempts(&path, 1)["attempts"][0];
        assert_eq!(tried["outcome"], *expected, "{url}");
        if !reason.is_empty() {
            assert_eq!(tried["reason"], *reason, "{url}");
        }
        if url.ends_with("/fields") {
            let headers = tried["headers"]["text"].as_str().unwrap();
            assert!(headers.starts_with("x-field: yyy") && headers.len() <= 1024, "{headers}");
        }
        if url.ends_with("/stuck") {
            // D-52: the attempt was over with the head, though the body was listened to for a second.
            let closed_at = eventually("it is closed", || receiver.closed_at("/stuck"));
            let began_at = Timestamp::parse(tried["began_at"].as_str().unwrap()).unwrap();
            let took = Duration::from_millis(tried["took_ms"].as_u64().unwrap());
            let listened = closed_at.since(began_at.saturating_add(took));
            assert!(listened >= Duration::from_secs(1), "{listened:?}: {tried}");
        } else if *expected == "200" {
            assert_eq!(tried["response"]["text"].as_str().unwrap().len(), 1024);
            assert_eq!(tried["response"]["cut"], true);
        }
    }
}

// What comes next is the library's outlook, whatever the status alone would say.
#[test]
fn what_comes_next_is_shown() {
    let (service, receiver) = (Service::start(&FAST[..1]), Receiver::start());
    let endpoint = service.endpoint(&receiver.url("/hook", &[Reply::Status(500)]));
    let path = delivery_path(&service.call());
    let shown = service.after_attempts(&path, 1);
    let outlook = &shown["outlook"];
    assert_eq!((&outlook["is"], &outlook["number"]), (&json!("waiting"), &json!(2)));
    assert_eq!((&outlook["by_hand"], &outlook["due"]), (&json!(false), &shown["next_at"]));

    service.ask("POST", &format!("{}/pause", endpoint_path(&endpoint)), &json!({}), 200);
    let ended = service.after_pending(&path)["outlook"].clone();
    let refused = json!("the endpoint is disabled");
    assert_eq!((&ended["is"], &ended["not_redeliverable"]), (&json!("ended"), &refused));

    service.ask("POST", &format!("{}/enable", endpoint_path(&endpoint)), &json!({}), 200);
    let shown = service.show(&path);
    let created_at = Timestamp::parse(shown["event_created_at"].as_str().unwrap()).unwrap();
    let until = created_at.saturating_add(Duration::from_secs(30 * 86_400));
    assert_eq!(shown["outlook"]["redeliverable_until"], json!(until));
}

#[test]
fn a_timeout_is_scaled() {
    let flags = ["--allow-loopback-endpoints", "--timeout-scale", "0.02"];
    let (service, receiver) = (Service::start(&flags), Receiver::start());
    service.endpoint(&receiver.url("/silent", &[Reply::Nothing]));
    let sent = service.after_attempts(&delivery_path(&service.call()), 1);
    let attempt = &sent["attempts"][0];
    assert_eq!(attempt["outcome"], "timeout");
    let took = attempt["took_ms"].as_u64().unwrap();
    assert!((200..10_000).contains(&took), "{attempt}");
}

// D-59: at registration.
#[test]
fn endpoints_that_may_not_be_called() {
    let service = Service::start(&[]);
    let path = format!("{FJORD}/endpoints");
    for (url, message) in [
        ("http://hooks.example.com/", "url is not https"),
        ("http://localhost:3000/", "url is not https; --allow-loopback-endpoints accepts it"),
        ("https://127.0.0.1/", "url has a host that is not public"),
        ("https://2130706433/", "url has an address in disguise"),
        ("https://localhost/", "url has a host that is local"),
        ("https://user@hooks.example.com/", "url has a user name"),
        ("hooks", "url is not an absolute https url with a valid host"),
    ] {
        let refused = service.ask("POST", &path, &json!({ "url": url }), 400);
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.starts_with(message), "{url}: {said}");
        let is_loopback = url.contains("localhost") || url.contains("127.0.0.1");
        assert_eq!(said.contains("--allow"), is_loopback, "{url}: {said}");
    }
    // DEL-12
    let good = json!({ "url": "https://hooks.example.com/" });
    let refused = service.ask("POST", "/accounts/acct_no_plan/endpoints", &good, 403);
    assert_eq!(refused["error"]["code"], "not_in_plan");
}

// Sixty silent endpoints with twelve events each, all at once and before anything is known of them:
// they hold up each other, and nobody else.
#[test]
fn healthy_deliveries_go_on_among_many_silent_endpoints() {
    let slow = ["--allow-loopback-endpoints", "--timeout-scale", "2.5"];
    let (service, receiver) = (Service::start(&slow), Receiver::start());
    let silent = receiver.url("/silent", &[Reply::Nothing]);
    let good = receiver.url("/good", &[Reply::Status(204)]);
    (0..60).for_each(|_| drop(service.endpoint(&silent)));
    service.endpoint(&good);
    for _ in 0..12 {
        service.call();
    }
    // An attempt at a silent one takes 25 seconds: nothing was waited for that has ended.
    eventually("all of the healthy one's", || (receiver.got("/good").len() == 12).then_some(()));
    let log = service.log();
    assert!(!log.contains("outcome=timeout"), "{log}");
    assert!(receiver.got("/silent").len() >= 60);
}
