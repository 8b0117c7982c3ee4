//! What operators do at a terminal.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use serde_json::{Value, json};

use crate::processes::help_texts;
use crate::support::receiver::Reply;
use crate::support::running::{self, eventually, request};
use crate::support::service::Service;
use crate::support::{World, run_at, said};

/// Runs a command that is refused with this status and these words.
#[track_caller]
fn refused(world: &World, arguments: &[&str], status: i32, words: &str) {
    let said = world.run(arguments);
    assert_eq!((said.code, &*said.stdout), (Some(status), ""), "{arguments:?}: {}", said.stderr);
    assert!(said.stderr.contains(words), "{arguments:?}: {}", said.stderr);
}

/// The words of a command line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_keys_and_endpoints_are_kept_at_a_terminal() {
    let service = Service::new().await;
    let world = &service.world;
    let made =
        world.json_of(&["accounts", "create", "acct_new", "--timezone", "UTC", "--plan", "pro"]);
    assert_eq!((&made["id"], &made["plan"]), (&json!("acct_new"), &json!("pro")));
    let accounts = world.json_of(&["accounts", "list"]);
    let ids = accounts["data"].as_array().unwrap().iter().map(|account| account["id"].as_str());
    assert!(ids.eq(["acct_1", "acct_2", "acct_3", "acct_4", "acct_new"].map(Some)), "{accounts}");
    let list = world.run(&["accounts", "list"]).stdout;
    assert_eq!(list.lines().count(), 6, "{list}");
    assert!(list.starts_with("id        plan"), "{list}");
    let closing = world.json_of(&["accounts", "change", "acct_new", "--closing", "true"]);
    assert_eq!((&closing["closing"], &closing["plan"]), (&json!(true), &json!("pro")));
    assert_eq!(world.json_of(&["accounts", "show", "acct_new"]), closing);
    let moved = world.json_of(&["accounts", "change", "acct_new", "--timezone", "Asia/Tokyo"]);
    assert_eq!((&moved["timezone"], &moved["closing"]), (&json!("Asia/Tokyo"), &json!(true)));

    let key = world.json_of(&["keys", "create", "acct_1", "--name", "two", "--mode", "live"]);
    let secret = key["secret"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {secret}\r\n");
    let ask = || request(service.api.api(), "GET", "/v1/account", &bearer, b"").status;
    assert_eq!(ask(), 200);
    let keys = world.json_of(&["keys", "list", "acct_1"]);
    assert_eq!(keys["data"].as_array().unwrap().len(), 2);
    assert!(!keys.to_string().contains(secret));
    world.json_of(&["keys", "revoke", key["id"].as_str().unwrap()]);
    assert_eq!(ask(), 401);

    let url = service.receiver.url("/made", &[Reply::Status(204)]);
    let create = ["endpoints", "create", "acct_1", "--url", &url];
    let made = world.json_of(&[&create[..], &["--allow-loopback-endpoints"]].concat());
    let id = made["id"].as_str().unwrap();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    let shown = world.json_of(&["endpoints", "disable", id]);
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("disabled"), &json!("paused")));
    let skipped = format!("/endpoints/{id}");
    service.ping(&skipped);
    let enabled = world.json_of(&["endpoints", "enable", id]);
    assert_eq!((&enabled["status"], &enabled["missed_count"]), (&json!("active"), &json!(1)));
    assert_eq!(world.json_of(&["endpoints", "show", id])["status"], "active");
    let listed = world.run(&["endpoints", "list", "acct_1"]).stdout;
    assert!(listed.contains(&url) && !listed.contains("whsec_"), "{listed}");
    let text = world.run(&["endpoints", "show", id]).stdout;
    assert!(text.contains(&format!("url                     {url}\n")), "{text}");
    // The new secret is first. After a leak no earlier one signs, whichever has leaked.
    let run = |arguments: &[&str]| world.run(arguments).stdout;
    run(&["endpoints", "rotate", id]);
    let rotated = run(&["endpoints", "rotate", id, "--previous", "0"]);
    assert!(rotated.starts_with("secret                  whsec_"), "{rotated}");
    assert!(rotated.contains("previous_secrets_until  none\n"), "{rotated}");
    let rotated = run(&["endpoints", "rotate", id]);
    assert!(rotated.contains("previous_secrets_until  20"), "{rotated}");
    for told in ["deleted\n", "already deleted\n"] {
        let said = run(&["endpoints", "delete", id]);
        assert!(said.starts_with(told), "{said}");
    }

    let closing = "expected one of --timezone, --plan, --subscription-active, --closing";
    let whom = "expected one of --everything, --account, --endpoint";
    let rate = "per_second: expected a whole number from 0 to 10000";
    let scopes = "--scopes: expected one of account:read, calls:read";
    for (line, status, why) in [
        ("accounts create acct_new --timezone UTC", 1, "already exists"),
        ("accounts create acct_x --timezone Mars!", 2, "timezone: not an IANA"),
        ("accounts create acct_x --timezone Europe/Olso", 2, "timezone: the database"),
        ("accounts change acct_1 --timezone Europe/Olso", 2, "timezone: the database"),
        ("accounts create --timezone UTC", 2, "missing ID"),
        ("levers set --per-second 1", 2, whom),
        ("levers set --everything", 2, "missing --per-second"),
        ("levers set --everything --per-second 10001", 2, rate),
        ("endpoints rotate whep_1 --previous 2h", 2, "--previous: expected one of 0, 1h, 24h, 7d"),
        ("accounts change acct_1 --closing yes", 2, "--closing: expected one of true, false"),
        ("accounts change acct_1 --plan gold", 2, "--plan: expected one of none,"),
        ("accounts show acct_none", 1, "account not found"),
        ("accounts list acct_1", 2, "too many arguments"),
        ("keys create acct_1 --name x --mode dead", 2, "--mode: expected one of live"),
        ("keys create acct_1 --name x --scopes account:read,call:read", 2, scopes),
        ("accounts change acct_1", 2, closing),
        ("accounts list --as owner", 2, "--as: expected another name"),
        ("deliveries cancel acct_1 --type call·ended", 2, "type: expected 1 to"),
        ("journal --after foo", 2, "after: not a position"),
        ("erase --account acct·2 --whole-account", 2, "--account: "),
        ("recover --account acct·2", 2, "--account: "),
        ("keys revoke cred_none", 1, "key not found"),
        ("endpoints create acct_1 --url http://127.0.0.1/", 2, "accepts it"),
        ("endpoints disable whep_none", 1, "endpoint not found"),
        ("deliveries list acct_1 --status gone,lost", 2, "--status: expected one of "),
        ("deliveries list acct_1 --status failing,gone", 2, "status: failing cannot be combined"),
        ("deliveries export acct_none", 1, "account not found"),
        ("keygen", 2, "missing NUMBER"),
        ("keygen 256", 2, "NUMBER: expected 0 to 255"),
        ("erase --account acct_1 --number 12345", 2, "--number: the number has fewer"),
        ("erase --account acct_1 --contact c", 2, "--contact: the id has fewer"),
        ("recover --account acct_none", 1, "account not found"),
        ("recover --all-accounts --from 2026-01-02 --until 2026-01-01", 2, "--until: expected an"),
    ] {
        refused(world, &words(line), status, why);
    }
    // What is refused is not in the journal.
    let noted = "SELECT count(*) FROM journal WHERE account_id = 'acct_none'";
    assert_eq!(service.count(noted).await, 0);

    let help = world.run(&["keys", "create", "--help"]).stdout;
    for words in ["account:read, calls:read", "live, test"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

/// A script branches on the status, so each command ends as the table of its help text says.
///
/// Customers, their callers and their receivers write what operators read: nothing of it moves a cursor, forges a line
/// or turns what is read around, and JSON has the same values.
#[tokio::test(flavor = "multi_thread")]
async fn each_command_ends_with_a_status_of_the_table_and_prints_nothing_raw() {
    // What a terminal obeys, and what is refused on one line already.
    let (hostile, marks) = (
        "A\u{9b}2J\u{7f}\u{1b}[2J\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\nB",
        "A\u{202e}\u{2069}\u{2029}B",
    );
    let service = Service::new().await;
    let (world, api) = (&service.world, &service.api);
    let account =
        |name: &str| json!({ "id": "acct_new", "timezone": "UTC", "business_name": name });
    for refused in ["A\u{1b}B", "A\u{9b}B", "A\nB", "A\u{7f}B"] {
        let refused = api.ask("POST", "/accounts", &account(refused), 400);
        let said = refused["error"]["message"].as_str().unwrap();
        assert_eq!(said, "business_name: expected at most 1000 bytes of one line");
    }
    api.ask("POST", "/accounts", &account(marks), 201);
    let endpoint = service.endpoint("/hook", &[Reply::Body(500, hostile)]);
    api.ask("PATCH", &endpoint, &json!({ "description": marks }), 200);
    let caller = json!({ "contact_id": null, "phone_number": null, "display_name": hostile });
    let call = json!({ "caller": caller, "summary": hostile });
    api.ask("POST", "/accounts/acct_1/calls", &call, 201);
    let sender = world.start("sender", &["--allow-loopback-endpoints", "--log-format", "json"]);
    service.becomes("SELECT count(*) FROM attempts", 1).await;
    let delivery = &world.json_of(&["deliveries", "list", "acct_1"])["data"][0]["id"];
    let show = ["deliveries", "show", delivery.as_str().unwrap()];
    let shown = world.json_of(&show).to_string();
    assert!(shown.contains('\u{202e}') && shown.contains("display_name"), "{shown:?}");
    let accounts = world.json_of(&["accounts", "list"]);
    let names = accounts["data"].as_array().unwrap().iter().map(|row| &row["business_name"]);
    assert!(names.into_iter().any(|name| name == marks), "{accounts}");

    let endpoint = endpoint.rsplit('/').next().unwrap();
    let of_one: [(&[&str], i32); 5] = [
        (&show, 0),
        (&["accounts", "show", "acct_new"], 0),
        (&["endpoints", "show", endpoint], 0),
        (&["journal", "--lines"], 0),
        (&["--\u{9b}2J"], 2),
    ];
    let of_one = of_one.map(|(command, status)| (command.to_vec(), status)).into_iter();
    let ends = ENDS.iter().filter_map(|(line, over_one, _)| Some((words(line), (*over_one)?)));
    for (command, status) in of_one.chain(ends) {
        let ended = world.run(&command);
        assert_eq!(ended.code, Some(status), "{command:?}: {}", ended.stderr);
        shows_nothing_raw(&format!("{command:?}"), &(ended.stdout + &ended.stderr));
        let json = world.run(&[&command[..], &["--json"]].concat());
        shows_nothing_raw(&format!("{command:?} --json"), &(json.stdout + &json.stderr));
    }
    let nowhere = "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1";
    for (line, _, over_none) in ENDS {
        let Some(status) = over_none else { continue };
        let ended = run_at(nowhere, &world.ring, &words(line));
        assert_eq!(ended.code, Some(*status), "without one: {line}: {}", ended.stderr);
    }
    let helps = help_texts();
    let (_, statuses) = helps["migrate"].split_once("\nExit status:\n").unwrap();
    for (name, help) in helps {
        assert!(help.contains(statuses.trim_end()), "{name}: {help}");
        let is_group = help.contains("\nCommands:\n");
        let has_row = ENDS.iter().any(|(line, ..)| line.starts_with(name));
        assert!(is_group || has_row, "{name} has no row");
        let unknown = world.run(&[&words(name)[..], &["--unknown"]].concat());
        assert_eq!(unknown.code, Some(2), "{name}");
        let refused = world.run(&[&words(name)[..], &[hostile]].concat());
        assert_ne!(refused.code, Some(0), "{name}: {}", refused.stdout);
        shows_nothing_raw(name, &(refused.stdout + &refused.stderr));
    }
    shows_nothing_raw("api", &api.log());
    shows_nothing_raw("sender", &sender.log());
}

#[track_caller]
fn shows_nothing_raw(what: &str, said: &str) {
    let turns = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let raw = |of: &char| match *of {
        '\n' => false,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control() || turns.contains(&other),
    };
    assert_eq!(said.chars().find(raw), None, "{what}: {said:?}");
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
    (0..3).for_each(|_| service.ping(&good));
    service.becomes("SELECT count(*) FROM ended", 4).await;
    let export = |flags: &[&str]| {
        let said = world.done(&[&["deliveries", "export", "acct_1"], flags].concat());
        let rows = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
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
    // As on the page: what has failed, and is not delivered.
    assert_eq!(export(&["--status", "failing"]), found);
    let listed = world.json_of(&["deliveries", "list", "acct_1", "--status", "gone"]);
    assert_eq!(listed["data"][0]["id"], found[0]["id"]);
    let show = ["deliveries", "show", found[0]["id"].as_str().unwrap()];
    assert_eq!(world.json_of(&show)["status"], "gone");
    // A person reads what comes next, and a row for each attempt.
    let text = world.run(&show).stdout;
    assert!(
        text.starts_with("next ") && text.contains("none, and cannot be redelivered: "),
        "{text}"
    );
    assert!(text.contains("\nnumber  began_at ") && text.contains("  HTTP 410  "), "{text}");
    assert!(!text.contains("payload") && !text.contains("next_at"), "{text}");
    let listed = world.run(&["deliveries", "list", "acct_1"]).stdout;
    assert!(listed.lines().next().unwrap().contains("  last      next"), "{listed}");
    assert!(listed.contains("  HTTP 410  -") && listed.contains("  HTTP 204  -"), "{listed}");

    // The endpoint needs attention, and says why in an alert.
    let fleet = world.json_of(&["fleet"]);
    let id = gone.rsplit('/').next().unwrap();
    let row = &fleet["data"][0];
    assert_eq!((&row["endpoint_id"], &row["reason"]), (&json!(id), &json!("gone")), "{fleet}");
    assert_eq!((&row["waiting"], &row["missed"]), (&json!(0), &json!(1)), "{fleet}");
    assert_eq!(row["acknowledged_by"], Value::Null);
    let shown = world.run(&["endpoints", "show", id]).stdout;
    assert!(shown.contains("\nlatest_failure          HTTP 410 at 20"), "{shown}");
    // A ping would be skipped: it is refused, and no event is stored.
    let events = service.count("SELECT count(*) FROM events").await;
    refused(world, &["endpoints", "ping", id], 1, "disabled (gone): nothing is sent; run");
    assert_eq!(service.count("SELECT count(*) FROM events").await, events);
    let alerts = world.json_of(&["alerts", "list"]);
    let alert = &alerts["data"][0];
    assert_eq!((&alert["endpoint_id"], &alert["severity"]), (&json!(id), &json!("critical")));
    let path = format!("/alerts/{}/acknowledge", alert["id"].as_str().unwrap());
    service.api.ask("POST", &path, &json!({ "by": "ada" }), 200);
    assert_eq!(world.json_of(&["fleet"])["data"][0]["acknowledged_by"], "ada");
    let shown = service.show("/fleet");
    assert_eq!(shown["troubled"].as_array().unwrap().len(), 1, "{shown}");
    service.becomes("SELECT count(*) FROM gauge_hours", 1).await;
}

// A person reads a screen, and no million rows: a table ends, and says where it goes on. A program gets all.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_ends_and_says_where_it_goes_on() {
    let service = Service::new().await;
    let world = &service.world;
    let run = |arguments: &[&str]| world.done(arguments);
    let rows = |arguments: &[&str]| run(arguments).stdout.lines().count() - 1;
    let named = ["--timezone", "UTC", "--business-name", "Fjord Dental"];
    run(&[&["accounts", "create", "acct_5"], &named[..]].concat());
    let first = run(&["accounts", "list", "--limit", "3"]);
    assert_eq!(first.stdout.lines().count(), 4, "{}", first.stdout);
    let place = first.stderr.trim_end().strip_prefix("There may be more rows: --after ").unwrap();
    let rest = run(&["accounts", "list", "--after", place]);
    assert!(rest.stdout.contains("acct_4") && !rest.stdout.contains("acct_3"), "{}", rest.stdout);
    assert_eq!(rest.stderr, "");
    let none = run(&["accounts", "list", "--search", "nobody"]);
    assert_eq!((none.stdout.lines().count(), &*none.stderr), (1, "No rows.\n"));
    for search in ["fjord d", "DENTAL", "acct_5", " dent  fj "] {
        let found = run(&["accounts", "list", "--search", search]).stdout;
        assert!(found.lines().count() == 2 && found.contains("Fjord Dental"), "{search}: {found}");
    }
    for search in ["ental", "fjord x", " ", "'", r"\", "d:* | f"] {
        let found = run(&["accounts", "list", "--search", search]);
        assert_eq!(found.stdout.lines().count(), 1, "{search}: {}", found.stdout);
    }

    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    (0..102).for_each(|_| service.ping(&endpoint));
    let test = ["endpoints", "ping", endpoint.rsplit('/').next().unwrap(), "--type", "call.ended"];
    assert_eq!(world.json_of(&test)["type"], "call.ended");
    let list = ["deliveries", "list", "acct_1"];
    assert_eq!(rows(&list), 100);
    let all = world.json_of(&list);
    let all = all["data"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["type"]), (103, &json!("call.ended")));
    let two = run(&[&list[..], &["--limit", "2"]].concat());
    let place = two.stderr.trim_end().strip_prefix("There may be more rows: --after ").unwrap();
    let next = world.json_of(&[&list[..], &["--after", place, "--limit", "1"]].concat());
    assert_eq!(next["data"], json!([all[2]]));

    // Days as people write them.
    for (flags, count) in [
        (["--from", "yesterday"], 103),
        (["--until", "today"], 103),
        (["--until", "yesterday"], 0),
        (["--from", "2026-03-01"], 103),
        (["--until", "2026-03-01 14:03"], 0),
    ] {
        let found = world.json_of(&[&list[..], &flags].concat());
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{flags:?}");
    }
    let soon = [&list[..], &["--from", "soon"]].concat();
    refused(world, &soon, 2, "--from: expected an instant, such as 2026-11-10T14:03:00Z; or a day");
    refused(world, &[&list[..], &["--limit", "0"]].concat(), 2, "--limit: ");

    let newest = world.json_of(&["journal", "--newest", "--limit", "2"]);
    let oldest = world.json_of(&["journal"]);
    let oldest = oldest["data"].as_array().unwrap();
    assert_eq!(newest["data"], json!([oldest[oldest.len() - 1], oldest[oldest.len() - 2]]));

    // The owner's link opens in a process with a token or without.
    let made = world.json_of(&["accounts", "portal", "acct_1"]);
    let link = made["path"].as_str().unwrap().strip_prefix("/portal#link=").unwrap();
    let login = service.api.ask("POST", "/portal-login", &json!({ "link": link }), 200);
    assert_eq!(login["account_id"], "acct_1");
    for (dashboard, begins) in [
        ("https://calls.example.com/", "https://calls.example.com/portal#link="),
        ("127.0.0.1:8081", "http://127.0.0.1:8081/portal#link="),
    ] {
        let made = world.json_of(&["accounts", "portal", "acct_1", "--dashboard", dashboard]);
        assert!(made["url"].as_str().unwrap().starts_with(begins), "{made}");
    }

    // A list whose route has no filter has one here.
    let at = "2026-11-10T14:03:00Z";
    let call = |id: &str, at: &str| json!({ "id": id, "started_at": at });
    for (id, at) in [("call_1", at), ("call_2", "2026-11-11T00:00:00Z")] {
        service.api.ask("POST", "/accounts/acct_1/calls", &call(id, at), 201);
    }
    let count = |arguments: &[&str]| world.json_of(arguments)["data"].as_array().unwrap().len();
    let calls = ["calls", "list", "acct_1"];
    for (flags, calls_of) in [
        (&[][..], 2),
        (&["--from", "2026-11-11"], 1),
        (&["--until", "2026-11-10"], 1),
        (&["--from", "2026-11-12"], 0),
    ] {
        assert_eq!(count(&[&calls[..], flags].concat()), calls_of, "{flags:?}");
    }
    for (flags, is_any) in [
        (&["--account", "acct_1"][..], true),
        (&["--account", "acct_none"], false),
        (&["--newest", "--from", "today"], true),
        (&["--newest", "--until", "2026-01-01"], false),
    ] {
        assert_eq!(count(&[&["journal"], flags].concat()) > 0, is_any, "{flags:?}");
    }
    // A type that is not known, and finds nothing, may be misspelt.
    let known = "--type: nothing found; the known types are call.ended, ";
    for command in [&["deliveries", "list"][..], &["deliveries", "cancel"]] {
        let said = world.done(&[command, &["acct_1", "--type", "call.endd"]].concat());
        assert!(said.stderr.contains(known), "{command:?}: {}", said.stderr);
    }
}

