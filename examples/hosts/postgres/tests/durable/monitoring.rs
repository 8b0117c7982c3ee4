//! What monitoring shows: what is true, also while the database is away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use call_assistant::webhook::sender::{DisabledReason, FIRST_FAILURES_TO_SUSPECT};
use call_assistant_postgres::db::{Session, endpoint_of};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::running::{PATIENCE, eventually, request};
use crate::support::service::{DAMAGE, DELIVERED, PENDING, SENDER, Service};
use crate::support::{Running, World};

const LATE: &str = "sender_oldest_due_seconds";

/// Waits until something is late.
#[track_caller]
fn is_late(process: &Running) {
    eventually("what is due is late", || process.value(LATE).filter(|late| *late > 1.0));
}

// D-95
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_customer_is_not_late_and_what_waits_for_us_is() {
    let service = Service::new().await;
    let silent = service.endpoint("/silent", &[Reply::Held(204)]);
    let well = service.endpoint_of("acct_2", "/well", &[Reply::Status(204)]);
    let sender = service.sender();
    (0..12).for_each(|_| service.ping(&silent));
    service.ping(&well);
    service.becomes("SELECT count(*) FROM ended", 1).await;
    let busy = [
        ("store_up", 1.0),
        ("sender_in_flight", 8.0),
        ("sender_planned", 4.0),
        ("sender_limited", 4.0),
        ("sender_behind_seconds", 0.0),
        (LATE, 0.0),
        ("sender_pending", 12.0),
        ("shards_owned", 64.0),
        ("shards_unowned", 0.0),
        ("shards_taken_total", 0.0),
        ("unreadable_secrets", 0.0),
        ("unreadable_due", 0.0),
        ("unreadable_rows", 0.0),
    ];
    sender.shows(&busy);
    let before = sender.values();
    for name in ["process_cpu_seconds_total", "process_start_time_seconds", "process_open_fds"] {
        assert!(before[name] > 0.0, "{name}");
    }
    for name in ["leases", "levers", "looks", "clocks", "reminders", "recoveries", "days", "gauges"]
    {
        let age = before[&format!("call_assistant_loop_age_seconds{{loop=\"{name}\"}}")];
        assert!((0.0..60.0).contains(&age), "{name}: {age}");
    }

    // The pages have each name, and each name of theirs that is of such a host is there.
    let library = include_str!("../../../../../src/metrics.rs").lines();
    let guide = library.filter_map(|line| line.strip_prefix("//! "));
    let guide = guide.chain(include_str!("../../docs/operating.md").lines());
    let rows = guide.filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: BTreeMap<&str, &str> = rows.collect();
    let mut shown = before;
    shown.extend(service.api.values());
    let names: BTreeSet<&str> =
        shown.keys().map(|name| name.split_once('{').map_or(&**name, |(name, _)| name)).collect();
    for name in &names {
        let (bucket, of) = (format!("{name}_bucket"), name.trim_end_matches("_sum"));
        let bucket_of = format!("{}_bucket", of.trim_end_matches("_count"));
        let told = [*name, &bucket, &bucket_of].iter().any(|name| rows.contains_key(name));
        assert!(told, "the pages have no {name}");
    }
    for (name, told) in rows {
        let is_ours = ["database", "sender: ", "process: "].iter().any(|of| told.starts_with(of));
        assert!(!is_ours || names.contains(name), "{name} is not shown");
    }

    // As it is after so many first attempts that have failed.
    let failed = format!(
        "UPDATE endpoints SET first_failures = {FIRST_FAILURES_TO_SUSPECT} WHERE account_id = 'acct_1'"
    );
    service.run(&failed).await;
    let held = [("sender_held", 12.0), ("sender_endpoints{state=\"suspect\"}", 1.0), (LATE, 0.0)];
    sender.shows(&held);

    // Nobody sends: that is what is late, and the customer's is not.
    drop(sender);
    service.api.shows(&[("shards_unowned", 64.0), (LATE, 0.0)]);
    service.ping(&well);
    is_late(&service.api);
    let next = service.sender();
    next.shows(&[("shards_taken_total", 64.0), ("shards_unowned", 0.0), (LATE, 0.0)]);
    service.receiver.release();
    service.becomes(PENDING, 0).await;
}

