//! Who did what, in the transaction of what was done.

use std::collections::BTreeSet;

use host::dashboard::ROUTES;
use serde_json::{Value, json};

use crate::support::running::{Answer, File, eventually, request};
use crate::support::service::Service;

const ADA: &str = "Authorization: Bearer the-token-of-ada\r\n";
const BOB: &str = "Authorization: Bearer the-token-of-bob\r\n";

/// A process that knows two people.
struct Host {
    service: Service,
    _tokens: File,
}

impl Host {
    async fn new(name: &str) -> Self {
        let tokens = "ada:operator:the-token-of-ada\nbob:reader:the-token-of-bob\n";
        let tokens = File::new(&format!("{name}-tokens"), tokens);
        let mut service = Service::with_calls(1).await;
        service.api = service.world.start("api", &["--operator-token-file", tokens.path()]);
        Self { service, _tokens: tokens }
    }

    fn send(&self, headers: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        request(self.service.api.dashboard(), method, path, headers, body.as_bytes())
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.send(ADA, method, path, body);
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
        answer.json()
    }

    /// The headers of the owner's page of an account.
    fn owner(&self) -> String {
        let made = self.ask("POST", "/accounts/acct_1/portal", &json!({}));
        let link = made["path"].as_str().unwrap().strip_prefix("/portal#link=").unwrap();
        let begun = self.send("", "POST", "/portal-login", &json!({ "link": link }));
        let (login, _) = begun.header("set-cookie").unwrap().split_once(';').unwrap();
        let token = begun.json()["token"].as_str().unwrap().to_owned();
        format!("Cookie: {login}\r\nX-Portal-Token: {token}\r\n")
    }

    /// What is in the journal behind a position.
    #[track_caller]
    fn journal(&self, after: &str) -> Vec<Value> {
        let path = format!("/journal?after={after}");
        self.ask("GET", &path, &json!({}))["data"].as_array().unwrap().clone()
    }