/// Commands, and how each ends: over a database, and where none answers. `None`: it runs until it is stopped, or needs
/// no database.
const ENDS: &[(&str, Option<i32>, Option<i32>)] = &[
    ("demo --data /nowhere", Some(1), None),
    ("migrate", Some(0), Some(3)),
    ("migrate --status", Some(0), Some(3)),
    ("migrate --status --dry-run", Some(2), Some(2)),
    ("api", None, Some(3)),
    ("api --data /nowhere", Some(1), Some(1)),
    ("sender", None, Some(3)),
    ("sender --trust-ca /nowhere", Some(2), Some(3)),
    ("all", None, Some(3)),
    ("erase --account acct_1 --contact contact_1", Some(0), Some(3)),
    ("erase --account acct_none --whole-account", Some(1), Some(3)),
    ("erase --account acct_1", Some(2), Some(2)),
    ("recover --all-accounts", Some(0), Some(3)),
    ("recover --account acct_none", Some(1), Some(3)),
    ("rotate-keys", Some(0), Some(3)),
    ("keygen 1", Some(0), Some(0)),
    ("keygen 256", Some(2), Some(2)),
    ("ring check", Some(0), Some(3)),
    ("ring check --keys /nowhere", Some(2), Some(2)),
    // It has found what is wrong: nobody sends.
    ("doctor", Some(1), Some(3)),
    ("journal", Some(0), Some(3)),
    ("fleet", Some(0), Some(3)),
    ("accounts list", Some(0), Some(3)),
    ("accounts portal acct_none", Some(1), Some(3)),
    ("alerts list", Some(0), Some(3)),
    ("accounts show acct_1", Some(0), Some(3)),
    ("accounts create acct_1 --timezone UTC", Some(1), Some(3)),
    ("accounts change acct_none --closing true", Some(1), Some(3)),
    ("calls list acct_1", Some(0), Some(3)),
    ("keys list acct_1", Some(0), Some(3)),
    ("keys create acct_1 --name \u{7f} --mode live", Some(2), Some(3)),
    ("keys revoke cred_none", Some(1), Some(3)),
    ("endpoints list acct_1", Some(0), Some(3)),
    ("endpoints show whep_none", Some(1), Some(3)),
    ("endpoints create acct_1 --url http://127.0.0.1/", Some(2), Some(3)),
    ("endpoints disable whep_none", Some(1), Some(3)),
    ("endpoints enable whep_none", Some(1), Some(3)),
    ("endpoints rotate whep_none", Some(1), Some(3)),
    ("endpoints delete whep_none", Some(1), Some(3)),
    ("endpoints ping whep_none", Some(1), Some(3)),
    ("deliveries list acct_1", Some(0), Some(3)),
    ("deliveries export acct_1", Some(0), Some(3)),
    ("deliveries show dlv_none", Some(1), Some(3)),
    ("deliveries redeliver dlv_none", Some(1), Some(3)),
    ("deliveries cancel acct_none --type ping", Some(1), Some(3)),
    ("levers list", Some(0), Some(3)),
    ("levers set --account acct_none --per-second 0", Some(1), Some(3)),
    ("levers set --everything --per-second 10001", Some(2), Some(3)),
    ("levers undo lvr_9", Some(1), Some(3)),
    ("senders list", Some(0), Some(3)),
];