// D-95: the counters are this process's, and nothing stands in for what is not known.
#[tokio::test(flavor = "multi_thread")]
async fn counters_are_served_while_the_database_is_away() {
    let mut service = Service::new().await;
    let endpoint = service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.sender();
    service.ping(&endpoint);
    service.becomes(DELIVERED, 1).await;
    let delivered = "sender_ended_total{status=\"delivered\"}";
    let well = [("store_up", 1.0), (delivered, 1.0), ("sender_pending", 0.0)];
    sender.shows(&well);
    let refused = "api_requests_total{operation=\"get_account\",status=\"5xx\"}";
    service.world.server.stop();
    assert_eq!(service.api.get("/v1/account").status, 500);
    for (process, counted) in [(&sender, delivered), (&service.api, refused)] {
        process.shows(&[("store_up", 0.0), (counted, 1.0)]);
        assert_eq!(process.value("sender_pending"), None, "nobody knows it");
    }
    service.world.server.launch().unwrap();
    sender.shows(&well);
}

// D-95: a count of whole tables that waits, or takes long, is nothing to a scrape.
#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_waits_for_no_count() {
    let service = Service::new().await;
    service.api.shows(&[("sender_pending", 0.0)]);
    let held = service.world.held("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE").await;
    let age = "loop_age_seconds{loop=\"gauges\"}";
    let before = service.api.value(age).unwrap();
    // What starts now cannot count, and shows what was counted before.
    let api = service.world.start("api", &SENDER[1..]);
    api.shows(&[("sender_pending", 0.0)]);
    let began = Instant::now();
    let mut fastest = [Duration::MAX; 2];
    while began.elapsed() < Duration::from_secs(8) {
        for (process, fastest) in [&api, &service.api].into_iter().zip(&mut fastest) {
            let asked = Instant::now();
            assert_eq!(process.value("sender_pending"), Some(0.0), "after {:?}", began.elapsed());
            *fastest = asked.elapsed().min(*fastest);
        }
    }
    // Each scrape that waits for a count waits for two seconds at least. A slow machine slows down some.
    assert!(fastest.iter().all(|took| *took < Duration::from_secs(1)), "{fastest:?}");
    api.shows(&[("store_up", 1.0)]);
    let after = service.api.value(age).unwrap();
    assert!(after > before + 7.0, "{before}, then {after}");
    drop(held);
    api.shows(&[("store_up", 1.0), ("sender_pending", 0.0)]);
}

/// The name of the login whose session counts.
const COUNTS: &str = "SELECT usename::text FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE locktype = 'advisory' AND objid = 7235912 AND granted";

