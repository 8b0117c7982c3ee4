//! What the processes write to their logs, and what is in no line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant_postgres::db::DbError;
use call_assistant_postgres::queue::{Accepted, accept, started_at};
use host::trace::TraceParent;
use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::{eventually, request};
use crate::support::service::Service;
use crate::support::{KEY, Running};

const FLAGS: [&str; 3] = ["--allow-loopback-endpoints", "--log-format", "json"];
const TOKEN: &str = "the-operators-own-token";
const PASSWORD: &str = "the-databases-password";
const NUMBER: &str = "+4791234567";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER_TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// The lines of a process: each is an object, and nothing else is among them.
#[track_caller]
fn lines(process: &Running) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    process.log().lines().map(line).collect()
}

/// The lines with this message.
#[track_caller]
fn of<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["message"] == message).collect()
}

/// What is tried each minute: it may fail in an outage, and end long after it.
const EACH_MINUTE: [&str; 6] =
    ["adding days", "keys in use", "old alerts", "old days", "old processes", "reminders"];

/// Returns what has begun to fail in these lines and is tried again soon, with its errors.
#[track_caller]
fn begun(lines: &[Value]) -> BTreeMap<&str, Vec<&str>> {
    let mut begun: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines {
        let (name, error) = (line["message"].as_str().unwrap(), line["error"].as_str());
        if let Some(error) = error.filter(|_| !name.contains(": ") && !EACH_MINUTE.contains(&name))
        {
            begun.entry(name).or_default().push(error);
        }
    }
    begun
}

/// Checks that a line has these fields.
#[track_caller]
fn is(line: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name} of {line}");
    }
}

fn event(now: Timestamp) -> EventBody {
    let (id, version) = (EventId::derived(&["acct_1", "traced"]), ApiVersion::parse("2026-01-15"));
    let account = AccountId::parse("acct_1").unwrap();
    NewEvent::new(id, account, version.unwrap(), Origin::voice(), now).ping(NUMBER).unwrap()
}

