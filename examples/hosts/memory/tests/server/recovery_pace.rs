//! How many redeliveries are made at once, and which endpoints this host begins with. The host over a database counts
//! nothing before it begins: its tests are its own.

use serde_json::json;

use testing::receiver::{Receiver, Reply};
use testing::running::{FJORD, eventually};

use crate::recovery::{after_a_pause, ended};

#[test]
fn a_recovery_is_paced_and_cancelled() {
    let receiver = Receiver::start();
    let (service, endpoint) = after_a_pause(&receiver, Reply::Held(204), 100);
    let recover = format!("{endpoint}/recover");
    let started = service.ask("POST", &recover, &json!({}), 202);
    eventually("a few are sent", || (receiver.got("/hook").len() == 6).then_some(()));
    let second = service.ask("POST", &recover, &json!({}), 409);
    assert_eq!(second["error"]["message"], "a recovery of this endpoint is already running");

    // A quarter of its limit is left for what is new.
    let ping = service.ping(&endpoint);
    eventually("the ping is sent", || (receiver.got("/hook").len() == 7).then_some(()));

    let cancel = format!("/recoveries/{}/cancel", started["id"].as_str().unwrap());
    let cancelled = service.ask("POST", &cancel, &json!({}), 200);
    let (status, redelivered) = (&cancelled["status"], &cancelled["redelivered"]);
    assert_eq!((status, redelivered), (&json!("cancelled"), &json!(64)));
    assert_eq!(service.ask("POST", &cancel, &json!({}), 200), cancelled, "once");
    receiver.release();
    assert_eq!(service.after_pending(&ping)["status"], "delivered");
    let counted = service.ask("POST", &recover, &json!({ "dry_run": true }), 200);
    assert_eq!(counted["count"], 36, "what was not begun is still missed");
}

#[test]
fn a_recovery_rests_and_goes_on() {
    let receiver = Receiver::start();
    let (service, endpoint) = after_a_pause(&receiver, Reply::Held(204), 100);
    let started = service.ask("POST", &format!("{endpoint}/recover"), &json!({}), 202);
    assert_eq!((&started["paused"], &started["more"]), (&json!(false), &json!(false)));
    let recovery = format!("/recoveries/{}", started["id"].as_str().unwrap());
    eventually("a few are sent", || (receiver.got("/hook").len() == 6).then_some(()));
    let paused = service.ask("POST", &format!("{recovery}/pause"), &json!({}), 200);
    assert_eq!((&paused["status"], &paused["paused"]), (&json!("running"), &json!(true)));
    receiver.release();
    let ping = service.ping(&endpoint);
    assert_eq!(service.after_pending(&ping)["status"], "delivered");
    eventually("what was under way, and the ping", || {
        (receiver.got("/hook").len() == 65).then_some(())
    });
    assert_eq!(service.show(&recovery)["redelivered"], 64);

    service.ask("POST", &format!("{recovery}/continue"), &json!({}), 200);
    assert_eq!(ended(&service, &started)["redelivered"], 100);
    for action in ["pause", "continue"] {
        let refused = service.ask("POST", &format!("{recovery}/{action}"), &json!({}), 409);
        assert_eq!(refused["error"]["message"], "the recovery has ended", "{action}");
    }
}

// After an outage of ours: each endpoint that has missed something, by one action.
#[test]
fn many_endpoints_are_recovered_at_once() {
    let receiver = Receiver::start();
    let (service, _) = after_a_pause(&receiver, Reply::Status(204), 0);
    let hooks =
        ["/a", "/b", "/c"].map(|path| service.hook(&receiver.url(path, &[Reply::Status(204)])));
    for hook in &hooks {
        service.ask("POST", &format!("{hook}/pause"), &json!({}), 200);
    }
    (0..5).for_each(|_| _ = service.emit("note"));
    // One that is disabled is left alone, and so are those that have missed nothing.
    for hook in &hooks[..2] {
        let enabled = service.ask("POST", &format!("{hook}/enable"), &json!({}), 200);
        let missed = (&enabled["missed_count"], &enabled["missed_more"]);
        assert_eq!(missed, (&json!(5), &json!(false)));
    }
    service.ask("POST", "/accounts/acct_nobody/recover", &json!({}), 404);
    let page = service.ask("POST", &format!("{FJORD}/recover"), &json!({ "types": ["note"] }), 202);
    assert_eq!((page["data"].as_array().unwrap().len(), &page["next"]), (2, &json!(null)));
    for started in page["data"].as_array().unwrap() {
        assert_eq!(ended(&service, started)["redelivered"], 5);
    }
    service.ask("POST", &format!("{}/enable", hooks[2]), &json!({}), 200);
    let all = service.ask("POST", "/recoveries", &json!({}), 202);
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    service.ask("POST", "/recoveries", &json!({ "after": "x" }), 400);
}