/// Waits until one of these counts, which takes a few seconds, and returns which.
async fn who_counts(session: &Session, processes: &BTreeMap<String, Running>) -> String {
    session.batch_execute("INSERT INTO slow VALUES (1)").await.unwrap();
    let limit = Instant::now() + PATIENCE;
    loop {
        let rows = session.query(COUNTS, &[]).await.unwrap();
        let who = rows.first().map(|row| row.get::<_, String>(0));
        if let Some(who) = who.filter(|who| processes.contains_key(who)) {
            session.batch_execute("DELETE FROM slow").await.unwrap();
            return who;
        }
        assert!(Instant::now() < limit, "nobody counts");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until one of these has counted, and returns how many seconds that took.
async fn counted_by(session: &Session, processes: &BTreeMap<String, Running>) -> f64 {
    let began = Instant::now();
    let names: Vec<&String> = processes.keys().collect();
    let now = session.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap();
    let now: &str = now.get(0);
    let sql = "SELECT FROM counts WHERE who = ANY ($1) AND at > $2::text::timestamptz";
    while session.query(sql, &[&names, &now]).await.unwrap().is_empty() {
        assert!(began.elapsed() < PATIENCE, "{names:?} count nothing");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    began.elapsed().as_secs_f64()
}

// D-95: who counts for all is replaced, whether it dies or stands still.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_counts_for_all() {
    let world = World::new(Settings::default()).await;
    let session = world.session().await;
    let notes = "CREATE TABLE counts (at timestamptz, who text);
        CREATE TABLE slow (of int);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO counts VALUES (NEW.counted_at, session_user);
            IF EXISTS (SELECT FROM slow) THEN PERFORM pg_sleep(4); END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER note BEFORE UPDATE ON gauges FOR EACH ROW EXECUTE FUNCTION note();";
    session.batch_execute(notes).await.unwrap();
    let mut processes = BTreeMap::new();
    for name in ["one", "two", "three"] {
        let login = format!("CREATE ROLE {name} SUPERUSER LOGIN PASSWORD 'x'");
        session.batch_execute(&login).await.unwrap();
        let mut command = world.command("sender", &SENDER);
        command.env("DATABASE_URL", world.url_of(name));
        processes.insert(name.to_owned(), Running::of(command));
    }

    // Three count no more often than one would.
    let limit = Instant::now() + PATIENCE;
    let ats = loop {
        let sql = "SELECT extract(epoch FROM at)::float8 FROM counts ORDER BY 1";
        let ats = session.query(sql, &[]).await.unwrap();
        if ats.len() > 3 {
            break ats.iter().map(|row| row.get::<_, f64>(0)).collect::<Vec<_>>();
        }
        assert!(Instant::now() < limit, "{} counts", ats.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let gaps: Vec<f64> = ats.windows(2).map(|of| of[1] - of[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= 5.0), "{gaps:?}");

    // All show what is stored, and how old it is. It has taken so long that nobody counts again.
    let store = "UPDATE gauges SET pending = 777, took = '1 hour',
        counted_at = clock_timestamp() - interval '100 s'";
    session.batch_execute(store).await.unwrap();
    for process in processes.values() {
        process.shows(&[("sender_pending", 777.0), ("store_up", 1.0)]);
        let age = process.value("loop_age_seconds{loop=\"gauges\"}").unwrap();
        assert!((100.0..160.0).contains(&age), "{age}");
    }
    // It was counted before the database's clock was set back.
    let later = "UPDATE gauges SET counted_at = clock_timestamp() + interval '1 hour'";
    session.batch_execute(later).await.unwrap();
    counted_by(&session, &processes).await;

    let dies = who_counts(&session, &processes).await;
    processes.remove(&dies);
    let took = counted_by(&session, &processes).await;
    // It is time within five seconds, and somebody looks within five more.
    assert!(took < 30.0, "{took}");
    let stands = who_counts(&session, &processes).await;
    let still = processes.remove(&stands).unwrap();
    still.signal("STOP");
    let took = counted_by(&session, &processes).await;
    // Its session is ended ten seconds after its statement, which it may have sent well before it was stopped.
    assert!((5.0..45.0).contains(&took), "{took}");
    let set = "UPDATE gauges SET pending = 778, took = '1 hour'";
    session.batch_execute(set).await.unwrap();
    still.signal("CONT");
    still.logged("counting for monitoring");
    for process in processes.values().chain([&still]) {
        process.shows(&[("sender_pending", 778.0)]);
    }
    session.keep();
}

// D-95: suspect and disabled are what the library says of the same rows.
#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_counted_as_the_library_has_them() {
    let service = Service::new().await;
    service.endpoint("/one", &[Reply::Status(204)]);
    let more = format!(
        "INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
            disabled, since, failures, generation, version, first_failures, first_failed_at)
         SELECT 'whep_' || n || coalesce(d, 'none') || f, account_id, shard, created_at, url,
            allow_loopback, secrets, d, since, 4, 1, 1, f, now()
         FROM endpoints, generate_series(1, 2) AS n, generate_series(0, {FIRST_FAILURES_TO_SUSPECT}) AS f,
            unnest(ARRAY[NULL, 'gone', 'failing', 'paused', 'deleted']) AS d"
    );
    service.run(&more).await;
    let session = service.world.session().await;
    let rows = session.query("SELECT * FROM endpoints", &[]).await.unwrap();
    session.keep();
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &rows {
        let health = endpoint_of(row, "").unwrap();
        let state = match health.disabled() {
            None if health.is_suspect() => "suspect",
            None => "active",
            Some(reason) => reason.as_str(),
        };
        *counts.entry(state).or_default() += 1.0;
    }
    let deleted = counts.remove(DisabledReason::Deleted.as_str()).unwrap();
    assert_eq!(counts.len(), 5, "{counts:?}");
    for (state, count) in counts {
        service.api.shows(&[(&format!("sender_endpoints{{state=\"{state}\"}}"), count)]);
    }

    // A process with another key cannot sign for any of them.
    let mut command = service.world.command("sender", &SENDER);
    command.env(VARIABLE, KeyRing::new_line(2));
    Running::of(command).shows(&[("unreadable_secrets", rows.len() as f64 - deleted)]);
}

// D-95: what refuses is not away, and what it refuses is named, to who asks without the names of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_from_an_outage() {
    let world = World::new(Settings::default()).await;
    let session = world.session().await;
    session.batch_execute(include_str!("../../deploy/roles.sql")).await.unwrap();
    let url = world.log_in("call_assistant_api").await;
    let api = world.start("api", &[&["--database", &url], &SENDER[1..]].concat());
    let becomes = |status: u16, words: &str| {
        eventually(&format!("{status}: {words}"), || {
            let answer = api.readyz();
            let said = answer.text().to_owned();
            (answer.status == status && said.contains(words)).then_some(said)
        })
    };
    let no_login = "ALTER ROLE call_assistant_api_1 NOLOGIN;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE usename = 'call_assistant_api_1'";
    for (broken, words, repaired, is_up) in [
        (
            "REVOKE SELECT ON shards FROM call_assistant_api",
            "the login lacks a right",
            "GRANT SELECT ON shards TO call_assistant_api",
            1.0,
        ),
        (
            "ALTER TABLE shards RENAME expires_at TO ends_at",
            "the schema does not belong to this program",
            "ALTER TABLE shards RENAME ends_at TO expires_at",
            1.0,
        ),
        (no_login, "the database refuses the login", "ALTER ROLE call_assistant_api_1 LOGIN", 0.0),
    ] {
        becomes(200, "stored");
        session.batch_execute(broken).await.unwrap();
        let said = becomes(503, words);
        assert!(!said.contains("call_assistant_api_1"), "{said}");
        api.shows(&[("store_up", is_up)]);
        api.logged(&format!("error=\"{words}: "));
        let doctor = world.run(&["doctor", "--database", &url]);
        assert!(doctor.stdout.contains(words), "{words}: {}", doctor.stdout);
        session.batch_execute(repaired).await.unwrap();
    }
    becomes(200, "stored");
    session.keep();
}

// D-95: it would refuse what it is asked, and a load balancer would go on asking it.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_member_of_its_role_is_not_ready() {
    let service = Service::new().await;
    service.run(include_str!("../../deploy/roles.sql")).await;
    let api_url = service.world.log_in("call_assistant_api").await;
    let sender_url = service.world.log_in("call_assistant_sender").await;
    let operator_url = service.world.log_in("call_assistant_operator").await;
    let start =
        |role, url: &str| service.world.start(role, &[&["--database", url], &SENDER[..]].concat());
    let why = |of: &Running| {
        let answer = of.readyz();
        match answer.status {
            200 => String::new(),
            503 => answer.json()["error"]["message"].as_str().unwrap().to_owned(),
            other => panic!("{other}: {}", answer.text()),
        }
    };
    let doctor = |role: &str, url: &str| {
        service.world.run(&["doctor", "--role", role, "--database", url]).stdout
    };

    let wrong = start("api", &sender_url);
    let lacking = "the login lacks a right: membership in call_assistant_api";
    assert_eq!(why(&wrong), lacking);
    wrong.logged(lacking);
    wrong.logged(&format!("ready=false reason=\"{lacking}\""));
    wrong.shows(&[("rights_lacking", 1.0)]);
    let said = doctor("api", &sender_url);
    let line = format!("fail  rights        {lacking}: run deploy/roles.sql");
    assert!(said.contains(&line), "{said}");
    // Nothing is to be restarted.
    service.run("GRANT call_assistant_api TO call_assistant_sender_1").await;
    eventually("it is ready", || why(&wrong).is_empty().then_some(()));
    wrong.shows(&[("rights_lacking", 0.0)]);
    wrong.logged("the login again has every right that it needs");
    drop(wrong);
    service.run("REVOKE call_assistant_api FROM call_assistant_sender_1").await;

    for (role, url) in [("api", &api_url), ("sender", &sender_url), ("operator", &operator_url)] {
        let said = doctor(role, url);
        assert!(said.contains("ok    rights "), "{role}: {said}");
    }
    service.run("GRANT call_assistant_sender TO call_assistant_api_1").await;
    let all = start("all", &api_url);
    assert_eq!(why(&all), "");
    drop(all);

    // What a member lacks, since the roles were not made again, is in its log.
    service.run("REVOKE INSERT ON attempts, ended FROM call_assistant_sender").await;
    let sender = start("sender", &sender_url);
    assert_eq!(why(&sender), "");
    service.ping(&service.endpoint("/one", &[Reply::Status(204)]));
    sender.logged("attempts are not stored");
    let log = sender.log();
    let line = log.lines().find(|line| line.contains("attempts are not stored")).unwrap();
    assert!(line.contains("permission denied for table "), "{line}");
    service.run("GRANT INSERT ON attempts, ended TO call_assistant_sender").await;
    service.becomes(DELIVERED, 1).await;
}

