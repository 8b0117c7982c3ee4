//! What owners are told, and recoveries, over senders that start and end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Running;
use crate::support::receiver::Reply;
use crate::support::running::{Told, eventually, request};
use crate::support::service::{DELIVERED, PENDING, Service};

/// The kinds of what the owner was told, oldest first, and the latest message.
fn told(service: &Service) -> (Vec<String>, Value) {
    let shown = service.show("/accounts/acct_1/alerts");
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
    let sender = service.quick_sender();
    service.ping(&endpoint);
    is_told(
        &service,
        &["disabled"],
        "disabled: the endpoint answered 410; deliveries missed so far: 1",
    );
    service.post("/accounts/acct_1/calls", 201);
    sender.end();

    for (days, kinds, message) in [
        (1, 2, "disabled for 1 day: the endpoint answered 410; deliveries missed so far: 2"),
        (2, 2, "disabled for 1 day: the endpoint answered 410; deliveries missed so far: 2"),
        (3, 3, "disabled for 3 days: the endpoint answered 410; deliveries missed so far: 2"),
    ] {
        let since = format!("UPDATE endpoints SET since = now() - interval '{days} days 1 minute'");
        service.run(&since).await;
        // Senders look when they start.
        let senders = [(); 2].map(|()| service.quick_sender());
        let expected = ["disabled", "still_disabled", "still_disabled"];
        is_told(&service, &expected[..kinds], message);
        senders.iter().for_each(Running::end);
        is_told(&service, &expected[..kinds], message);
    }
}

/// Has each endpoint with an id like this miss so many events.
async fn miss(service: &Service, endpoint: &str, events: i64, status: &str) {
    let fill = include_str!("../missed.sql")
        .replace("{events}", &events.to_string())
        .replace("{endpoint}", endpoint.trim_start_matches("/endpoints/"))
        .replace("{status}", status);
    service.run(&fill).await;
    service.run("ANALYZE ended, events").await;
}

/// Waits until a recovery is as it should be.
#[track_caller]
fn becomes(service: &Service, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    eventually("the recovery is as it should be", || Some(service.show(path)).filter(&is))
}

// D-54, D-56: however much was missed, each answer comes at once and says what it did, and the count is
// exact later. `RECOVERY_ROWS=1000000` for more.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_any_size_is_recovered() {
    let events = std::env::var("RECOVERY_ROWS").map_or(300_000, |rows| rows.parse().unwrap());
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    service.post(&format!("{endpoint}/pause"), 200);
    miss(&service, &endpoint, events, "skipped").await;
    let timed = |path: &str, body: Value, status| {
        let began = Instant::now();
        let shown = service.api.ask("POST", &format!("{endpoint}{path}"), &body, status);
        println!("{path} {body}: {} ms", began.elapsed().as_millis());
        (shown, began.elapsed())
    };
    let (enabled, _) = timed("/enable", json!({}), 200);
    assert_eq!((&enabled["status"], &enabled["missed_more"]), (&json!("active"), &json!(true)));
    assert_eq!(enabled["missed_deliveries"].as_array().unwrap().len(), 1_000);
    assert!((1_000..events).contains(&enabled["missed_count"].as_i64().unwrap()));
    let (counted, _) = timed("/recover", json!({ "dry_run": true }), 200);
    assert_eq!(counted["more"], true);
    let (started, took) = timed("/recover", json!({}), 202);
    assert_eq!(started["more"], true);
    assert!((1_000..events).contains(&started["counted"].as_i64().unwrap()), "{started}");
    // 200 ms on a machine that does nothing else.
    assert!(took < Duration::from_secs(15), "{took:?}");

    let _sender = service.quick_sender();
    let recovery = format!("/recoveries/{}", started["id"].as_str().unwrap());
    let ask = |action: &str, status| service.post(&format!("{recovery}/{action}"), status);
    // A minute at most for each hundred thousand.
    let mut so_far = 0;
    let counted = loop {
        let more = Some(so_far + 100_000);
        let shown = becomes(&service, &recovery, |shown| {
            shown["more"] == false || shown["counted"].as_i64() > more
        });
        so_far = shown["counted"].as_i64().unwrap();
        if shown["more"] == false {
            break shown;
        }
    };
    assert_eq!(counted["counted"], events);

    // It rests with what is under way, and goes on.
    assert_eq!(ask("pause", 200)["paused"], true);
    service.becomes(PENDING, 0).await;
    let rests = service.show(&recovery);
    let redelivered = rests["redelivered"].as_i64().unwrap();
    assert!(redelivered > 0, "{rests}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(service.show(&recovery), rests);
    service.post(&format!("{endpoint}/recover"), 409);
    assert_eq!(ask("continue", 200)["paused"], false);
    becomes(&service, &recovery, |shown| shown["redelivered"].as_i64() > Some(redelivered + 100));

    assert_eq!(ask("cancel", 200)["status"], "cancelled");
    assert_eq!(ask("pause", 409)["error"]["message"], "the recovery has ended");
    service.becomes(PENDING, 0).await;
    let ended = service.show(&recovery)["redelivered"].as_i64().unwrap();
    assert_eq!(service.count(DELIVERED).await, ended);
    assert_eq!(service.receiver.got("/hook").len(), usize::try_from(ended).unwrap());
}

// The alert of an endpoint that has missed very much says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_counts_up_to_a_bound() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/gone", &[Reply::Status(410)]);
    service.post(&format!("{endpoint}/pause"), 200);
    miss(&service, &endpoint, 101_000, "skipped").await;
    service
        .run("UPDATE endpoints SET disabled = 'gone', since = now() - interval '25 hours'")
        .await;
    let _sender = service.quick_sender();
    let message = "disabled for 1 day: the endpoint answered 410; more than 100000 deliveries were missed so far";
    is_told(&service, &["still_disabled"], message);
}

