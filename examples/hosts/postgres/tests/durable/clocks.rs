//! Processes whose clocks are wrong, and a database whose clock is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use serde_json::json;

use crate::support::receiver::{Got, Reply};
use crate::support::running::{File, eventually, request};
use crate::support::service::{DELIVERED, PENDING, SENDER, Service};
use crate::support::{Running, World, shifted};

const API: [&str; 1] = ["--allow-loopback-endpoints"];
const DIFFERS: &str = "ahead of the database's, and one of the two is wrong";

/// `None` where clocks cannot be shifted: then a test has nothing to look at.
fn faketime() -> Option<impl Fn(&World, &str, &[&str], i64) -> Running> {
    let Some(library) = shifted::faketime() else {
        println!("skipped: clocks that differ between processes, for `faketime` is not installed");
        return None;
    };
    Some(move |world: &World, role: &str, flags: &[&str], seconds| {
        let mut command = world.command(role, flags);
        shifted::shift(&mut command, &library, seconds);
        Running::of(command)
    })
}

/// By how many seconds `t` of a request is wrong.
fn wrong_by(got: &Got) -> i64 {
    let signature = got.header("x-service-signature");
    let t = signature.strip_prefix("t=").unwrap().split(',').next().unwrap();
    (t.parse::<i64>().unwrap() - got.at.unix_seconds()).abs()
}

fn readyz(process: &Running) -> u16 {
    process.readyz().status
}

/// Waits until a process is told that its clock is so far ahead of the database's.
#[track_caller]
fn is_ahead(process: &Running, seconds: i64) {
    eventually("the clock's difference", || {
        let ahead = process.value("clock_ahead_seconds")?;
        ((ahead - seconds as f64).abs() < 2.0).then_some(())
    });
}

/// One customer's sync: it asks from a minute before the newest call it has seen.
#[derive(Default)]
struct Sync {
    watermark: Option<Timestamp>,
    seen: BTreeSet<String>,
}

impl Sync {
    fn ask(&mut self, api: &Running) {
        let mut path = "/v1/calls?limit=100".to_owned();
        if let Some(watermark) = self.watermark {
            let from = watermark.saturating_sub(Duration::from_secs(60));
            path += &format!("&created_after={from}");
        }
        let page = api.get(&path);
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        assert_eq!(page["has_more"], false);
        for call in page["data"].as_array().unwrap() {
            self.seen.insert(call["id"].as_str().unwrap().to_owned());
            let written = Timestamp::parse(call["created_at"].as_str().unwrap()).unwrap();
            self.watermark = self.watermark.max(Some(written));
        }
    }
}