fn ready(address: &str) -> u16 {
    request(address, "GET", "/readyz", "", b"").status
}

// D-58, D-95: a load balancer notices the end of a process before a request of a customer does. The
// process stores its attempts in flight before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn who_ends_is_not_ready_first_and_is_watched_to_its_end() {
    const DRAIN: Duration = Duration::from_secs(15);
    let service = Service::new().await;
    let held = service.endpoint("/held", &[Reply::Held(204)]);
    let drain = DRAIN.as_secs().to_string();
    // An attempt may last longer than that.
    let flags = ["--drain-seconds", &drain, "--timeout-scale", "2.5"];
    let ending = service.world.start("all", &[&SENDER[..], &flags].concat());
    service.ping(&held);
    eventually("an attempt", || (service.receiver.got("/held").len() == 1).then_some(()));
    let metrics = ending.metrics().to_owned();
    assert_eq!((ready(ending.dashboard()), ready(&metrics)), (200, 200));

    let began = Instant::now();
    ending.signal("TERM");
    eventually("it is not ready", || (ready(&metrics) == 503).then_some(()));
    let (api, page) = (ending.get("/v1/account").status, ready(ending.dashboard()));
    assert!(began.elapsed() < DRAIN, "this machine is too slow for this test");
    assert_eq!((api, page), (200, 503));

    // The attempt goes on when nobody is answered any more but who watches.
    for address in [ending.api(), ending.dashboard()] {
        eventually("it is closed", || TcpStream::connect(address).is_err().then_some(()));
    }
    assert!(began.elapsed() >= DRAIN, "{:?}", began.elapsed());
    assert_eq!(ready(&metrics), 503);
    service.receiver.release();
    assert_eq!(ending.ended().code, Some(0));
    assert!(TcpStream::connect(&metrics).is_err());
    service.becomes(DELIVERED, 1).await;
}