// A busy minute of two processes, with what is secret in each place where something secret can be.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_has_what_people_search_for_and_no_secret() {
    let mut service = Service::new().await;
    let process = |role: &str| {
        let mut command = service.world.command(role, &FLAGS);
        let url = service.world.server.url().replacen('@', &format!(":{PASSWORD}@"), 1);
        assert!(url.contains(PASSWORD));
        command.env("DATABASE_URL", url).env("OPERATOR_TOKEN", TOKEN);
        Running::of(command)
    };
    let (api, sender) = (process("api"), process("sender"));
    let operator = format!("Authorization: Bearer {TOKEN}\r\ntraceparent: {OTHER_TRACE}\r\n");
    let ask = |method: &str, path: &str, body: Value| {
        request(api.dashboard(), method, path, &operator, body.to_string().as_bytes()).json()
    };
    let made = |path: &str, replies: &[Reply]| {
        let url = service.receiver.url(path, replies);
        let made = ask("POST", "/accounts/acct_1/endpoints", json!({ "url": url }));
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("id"), text("secret"))
    };
    let (well, well_secret) = made("/path-secret", &[Reply::Status(204)]);
    let (bad, bad_secret) = made("/bad", &[Reply::Body(500, NUMBER), Reply::Close]);
    let rotated = ask("POST", &format!("/endpoints/{well}/rotate"), json!({}));
    let asked = json!({ "name": "two", "mode": "live", "scopes": ["calls:read"] });
    let new_key = ask("POST", "/accounts/acct_1/keys", asked);
    let link = ask("POST", "/accounts/acct_1/portal", json!({}));
    let call = json!({ "caller": { "phone_number": NUMBER, "display_name": "Ingrid Secret" } });
    ask("POST", "/accounts/acct_1/calls", call);

    let accepted = service.world.database.change(async |change| {
        let now = started_at(change).await?;
        let (event, trace) = (event(now), TraceParent::parse(TRACE).unwrap());
        Ok::<_, DbError>((accept(change, &event, None, Some(&trace), now).await?, event))
    });
    let (accepted, event) = accepted.await.unwrap();
    assert!(matches!(accepted, Accepted::New(new) if new.len() == 2));

    let traced = format!("Authorization: Bearer {KEY}\r\ntraceparent: {TRACE}\r\n");
    let answer = request(api.api(), "GET", "/v1/calls/call_9?secret=query-secret", &traced, b"");
    let wrong = "Authorization: Bearer service_live_wrong-key-secret\r\ntraceparent: 00-bad-1\r\n";
    assert_eq!(request(api.api(), "GET", "/v1/account", wrong, b"").status, 401);
    eventually("two attempts of the traced event", || {
        let all = lines(&sender);
        let of_it = |line: &&Value| line["message"] == "attempt" && line["traceparent"] == TRACE;
        (all.iter().filter(of_it).count() == 2).then_some(())
    });
    // What the dashboard makes has the trace of its request.
    let pinged = ask("POST", &format!("/endpoints/{well}/ping"), json!({}));
    eventually("an attempt of what the dashboard made", || {
        let all = lines(&sender);
        let line = all.iter().find(|line| line["event"] == pinged["id"] && line["attempt"] == 1)?;
        assert_eq!(line["traceparent"], OTHER_TRACE);
        Some(())
    });
    ask("POST", &format!("/endpoints/{bad}/pause"), json!({}));
    ask("POST", &format!("/endpoints/{bad}/enable"), json!({}));
    let range = json!({ "from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z" });
    let recovery = ask("POST", &format!("/endpoints/{bad}/recover"), range);
    eventually("the recovery has ended", || {
        of(&lines(&sender), "a recovery has ended").first().map(drop)
    });

    // An outage is its beginning and its end, whatever is tried meanwhile, and however its reason changes.
    let before = [&api, &sender].map(|process| lines(process).len());
    service.world.server.stop();
    for _ in 0..40 {
        assert_eq!(api.get("/v1/account").status, 500);
    }
    let refused = request(api.dashboard(), "GET", "/accounts", &operator, b"");
    assert_eq!(refused.status, 503);
    tokio::time::sleep(Duration::from_secs(13)).await;
    let over = |line: &&Value| line["message"].as_str().unwrap().starts_with("over: ");
    for (process, before) in [&api, &sender].into_iter().zip(before) {
        let outage = lines(process).split_off(before);
        assert_eq!(outage.iter().find(over), None, "the database is away");
    }
    service.world.server.launch().unwrap();
    api.becomes("/v1/account", 200);
    for (process, before) in [&api, &sender].into_iter().zip(before) {
        eventually("each failure is over", || {
            let said = lines(process).split_off(before);
            let is_over = |name| !of(&said, &format!("over: {name}")).is_empty();
            begun(&said).into_keys().all(is_over).then_some(())
        });
    }
    let shown = request(api.dashboard(), "GET", "/metrics", &operator, b"").text();
    assert!(shown.contains("call_assistant_log_dropped_total 0"), "{shown}");
    for process in [&api, &sender] {
        process.signal("TERM");
    }
    assert_eq!([&api, &sender].map(|process| process.ended().code), [Some(0); 2]);

    let (of_api, of_sender) = (lines(&api), lines(&sender));
    let all: Vec<Value> = [of_api.clone(), of_sender.clone()].concat();
    let started = json!({ "role": "sender", "version": env!("CARGO_PKG_VERSION"), "keys": [1],
        "sealing_key": 1, "ready": true, "time_scale": 1.0, "level": "info",
        "allow_loopback_endpoints": true });
    is(of(&of_sender, "started")[0], &started);
    is(of(&of_api, "started")[0], &json!({ "role": "api", "max_endpoints": 100, "ready": true }));
    // An end that somebody asked for is not that of a process which died.
    for (process, lines) in [(&api, &of_api), (&sender, &of_sender)] {
        let pid = json!({ "pid": process.id(), "level": "info" });
        is(of(lines, "stopping")[0], &pid);
        is(lines.last().unwrap(), &pid);
        assert_eq!(lines.last().unwrap()["message"], "stopped");
    }
    let shards = of(&of_sender, "shards");
    assert!(shards.len() >= 2, "{shards:?}");
    is(shards[0], &json!({ "owned": 64, "lost": null }));
    assert!(shards[0]["gained"].as_str().unwrap().starts_with("0,1,2,"), "{}", shards[0]);
    is(shards[shards.len() - 1], &json!({ "owned": 0, "gained": null }));
    is(of(&of_api, "an endpoint is disabled")[0], &json!({ "endpoint": bad, "by": "operator" }));

    let started = &of(&of_api, "a recovery has started")[0];
    let ended = &of(&of_sender, "a recovery has ended")[0];
    for line in [started, ended] {
        is(line, &json!({ "recovery": recovery["id"], "account": "acct_1", "endpoint": bad }));
    }
    is(started, &json!({ "from": recovery["from"], "until": recovery["until"], "counted": 0 }));
    is(ended, &json!({ "redelivered": 0, "of": 0 }));

    let attempts: BTreeMap<&str, &Value> = of(&of_sender, "attempt")
        .into_iter()
        .filter(|line| line["event"] == event.id().as_str() && line["attempt"] == 1)
        .map(|line| (line["endpoint"].as_str().unwrap(), line))
        .collect();
    // The bad endpoint got the event of the call at the same moment: either had the first answer.
    for (endpoint, outcomes) in [(&well, ["204", "204"]), (&bad, ["500", "reset"])] {
        let line = attempts[endpoint.as_str()];
        is(line, &json!({ "account": "acct_1", "type": "ping", "traceparent": TRACE }));
        assert!(outcomes.contains(&line["outcome"].as_str().unwrap()), "{line}");
        assert!(line["delivery"].as_str().unwrap().starts_with("dlv_"), "{line}");
        assert!(line["took_us"].is_u64(), "{line}");
    }
    // Neither endpoint got the trace.
    for got in [service.receiver.got("/path-secret"), service.receiver.got("/bad")].concat() {
        assert!(!got.headers.contains_key("traceparent"));
    }
    let requests = of(&of_api, "api");
    let request = answer.header("x-request-id").unwrap();
    let line = requests.iter().find(|line| line["request"] == request).unwrap();
    is(
        line,
        &json!({ "account": "acct_1", "route": "/v1/calls/{call_id}", "status": 404,
        "traceparent": TRACE, "reason": line["reason"] }),
    );
    let unknown = requests.iter().find(|line| line["status"] == 401).unwrap();
    is(unknown, &json!({ "account": null, "traceparent": null }));
    assert!(of(&of_api, "dashboard").iter().any(|line| line["traceparent"] == OTHER_TRACE));

    // Each thing that was tried has one line for each error, and one that says when it was over.
    for (of_process, before, tried) in [
        (&of_api, before[0], &["clocks", "reading for monitoring"][..]),
        (&of_sender, before[1], &["leases", "levers", "looking for deliveries"]),
    ] {
        let said = of_process.get(before..).unwrap();
        let begun = begun(said);
        for name in tried {
            assert!(begun.contains_key(name), "{name}: {said:?}");
        }
        for (name, errors) in begun {
            let each: BTreeSet<&str> = errors.iter().copied().collect();
            assert!(errors.len() <= 8 && each.len() == errors.len(), "{name}: {errors:?}");
            let ended = of(said, &format!("over: {name}"));
            assert_eq!(ended.len(), 1, "{name}: {ended:?}");
            let (times, seconds) = (ended[0]["times"].as_u64(), ended[0]["seconds"].as_f64());
            assert!(times >= Some(1) && seconds.is_some_and(|lasted| lasted < 40.0), "{ended:?}");
            if name == "leases" {
                assert!(times >= Some(2) && seconds >= Some(10.0), "{ended:?}");
            }
        }
    }
    // Requests are not tried again by the process: each has its line, with the reason of the store.
    let failed: Vec<&&Value> = requests.iter().filter(|line| line["status"] == 500).collect();
    assert!(failed.len() >= 40, "{requests:?}");
    for line in failed {
        is(line, &json!({ "level": "warn", "route": "/v1/account" }));
        let reason = line["reason"].as_str().unwrap();
        assert!(reason != "the host failed", "{line}");
    }
    let refused = of(&of_api, "dashboard").into_iter().find(|line| line["status"] == 503).unwrap();
    is(refused, &json!({ "route": "/accounts", "level": "warn" }));
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("connection") || reason.contains("moment ago"), "{reason}");

    // `docs/operating.md` has each field, and each line the three of all.
    let page = include_str!("../../docs/operating.md");
    let (_, table) = page.split_once("| field | what it is |").unwrap();
    let rows = table.lines().take_while(|line| !line.starts_with('#'));
    let names = rows.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let told: BTreeSet<&str> = names.flat_map(|names| names.split('`')).collect();
    for line in &all {
        for name in line.as_object().unwrap().keys() {
            assert!(told.contains(name.as_str()), "the page has no {name}: {line}");
        }
        assert_eq!(line["time"].as_str().unwrap().len(), 27, "{line}");
        assert!(["error", "warn", "info"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    // Collectors of logs store the lines that a process prints at its start, too.
    let printed = &service.api.first;
    assert_eq!(printed["accounts"][0]["keys"][0]["name"], "one");
    let text = [printed.to_string(), api.log(), sender.log()].concat();
    let [new_secret, new_key] = [&rotated, &new_key].map(|made| made["secret"].as_str().unwrap());
    let link = link["path"].as_str().unwrap().split_once('=').unwrap().1;
    let digits = service.world.ring.split_once(':').unwrap().1;
    for secret in [
        TOKEN,
        PASSWORD,
        KEY,
        NUMBER,
        "Ingrid",
        "path-secret",
        "/bad",
        "query-secret",
        "wrong-key",
        &well_secret,
        &bad_secret,
        new_secret,
        new_key,
        link,
        digits,
        "whsec_",
        "v1=",
        "Bearer",
    ] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

// Text is the form for people, and a level leaves out what matters less.
#[tokio::test(flavor = "multi_thread")]
async fn a_level_leaves_out_what_matters_less() {
    let service = Service::new().await;
    let api = service.world.start("api", &["--log-level", "warn", "--log-format", "text"]);
    assert_eq!(api.get("/v1/account").status, 200);
    service.run("ALTER TABLE calls RENAME TO hidden").await;
    assert_eq!(api.get("/v1/calls?limit=1").status, 500);
    let line = eventually("a warning", || {
        api.log().lines().find(|line| line.contains(" WARN  api ")).map(str::to_owned)
    });
    let (_, reason) = line.split_once(" status=500 ").unwrap();
    assert!(reason.contains("\\\"calls\\\"") && line.as_bytes()[26] == b'Z', "{line}");
    assert!(!api.log().contains(" INFO "), "{}", api.log());
    for wrong in [["--log-level", "loud"], ["--log-level", "off"], ["--log-format", "xml"]] {
        let output = service.world.command("api", &wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(&format!("{}: expected ", wrong[0])), "{said}");
    }
}