// D-86, D-80, D-103: processes that are wrong by up to twenty minutes, beside some that are right.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_clocks_lose_nothing_and_sign_nothing() {
    let Some(shifted) = faketime() else { return };
    let service = Service::new().await;
    let world = &service.world;
    let apis = [-1200, 1200, 45].map(|by| shifted(world, "api", &API, by));
    let wrong = [-1200, -33, 33, 1200].map(|by| shifted(world, "sender", &SENDER, by));
    let near = [-25, 25].map(|by| {
        let flags = [&SENDER[..], &["--time-scale", "0.1"]].concat();
        shifted(world, "sender", &flags, by)
    });
    for sender in &wrong {
        assert_eq!((&sender.first["ready"], readyz(sender)), (&json!(false), 503));
        sender.logged(DIFFERS);
    }
    for sender in &near {
        assert_eq!((&sender.first["ready"], readyz(sender)), (&json!(true), 200));
    }
    let replies = [Reply::Status(500), Reply::Status(204)];
    let endpoints = ["/a", "/b", "/c"].map(|path| service.endpoint(path, &replies));

    // Calls, written by each and asked of each: each has the time of the database.
    let all = [&service.api, &apis[0], &apis[1], &apis[2]];
    let (mut sync, mut written) = (Sync::default(), BTreeSet::new());
    for nth in 0..24 {
        let before = service.count("SELECT (extract(epoch FROM now()) * 1e6)::bigint").await;
        let call = all[nth % 4].ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
        let created = Timestamp::parse(call["created_at"].as_str().unwrap()).unwrap();
        let after = service.count("SELECT (extract(epoch FROM now()) * 1e6)::bigint").await;
        assert!((before..=after).contains(&created.unix_micros()), "{nth}: {created}");
        written.insert(call["id"].as_str().unwrap().to_owned());
        sync.ask(all[nth / 4 % 4]);
    }
    sync.ask(&service.api);
    assert_eq!(sync.seen, written);
    let stored = "SELECT count(*) FROM calls AS c JOIN events AS e USING (account_id, created_at)
        WHERE c.body LIKE '%\"created_at\":\"' || to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') || '%'";
    assert_eq!(service.count(stored).await, 24, "of one transaction");

    // The schedule: the second attempt of each comes a second after the first, or when its shard has
    // moved to somebody whose clock is up to a minute from that of the first.
    let deliveries = 24 * 3;
    service.becomes(DELIVERED, deliveries).await;
    let again = [&apis[0], &apis[1]].map(|api| {
        let path = format!("{}/ping", endpoints[0]);
        let began = Instant::now();
        api.ask("POST", &path, &json!({}), 201);
        began
    });
    service.becomes(DELIVERED, deliveries + 2).await;
    assert!(again[0].elapsed() < Duration::from_secs(20), "what is due now is not due later");
    for path in ["/a", "/b", "/c"] {
        let got = service.receiver.got(path);
        assert!(got.len() >= 25, "{path}: {}", got.len());
        for got in got {
            assert!(wrong_by(&got) <= 31, "{path}: {} s", wrong_by(&got));
        }
    }
    for sender in &wrong {
        assert_eq!(readyz(sender), 503);
    }

    // Keys expire, and windows count, by one clock.
    let soon = "UPDATE keys SET expires_at = now() + interval '10 minutes'";
    service.run(soon).await;
    let mut admitted = 0;
    for nth in 0..80 {
        match all[nth % 4].get("/v1/account").status {
            200 => admitted += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!(admitted, 60);
}

// D-103: it gives its shards back when its clock is set, says so, and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_rests_while_its_clock_is_wrong() {
    let Some(library) = shifted::faketime() else { return };
    let service = Service::new().await;
    service.endpoint("/", &[Reply::Status(204)]);
    let file = File::new("clock", "+0s\n");
    let told = Path::new(file.path());
    let mut command = service.world.command("sender", &SENDER);
    shifted::shift_as_told(&mut command, &library, told);
    let sender = Running::of(command);
    assert_eq!((&sender.first["ready"], readyz(&sender)), (&json!(true), 200));
    let other = service.sender();
    let half =
        "SELECT count(*) FROM shards WHERE expires_at > now() GROUP BY owner ORDER BY 1 LIMIT 1";
    service.becomes(half, 32).await;

    for (round, seconds) in [1200, -1200, 40].into_iter().enumerate() {
        shifted::set(told, seconds);
        eventually("it is not ready", || (readyz(&sender) == 503).then_some(()));
        // The other has all of them, and delivers.
        service.becomes(half, 64).await;
        let before = service.receiver.got("/").len();
        for _ in 0..10 {
            service.post("/accounts/acct_1/calls", 201);
        }
        service.becomes(PENDING, 0).await;
        assert_eq!(service.receiver.got("/").len(), before + 10, "{seconds}");
        for (process, seconds) in [(&sender, seconds), (&other, 0)] {
            is_ahead(process, seconds);
        }
        eventually("it is said once", || {
            (sender.log().matches(DIFFERS).count() == round + 1).then_some(())
        });

        shifted::set(told, 0);
        eventually("it is ready", || (readyz(&sender) == 200).then_some(()));
        service.becomes(half, 32).await;
        assert!(!sender.log().contains("went back"), "{}", sender.log());
    }
    for got in service.receiver.got("/") {
        assert!(wrong_by(&got) <= 31, "{} s", wrong_by(&got));
    }
}

