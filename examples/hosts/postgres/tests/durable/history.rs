//! A database that goes back while senders live.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use private_server::PrivateServer;
use serde_json::Value;

use crate::support::Running;
use crate::support::receiver::Reply;
use crate::support::running::{PATIENCE, eventually};
use crate::support::service::{PENDING, Service};

/// Four tenants. Two answer once they are released, so that both have a backlog.
struct Tenants {
    service: Service,
    endpoints: [String; 4],
}

const PATHS: [&str; 4] = ["/slow", "/second", "/third", "/also-slow"];

impl Tenants {
    async fn new() -> Self {
        let service = Service::new().await;
        let mut endpoints = [const { String::new() }; 4];
        for (n, path) in PATHS.into_iter().enumerate() {
            let reply = if path.ends_with("slow") { Reply::Held(204) } else { Reply::Status(204) };
            endpoints[n] = service.endpoint_of(&format!("acct_{}", n + 1), path, &[reply]);
        }
        Self { service, endpoints }
    }

    fn ping(&self, tenant: usize, count: usize) {
        (0..count).for_each(|_| self.service.ping(&self.endpoints[tenant]));
    }

    /// Waits until all that a slow tenant has room for is on its way.
    fn is_busy(&self, tenant: usize) {
        eventually("a backlog", || {
            (self.service.receiver.got(PATHS[tenant]).len() == 8).then_some(())
        });
    }

    /// Nobody has another tenant's event, and each of these has all of its own.
    async fn each_has_its_own(&self, all: [usize; 4]) {
        self.service.becomes(PENDING, 0).await;
        for (n, path) in PATHS.into_iter().enumerate() {
            let mut ids = BTreeSet::new();
            for got in self.service.receiver.got(path) {
                let event: Value = serde_json::from_slice(&got.body).unwrap();
                assert_eq!(event["account_id"], format!("acct_{}", n + 1), "{path}: {event}");
                ids.insert(event["id"].to_string());
            }
            assert!(ids.len() >= all[n], "{path}: {} of {}", ids.len(), all[n]);
        }
    }
}

// D-97: an older copy of the whole database takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_is_restored_under_a_living_sender() {
    let mut tenants = Tenants::new().await;
    let sender = tenants.service.sender();
    tenants.ping(0, 12);
    tenants.is_busy(0);
    let renewals = "SELECT max(renewals) FROM senders";
    let before = tenants.service.count(renewals).await;
    keep_a_copy(&mut tenants.service);

    ready(&tenants).await;
    tenants.ping(0, 30);
    // The sender has heard of more renewals than the copy can know, and has all that was accepted.
    let heard = format!("SELECT (({renewals}) > {before} + 3)::int::bigint");
    tenants.service.becomes(&heard, 1).await;
    eventually("all are planned", || {
        sender.value("sender_planned").filter(|planned| *planned >= 34.0)
    });
    restore_the_copy(&mut tenants.service);

    ready(&tenants).await;
    tenants.ping(1, 15);
    tenants.ping(2, 15);
    tenants.ping(3, 30);
    tenants.is_busy(3);
    tenants.service.receiver.release();
    tenants.each_has_its_own([12, 15, 15, 30]).await;
    sender.logged("the database went back: ");
}

/// Waits until the API answers again.
async fn ready(tenants: &Tenants) {
    let began = Instant::now();
    while tenants.service.api.get("/v1/account").status != 200 {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

// D-30: no request waits until a standby has its window.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_was_forgotten_admits_one_quota_more_at_most() {
    let mut service = Service::new().await;
    let admitted = |api: &Running, asked: usize| {
        // Its first answer may have to find the server.
        eventually("ready", || (api.readyz().status == 200).then_some(()));
        (0..asked).filter(|_| api.get("/v1/account").status == 200).count()
    };
    let began = Instant::now();
    assert_eq!(admitted(&service.api, 20), 20);
    keep_a_copy(&mut service);
    let first = admitted(&service.api, 100);
    restore_the_copy(&mut service);
    let remembers = admitted(&service.api, 10);
    // Another process has no refusals to remember.
    let other = service.world.start("api", &[]);
    let again = admitted(&other, 100);
    if began.elapsed() < Duration::from_secs(60) {
        assert_eq!((first, remembers, again), (40, 0, 40));
    } else {
        // The first ones count no longer: this machine is slow.
        assert!(remembers + again <= 60, "{remembers} and {again}");
    }
}

fn keep_a_copy(service: &mut Service) {
    let server = &mut service.world.server;
    server.stop();
    copy(server, "data", "copy");
    server.launch().unwrap();
}

fn restore_the_copy(service: &mut Service) {
    let server = &mut service.world.server;
    server.kill();
    copy(server, "copy", "data");
    server.launch().unwrap();
}

fn copy(server: &PrivateServer, from: &str, to: &str) {
    let [from, to] = [from, to].map(|name| server.folder().join(name));
    assert!(Command::new("rm").arg("-rf").arg(&to).status().unwrap().success());
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}
