//! Each rotation of the guide's table, over two API processes and a sender that are restarted one by
//! one, while customers walk, ask and receive.

use std::process::Stdio;

use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use serde_json::{Value, json};

use crate::commands::run_with;
use crate::support::receiver::{Receiver, Reply};
use crate::support::running::{Answer, File, eventually, request};
use crate::support::{KEY, Running, World, data};

const FLAGS: [&str; 1] = ["--allow-loopback-endpoints"];

/// Two processes of the API and a sender, and what customers do with them.
struct Hosts {
    world: World,
    apis: [Running; 2],
    sender: Running,
    receiver: Receiver,
    owners: Vec<Owner>,
    /// A walk that began before the first step, and what it has returned.
    walk: (Option<String>, usize),
}

/// An endpoint, and the secret that it was made with.
struct Owner {
    endpoint: String,
    hook: String,
    secret: String,
}

impl Owner {
    fn new(api: &Running, receiver: &Receiver, number: usize) -> Self {
        let hook = format!("/hook/{number}");
        let asked = json!({ "url": receiver.url(&hook, &[Reply::Status(204)]) });
        let made = api.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
        let endpoint = format!("/endpoints/{}", made["id"].as_str().unwrap());
        Self { endpoint, hook, secret: made["secret"].as_str().unwrap().to_owned() }
    }
}

impl Hosts {
    async fn new(calls: u64) -> Self {
        let world = World::new(Settings::default()).await;
        let file = File::new("rotation.json", &data(calls).to_string());
        let one = world.start("api", &["--data", file.path(), FLAGS[0]]);
        let two = world.start("api", &FLAGS);
        let sender = world.start("sender", &FLAGS);
        let (receiver, owners) = (Receiver::start(), Vec::new());
        Self { world, apis: [one, two], sender, receiver, owners, walk: (None, 0) }
    }

    /// Gives every process this ring, one after the other, with the customers' requests in between.
    fn restart_with(&mut self, ring: &[&str]) {
        self.world.ring = ring.join("\n");
        for n in 0..3 {
            match n {
                2 => self.sender = self.world.start("sender", &FLAGS),
                _ => self.apis[n] = self.world.start("api", &FLAGS),
            }
            self.customers();
        }
    }

    /// What customers do at every moment. All of it has to succeed.
    fn customers(&mut self) {
        for (from, to) in [(0, 1), (1, 0)] {
            let cursor = next(&page(&self.apis[from], None)).unwrap();
            let second = page(&self.apis[to], Some(&cursor));
            assert_eq!(second.status, 200, "a cursor of the other process: {}", second.text());
        }
        let (cursor, returned) = &mut self.walk;
        let answer = page(&self.apis[*returned % 2], cursor.as_deref());
        assert_eq!(answer.status, 200, "the long walk: {}", answer.text());
        *returned += answer.json()["data"].as_array().unwrap().len();
        *cursor = next(&answer);

        // A new endpoint, whose owner replaces its secret at the other process. A receiver that knows
        // only one of the two secrets accepts the next delivery; so does the oldest endpoint's.
        let at = self.owners.len() % 2;
        let owner = Owner::new(&self.apis[at], &self.receiver, self.owners.len());
        let rotated = format!("{}/rotate", owner.endpoint);
        let new = self.apis[1 - at].ask("POST", &rotated, &json!({}), 200)["secret"].clone();
        self.owners.push(owner);
        for owner in [&self.owners[0], &self.owners[self.owners.len() - 1]] {
            let before = self.receiver.got(&owner.hook).len();
            self.apis[at].ask("POST", &format!("{}/ping", owner.endpoint), &json!({}), 201);
            let got =
                eventually("the ping", || self.receiver.got(&owner.hook).get(before).cloned());
            assert!(got.is_signed_with(&owner.secret), "{}", owner.hook);
            let is_new = owner.hook == self.owners[self.owners.len() - 1].hook;
            assert!(!is_new || got.is_signed_with(new.as_str().unwrap()), "{}", owner.hook);
        }
    }
}

fn page(api: &Running, cursor: Option<&str>) -> Answer {
    api.get(&match cursor {
        None => "/v1/calls?limit=2".to_owned(),
        Some(cursor) => format!("/v1/calls?limit=2&cursor={cursor}"),
    })
}