// D-103: the new leader's clock is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_a_server_whose_clock_is_ahead_rests_every_sender() {
    failover(45).await;
}

// D-103: it is behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_a_server_whose_clock_is_behind_rests_every_sender() {
    failover(-45).await;
}

/// Kills the database's server, and has another one take over, whose clock is shifted by what a file says.
pub(crate) fn fail_over(world: &mut World, library: &Path, told: &Path) {
    let mut other = Command::new("postgres");
    shifted::shift_as_told(&mut other, library, told);
    for (name, value) in other.get_envs() {
        world.server.set_env(name, value.unwrap());
    }
    world.server.kill();
    world.server.launch().unwrap();
}

/// Another server leads, by a clock that is wrong by so many seconds until somebody sets it.
async fn failover(seconds: i64) {
    let Some(library) = shifted::faketime() else { return };
    let mut service = Service::new().await;
    let told = File::new(&format!("server{seconds}"), "+0s\n");
    let told = Path::new(told.path());
    let senders = [0; 2]
        .map(|_| service.world.start("sender", &[&SENDER[..], &["--time-scale", "0.1"]].concat()));
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    // The second attempt of each waits while the clock is wrong.
    let replies = [Reply::Status(500), Reply::Status(204)];
    let again = service.endpoint("/again", &replies);
    service.ping(&well);
    service.becomes(DELIVERED, 1).await;

    shifted::set(told, seconds);
    service.ping(&again);
    fail_over(&mut service.world, &library, told);
    for sender in &senders {
        is_ahead(sender, -seconds);
        eventually("it rests", || (readyz(sender) == 503).then_some(()));
        sender.logged(DIFFERS);
    }
    service.becomes("SELECT count(*) FROM shards WHERE owner IS NULL", 64).await;

    // The API accepts, by the database's clock, and nothing begins.
    let before = service.receiver.got("/well").len() + service.receiver.got("/again").len();
    let first = service.count(PENDING).await;
    for _ in 0..10 {
        // A connection from before the failover is found closed when it is used.
        eventually("a call is accepted", || {
            let path = "/accounts/acct_1/calls";
            let answer = request(service.api.dashboard(), "POST", path, "", b"{}");
            (answer.status == 201).then_some(())
        });
    }
    assert_eq!(readyz(&service.api), 200);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let resting = service.receiver.got("/well").len() + service.receiver.got("/again").len();
    assert_eq!(resting, before);
    let pending = service.count(PENDING).await;
    assert!(pending >= first + 20, "{pending}, and {first} before");
    service.api.logged(DIFFERS);

    // What was accepted by a clock that was ahead is due by it, so it is late by as much.
    shifted::set(told, 0);
    for sender in &senders {
        eventually("it goes on", || (readyz(sender) == 200).then_some(()));
    }
    let corrected = Instant::now();
    service.becomes(PENDING, 0).await;
    let limit = Duration::from_secs(10 + seconds.max(0).unsigned_abs());
    assert!(corrected.elapsed() < limit, "{:?}", corrected.elapsed());
    let lost = "SELECT count(*) FROM ended WHERE status <> 'delivered'";
    assert_eq!(service.count(lost).await, 0);
    let disabled = "SELECT count(*) FROM endpoints WHERE disabled IS NOT NULL";
    assert_eq!(service.count(disabled).await, 0);
    for got in ["/well", "/again"].iter().flat_map(|path| service.receiver.got(path)) {
        assert!(wrong_by(&got) <= 31, "{} s", wrong_by(&got));
    }
}