// What is recovered may be few of many: a step looks at so many and no more, and goes on behind them.
#[tokio::test(flavor = "multi_thread")]
async fn few_of_many_are_recovered() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    miss(&service, &endpoint, 30_000, "failed").await;
    let asked = json!({ "types": ["note"] });
    let started = service.api.ask("POST", &format!("{endpoint}/recover"), &asked, 202);
    let _sender = service.quick_sender();
    let recovery = format!("/recoveries/{}", started["id"].as_str().unwrap());
    let ended = becomes(&service, &recovery, |shown| shown["status"] != "running");
    assert_eq!((&ended["status"], &ended["redelivered"]), (&json!("completed"), &json!(3)));
    assert_eq!((&ended["counted"], &ended["left_out"]), (&json!(3), &json!(0)));
    service.becomes(DELIVERED, 3).await;
    assert_eq!(service.receiver.got("/hook").len(), 3);
}

// After an outage of ours: each endpoint that has missed something, by one action or one command.
#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_are_recovered_at_once() {
    let service = Service::new().await;
    for nth in 0..110 {
        // More than a page of them, and of several accounts.
        let account = format!("acct_{}", 1 + nth % 4);
        service.endpoint_of(&account, &format!("/{nth}"), &[Reply::Status(204)]);
    }
    miss(&service, "%", 5, "skipped").await;
    service.endpoint("/nothing", &[Reply::Status(204)]);
    let paused = service.show("/accounts/acct_2/endpoints");
    let paused = format!("/endpoints/{}", paused["data"][0]["id"].as_str().unwrap());
    service.post(&format!("{paused}/pause"), 200);

    let page = service.post("/accounts/acct_2/recover", 202);
    assert_eq!((page["data"].as_array().unwrap().len(), &page["next"]), (27, &json!(null)));
    service.post("/accounts/acct_9/recover", 404);
    // A page that takes longer than a caller waits is 503: whoever asks again finds what runs already.
    let started = |after: Value| {
        eventually("a page of recoveries", || {
            let body = after.to_string();
            let page = request(service.api.dashboard(), "POST", "/recoveries", "", body.as_bytes());
            assert!([202, 503].contains(&page.status), "{}", page.text());
            (page.status == 202).then(|| page.json())
        })
    };
    let first = started(json!({}));
    let rest = started(json!({ "after": first["next"] }));
    assert_eq!(rest["next"], json!(null));
    service.becomes("SELECT count(*) FROM recoveries", 110 - 1).await;

    let world = &service.world;
    assert_eq!(world.done(&["recover", "--all-accounts"]).stdout, "{\"recoveries\":0}\n");
    assert_eq!(world.run(&["recover", "--account", "acct_9"]).code, Some(1));

    let _senders = [(); 2].map(|()| service.quick_sender());
    service.becomes("SELECT count(*) FROM recoveries WHERE ended_at IS NULL", 0).await;
    service.becomes(DELIVERED, 109 * 5).await;
    service.post(&format!("{paused}/enable"), 200);
    let one = world.done(&["recover", "--account", "acct_2"]).stdout;
    assert_eq!(one, "{\"recoveries\":1}\n");
    service.becomes(DELIVERED, 110 * 5).await;
}

// Beside this version runs a later one.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_keeps_no_other_endpoint_from_its_recovery() {
    let service = Service::new().await;
    let strange = service.endpoint("/strange", &[Reply::Status(204)]);
    for account in 1..=3 {
        service.endpoint_of(&format!("acct_{account}"), "/one", &[Reply::Status(204)]);
    }
    miss(&service, "%", 2, "skipped").await;
    let id = strange.trim_start_matches("/endpoints/");
    let later = format!(
        "UPDATE endpoints SET disabled = 'later' WHERE id = '{id}';
         UPDATE accounts SET plan = 'later' WHERE id = 'acct_2'"
    );
    service.run(&later).await;
    let Told { stdout: out, stderr: log, .. } = service.world.done(&["recover", "--all-accounts"]);
    assert_eq!(out, "{\"recoveries\":2}\n");
    assert_eq!(log.matches("a row of a list cannot be read").count(), 2, "{log}");
    assert!(log.contains(&format!("endpoint={id}")), "{log}");
}

// After a failover many owners are due at once, and each is told in the first round.
#[tokio::test(flavor = "multi_thread")]
async fn reminders_go_through_all_that_are_due() {
    let service = Service::new().await;
    service
        .run(
            "INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
                disabled, since, failures, generation, version, first_failures, first_failed_at)
             SELECT 'whep_' || n, 'acct_1', 5, now() - interval '9 days', 'https://a.example/', false,
                '', 'failing', now() - interval '2 days', 20, 1, 1, 1, now() - interval '3 days'
             FROM generate_series(1, 250) AS n",
        )
        .await;
    // None of these can be read by this version, and none keeps another from its turn.
    service.run("UPDATE endpoints SET first_failures = -1 WHERE number < 150").await;
    let began = Instant::now();
    let _sender = service.quick_sender();
    let readable = service.count("SELECT count(*) FROM endpoints WHERE first_failures > 0").await;
    assert!(readable >= 100, "{readable}");
    service.becomes("SELECT count(*) FROM alerts", readable).await;
    assert!(began.elapsed() < Duration::from_secs(50), "the next round");
    service.becomes("SELECT count(*) FROM endpoints WHERE reminders = 1", readable).await;
}