    /// As many rows as there are to be: one is shown once every transaction before it has ended, also those of
    /// processes that count or look after themselves.
    fn rows(&self, after: &str, count: usize) -> Vec<Value> {
        eventually(&format!("{count} rows after {after:?}"), || {
            Some(self.journal(after)).filter(|rows| rows.len() == count)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_in_the_journal_with_who_made_it() {
    let host = Host::new("journal").await;
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    // What changes nothing the second time is in the journal once.
    let twice = |method: &str, path: &str, body: &Value| {
        host.ask(method, path, body);
        host.ask(method, path, body);
    };
    twice("PATCH", "/accounts/acct_1", &json!({ "closing": true }));
    let asked = json!({ "name": "two", "mode": "live", "scopes": ["calls:read"] });
    let key = host.ask("POST", "/accounts/acct_1/keys", &asked);
    twice("POST", &format!("/keys/{}/revoke", id(&key)), &json!({}));
    let asked = json!({ "url": "https://hooks.example.com/one" });
    let made = host.ask("POST", "/accounts/acct_1/endpoints", &asked);
    let endpoint = format!("/endpoints/{}", id(&made));
    twice("PATCH", &endpoint, &json!({ "url": "https://hooks.example.com/two" }));
    host.ask("POST", &format!("{endpoint}/rotate"), &json!({}));
    host.ask("POST", &format!("{endpoint}/pause"), &json!({}));
    let ping = host.ask("POST", &format!("{endpoint}/ping"), &json!({}));
    twice("POST", &format!("{endpoint}/enable"), &json!({}));
    let delivery = ping["deliveries"][0].as_str().unwrap();
    host.ask("POST", &format!("/deliveries/{delivery}/redeliver"), &json!({}));
    host.ask("POST", &format!("/deliveries/{delivery}/send"), &json!({}));
    let recovery = host.ask("POST", &format!("{endpoint}/recover"), &json!({}));
    twice("POST", &format!("/recoveries/{}/pause", id(&recovery)), &json!({}));
    twice("POST", &format!("/recoveries/{}/continue", id(&recovery)), &json!({}));
    twice("POST", &format!("/recoveries/{}/cancel", id(&recovery)), &json!({}));
    host.ask("POST", "/accounts/acct_1/recover", &json!({}));
    let asked = json!({ "account_id": "acct_1", "per_second": 0 });
    let lever = host.ask("POST", "/levers", &asked);
    host.ask("POST", "/levers", &asked);
    let asked = json!({ "account_id": "acct_1", "per_second": 5, "instead_of": lever["id"] });
    let slower = host.ask("POST", "/levers", &asked);
    let undo = format!("/levers/{}/undo", id(&slower));
    host.ask("POST", &undo, &json!({}));
    assert_eq!(host.send(ADA, "POST", &undo, &json!({})).status, 409);
    for _ in 0..2 {
        host.ask("POST", "/accounts/acct_1/cancel", &json!({ "type": "ping" }));
    }
    host.ask("POST", "/accounts/acct_1/calls", &json!({}));
    host.ask("POST", "/accounts/acct_1/portal", &json!({}));
    twice("DELETE", "/accounts/acct_1/portal", &json!({}));
    twice("DELETE", &endpoint, &json!({}));
    host.ask("POST", "/accounts", &json!({ "id": "acct_new", "timezone": "UTC" }));
    // What is refused was not done.
    assert_eq!(host.send(ADA, "POST", &format!("{endpoint}/pause"), &json!({})).status, 409);

    let rows = host.rows("", 25);
    let actions: Vec<&str> = rows.iter().map(|row| row["action"].as_str().unwrap()).collect();
    let expected = "\
        account.changed key.created key.revoked endpoint.created endpoint.changed \
        endpoint.rotated endpoint.disabled event.emitted endpoint.enabled delivery.redelivered \
        delivery.sent recovery.started recovery.paused recovery.continued recovery.cancelled \
        recoveries.started lever.set lever.set lever.undone deliveries.cancelled call.recorded \
        link.made links.revoked endpoint.deleted account.created";
    assert_eq!(actions.join(" "), expected);
    // An alert is taken note of in a test of its own, below.
    let found = actions.iter().copied().chain(["", "alert.acknowledged"]);
    let words: BTreeSet<&str> = ROUTES.iter().map(|route| route.journal).collect();
    let found: BTreeSet<&str> = found.collect();
    assert_eq!(words, found);
    for row in &rows {
        assert_eq!(row["by"], "ada", "{row}");
        let account = match row["action"].as_str().unwrap() {
            "account.created" => json!("acct_new"),
            _ => json!("acct_1"),
        };
        assert_eq!(row["account_id"], account, "{row}");
    }
    assert_eq!([&rows[0]["before"], &rows[0]["after"]].map(|of| &of["closing"]), [false, true]);
    assert_eq!(rows[2]["target"], key["id"]);
    assert_eq!(rows[4]["before"]["url"], "https://hooks.example.com/one");
    assert_eq!(rows[4]["after"]["url"], "https://hooks.example.com/two");
    assert_eq!(rows[6]["after"]["disabled"], "paused");
    assert_eq!(lever["set_by"], "ada");
    for (at, before, after) in
        [(16, &Value::Null, &lever), (17, &lever, &slower), (18, &slower, &Value::Null)]
    {
        let row = &rows[at];
        assert_eq!((&row["before"], &row["after"]), (before, after), "{row}");
        assert_eq!(row["target"], "account acct_1", "{row}");
    }
    assert_eq!(rows[19]["after"], json!({ "type": "ping", "cancelled": 1 }));
    let all = json!(rows).to_string();
    for secret in [&key["secret"], &made["secret"]] {
        assert!(!all.contains(secret.as_str().unwrap()), "{all}");
    }

    // A page goes on behind another.
    let position = rows[22]["position"].as_str().unwrap();
    assert_eq!(host.journal(position), rows[23..]);
    assert_eq!(host.journal(rows[24]["position"].as_str().unwrap()), [Value::Null; 0]);
    for (after, status) in [("x", 400), ("1", 400), ("18446744073709551615-1", 409)] {
        let refused = host.send(ADA, "GET", &format!("/journal?after={after}"), &json!({}));
        assert_eq!(refused.status, status, "{after}: {}", refused.text());
    }
}

/// An alert is acknowledged by who is logged in, and not by whom the request names; and by its owner apart.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_name_signs_with_it() {
    let host = Host::new("names").await;
    assert_eq!(host.send(BOB, "POST", "/recoveries", &json!({})).status, 403, "bob only reads");
    assert_eq!(host.send(BOB, "GET", "/journal", &json!({})).json()["data"], json!([]));
    let asked = json!({ "url": "https://hooks.example.com/" });
    host.ask("POST", "/accounts/acct_1/endpoints", &asked);
    host.service
        .run(
            r#"INSERT INTO alerts (endpoint, version, at, alert)
           SELECT number, 1, now(), '{"kind":"disabled","reason":"gone"}' FROM endpoints"#,
        )
        .await;
    let alerts = host.ask("GET", "/accounts/acct_1/alerts", &json!({}));
    let id = alerts["data"][0]["id"].as_str().unwrap();
    let path = format!("/alerts/{id}/acknowledge");
    let owner = host.owner();
    let by_owner = host.send(&owner, "POST", &path, &json!({ "by": "ada" })).json();
    assert_eq!(by_owner["acknowledged"], Value::Null, "{by_owner}");
    assert!(by_owner["owner_acknowledged_at"].is_string(), "{by_owner}");
    let by_ada = host.ask("POST", &path, &json!({ "by": "somebody else" }));
    assert_eq!(by_ada["acknowledged"]["by"], "ada");
    assert_eq!(by_ada["owner_acknowledged_at"], by_owner["owner_acknowledged_at"]);
    for headers in [ADA, &owner] {
        assert_eq!(host.send(headers, "POST", &path, &json!({})).json(), by_ada, "{headers}");
    }
    assert_eq!(host.ask("GET", "/alerts?wait=0", &json!({}))["data"], json!([by_ada]));
    let rows = host.rows("", 4);
    let rows: Vec<_> = rows.iter().map(|row| (&row["action"], &row["by"])).collect();
    let noted = json!("alert.acknowledged");
    assert_eq!(rows[2..], [(&noted, &json!("owner")), (&noted, &json!("ada"))], "{rows:?}");
}

/// A row of a transaction that ends late is passed by no reader.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_out_however_late_it_is_committed() {
    let host = Host::new("late").await;
    let insert = "INSERT INTO journal (by, action, target) VALUES ('x', 'late', 'x')";
    let session = host.service.world.held(insert).await;
    host.ask("PATCH", "/accounts/acct_1", &json!({ "closing": true }));
    assert_eq!(host.journal(""), [Value::Null; 0], "one before it has not ended");
    session.batch_execute("COMMIT").await.unwrap();
    session.keep();
    let rows = host.rows("", 2);
    let actions: Vec<&Value> = rows.iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["late", "account.changed"]);
}

/// Numbers of transactions have an order that is not that of their texts, and a page ends between two of them.
#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_numbers_of_transactions_become_longer() {
    let host = Host::new("longer").await;
    host.service
        .run(
            "INSERT INTO journal (writer, by, action, target)
         SELECT w::text::xid8, 'x', 'x', format('%s of %s', n, w)
         FROM unnest(ARRAY[9, 10, 99, 100]) AS w, generate_series(1, 7) AS n ORDER BY w, n",
        )
        .await;
    let expected: Vec<String> =
        [9, 10, 99, 100].iter().flat_map(|w| (1..=7).map(move |n| format!("{n} of {w}"))).collect();
    let (mut after, mut read) = (String::new(), Vec::new());
    loop {
        let page = host.ask("GET", &format!("/journal?limit=5&after={after}"), &json!({}));
        let rows = page["data"].as_array().unwrap();
        read.extend(rows.iter().map(|row| row["target"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = next.to_owned();
        assert!(read.len() <= expected.len(), "rows come again: {read:?}");
    }
    assert_eq!(read, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_in_the_journal_and_an_erasure_empties_what_it_says() {
    let host = Host::new("terminal").await;
    let world = &host.service.world;
    let key = ["keys", "create", "acct_1", "--name", "two", "--mode", "live", "--as", "eve"];
    world.json_of(&key);
    let run = |arguments: &[&str]| world.done(arguments).stdout;
    run(&["rotate-keys", "--as", "eve"]);
    run(&["recover", "--account", "acct_1", "--as", "eve"]);
    run(&["erase", "--account", "acct_1", "--number", "+4915100000", "--as", "eve"]);
    run(&["erase", "--account", "acct_1", "--call", "call_0", "--as", "eve"]);
    run(&["accounts", "create", "acct_new", "--timezone", "UTC"]);
    let lines = run(&["journal", "--lines"]);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row["action"].as_str().unwrap(), row["target"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown[1..],
        [
            ("rotate-keys", "signing secrets"),
            ("recoveries.started", "acct_1"),
            ("erase", "a caller, by a number"),
            ("erase", "the caller of call_0"),
            ("account.created", "acct_new"),
        ]
    );
    assert!(rows[..5].iter().all(|row| row["by"] == "eve"), "{lines}");
    assert_ne!(rows[5]["by"], "eve", "the user of the process");
    assert!(!lines.contains("4915100000"), "{lines}");
    assert_eq!(rows[0]["after"]["mode"], "live");
    let after = rows[4]["position"].as_str().unwrap();
    assert_eq!(run(&["journal", "--lines", "--after", after]).lines().count(), 1);

    run(&["erase", "--account", "acct_1", "--whole-account", "--as", "eve"]);
    let kept = host.journal("");
    let of_account = kept.iter().filter(|row| row["account_id"] == "acct_1");
    assert_eq!(of_account.clone().count(), 5);
    for row in of_account {
        assert_eq!((&row["before"], &row["after"]), (&Value::Null, &Value::Null), "{row}");
    }
    assert_eq!(kept[5]["after"]["plan"], "business");

    let refused = world.run(&["rotate-keys", "--as", ""]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.starts_with("--as: expected a name"), "{}", refused.stderr);
}

/// A copy that goes on over a restored database would lack what was done there before it had come as far as the copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_was_lost_is_refused_however_far_the_database_has_come() {
    let host = Host::new("restored").await;
    host.ask("PATCH", "/accounts/acct_1", &json!({ "closing": true }));
    host.ask("PATCH", "/accounts/acct_1", &json!({ "closing": false }));
    let copied = host.rows("", 2);
    let (kept, lost) = (copied[0]["position"].as_str(), copied[1]["position"].as_str());
    let (kept, lost) = (kept.unwrap(), lost.unwrap());
    // As after a restore to an instant between both, and some work.
    host.service.run("DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)").await;
    host.ask("PATCH", "/accounts/acct_1", &json!({ "plan": "pro" }));

    host.rows(kept, 1);
    let refused = host.send(ADA, "GET", &format!("/journal?after={lost}"), &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    for print in ["--lines", "--json"] {
        let copies = ["journal", print, "--after", lost];
        let said = host.service.world.run(&copies);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{}", said.stderr);
        assert!(said.stderr.contains("begin again without it"), "{}", said.stderr);
    }
}