/// What somebody has to mend is no reason to run a command again.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_refuses_ends_with_1_and_says_why() {
    let world = World::new(Settings::default()).await;
    let session = world.session().await;
    session.batch_execute(include_str!("../../deploy/roles.sql")).await.unwrap();
    let url = world.log_in("call_assistant_operator").await;
    let revoke = "REVOKE SELECT ON accounts, recoveries, endpoints FROM call_assistant_operator";
    let rename = "ALTER TABLE accounts RENAME TO a; ALTER TABLE recoveries RENAME TO r;
        ALTER TABLE endpoints RENAME TO e";
    let changes = [
        (revoke, "the login lacks a right"),
        (rename, "the schema does not belong to this program"),
    ];
    for (change, words) in changes {
        session.batch_execute(change).await.unwrap();
        for arguments in [&["accounts", "list"][..], &["recover", "--all-accounts"]] {
            let said = run_at(&url, &world.ring, arguments);
            assert_eq!(said.code, Some(1), "{arguments:?}: {}", said.stderr);
            let last = said.stderr.lines().last().unwrap();
            let begins = format!("call-assistant-postgres: {words}");
            assert!(last.starts_with(&begins), "{arguments:?}: {}", said.stderr);
        }
    }
    session.keep();
}

/// A server that asks for a login which there is not does answer: to run the command again does not help.
#[test]
fn a_login_that_has_no_password_is_no_database_that_does_not_answer() {
    // A password as it is, and Kerberos, which this program does not speak.
    for (asks_for, why) in [(3_u8, "password missing"), (7, "authentication")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut length = [0; 4];
                stream.read_exact(&mut length).unwrap();
                let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
                stream.read_exact(&mut startup).unwrap();
                let _ = stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, asks_for]);
                // Until it is closed there.
                let _ = stream.read_to_end(&mut startup);
            }
        });
        let url = format!("postgresql://nobody@{address}/none?sslmode=disable");
        let ring = KeyRing::new_line(1);
        for command in ["sender", "doctor"] {
            let said = run_at(&url, &ring, &[command]);
            let all = format!("{}{}", said.stdout, said.stderr);
            assert_eq!(said.code, Some(1), "{why}: {all}");
            assert!(all.contains("the database refuses the login: no connection to "), "{all}");
            assert!(all.contains(why), "{all}");
        }
    }
}

