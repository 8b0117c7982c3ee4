//! Recovering a range of what an endpoint missed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use testing::receiver::{Receiver, Reply};
use testing::running::{FJORD, Service, eventually};

/// A service with an endpoint that was paused while so many events of two types happened.
pub(crate) fn after_a_pause(receiver: &Receiver, reply: Reply, events: usize) -> (Service, String) {
    // What is held is not to time out before the test lets go of it.
    let service = Service::start(&["--allow-loopback-endpoints", "--timeout-scale", "2.5"]);
    let endpoint = service.hook(&receiver.url("/hook", &[reply]));
    service.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    for number in 0..events {
        service.emit(if number % 3 == 0 { "note" } else { "other" });
    }
    let recover = format!("{endpoint}/recover");
    let refused = service.ask("POST", &recover, &json!({}), 409);
    assert_eq!(refused["error"]["message"], "the endpoint is disabled");
    service.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    (service, endpoint)
}

pub(crate) fn ended(service: &Service, recovery: &Value) -> Value {
    let path = format!("/recoveries/{}", recovery["id"].as_str().unwrap());
    eventually("it ends", || Some(service.show(&path)).filter(|it| it["status"] != "running"))
}

// DEL-10, D-56: counted before, each once, and nothing is left.
#[test]
fn all_that_was_missed_is_redelivered_once() {
    let receiver = Receiver::start();
    let (service, endpoint) = after_a_pause(&receiver, Reply::Status(204), 150);
    let recover = format!("{endpoint}/recover");
    let counted = service.ask("POST", &recover, &json!({ "dry_run": true }), 200);
    let by_type = json!({ "note": 50, "other": 100 });
    let expected = json!({ "dry_run": true, "count": 150, "more": false, "by_type": by_type });
    assert_eq!(counted, expected);
    assert!(receiver.got("/hook").is_empty(), "a dry run sends nothing");

    let notes = service.ask("POST", &recover, &json!({ "types": ["note"] }), 202);
    assert_eq!((&notes["status"], &notes["counted"]), (&json!("running"), &json!(50)));
    let notes = ended(&service, &notes);
    assert_eq!((&notes["status"], &notes["redelivered"]), (&json!("completed"), &json!(50)));
    let rest = service.ask("POST", &recover, &json!({}), 202);
    let rest = ended(&service, &rest);
    assert_eq!((&rest["counted"], &rest["redelivered"]), (&json!(100), &json!(100)));
    assert!(rest["ended_at"].is_string());

    eventually("all are sent", || (receiver.got("/hook").len() == 150).then_some(()));
    let got = receiver.got("/hook");
    let once: BTreeSet<_> = got.iter().map(|got| got.header("x-service-delivery")).collect();
    assert_eq!((got.len(), once.len()), (150, 150), "each once");
    let list = service.show(&format!("{FJORD}/recoveries"));
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    let none = service.ask("POST", &recover, &json!({ "dry_run": true }), 200);
    assert_eq!(none["count"], 0);
    service.logged_times("a recovery has started", 2);
    service.logged_times("a recovery has ended", 2);
}

// D-76, and what is wrong is named.
#[test]
fn a_recovery_that_cannot_be() {
    let receiver = Receiver::start();
    let (service, endpoint) = after_a_pause(&receiver, Reply::Held(204), 10);
    let recover = format!("{endpoint}/recover");
    for (asked, message) in [
        (json!({ "statuses": ["delivered"] }), "statuses[0]: not failed, gone, parked or skipped"),
        (json!({ "types": [7] }), "types[0]: expected a string"),
        (json!({ "types": ["a b"] }), "types[0]: expected 1 to 100 visible ASCII characters"),
        (json!({ "types": vec!["a"; 101] }), "types: expected at most 100 items"),
        (json!({ "statuses": vec!["gone"; 5] }), "statuses: expected at most 4 items"),
        (json!({ "from": "monday" }), "from: "),
        (json!({ "since": "monday" }), "since: unknown field"),
    ] {
        let refused = service.ask("POST", &recover, &asked, 400);
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.starts_with(message), "{asked}: {said}");
    }
    service.ask("GET", "/recoveries/rcv_9", &json!({}), 404);
    service.ask("POST", "/endpoints/whep_1/recover", &json!({}), 404);

    let running = service.ask("POST", &recover, &json!({}), 202);
    service.ask("PATCH", FJORD, &json!({ "plan": "starter" }), 200);
    receiver.release();
    assert_eq!(ended(&service, &running)["status"], "downgraded");
    let refused = service.ask("POST", &recover, &json!({}), 403);
    assert_eq!(refused["error"]["code"], "not_in_plan");
}