// D-95, D-100: it could not sign, and would not say so to anybody before a customer does. Who only answers needs no secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_lacks_a_key_in_use_is_not_ready() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let other = |role, ring: &str, flags: &[&str]| {
        let mut command = service.world.command(role, flags);
        command.env(VARIABLE, ring);
        Running::of(command)
    };
    let lacking = KeyRing::new_line(2);
    let processes = ["api", "sender"].map(|role| other(role, &lacking, &SENDER[1..]));
    let why = "the key ring lacks keys that are in use: 1";
    for process in &processes {
        process.logged(&format!("ERROR {why}"));
    }
    let [api, sender] = &processes;
    let answer = sender.readyz();
    assert_eq!((answer.status, &answer.json()["error"]["message"]), (503, &json!(why)));
    sender.logged(&format!("ready=false reason=\"{why}\""));
    assert_eq!([api, &service.api].map(|api| api.readyz().status), [200; 2]);
    // It is not ready either where nobody asks it.
    let unwatched = other("sender", &lacking, &[]);
    assert_eq!([sender, &unwatched].map(|sender| &sender.first["ready"]), [false; 2]);
    drop(unwatched);

    // What waits for the key is late, whoever else is well.
    (0..3).for_each(|_| service.ping(&well));
    sender.shows(&[("unreadable_due", 3.0), ("sender_held", 0.0)]);
    is_late(sender);
    // What was damaged is nobody's key: a process without it would be no better. Its number is free again.
    service.run("UPDATE endpoints SET secrets = '\\x00'").await;
    assert_eq!(sender.readyz().status, 503);
    let rotated = service.world.run_with(&lacking, &["rotate-keys"]);
    assert_eq!(rotated.stdout, "{\"sealed\":0,\"unreadable\":1}\n", "{}", rotated.stderr);
    for process in &processes {
        eventually("it is ready", || (process.readyz().status == 200).then_some(()));
        process.shows(&[("unreadable_secrets", 0.0)]);
    }
}

