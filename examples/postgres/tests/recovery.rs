//! What owners are told, over senders that start and end.
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::unwrap_used)]

#[path = "../../../tests/server/receiver.rs"]
#[allow(dead_code)]
mod receiver;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use call_assistant_postgres::private_server::Settings;
use serde_json::{Value, json};

use receiver::{Receiver, Reply};
use support::running::{self, File, eventually};
use support::{Running, World, data};

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--time-scale", "0.001"];

/// A database with an account, a process that answers for it, and its endpoints.
struct Service {
    world: World,
    api: Running,
    receiver: Receiver,
}

impl Service {
    async fn new() -> Self {
        let world = World::new(Settings::default()).await;
        // One for each test: they run at the same time, and each removes its own.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("recovery-{}.json", MADE.fetch_add(1, Ordering::Relaxed));
        let file = File::new(&name, &data(0).to_string());
        let api = world.start("api", &["--data", file.path(), "--allow-loopback-endpoints"]);
        Self { world, api, receiver: Receiver::start() }
    }

    fn endpoint(&self, path: &str, replies: &[Reply]) -> String {
        let url = self.receiver.url(path, replies);
        let made = self.api.ask("POST", "/accounts/acct_1/endpoints", &json!({ "url": url }), 201);
        format!("/endpoints/{}", made["id"].as_str().unwrap())
    }

    /// The kinds of what the owner was told, oldest first, and the latest message.
    fn told(&self) -> (Vec<String>, Value) {
        let shown = self.api.ask("GET", "/accounts/acct_1/alerts", &json!({}), 200);
        let alerts = shown["data"].as_array().unwrap();
        let kinds = alerts.iter().rev().map(|alert| alert["kind"].as_str().unwrap().to_owned());
        (kinds.collect(), alerts.first().map_or(Value::Null, |alert| alert["message"].clone()))
    }

    #[track_caller]
    fn is_told(&self, kinds: &[&str], message: &str) {
        eventually(message, || {
            let (told, latest) = self.told();
            (told == kinds && latest == message).then_some(())
        });
    }

    async fn run(&self, sql: &str) {
        let session = self.world.database.session().await.unwrap();
        session.batch_execute(sql).await.unwrap();
        session.keep();
    }
}

// Each fact once, whichever of the senders it comes from.
#[tokio::test(flavor = "multi_thread")]
async fn owners_are_told_of_an_endpoint_that_stays_disabled() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/gone", &[Reply::Status(410)]);
    let mut sender = service.world.start("sender", &SENDER);
    service.api.ask("POST", &format!("{endpoint}/ping"), &json!({}), 201);
    service.is_told(&["disabled"], "disabled: it answered 410; it has missed 1 so far");
    service.api.ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
    sender.ask_to_end();
    assert!(sender.ended().success());

    for (days, kinds, message) in [
        (0, 1, "disabled: it answered 410; it has missed 1 so far"),
        (1, 2, "disabled for 1 day: it answered 410; it has missed 2 so far"),
        (2, 2, "disabled for 1 day: it answered 410; it has missed 2 so far"),
        (3, 3, "disabled for 3 days: it answered 410; it has missed 2 so far"),
        (9, 3, "disabled for 3 days: it answered 410; it has missed 2 so far"),
    ] {
        let since = format!("UPDATE endpoints SET since = now() - interval '{days} days 1 minute'");
        service.run(&since).await;
        // Senders look when they start.
        let senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
        let expected = ["disabled", "still_disabled", "still_disabled"];
        service.is_told(&expected[..kinds], message);
        for mut sender in senders {
            sender.ask_to_end();
            assert!(sender.ended().success());
        }
        service.is_told(&expected[..kinds], message);
    }
}
