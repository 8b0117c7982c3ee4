//! Each rotation of the guide's table, over two API processes and a sender that are restarted one by
//! one, while customers walk, ask and receive.

use std::process::Stdio;

use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use serde_json::json;

use crate::support::receiver::{Receiver, Reply};
use crate::support::running::{Answer, File, eventually};
use crate::support::service::Service;
use crate::support::{Running, World, data, said};

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
    let rotated = hosts.world.done(&["rotate-keys"]).stdout;
    assert!(rotated.ends_with(",\"unreadable\":0}\n"), "{rotated}");
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
    hosts.sender.logged("key 2, which is not in the ring");
}

// D-100: a copied line, a second `keygen 1`, another environment's file.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_another_key_under_a_number_in_use_does_not_start() {
    let service = Service::new().await;
    let (world, other) = (&service.world, KeyRing::new_line(1));
    // It is in use from the start of the first process on that may seal with it.
    for has_endpoint in [false, true] {
        if has_endpoint {
            service.endpoint("/hook", &[]);
        }
        let below = [&KeyRing::new_line(2), "\n", &other].concat();
        let api = [&other, &below].map(|ring| (ring, "api"));
        let sender = [&other, &below].map(|ring| (ring, "sender"));
        for (ring, role) in api.into_iter().chain(sender).chain([(&other, "all")]) {
            let why = "key 1 of this ring is not key 1 of the running";
            let said = said(world.command(role, &[]).env(VARIABLE, ring));
            assert!(said.code == Some(1) && said.stderr.contains(why), "{role}: {}", said.stderr);
        }
    }
    // Nor does it seal, or find that all is well.
    let create = ["endpoints", "create", "acct_1", "--url", "https://example.com/"];
    for arguments in [&create[..], &["rotate-keys"], &["ring", "check"]] {
        let said = world.run_with(&other, arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {}", said.stderr);
    }
    assert_eq!(service.count("SELECT count(*) FROM endpoints").await, 1);
}

// D-100: of two keys under a number one is in use, however close they come.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_that_start_at_once_with_two_keys_one_does() {
    for _ in 0..3 {
        let world = World::new(Settings::default()).await;
        let commands = [1, 1].map(|number| {
            let mut command = world.command("api", &[]);
            command.env(VARIABLE, KeyRing::new_line(number));
            command.stdout(Stdio::null()).stderr(Stdio::null());
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
    let service = Service::new().await;
    let (world, lacking) = (&service.world, KeyRing::new_line(2));
    let endpoint = service.endpoint("/hook", &[]);
    let create = ["endpoints", "create", "acct_1", "--url", "https://example.com/"];
    let said = world.run_with(&lacking, &create);
    said.is(1, "lacks keys that are in use: 1");

    let mut command = world.command("api", &FLAGS);
    command.env(VARIABLE, &lacking);
    let wrong = Running::of(command);
    assert_eq!(wrong.readyz().status, 200, "it answers the public API");
    let asked = json!({ "url": "https://example.com/" });
    let rotated = format!("{endpoint}/rotate");
    for (path, body) in [("/accounts/acct_1/endpoints", &asked), (&rotated, &json!({}))] {
        let answer = wrong.ask("POST", path, body, 503);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("give this process the key ring of the other processes"),
            "{message}"
        );
    }
    // Nothing was changed, and nobody is stopped by it.
    let read = "SELECT (SELECT count(*) FROM endpoints), (SELECT array_agg(number) FROM ring_keys)";
    let row = world.session().await.query_one(read, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, Vec<i16>>(1)), (1, vec![1]));
    service.post(&rotated, 200);
    assert_eq!(service.api.readyz().status, 200);
}
