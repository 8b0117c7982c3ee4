//! What owners are told, and recoveries, over senders that start and end.

use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::eventually;
use crate::support::service::Service;

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--time-scale", "0.001"];

/// The kinds of what the owner was told, oldest first, and the latest message.
fn told(service: &Service) -> (Vec<String>, Value) {
    let shown = service.api.ask("GET", "/accounts/acct_1/alerts", &json!({}), 200);
    let alerts = shown["data"].as_array().unwrap();
    let kinds = alerts.iter().rev().map(|alert| alert["kind"].as_str().unwrap().to_owned());
    (kinds.collect(), alerts.first().map_or(Value::Null, |alert| alert["message"].clone()))
}

#[track_caller]
fn is_told(service: &Service, kinds: &[&str], message: &str) {
    eventually(message, || {
        let (told, latest) = told(service);
        (told == kinds && latest == message).then_some(())
    });
}

// Each fact once, whichever of the senders it comes from.
#[tokio::test(flavor = "multi_thread")]
async fn owners_are_told_of_an_endpoint_that_stays_disabled() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/gone", &[Reply::Status(410)]);
    let mut sender = service.world.start("sender", &SENDER);
    service.ping(&endpoint);
    is_told(&service, &["disabled"], "disabled: it answered 410; it has missed 1 so far");
    service.api.ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
    sender.ask_to_end();
    assert!(sender.ended().success());

    for (days, kinds, message) in [
        (0, 1, "disabled: it answered 410; it has missed 1 so far"),
        (1, 2, "disabled for 1 day: it answered 410; it has missed 2 so far"),
        (2, 2, "disabled for 1 day: it answered 410; it has missed 2 so far"),
        (3, 3, "disabled for 3 days: it answered 410; it has missed 2 so far"),
        (9, 3, "disabled for 3 days: it answered 410; it has missed 2 so far"),
    ] {
        let since = format!("UPDATE endpoints SET since = now() - interval '{days} days 1 minute'");
        service.run(&since).await;
        // Senders look when they start.
        let senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
        let expected = ["disabled", "still_disabled", "still_disabled"];
        is_told(&service, &expected[..kinds], message);
        for mut sender in senders {
            sender.ask_to_end();
            assert!(sender.ended().success());
        }
        is_told(&service, &expected[..kinds], message);
    }
}

// DEL-10, D-56: a step is stored whole or not at all, so each is redelivered once.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_goes_on_where_a_killed_sender_was() {
    const EVENTS: i64 = 200;
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    service.api.ask("POST", &format!("{endpoint}/pause"), &json!({}), 200);
    for _ in 0..EVENTS {
        let event = json!({ "type": "note", "data": {} });
        service.api.ask("POST", "/accounts/acct_1/events", &event, 201);
    }
    service.api.ask("POST", &format!("{endpoint}/enable"), &json!({}), 200);
    let recover = format!("{endpoint}/recover");
    let started = service.api.ask("POST", &recover, &json!({}), 202);
    assert_eq!(started["counted"], EVENTS);
    let recovery = format!("/recoveries/{}", started["id"].as_str().unwrap());
    let shown = || service.api.ask("GET", &recovery, &json!({}), 200);
    for part in [EVENTS / 8, EVENTS / 4] {
        // So slowly that there are seconds in which to kill it before all is redelivered.
        let slowly = [&SENDER[..], &["--endpoint-rate", "20"]].concat();
        let _sender = service.world.start("sender", &slowly);
        eventually("a part", || (shown()["redelivered"].as_i64() >= Some(part)).then_some(()));
        assert_eq!(shown()["status"], "running");
        service.api.ask("POST", &recover, &json!({}), 409);
        // Killed here, with what it was sending.
    }
    let _senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
    let ended =
        eventually("it ends", || Some(shown()).filter(|shown| shown["status"] != "running"));
    assert_eq!(
        (&ended["status"], &ended["redelivered"], &ended["left_out"]),
        (&json!("completed"), &json!(EVENTS), &json!(0)),
    );
    // What a killed sender had sent and not stored is sent again, and counted once: an attempt that
    // was taken over, for its sender was slow, is late.
    service.becomes("SELECT count(*) FROM deliveries", 0).await;
    let once = "SELECT count(*) FROM (SELECT delivery FROM attempts
        WHERE manual AND NOT late GROUP BY delivery HAVING count(*) = 1) AS once";
    service.becomes(once, EVENTS).await;
    let counted = service.api.ask("POST", &recover, &json!({ "dry_run": true }), 200);
    assert_eq!(counted["count"], 0);
}