fn next(answer: &Answer) -> Option<String> {
    answer.json()["next_cursor"].as_str().map(str::to_owned)
}

// D-43: cursors and signing secrets under a ring's key.
#[tokio::test(flavor = "multi_thread")]
async fn a_rings_key_is_replaced_in_three_steps_and_nothing_is_refused() {
    let mut hosts = Hosts::new(60).await;
    let old = hosts.world.ring.clone();
    let new = KeyRing::new_line(2);
    hosts.customers();

    hosts.restart_with(&[&old, &new]); // 1. everywhere
    hosts.restart_with(&[&new, &old]); // 2. first
    let rotated = hosts.world.command("rotate-keys", &[]).output().unwrap();
    let line: Value = serde_json::from_slice(&rotated.stdout).unwrap();
    assert_eq!((rotated.status.code(), &line["unreadable"]), (Some(0), &json!(0)), "{line}");
    hosts.customers();
    let (mut cursor, mut returned) = hosts.walk.clone();
    while let Some(at) = cursor {
        let answer = page(&hosts.apis[0], Some(&at));
        returned += answer.json()["data"].as_array().unwrap().len();
        cursor = next(&answer);
    }
    assert_eq!(returned, 60, "the walk that began under the old key");
    hosts.walk = (None, 0);
    hosts.restart_with(&[&new]); // 3. removed
    assert!(!hosts.sender.log().contains("cannot be opened"), "{}", hosts.sender.log());
}

// The order that looks shorter: the new key first, at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_in_front_at_once_refuses_cursors_and_secrets() {
    let mut hosts = Hosts::new(10).await;
    let old = hosts.world.ring.clone();
    hosts.world.ring = [&KeyRing::new_line(2), "\n", &old].concat();
    hosts.apis[0] = hosts.world.start("api", &FLAGS);
    let cursor = next(&page(&hosts.apis[0], None)).unwrap();
    let refused = page(&hosts.apis[1], Some(&cursor));
    assert_eq!(refused.json()["error"]["code"], "invalid_cursor");
    let owner = Owner::new(&hosts.apis[0], &hosts.receiver, 0);
    hosts.apis[0].ask("POST", &format!("{}/ping", owner.endpoint), &json!({}), 201);
    eventually("the sender has not the key", || {
        hosts.sender.log().contains("key 2, which is not in the ring").then_some(())
    });
}

/// Runs a role that must not start, and returns what it says.
fn refused(world: &World, ring: &str, role: &str) -> String {
    let mut command = world.command(role, &[]);
    let output = command.env(VARIABLE, ring).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{role}");
    String::from_utf8(output.stderr).unwrap()
}

fn is_ready(process: &Running) -> bool {
    request(process.monitoring(), "GET", "/readyz", "", b"").status == 200
}

// D-100: a copied line, a second `keygen 1`, another environment's file.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_another_key_under_a_number_in_use_does_not_start() {
    let hosts = Hosts::new(3).await;
    let (world, other) = (&hosts.world, KeyRing::new_line(1));
    // It is in use from the start of the first process on that may seal with it.
    for has_endpoint in [false, true] {
        if has_endpoint {
            Owner::new(&hosts.apis[0], &hosts.receiver, 0);
        }
        let below = [&KeyRing::new_line(2), "\n", &other].concat();
        for (ring, role) in [
            (&other, "api"),
            (&other, "sender"),
            (&other, "all"),
            (&below, "api"),
            (&below, "sender"),
        ] {
            let said = refused(world, ring, role);
            assert!(said.contains("key 1 of this ring is not key 1 of the running"), "{said}");
        }
    }
    // Nor does it seal, or find that all is well.
    let create = ["endpoints", "create", "acct_1", "--url", "https://example.com/"];
    for arguments in [&create[..], &["rotate-keys"], &["ring", "check"]] {
        let said = run_with(world, &other, arguments);
        assert_eq!(said.status, Some(1), "{arguments:?}: {}", said.err);
    }
    let listed = hosts.apis[0].ask("GET", "/accounts/acct_1/endpoints", &Value::Null, 200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
}

