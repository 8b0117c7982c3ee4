//! What operators do at a terminal.

use std::process::{Command, Stdio};

use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::{File, request};
use crate::support::service::Service;
use crate::support::{KEY, World, data};

const LATER: &str = "2026-01-02T00:00:00Z";

/// What a command printed and said, and how it ended.
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run_with(world: &World, ring: &str, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
    command.args(arguments).stdin(Stdio::null());
    let command = command.env(VARIABLE, ring).env("DATABASE_URL", world.server.url());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command that prints JSON.
#[track_caller]
pub(crate) fn json_of(world: &World, arguments: &[&str]) -> Value {
    let said = run_with(world, &world.ring, &[arguments, &["--json"]].concat());
    assert_eq!(said.status, Some(0), "{arguments:?}: {}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// Runs a command that is refused with these words.
#[track_caller]
fn refused(world: &World, arguments: &[&str], words: &str) {
    let said = run_with(world, &world.ring, arguments);
    assert!(
        !matches!(said.status, Some(0)) && said.err.contains(words),
        "{arguments:?}: {}",
        said.err
    );
    assert_eq!(said.out, "", "{arguments:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_keys_and_endpoints_are_kept_at_a_terminal() {
    let service = Service::new().await;
    let world = &service.world;
    let made =
        json_of(world, &["accounts", "create", "acct_new", "--timezone", "UTC", "--plan", "pro"]);
    assert_eq!((&made["id"], &made["plan"]), (&json!("acct_new"), &json!("pro")));
    let accounts = json_of(world, &["accounts", "list"]);
    let ids: Vec<&Value> =
        accounts["data"].as_array().unwrap().iter().map(|account| &account["id"]).collect();
    assert_eq!(ids, ["acct_1", "acct_2", "acct_3", "acct_4", "acct_new"]);
    let list = run_with(world, &world.ring, &["accounts", "list"]).out;
    assert_eq!(list.lines().count(), 6, "{list}");
    assert!(list.starts_with("id        plan"), "{list}");
    let closing = json_of(world, &["accounts", "change", "acct_new", "--closing", "true"]);
    assert_eq!((&closing["closing"], &closing["plan"]), (&json!(true), &json!("pro")));
    assert_eq!(json_of(world, &["accounts", "show", "acct_new"]), closing);

    let key = json_of(world, &["keys", "create", "acct_1", "--name", "two", "--mode", "live"]);
    let secret = key["secret"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {secret}\r\n");
    let ask = || request(service.api.api(), "GET", "/v1/account", &bearer, b"").status;
    assert_eq!(ask(), 200);
    let keys = json_of(world, &["keys", "list", "acct_1"]);
    assert_eq!(keys["data"].as_array().unwrap().len(), 2);
    assert!(!keys.to_string().contains(secret));
    json_of(world, &["keys", "revoke", key["id"].as_str().unwrap()]);
    assert_eq!(ask(), 401);

    let url = service.receiver.url("/made", &[Reply::Status(204)]);
    let create = ["endpoints", "create", "acct_1", "--url", &url];
    let made = json_of(world, &[&create[..], &["--allow-loopback-endpoints"]].concat());
    let id = made["id"].as_str().unwrap();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    let shown = json_of(world, &["endpoints", "disable", id]);
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("disabled"), &json!("paused")));
    let skipped = format!("/endpoints/{id}");
    service.ping(&skipped);
    let enabled = json_of(world, &["endpoints", "enable", id]);
    assert_eq!((&enabled["status"], &enabled["missed_count"]), (&json!("active"), &json!(1)));
    assert_eq!(json_of(world, &["endpoints", "show", id])["status"], "active");
    let listed = run_with(world, &world.ring, &["endpoints", "list", "acct_1"]).out;
    assert!(listed.contains(&url) && !listed.contains("whsec_"), "{listed}");
    let text = run_with(world, &world.ring, &["endpoints", "show", id]).out;
    assert!(text.contains(&format!("url                     {url}\n")), "{text}");

    for (arguments, words) in [
        (&["accounts", "create", "acct_new", "--timezone", "UTC"][..], "already exists"),
        (&["accounts", "create", "acct_x", "--timezone", "Mars standard"], "timezone: not an IANA"),
        (&["accounts", "create", "--timezone", "UTC"], "missing ID"),
        (
            &["accounts", "change", "acct_1", "--closing", "yes"],
            "--closing: expected true or false",
        ),
        (&["accounts", "change", "acct_1", "--plan", "gold"], "--plan: expected one of none,"),
        (&["accounts", "show", "acct_none"], "account not found"),
        (&["accounts", "list", "acct_1"], "too many arguments"),
        (
            &["keys", "create", "acct_1", "--name", "x", "--mode", "dead"],
            "--mode: expected one of live",
        ),
        (
            &["keys", "create", "acct_1", "--name", "x", "--scopes", "account:read,call:read"],
            "--scopes: expected one of account:read, calls:read",
        ),
        (&["keys", "revoke", "cred_none"], "key not found"),
        (&["endpoints", "create", "acct_1", "--url", "http://127.0.0.1/"], "accepts it"),
        (&["endpoints", "disable", "whep_none"], "endpoint not found"),
        (&["deliveries", "list", "acct_1", "--status", "gone,lost"], "--status: expected one of "),
        (&["deliveries", "export", "acct_none"], "account not found"),
        (&["keygen"], "missing NUMBER"),
        (&["keygen", "256"], "NUMBER: expected 0 to 255"),
        (&["erase", "--account", "acct_1", "--number", "12345"], "--number: the number has fewer"),
        (&["erase", "--account", "acct_1", "--contact", "c"], "--contact: the id has fewer"),
        (&["recover", "--account", "acct_none"], "account not found"),
        (
            &["recover", "--all-accounts", "--from", LATER, "--until", "2026-01-01T00:00:00Z"],
            "--until: expected an instant after --from",
        ),
    ] {
        refused(world, arguments, words);
    }
    // What is refused is not in the journal.
    let noted = "SELECT count(*) FROM journal WHERE account_id = 'acct_none'";
    assert_eq!(service.count(noted).await, 0);

    let help = run_with(world, &world.ring, &["keys", "create", "--help"]).out;
    for words in ["account:read, calls:read", "live, test"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_exported_without_what_their_events_say() {
    let service = Service::new().await;
    let world = &service.world;
    let gone = service.endpoint("/gone", &[Reply::Status(410)]);
    let _sender = world.start("sender", &["--allow-loopback-endpoints"]);
    service.ping(&gone);
    service.becomes("SELECT count(*) FROM ended", 1).await;
    let good = service.endpoint("/good", &[Reply::Status(204)]);
    // More than one page.
    for _ in 0..3 {
        service.ping(&good);
    }
    service.becomes("SELECT count(*) FROM ended", 4).await;
    let export = |flags: &[&str]| {
        let arguments = [&["deliveries", "export", "acct_1"], flags].concat();
        let said = run_with(world, &world.ring, &arguments);
        assert_eq!(said.status, Some(0), "{}", said.err);
        let rows = said.out.lines().map(|line| serde_json::from_str(line).unwrap());
        rows.collect::<Vec<Value>>()
    };
    let rows = export(&[]);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!(row["attempts"].as_array().unwrap().len(), 1, "{row}");
        assert!(row.get("payload").is_none() && row.get("body").is_none(), "{row}");
    }
    let found = export(&["--status", "gone,failed"]);
    assert_eq!((found.len(), &found[0]["status"]), (1, &json!("gone")));
    let listed = json_of(world, &["deliveries", "list", "acct_1", "--status", "gone"]);
    assert_eq!(listed["data"][0]["id"], found[0]["id"]);
    let shown = json_of(world, &["deliveries", "show", found[0]["id"].as_str().unwrap()]);
    assert_eq!(shown["status"], "gone");
}

// Which keys of the ring are in use, and what a ring without one of them means for who rotates.
#[tokio::test(flavor = "multi_thread")]
async fn a_ring_that_lacks_a_key_is_found() {
    let service = Service::new().await;
    let world = &service.world;
    service.endpoint("/one", &[Reply::Status(204)]);
    service.endpoint("/two", &[Reply::Status(204)]);
    let other = KeyRing::new_line(2);
    let both = format!("{other}\n{}", world.ring);
    for (ring, status, expected) in [
        (&world.ring, 0, json!({ "in_use": { "1": 2 }, "unreadable": 0, "outdated": 0 })),
        (&both, 0, json!({ "in_use": { "1": 2 }, "unreadable": 0, "outdated": 2 })),
        (&other, 1, json!({ "in_use": { "1": 2 }, "unreadable": 2, "outdated": 0 })),
    ] {
        let said = run_with(world, ring, &["ring", "check", "--json"]);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((said.status, &found), (Some(status), &expected));
        assert_eq!(said.err.contains("Take no line out before"), status == 1, "{}", said.err);
    }
    let rotated = run_with(world, &other, &["rotate-keys"]);
    assert_eq!(rotated.status, Some(1));
    assert_eq!(rotated.out, "{\"sealed\":0,\"unreadable\":2}\n");
    assert!(rotated.err.contains("some secrets open with no key of the ring"), "{}", rotated.err);
    let rotated = run_with(world, &both, &["rotate-keys"]);
    assert_eq!(
        (rotated.status, rotated.out.as_str()),
        (Some(0), "{\"sealed\":2,\"unreadable\":0}\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let world = World::new(Settings::default()).await;
    let look = |ring: &str, flags: &[&str]| {
        let said = run_with(&world, ring, &[&["doctor", "--json"], flags].concat());
        let found: Value = serde_json::from_str(&said.out).unwrap();
        let checks = found["checks"].as_array().unwrap().iter().map(|check| {
            let name = check["what"].as_str().unwrap().to_owned();
            (name, (check["state"].as_str().unwrap().to_owned(), check["todo"].clone()))
        });
        (said.status, checks.collect::<std::collections::BTreeMap<_, _>>())
    };
    // Nobody sends, and a server of tests survives no crash.
    let (status, found) = look(&world.ring, &["--backup"]);
    assert_eq!(status, Some(1));
    for (what, state) in [
        ("database", "ok"),
        ("writes", "ok"),
        ("version", "ok"),
        ("connections", "ok"),
        ("fsync", "fail"),
        ("standby", "warn"),
        ("backup", "warn"),
        ("clock", "ok"),
        ("ring", "ok"),
        ("leases", "fail"),
    ] {
        assert_eq!(found[what].0, state, "{what}: {found:?}");
        assert_eq!(found[what].1 == "", state == "ok", "{what}: {found:?}");
    }
    // With a sender there are days and owners.
    let _sender = world.start("sender", &[]);
    let file = File::new("doctor.json", &data(0).to_string());
    let api = world.start("api", &["--data", file.path()]);
    let url = json!({ "url": "https://hooks.example.com/" });
    api.ask("POST", "/accounts/acct_1/endpoints", &url, 201);
    crate::support::running::eventually("owners and days", || {
        let (_, found) = look(&world.ring, &[]);
        let is = |what: &str| found[what].0 == "ok";
        (is("leases") && is("partitions") && is("retention")).then_some(())
    });
    let (_, found) = look(&KeyRing::new_line(2), &[]);
    assert_eq!(found["ring"].0, "fail");
    let text = run_with(&world, &world.ring, &["doctor"]);
    assert!(text.out.contains("fail  fsync "), "{}", text.out);
    assert!(text.out.contains("ok    leases        shards without an owner: 0\n"), "{}", text.out);

    // A database that is not there is one line, and nothing behind it.
    let nowhere =
        ["doctor", "--database", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"];
    let said = run_with(&world, &world.ring, &nowhere);
    assert_eq!((said.status, said.out.lines().count()), (Some(1), 1), "{}", said.out);
    assert!(said.out.starts_with("fail  database "), "{}", said.out);
}

// What is printed at the start is in the files of whoever collects logs.
#[tokio::test(flavor = "multi_thread")]
async fn no_process_prints_a_key_that_it_did_not_make() {
    let world = World::new(Settings::default()).await;
    let file = File::new("printed.json", &data(0).to_string());
    for role in ["api", "all"] {
        let mut process = world.start(role, &["--data", file.path()]);
        assert_eq!(process.first["accounts"][0]["keys"][0]["name"], "one", "{role}");
        process.ask_to_end();
        process.ended();
        let all = format!("{}{}", process.first, process.log());
        assert!(!all.contains(KEY), "{role}: {all}");
    }
}
