//! What operators set to stop sending or to slow it down, over senders that start and end.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::Running;
use crate::support::receiver::Reply;
use crate::support::running::eventually;
use crate::support::service::{DELIVERED, PENDING, Service};

/// Waits until a loop of a sender has looked at what is set: a look may have begun before, so until two
/// have succeeded.
pub(crate) fn has_looked(sender: &Running, name: &str) {
    for _ in 0..2 {
        let began = Instant::now();
        eventually(&format!("a look of {name}"), || {
            let age = sender.value(&format!("loop_age_seconds{{loop=\"{name}\"}}"))?;
            (age < began.elapsed().as_secs_f64()).then_some(())
        });
    }
}

#[track_caller]
fn set(service: &Service, asked: Value) -> String {
    let set = service.api.ask("POST", "/levers", &asked, 201);
    format!("/levers/{}/undo", set["id"].as_str().unwrap())
}

#[track_caller]
fn undo(service: &Service, path: &str) {
    service.post(path, 200);
    service.post(path, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_waits_for_its_end_and_nothing_else_does() {
    let service = Service::new().await;
    let got = |path| service.receiver.got(path).len();
    let paused = service.endpoint("/paused", &[Reply::Status(204)]);
    let other = service.endpoint_of("acct_2", "/other", &[Reply::Status(204)]);
    let pause = set(&service, json!({ "account_id": "acct_1", "per_second": 0 }));
    // Also by a sender that starts later.
    for round in 1..=2 {
        let sender = service.sender();
        for _ in 0..10 {
            service.ping(&paused);
            service.ping(&other);
        }
        service.becomes(DELIVERED, 10 * round).await;
        sender.shows(&[("sender_limited", 10.0 * round as f64)]);
        assert_eq!((got("/paused"), got("/other")), (0, 10 * round as usize));
    }
    // The log of a sender says why nothing is sent, and says it once.
    let sender = service.sender();
    let held = "a lever limits sending lever=lvr_1 on=\"account acct_1\" per_second=0";
    sender.logged(held);
    for _ in 0..2 {
        has_looked(&sender, "levers");
    }
    assert_eq!(sender.log().matches("a lever limits sending").count(), 1, "{}", sender.log());
    let held = [("sending_paused", 1.0), ("sender_held", 20.0), ("sender_oldest_due_seconds", 0.0)];
    service.api.shows(&held);
    undo(&service, &pause);
    service.becomes(DELIVERED, 40).await;
    sender.logged("a lever is undone lever=lvr_1");
    assert_eq!((got("/paused"), got("/other")), (20, 20), "each once");

    service.api.shows(&[("sending_paused", 0.0)]);
    let said = r#"by="this machine" action=lever.set on="account acct_1" after="#;
    service.api.logged(said);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sets_a_lever_is_told_what_stands() {
    let service = Service::new().await;
    for (asked, refused) in [
        (json!({ "account_id": "acct_1" }), 400),
        (json!({ "account_id": "acct_1", "per_second": 10_001 }), 400),
        (json!({ "account_id": "acct_1", "endpoint_id": "whep_1", "per_second": 1 }), 400),
        (json!({ "account_id": "acct_9", "per_second": 1 }), 404),
        (json!({ "endpoint_id": "whep_9", "per_second": 1 }), 404),
    ] {
        service.api.ask("POST", "/levers", &asked, refused);
    }
    // Two people act at once: the second is told what stands, and takes nothing back unknowingly.
    let ask = |per_second: u32, instead_of: &Value, status| {
        let asked =
            json!({ "account_id": "acct_1", "per_second": per_second, "instead_of": instead_of });
        service.api.ask("POST", "/levers", &asked, status)
    };
    let paused = ask(0, &Value::Null, 201);
    let refused = ask(4, &Value::Null, 409);
    let [id, set_at] = ["id", "set_at"].map(|name| paused[name].as_str().unwrap());
    let message = refused["error"]["message"].as_str().unwrap();
    for words in [id, "account acct_1 is paused", "this machine", set_at] {
        assert!(message.contains(words), "{words}: {refused}");
    }
    ask(4, &json!("lvr_999"), 409);
    assert_eq!(ask(0, &Value::Null, 201), paused, "the same once more changes nothing");
    let throttled = ask(4, &paused["id"], 201);
    assert_ne!(throttled["id"], paused["id"]);
    ask(9, &paused["id"], 409);
    service.api.ask("POST", "/levers", &json!({ "per_second": 9, "instead_of": id }), 409);
    service.api.shows(&[("sending_throttled", 1.0)]);
}

/// A lever of what is gone would hold back nothing, and count as a pause that somebody has to undo.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_deleted_has_a_lever_and_the_journal_says_where_one_went() {
    let service = Service::new().await;
    let by_owner = service.endpoint("/one", &[Reply::Status(204)]);
    let with_account = service.endpoint_of("acct_2", "/two", &[Reply::Status(204)]);
    let [by_owner, with_account] =
        [&by_owner, &with_account].map(|path| path.rsplit('/').next().unwrap());
    let held = [
        json!({ "endpoint_id": by_owner, "per_second": 0 }),
        json!({ "endpoint_id": with_account, "per_second": 0 }),
        json!({ "account_id": "acct_2", "per_second": 3 }),
    ];
    for asked in &held {
        set(&service, asked.clone());
    }
    set(&service, json!({ "account_id": "acct_3", "per_second": 3 }));
    service.api.ask("DELETE", &format!("/endpoints/{by_owner}"), &json!({}), 200);
    service.world.done(&["erase", "--account", "acct_2", "--whole-account", "--as", "eve"]);

    for asked in held {
        service.api.ask("POST", "/levers", &asked, 404);
    }
    let left = service.show("/levers");
    assert_eq!(left["levers"].as_array().unwrap().len(), 1, "{left}");
    service.api.shows(&[("sending_paused", 0.0)]);
    let journal = service.show("/journal");
    let rows = journal["data"].as_array().unwrap().iter();
    let undone = rows.filter(|row| row["action"] == "lever.undone");
    let of = |row: &Value| {
        ["by", "account_id", "target"].map(|name| row[name].as_str().unwrap().to_owned())
    };
    let mut undone: Vec<_> = undone.map(of).collect();
    undone[1..].sort();
    let endpoint = |id| format!("endpoint {id}");
    assert_eq!(
        undone,
        [
            ["this machine", "acct_1", &endpoint(by_owner)],
            ["eve", "acct_2", "account acct_2"],
            ["eve", "acct_2", &endpoint(with_account)],
        ]
    );
}

// D-56: what was cancelled can be recovered.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_of_a_type_is_cancelled_in_steps() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let other = service.endpoint_of("acct_2", "/other", &[Reply::Status(204)]);
    for _ in 0..3 {
        service.ping(&endpoint);
        service.ping(&other);
        service.post("/accounts/acct_1/calls", 201);
    }
    let pending = service.count(PENDING).await;
    let cancel =
        |asked: Value, status| service.api.ask("POST", "/accounts/acct_1/cancel", &asked, status);
    cancel(json!({}), 400);
    cancel(json!({ "type": "ping", "after": "x" }), 400);
    let first = cancel(json!({ "type": "ping" }), 200);
    assert_eq!(first["cancelled"], 3);
    let last = cancel(json!({ "type": "ping", "after": first["next"] }), 200);
    assert_eq!(last, json!({ "cancelled": 0, "next": null }));
    assert_eq!(cancel(json!({ "type": "ping" }), 200)["cancelled"], 0, "it can be repeated");
    let _sender = service.sender();
    service.becomes(DELIVERED, pending - 3).await;
    let pings = || {
        let got = service.receiver.got("/hook");
        got.iter().filter(|got| got.header("x-service-event") == "ping").count()
    };
    assert_eq!((pings(), service.receiver.got("/other").len()), (0, 3));
    let recover = json!({ "types": ["ping"] });
    service.api.ask("POST", &format!("{endpoint}/recover"), &recover, 202);
    service.becomes(DELIVERED, pending).await;
    assert_eq!(pings(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_senders_name_leads_to_its_process_and_back() {
    let service = Service::new().await;
    let senders = [(); 2].map(|()| service.sender());
    let listed = eventually("each has its share", || {
        let shown = service.show("/levers");
        let rows = shown["senders"].as_array().unwrap().clone();
        let has = |row: &Value| row["shards"].as_array().unwrap().len() == 32;
        (rows.len() == 2 && rows.iter().all(has)).then_some(rows)
    });
    for sender in &senders {
        let pid = json!(sender.id());
        let row = listed.iter().find(|row| row["pid"] == pid).unwrap();
        assert!((0..=4_000).contains(&row["lease_ms"].as_u64().unwrap()), "{row}");
        let (id, host) = (row["id"].as_str().unwrap(), row["host"].as_str().unwrap());
        sender.shows(&[(&format!("sender_info{{sender=\"{id}\"}}"), 1.0)]);
        let log = sender.log();
        let started = log.lines().find(|line| line.contains(" started ")).unwrap();
        for told in [format!("sender={id}"), format!("host={host}"), format!("pid={pid}")] {
            assert!(started.contains(&told), "{told}: {started}");
        }
    }
}
