//! What one tenant, one page or one statement may do to the rest: nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use private_server::Settings;
use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::request;
use crate::support::service::Service;
use crate::support::{KEY, data};

// A page of the dashboard that takes longer than it may: people who ask for it again and again get no
// answer, and customers of the public API get theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_page_of_the_dashboard_refuses_no_customer() {
    let service = Service::new().await;
    assert_eq!(service.api.get("/v1/account").status, 200);
    // The statement of the page waits, as one over a million rows works.
    let held = service.world.held("LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE").await;

    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut refused = Vec::new();
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let path = "/accounts/acct_1/overview";
                    let page = request(service.api.dashboard(), "GET", path, "", b"");
                    assert_eq!(page.status, 503, "{}", page.text());
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for n in 0..50 {
            let began = Instant::now();
            let answer = service.api.get("/v1/account");
            if answer.status != 200 {
                refused.push(format!("request {n}: {} {}", answer.status, answer.text()));
            }
            thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(refused.is_empty(), "{} of 50: {refused:#?}", refused.len());
    assert!(asked.into_inner() >= 16, "the page was asked for");

    // The server does not work on for who has gone.
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'call-assistant' AND wait_event_type = 'Lock'";
    service.becomes(waiting, 0).await;
    held.batch_execute("ROLLBACK").await.unwrap();
    service.show("/accounts/acct_1/overview");
}

// Requests that are looked up in one statement: a row that this version cannot read is a failure for who sent its
// key or asked for it, and for nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_refuses_its_own_caller() {
    let mut accounts = data(1);
    let bad_key = KEY.replace("0123", "4567");
    let bad = json!({ "id": "acct_2", "timezone": "UTC",
        "keys": [{ "id": "cred_2", "name": "two", "secret": bad_key }] });
    let call_key = KEY.replace("0123", "cdef");
    let mut bad_call = data(2)["accounts"][0].take();
    bad_call["id"] = json!("acct_3");
    bad_call["keys"] = json!([{ "id": "cred_3", "name": "three", "secret": call_key }]);
    accounts["accounts"].as_array_mut().unwrap().extend([bad, bad_call]);
    let service = Service::of(&accounts, Settings::default()).await;
    let sql = "UPDATE accounts SET plan = 'of a later version' WHERE id = 'acct_2';
        UPDATE calls SET body = '{}' WHERE account_id = 'acct_3' AND id = 'call_0'";
    service.run(sql).await;

    let nobody = KEY.replace("0123", "89ab");
    let (page, long_page) = ("/v1/calls?limit=1", "/v1/calls?limit=100");
    thread::scope(|scope| {
        for _ in 0..4 {
            for (key, path, status) in [
                (KEY, page, 200),
                (KEY, long_page, 200),
                (KEY, "/v1/calls/call_0", 200),
                (KEY, "/v1/calls/call_1", 404),
                (&bad_key, page, 500),
                (&nobody, page, 401),
                (&call_key, page, 500),
                (&call_key, long_page, 500),
                (&call_key, "/v1/calls/call_0", 500),
                (&call_key, "/v1/calls/call_1", 200),
            ] {
                let api = service.api.api();
                scope.spawn(move || {
                    for n in 0..25 {
                        let authorization = format!("Authorization: Bearer {key}\r\n");
                        let answer = request(api, "GET", path, &authorization, b"");
                        let what = format!("request {n} for {path}: {}", answer.text());
                        assert_eq!(answer.status, status, "{what}");
                    }
                });
            }
        }
    });
}

// In a list, too: of such a row its id is shown, and all of the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_hides_no_other() {
    let service = Service::new().await;
    let ask = |method: &str, path: &str, body: Value, status| {
        service.api.ask(method, &format!("/accounts/acct_1{path}"), &body, status)
    };
    for name in ["one", "two"] {
        ask("POST", "/keys", json!({ "name": name, "mode": "live", "scopes": [] }), 201);
        ask("POST", "/calls", json!({ "id": name }), 201);
    }
    for name in ["one", "two"] {
        let endpoint = service.endpoint(&format!("/{name}"), &[Reply::Status(204)]);
        service.post(&format!("{endpoint}/pause"), 200);
        service.ping(&endpoint);
        service.post(&format!("{endpoint}/enable"), 200);
        service.post(&format!("{endpoint}/recover"), 202);
    }
    let list = |name: &str| ask("GET", &format!("/{name}"), json!(null), 200)["data"].take();
    let lists = ["keys", "calls", "endpoints", "deliveries", "recoveries"];
    let lists = lists.map(|name| (name, list(name)));
    let accounts = service.show("/accounts")["data"].take();
    service
        .run(
            "UPDATE keys SET id = 'no id' WHERE name = 'two';
             UPDATE calls SET body = '{}' WHERE id = 'two';
             UPDATE endpoints SET disabled = 'a word of nobody' WHERE url LIKE '%/two';
             UPDATE ended SET status = 'a word of nobody'
                 WHERE endpoint = (SELECT number FROM endpoints WHERE url LIKE '%/two');
             UPDATE recoveries SET recovery = '{}'
                 WHERE endpoint = (SELECT number FROM endpoints WHERE url LIKE '%/two');
             UPDATE accounts SET plan = 'a word of nobody' WHERE id = 'acct_2'",
        )
        .await;

    let overview = ask("GET", "/overview", json!(null), 200);
    let second = &lists[2].1[1]["id"];
    let is_two = |row: &Value| {
        [&row["id"], &row["endpoint_id"], &row["name"]]
            .iter()
            .any(|of| *of == second || **of == "two")
    };
    for (name, before) in &lists {
        let (now, before) = (list(name), before.as_array().unwrap());
        assert_eq!(before.iter().filter(|row| is_two(row)).count(), 1, "{name}");
        for (now, before) in now.as_array().unwrap().iter().zip(before) {
            if !is_two(before) {
                assert_eq!(now, before, "{name}");
                continue;
            }
            let id = if *name == "keys" { &json!("no id") } else { &before["id"] };
            assert_eq!(*now, json!({ "id": id, "unreadable": true }), "{name}");
            let what = name.replace("ies", "y").replace("s", "");
            let id = id.as_str().unwrap().replace("no id", "\"no id\"");
            service.api.logged(&format!("a row of a list cannot be read {what}={id} error="));
        }
        let shown: Vec<_> =
            overview[name].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        let ids: Vec<_> = now.as_array().unwrap().iter().map(|row| &row["id"]).collect();
        assert_eq!(shown, ids, "{name}");
    }
    let now = service.show("/accounts")["data"].take();
    assert_eq!(now[1], json!({ "id": "acct_2", "unreadable": true }));
    assert_eq!((&now[0]["id"], &now[2]), (&accounts[0]["id"], &accounts[2]));
    // What is not in a list is refused as before.
    service.api.ask("GET", "/accounts/acct_2", &json!(null), 503);
}