/// A reader that goes early is no failure, and a full disk is one: neither is a panic.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_printed_is_said_and_is_no_panic() {
    let service = Service::new().await;
    let world = &service.world;
    let empty = private_server::PrivateServer::start(Settings::default()).unwrap();
    let run = |url: &str, line: &str, out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
        command.args(words(line)).stdout(out);
        said(command.env(VARIABLE, &world.ring).env("DATABASE_URL", url))
    };
    let (here, there) = (world.server.url(), empty.url());
    for (url, line, status) in [
        (&here, "keygen 1", 0),
        (&there, "migrate --dry-run", 0),
        (&there, "migrate --status", 0),
        (&here, "erase --account acct_1 --contact contact_1", 0),
        (&here, "recover --all-accounts", 0),
        (&here, "rotate-keys", 0),
        (&here, "ring check", 0),
        (&here, "ring check --json", 0),
        (&here, "doctor", 1),
        (&here, "doctor --json", 1),
        (&here, "journal --lines", 0),
        (&here, "accounts list", 0),
        (&here, "accounts list --json", 0),
        (&here, "accounts show acct_1", 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = run(url, line, writer.into());
        assert_eq!(ended.code, Some(status), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{line}: {}", ended.stderr);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = run(url, line, full.into());
        let is_said = ended.stderr.contains("call-assistant-postgres: standard output: No space");
        assert!(ended.code == Some(1) && is_said, "{line}: {}", ended.stderr);
    }
}

// D-96: what is held, or cannot be read, is left, and said; nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_is_not_complete_ends_with_3_and_says_why() {
    const NUMBER: &str = "+4722334455";
    let service = Service::new().await;
    let world = &service.world;
    for id in ["call_1", "call_2", "call_3"] {
        let caller = json!({ "contact_id": null, "phone_number": NUMBER, "display_name": null });
        let call = json!({ "id": id, "caller": caller });
        service.api.ask("POST", "/accounts/acct_1/calls", &call, 201);
    }
    service.endpoint("/hook", &[Reply::Status(204)]);
    service.run("UPDATE calls SET body = body || 'x' WHERE id = 'call_2'").await;
    let by_number = ["--account", "acct_1", "--number", NUMBER];
    let run = |flags: &[&str]| {
        let said = world.run(&[&["erase"], flags].concat());
        let found: Value = serde_json::from_str(&said.stdout).unwrap();
        assert!(!said.stderr.contains(NUMBER), "{}", said.stderr);
        (said.code, found["calls"].clone(), found["left"].clone(), said.stderr)
    };
    let (status, calls, left, err) = run(&by_number);
    assert_eq!((status, calls, left), (Some(3), json!(2), json!("unreadable")), "{err}");
    assert_eq!(err.matches("call_2").count(), 1, "{err}");

    // Somebody holds the row of an endpoint, and begins before the erasure does.
    let held = world.held("SELECT FROM endpoints FOR UPDATE").await;
    let whole = ["--account", "acct_1", "--whole-account"];
    let (status, _, left, err) = run(&whole);
    assert_eq!((status, left), (Some(3), json!("rows")), "{err}");
    held.batch_execute("ROLLBACK; BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let erasing = running::Running::start(&mut world.command("erase", &whole));
    erasing.logged("erasing waits for older transactions");
    held.batch_execute("COMMIT").await.unwrap();
    assert_eq!(erasing.ended().code, Some(0));
    assert_eq!(service.count("SELECT count(*) FROM accounts WHERE id = 'acct_1'").await, 0);
}

// What an operator does on a bad day, where there is no dashboard: it is in the journal with a name.
#[tokio::test(flavor = "multi_thread")]
async fn sending_is_held_back_at_a_terminal() {
    let service = Service::new().await;
    let world = &service.world;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let id = endpoint.rsplit('/').next().unwrap();
    let eve = |arguments: &[&str]| world.json_of(&[arguments, &["--as", "eve"]].concat());
    let paused = eve(&["levers", "set", "--account", "acct_1", "--per-second", "0"]);
    assert_eq!((&paused["set_by"], &paused["per_second"]), (&json!("eve"), &json!(0)));
    eve(&["levers", "set", "--endpoint", id, "--per-second", "5"]);
    eve(&["levers", "set", "--everything", "--per-second", "100"]);
    let stands = paused["id"].as_str().unwrap();
    let slower = ["levers", "set", "--account", "acct_1", "--per-second", "7"];
    refused(world, &slower, 1, stands);
    let slower = eve(&[&slower[..], &["--instead-of", stands]].concat());
    let listed = eve(&["levers", "list"]);
    let listed = listed["data"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[2]), (3, &slower));
    let text = world.run(&["levers", "list"]).stdout;
    assert!(text.starts_with("id ") && text.contains(id) && text.contains("everything"), "{text}");
    for lever in listed {
        let undo = ["levers", "undo", lever["id"].as_str().unwrap(), "--as", "eve"];
        let said = world.run(&undo);
        assert!(said.code == Some(0) && said.stdout.starts_with("undone\n"), "{}", said.stdout);
    }
    refused(world, &["levers", "undo", stands], 1, "the lever does not exist, or was undone");

    (0..3).for_each(|_| service.ping(&endpoint));
    let cancel = ["deliveries", "cancel", "acct_1", "--type", "ping"];
    assert_eq!(eve(&cancel), json!({ "cancelled": 3 }));
    assert_eq!(eve(&cancel), json!({ "cancelled": 0 }));
    let parked = &eve(&["deliveries", "list", "acct_1"])["data"][0]["id"];
    let show = ["deliveries", "show", parked.as_str().unwrap()];
    let shown = eve(&show);
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("parked"), &json!("cancelled")));
    let shown = world.done(&show).stdout;
    let reason = shown.lines().find(|line| line.starts_with("reason "));
    assert!(reason.is_some_and(|line| line.ends_with("  cancelled")), "{shown}");

    let _sender = world.start("sender", &[]);
    let listed = eventually("the two processes, with their clocks", || {
        let listed = eve(&["senders", "list"]);
        let known = listed["data"].as_array().unwrap().iter();
        let known = known.filter(|row| row["clock_ahead_seconds"].is_number()).count();
        (known == 2).then_some(listed)
    });
    assert_eq!(listed["data"][0]["shards"].as_array().unwrap().len(), 64);
    let version = env!("CARGO_PKG_VERSION");
    for (row, role, has_lease) in
        [(&listed["data"][0], "sender", true), (&listed["data"][1], "api", false)]
    {
        assert_eq!((&row["role"], &row["version"]), (&json!(role), &json!(version)), "{row}");
        assert_eq!((&row["keys"], row["lease_ms"].is_number()), (&json!("1"), has_lease), "{row}");
    }
    // What is set, and each process, is a line of `doctor`.
    let everything = eve(&["levers", "set", "--everything", "--per-second", "0"]);
    let delivery = &world.json_of(&["deliveries", "list", "acct_1"])["data"][0]["id"];
    let words = format!(
        "Sending is limited: everything is paused (lever {0}, set by eve at {1}); to undo: `levers undo {0}`\n",
        everything["id"].as_str().unwrap(),
        everything["set_at"].as_str().unwrap(),
    );
    // Of levers of others nothing is said.
    let other = eve(&["levers", "set", "--account", "acct_2", "--per-second", "0"]);
    for command in [
        &["endpoints", "show", id][..],
        &["endpoints", "ping", id],
        &["deliveries", "list", "acct_1"],
        &["deliveries", "show", delivery.as_str().unwrap()],
    ] {
        let said = world.run(command);
        assert_eq!((said.code, &said.stderr), (Some(0), &words), "{command:?}");
        let said = world.run(&[command, &["--json"]].concat());
        assert_eq!((said.code, &*said.stderr), (Some(0), ""), "{command:?}");
    }
    eve(&["levers", "undo", other["id"].as_str().unwrap()]);
    let doctor = world.run(&["doctor"]).stdout;
    let line = |words: &str| doctor.lines().any(|line| line.contains(words));
    assert!(line("warn  levers        everything is paused (lever lvr_"), "{doctor}");
    assert!(
        line("ok    process       sender sender-") && line("ok    process       api "),
        "{doctor}"
    );
    let text = world.run(&["senders", "list"]).stdout;
    assert!(text.lines().next().unwrap().ends_with("  shards"), "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with("  64") && !text.contains("-0.000"), "{text}");
    let noted = world.run(&["journal", "--lines"]).stdout;
    let of_eve = noted.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_eve = of_eve.filter(|row| row["by"] == "eve");
    let actions: Vec<String> =
        of_eve.map(|row| row["action"].as_str().unwrap().to_owned()).collect();
    let expected = [
        &["lever.set"; 4][..],
        &["lever.undone"; 3],
        &["deliveries.cancelled"],
        &["lever.set"; 2],
        &["lever.undone"],
    ];
    assert_eq!(actions, expected.concat());
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
        let said = world.run_with(ring, &["ring", "check", "--json"]);
        let mut found: Value = serde_json::from_str(&said.stdout).unwrap();
        let named = found.as_object_mut().unwrap().remove("endpoints").unwrap();
        let named = named.as_array().unwrap();
        assert_eq!((said.code, &found), (Some(status), &expected));
        assert_eq!(found["unreadable"], named.len());
        for each in named {
            assert_eq!((&each["key"], &each["cause"]), (&json!(1), &json!("not in the ring")));
        }
        assert_eq!(
            said.stderr.contains("remove no line from the ring"),
            status == 1,
            "{}",
            said.stderr
        );
    }
    let why = "lacks keys that are in use: 1";
    assert_eq!(world.run_with(&other, &["rotate-keys"]).is(1, why).stdout, "");
    let rotated = world.run_with(&both, &["rotate-keys"]).is(0, "").stdout;
    assert_eq!(rotated, "{\"sealed\":2,\"unreadable\":0}\n");

    // It looks, and changes nothing: it waits for nobody who does.
    let _held = world.held("SELECT FROM endpoints FOR UPDATE").await;
    let said = world.run_with(&both, &["ring", "check"]);
    assert_eq!((said.code, &*said.stdout), (Some(0), "every secret opens: key 2 seals 2\n"));
}