// An API process that is wrong goes on, and warns. Whoever died is forgotten by who lives.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_process_warns_and_the_dead_are_forgotten() {
    let Some(shifted) = faketime() else { return };
    let service = Service::new().await;
    service
        .run(
            "INSERT INTO senders (id, expires_at) VALUES
            ('long', now() - interval '2 hours'), ('just', now() - interval '2 minutes')",
        )
        .await;
    let flags = [&API[..], &["--metrics", "127.0.0.1:0"]].concat();
    let wrong = shifted(&service.world, "api", &flags, -1200);
    assert_eq!((wrong.get("/v1/account").status, readyz(&wrong)), (200, 200));
    wrong.logged(DIFFERS);
    let key = wrong.ask("GET", "/accounts/acct_1/keys", &json!({}), 200)["data"][0].clone();
    let used = Timestamp::parse(key["last_used_at"].as_str().unwrap()).unwrap();
    let epoch = service.count("SELECT extract(epoch FROM now())::bigint").await;
    assert!((epoch - used.unix_seconds()).abs() < 30, "{key}");

    let _sender = service.sender();
    service.becomes("SELECT count(*) FROM senders WHERE id = 'long'", 0).await;
    assert_eq!(service.count("SELECT count(*) FROM senders WHERE id = 'just'").await, 1);
}

// D-62: a day that is dropped does not come back, so both clocks have to call it old.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_wrong_drops_no_day() {
    let Some(shifted) = faketime() else { return };
    let service = Service::new().await;
    let old = "(now() AT TIME ZONE 'UTC')::date - 33";
    service.run(&format!("SELECT add_day({old})")).await;
    let days = format!(
        "SELECT count(*) FROM pg_class WHERE relname = 'events_' || to_char({old}, 'YYYYMMDD')"
    );
    let looks = |sender: &Running| {
        eventually("a look for old days", || sender.value("loop_age_seconds{loop=\"days\"}"));
    };
    // By its own clock, the database's is ten days ahead.
    let wrong = shifted(&service.world, "sender", &SENDER, -864_000);
    looks(&wrong);
    assert_eq!(service.count(&days).await, 1);
    let right = service.sender();
    looks(&right);
    assert_eq!(service.count(&days).await, 0);
}

// D-80: what a command stores is by the database's clock, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_stores_no_time_of_its_own() {
    let Some(library) = shifted::faketime() else { return };
    let service = Service::new().await;
    let endpoint = service.endpoint("/", &[Reply::Status(204)]);
    let record = || service.post("/accounts/acct_1/calls", 201);
    service.post(&format!("{endpoint}/pause"), 200);
    record();
    service.post(&format!("{endpoint}/enable"), 200);
    let pending = record();
    let run = |role: &str, flags: &[&str]| {
        let mut command = service.world.command(role, flags);
        shifted::shift(&mut command, &library, -1200);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run("recover", &["--account", "acct_1"]);
    run("erase", &["--account", "acct_1", "--call", pending["id"].as_str().unwrap()]);
    for (table, at, rows) in [("recoveries", "started_at", 1), ("ended", "at", 2)] {
        let near = format!("abs(extract(epoch FROM {at} - now())) < 120");
        let sql = format!("SELECT count(*) FILTER (WHERE {near}) FROM {table}");
        assert_eq!(service.count(&sql).await, rows, "{table}");
    }
}

// D-30: a refusal ends within its minute, although the clock is set back meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_refuses_nobody_for_longer() {
    let Some(library) = shifted::faketime() else { return };
    let service = Service::new().await;
    let file = File::new("set-back", "+1200s\n");
    let told = Path::new(file.path());
    let mut command = service.world.command("api", &["--metrics", "127.0.0.1:0"]);
    shifted::shift_as_told(&mut command, &library, told);
    let api = Running::of(command);
    let wait = || {
        let refused = api.get("/v1/account");
        assert_eq!(refused.status, 429, "{}", refused.text());
        refused.header("retry-after").unwrap().parse::<u64>().unwrap()
    };
    for nth in 0..60 {
        assert_eq!(api.get("/v1/account").status, 200, "{nth}");
    }
    assert!(wait() <= 60);
    is_ahead(&api, 1200);
    shifted::set(told, 0);
    is_ahead(&api, 0);
    assert!(wait() <= 60);
}