// D-100: a row that nobody can open is named, counted and late until it is mended, and makes nobody unready. Each of the
// cures is a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_named_and_counted_and_mended() {
    let service = Service::new().await;
    let paths = ["/well", "/hurt", "/event", "/delivery"];
    let endpoints = paths.map(|path| service.endpoint(path, &[Reply::Status(204)]));
    let id = endpoints[1].strip_prefix("/endpoints/").unwrap();
    endpoints.iter().for_each(|endpoint| service.ping(endpoint));
    service.run(DAMAGE).await;
    let of = |path| format!("(SELECT number FROM endpoints WHERE url LIKE '%{path}')");
    let event = format!("(SELECT event_id FROM deliveries WHERE endpoint = {})", of("/event"));
    service.run(&format!("UPDATE events SET body = 'x' WHERE id = {event}")).await;
    let later = "UPDATE deliveries SET status = 'held' WHERE endpoint =";
    service.run(&format!("{later} {}", of("/delivery"))).await;
    let sender = service.sender();
    eventually("the other one", || (service.receiver.got("/well").len() == 1).then_some(()));
    sender.logged(&format!("an endpoint cannot be read endpoint={id} error="));
    sender.logged("with key 1: changed");
    for number in [2, 3] {
        sender.logged(&format!("a delivery or its event cannot be read delivery=dlv_{number}_"));
    }
    sender.shows(&[("unreadable_rows", 3.0)]);
    service.becomes(PENDING, 3).await;
    sender.shows(&[("unreadable_secrets", 0.0), ("unreadable_due", 0.0)]);
    is_late(&sender);
    // A later version has migrated: when such a row is due, that version knows.
    service.run("INSERT INTO migrations (number, digest) VALUES (1000, 'later')").await;
    sender.shows(&[(LATE, 0.0), ("unreadable_rows", 3.0)]);
    assert_eq!([&sender, &service.api].map(|process| process.readyz().status), [200; 2]);

    let run = |arguments: &[&str]| service.world.run(arguments);
    let named = format!("endpoint {id} (key 1, damaged)");
    for command in [&["ring", "check"][..], &["doctor"]] {
        let said = run(command);
        assert!(
            said.code == Some(1) && said.stdout.contains(&named),
            "{command:?}: {}",
            said.stdout
        );
    }
    let cures = ["add the key to the ring again", "`endpoints rotate ID`", "`endpoints delete ID`"];
    let doctor = run(&["doctor"]).stdout;
    assert!(cures.iter().all(|cure| doctor.contains(cure)), "{doctor}");
    let found: Value = serde_json::from_str(&run(&["ring", "check", "--json"]).stdout).unwrap();
    let expected = json!([{ "endpoint_id": id, "key": 1, "cause": "damaged" }]);
    assert_eq!((&found["unreadable"], &found["endpoints"]), (&json!(1), &expected));

    let is_sent = async |made: Value| {
        assert_eq!(run(&["ring", "check"]).code, Some(0));
        service.ping(&endpoints[1]);
        service.becomes(PENDING, 2).await;
        let got = service.receiver.got("/hurt").pop().unwrap();
        assert!(got.is_signed_with(made["secret"].as_str().unwrap()));
    };
    is_sent(service.world.json_of(&["endpoints", "rotate", id])).await;
    service.run(r"UPDATE endpoints SET secrets = '\x0107' WHERE url LIKE '%/hurt'").await;
    is_sent(service.post(&format!("{}/rotate", endpoints[1]), 200)).await;
    service.run(DAMAGE).await;
    service.world.done(&["endpoints", "delete", id]);
    assert_eq!(run(&["ring", "check"]).code, Some(0));
    let both = format!("{}\n{}", KeyRing::new_line(2), service.world.ring);
    let rotated = service.world.run_with(&both, &["rotate-keys"]);
    assert_eq!(rotated.stdout, "{\"sealed\":3,\"unreadable\":0}\n", "{}", rotated.stderr);
}