// Only what seals or opens needs the ring, and asks for the right one. Another file is no lost key.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_reads_no_secret_needs_no_ring() {
    let service = Service::new().await;
    let world = &service.world;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let id = endpoint.trim_start_matches("/endpoints/");
    for line in [
        "endpoints create acct_1 --url https://hooks.example.com/two",
        "endpoints rotate ID",
        "rotate-keys",
        "ring check",
        "sender",
    ] {
        let said = world.run_with("", &words(&line.replace("ID", id)));
        let is_told = said.stderr.contains("give the ring of the running service");
        assert!(said.code == Some(2) && is_told, "{line}: {}", said.stderr);
        assert!(!said.stderr.contains("keygen"), "{line}: {}", said.stderr);
    }
    for line in [
        "endpoints list acct_1",
        "endpoints ping ID",
        "endpoints disable ID",
        "endpoints enable ID",
        "deliveries list acct_1",
        "deliveries export acct_1",
        "endpoints show ID",
    ] {
        let said = world.run_with("", &words(&line.replace("ID", id)));
        assert_eq!(said.code, Some(0), "{line}: {}", said.stderr);
        assert!(!said.stderr.contains("secrets"), "{line}: {}", said.stderr);
        // It does not say that no replaced secret signs.
        assert!(!said.stdout.contains("previous_secrets_until  none"), "{}", said.stdout);
    }
    let line = |ring: &str| {
        let out = world.run_with(ring, &["doctor"]).stdout;
        out.lines().find(|line| line.contains("  ring  ")).unwrap().to_owned()
    };
    assert!(line("").starts_with("warn  ring          not checked: "), "{}", line(""));
    let other = KeyRing::new_line(1);
    let found = "key 1 of this ring is not key 1 of the running processes (wrong file?)";
    let told = line(&other);
    assert!(told.starts_with(&format!("fail  ring          {found}: ")), "{told}");
    assert!(!told.contains("delete") && !told.contains(id), "{told}");
    let said = world.run_with(&other, &["ring", "check"]);
    assert_eq!((said.code, said.stdout), (Some(1), format!("{found}\n")));
    let is_whole = said.stderr.contains("nothing is damaged") && !said.stderr.contains("delete");
    assert!(is_whole, "{}", said.stderr);
    world.run_with("", &["endpoints", "delete", id]).is(0, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let service = Service::new().await;
    let world = &service.world;
    let look = |ring: &str, flags: &[&str]| {
        let said = world.run_with(ring, &[&["doctor", "--json"], flags].concat());
        let found: Value = serde_json::from_str(&said.stdout).unwrap();
        let text = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
        let checks = found["checks"].as_array().unwrap().iter();
        let checks =
            checks.map(|check| (text(check, "what"), (text(check, "state"), text(check, "todo"))));
        (said.code, checks.collect::<BTreeMap<_, _>>())
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
        assert_eq!(found[what].1.is_empty(), state == "ok", "{what}: {found:?}");
    }
    let text = world.run(&["doctor"]).stdout;
    let leases = text.lines().find(|line| line.contains("  leases  ")).unwrap();
    assert!(leases.ends_with("64: start a `sender`: events of these shards wait"), "{leases}");
    // With a sender there are days and owners.
    let _sender = world.start("sender", &[]);
    service.endpoint("/hook", &[Reply::Status(204)]);
    eventually("owners and days", || {
        let (_, found) = look(&world.ring, &[]);
        let is = |what: &str| found[what].0 == "ok";
        (is("leases") && is("partitions") && is("retention")).then_some(())
    });
    let (_, found) = look(&KeyRing::new_line(2), &[]);
    assert_eq!(found["ring"].0, "fail");
    let text = world.run(&["doctor"]);
    assert!(text.stdout.contains("fail  fsync "), "{}", text.stdout);
    assert!(
        text.stdout.contains("ok    leases        shards without an owner: 0\n"),
        "{}",
        text.stdout
    );

    // What `migrate` cannot mend is not for it.
    service.run(r"UPDATE migrations SET digest = '\x00' WHERE number = 1").await;
    let (status, found) = look(&world.ring, &[]);
    assert_eq!((status, found.len()), (Some(1), 1), "{found:?}");
    let todo = "use the version that has migrated the database: migrations must not be edited";
    assert_eq!(found["database"], ("fail".to_owned(), todo.to_owned()));

    // A database that is not there is one line, and nothing behind it.
    let nowhere =
        ["doctor", "--database", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"];
    let said = world.run(&nowhere);
    assert_eq!((said.code, said.stdout.lines().count()), (Some(3), 1), "{}", said.stdout);
    assert!(said.stdout.starts_with("fail  database "), "{}", said.stdout);
}
