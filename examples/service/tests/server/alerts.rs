//! What an owner is told, and when: each fact once.

use serde_json::{Value, json};

use testing::receiver::{Receiver, Reply};
use testing::running::{FJORD, Service, eventually};

fn alerts(service: &Service) -> Vec<Value> {
    let shown = service.show(&format!("{FJORD}/alerts"));
    let mut alerts = shown["data"].as_array().unwrap().clone();
    alerts.reverse();
    alerts
}

fn kinds(service: &Service) -> Vec<String> {
    alerts(service).iter().map(|alert| alert["kind"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn told(service: &Service, expected: &[&str]) {
    eventually(&format!("{expected:?}"), || (kinds(service) == expected).then_some(()));
}

/// Moves the service's clock, with all attempts that are due until then.
fn pass(service: &Service, seconds: u64) {
    service.ask("POST", "/clock", &json!({ "advance_seconds": seconds }), 200);
}

// Suspect long before a delivery has failed for good; one 2xx ends it.
#[test]
fn an_early_sign_and_its_end() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let bad = [Reply::Status(503); 10];
    let replies = [bad.as_slice(), &[Reply::Status(204)]].concat();
    let endpoint = service.hook(&receiver.url("/hook", &replies));
    let shown = || service.show(&endpoint);
    let sent = |count: usize| {
        service.ping(&endpoint);
        eventually("it is sent", || (receiver.got("/hook").len() >= count).then_some(()));
    };
    // Five first attempts that fail, over a minute: what was tried again in it failed as well.
    sent(1);
    assert_eq!(shown()["suspect_since"], Value::Null);
    (2..=4).for_each(sent);
    assert!(kinds(&service).is_empty());
    pass(&service, 61);
    assert_eq!(receiver.got("/hook").len(), 8, "four were tried again");
    sent(9);
    told(&service, &["suspect"]);
    assert!(shown()["suspect_since"].is_string());
    sent(10);
    sent(11);
    told(&service, &["suspect", "recovered"]);
    assert_eq!(shown()["suspect_since"], Value::Null);
    assert_eq!(shown()["consecutive_failures"], 0);
    service.logged_times("the first attempts of several deliveries", 1);
}

// Disabled with what is missed, and again after one day and three.
#[test]
fn an_endpoint_that_stays_disabled() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    service.endpoint(&url);
    service.call();
    told(&service, &["disabled"]);
    let message = alerts(&service)[0]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "disabled: it answered 410; it has missed 1 so far");
    service.call();
    pass(&service, 86_401);
    told(&service, &["disabled", "still_disabled"]);
    pass(&service, 86_400);
    told(&service, &["disabled", "still_disabled"]);
    pass(&service, 86_400);
    told(&service, &["disabled", "still_disabled", "still_disabled"]);
    let last = alerts(&service).pop().unwrap();
    assert_eq!(last["message"], "disabled for 3 days: it answered 410; it has missed 2 so far");
    assert_eq!(last["url"], url);
    service.logged_times(" disabled: gone;", 1);
    service.logged_times(" disabled for ", 2);
}