// D-100: of two keys under a number one is in use, however close they come.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_that_start_at_once_with_two_keys_one_does() {
    for _ in 0..3 {
        let world = World::new(Settings::default()).await;
        let commands = [1, 1].map(|number| {
            let mut command = world.command("api", &[]);
            command.env(VARIABLE, KeyRing::new_line(number)).stderr(Stdio::null());
            command.spawn().unwrap()
        });
        let [mut one, mut two] = commands;
        let first = eventually("one has ended", || {
            let ended = [one.try_wait().unwrap(), two.try_wait().unwrap()];
            ended.iter().any(Option::is_some).then_some(ended)
        });
        // The other goes on.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let later = [one.try_wait().unwrap(), two.try_wait().unwrap()];
        for process in [&mut one, &mut two] {
            let _ = process.kill();
            let _ = process.wait();
        }
        assert_eq!(first, later);
        let codes: Vec<_> = later.iter().flatten().map(|status| status.code()).collect();
        assert_eq!(codes, [Some(1)]);
    }
}

// D-100: a secret sealed with a key that the others lack would stop them all.
#[tokio::test(flavor = "multi_thread")]
async fn who_lacks_a_key_in_use_seals_nothing() {
    let hosts = Hosts::new(3).await;
    let (world, lacking) = (&hosts.world, KeyRing::new_line(2));
    let owner = Owner::new(&hosts.apis[0], &hosts.receiver, 0);
    let create = ["endpoints", "create", "acct_1", "--url", "https://example.com/"];
    let said = run_with(world, &lacking, &create);
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("lacks keys that are in use: 1"), "{}", said.err);

    let mut command = world.command("api", &FLAGS);
    command.env(VARIABLE, &lacking);
    let wrong = Running::of(command);
    assert!(is_ready(&wrong), "it answers the public API");
    let asked = json!({ "url": "https://example.com/" });
    let rotated = format!("{}/rotate", owner.endpoint);
    for (path, body) in [("/accounts/acct_1/endpoints", &asked), (&rotated, &json!({}))] {
        let answer = wrong.ask("POST", path, body, 503);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("give this process the ring of the others"), "{message}");
    }
    // Nothing was changed, and nobody is stopped by it.
    let read = "SELECT (SELECT count(*) FROM endpoints), (SELECT array_agg(number) FROM ring_keys)";
    let row = world.database.session().await.unwrap().query_one(read, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, Vec<i16>>(1)), (1, vec![1]));
    hosts.apis[0].ask("POST", &rotated, &json!({}), 200);
    assert!(hosts.apis.iter().all(is_ready));
}

// D-100: a row that nobody can open gets another secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_lost_is_replaced() {
    let hosts = Hosts::new(3).await;
    let owner = Owner::new(&hosts.apis[0], &hosts.receiver, 0);
    let session = hosts.world.database.session().await.unwrap();
    session.execute("UPDATE endpoints SET secrets = '\\x0107'", &[]).await.unwrap();
    let rotated = format!("{}/rotate", owner.endpoint);
    let new = hosts.apis[0].ask("POST", &rotated, &json!({}), 200)["secret"].clone();
    hosts.apis[0].ask("POST", &format!("{}/ping", owner.endpoint), &json!({}), 201);
    let got = eventually("the ping", || hosts.receiver.got(&owner.hook).first().cloned());
    assert!(got.is_signed_with(new.as_str().unwrap()));
}

// KEY-6, KEY-4
#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_replaced_and_no_process_refuses_it() {
    let hosts = Hosts::new(3).await;
    let [one, two] = &hosts.apis;
    let asked = json!({ "name": "the next one", "mode": "live", "scopes": ["calls:read"] });
    let made = one.ask("POST", "/accounts/acct_1/keys", &asked, 201);
    let new = made["secret"].as_str().unwrap();
    let with = |api: &Running, key: &str| {
        let authorization = format!("Authorization: Bearer {key}\r\n");
        request(api.api(), "GET", "/v1/calls", &authorization, b"").status
    };
    for api in &hosts.apis {
        assert_eq!([with(api, KEY), with(api, new)], [200, 200]);
    }
    // The uses of both are seen, so that the old one is not revoked while somebody has it.
    let keys = two.ask("GET", "/accounts/acct_1/keys", &Value::Null, 200);
    assert!(keys["data"].as_array().unwrap().iter().all(|key| key["last_used_at"].is_string()));
    two.ask("POST", "/keys/cred_1/revoke", &json!({}), 200);
    for api in &hosts.apis {
        assert_eq!([with(api, KEY), with(api, new)], [401, 200]);
    }
}
