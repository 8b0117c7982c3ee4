//! What monitoring shows: what is true, also while the database is away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use call_assistant::webhook::sender::{DisabledReason, FIRST_FAILURES_TO_SUSPECT};
use call_assistant_postgres::db::{Session, endpoint_of};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::Settings;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::commands::run_with;
use crate::migrating::log_in;
use crate::support::receiver::Reply;
use crate::support::running::{PATIENCE, eventually, request};
use crate::support::service::{DAMAGE, Service};
use crate::support::{Running, World};

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];

/// The values of an address, by their names with labels. It answers, whatever the database does.
#[track_caller]
fn values(address: &str) -> BTreeMap<String, f64> {
    let answer = request(address, "GET", "/metrics", "", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Waits until an address shows this.
#[track_caller]
fn shows(address: &str, expected: &[(&str, f64)]) {
    let mut last = BTreeMap::new();
    eventually(&format!("{expected:?}"), || {
        last = values(address);
        let value = |name: &str| last.get(&format!("call_assistant_{name}")).copied();
        expected.iter().all(|(name, wanted)| value(name) == Some(*wanted)).then_some(())
    });
}

// D-95
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_customer_is_not_late_and_what_waits_for_us_is() {
    let service = Service::new().await;
    let api = service.api.dashboard();
    let silent = service.endpoint("/silent", &[Reply::Held(204)]);
    let well = service.endpoint_of("acct_2", "/well", &[Reply::Status(204)]);
    let sender = service.world.start("sender", &SENDER);
    for _ in 0..12 {
        service.ping(&silent);
    }
    service.ping(&well);
    service.becomes("SELECT count(*) FROM ended", 1).await;
    let busy = [
        ("store_up", 1.0),
        ("sender_in_flight", 8.0),
        ("sender_planned", 4.0),
        ("sender_limited", 4.0),
        ("sender_behind_seconds", 0.0),
        ("sender_oldest_due_seconds", 0.0),
        ("sender_pending", 12.0),
        ("shards_owned", 64.0),
        ("shards_unowned", 0.0),
        ("shards_taken_total", 0.0),
        ("unreadable_secrets", 0.0),
        ("unreadable_due", 0.0),
        ("unreadable_rows", 0.0),
    ];
    shows(sender.metrics(), &busy);
    let before = values(sender.metrics());
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
    shown.extend(values(api));
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
    let held = [
        ("sender_held", 12.0),
        ("sender_endpoints{state=\"suspect\"}", 1.0),
        ("sender_oldest_due_seconds", 0.0),
    ];
    shows(sender.metrics(), &held);

    // Nobody sends: that is what is late, and the customer's is not.
    drop(sender);
    shows(api, &[("shards_unowned", 64.0), ("sender_oldest_due_seconds", 0.0)]);
    service.ping(&well);
    eventually("what is due is late", || {
        (values(api)["call_assistant_sender_oldest_due_seconds"] > 1.0).then_some(())
    });
    let next = service.world.start("sender", &SENDER);
    let taken =
        [("shards_taken_total", 64.0), ("shards_unowned", 0.0), ("sender_oldest_due_seconds", 0.0)];
    shows(next.metrics(), &taken);
    service.receiver.release();
    service.becomes("SELECT count(*) FROM deliveries", 0).await;
}

// D-95: the counters are this process's, and nothing stands in for what is not known.
#[tokio::test(flavor = "multi_thread")]
async fn counters_are_served_while_the_database_is_away() {
    let mut service = Service::new().await;
    let endpoint = service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.world.start("sender", &SENDER);
    service.ping(&endpoint);
    service.becomes("SELECT count(*) FROM ended", 1).await;
    let delivered = "sender_ended_total{status=\"delivered\"}";
    shows(sender.metrics(), &[("store_up", 1.0), (delivered, 1.0), ("sender_pending", 0.0)]);
    let refused = "api_requests_total{operation=\"get_account\",status=\"5xx\"}";
    service.world.server.stop();
    assert_eq!(service.api.get("/v1/account").status, 500);
    for (process, counted) in [(sender.metrics(), delivered), (service.api.dashboard(), refused)] {
        shows(process, &[("store_up", 0.0), (counted, 1.0)]);
        let values = values(process);
        let gauge = values.get("call_assistant_sender_pending");
        assert!(gauge.is_none(), "nobody knows it: {gauge:?}");
    }
    service.world.server.launch().unwrap();
    shows(sender.metrics(), &[("store_up", 1.0), (delivered, 1.0), ("sender_pending", 0.0)]);
}

// D-95: a count of whole tables that waits, or takes long, is nothing to a scrape.
#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_waits_for_no_count() {
    let service = Service::new().await;
    shows(service.api.dashboard(), &[("sender_pending", 0.0)]);
    let mut held = service.world.database.session().await.unwrap();
    let change = held.transaction().await.unwrap();
    let lock = "SET LOCAL idle_in_transaction_session_timeout = 0;
        LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE";
    change.batch_execute(lock).await.unwrap();
    let before = values(service.api.dashboard());
    // What starts now cannot count, and shows what was counted before.
    let api = service.world.start("api", &SENDER[1..]);
    shows(api.metrics(), &[("sender_pending", 0.0)]);
    let began = Instant::now();
    let (mut scrapes, mut fastest) = (0, [Duration::MAX; 2]);
    while began.elapsed() < Duration::from_secs(8) {
        for (nth, address) in [api.metrics(), service.api.dashboard()].into_iter().enumerate() {
            let asked = Instant::now();
            let values = values(address);
            fastest[nth] = fastest[nth].min(asked.elapsed());
            let pending = values.get("call_assistant_sender_pending");
            assert_eq!(pending, Some(&0.0), "scrape {scrapes}");
        }
        scrapes += 1;
    }
    // Each scrape that waits for a count waits for two seconds at least. A slow machine slows down some.
    assert!(fastest.iter().all(|took| *took < Duration::from_secs(1)), "{fastest:?}");
    shows(api.metrics(), &[("store_up", 1.0)]);
    let age = "call_assistant_loop_age_seconds{loop=\"gauges\"}";
    let ages = [before[age], values(service.api.dashboard())[age]];
    assert!(ages[1] > ages[0] + 7.0, "{ages:?}");
    change.rollback().await.unwrap();
    held.keep();
    shows(api.metrics(), &[("store_up", 1.0), ("sender_pending", 0.0)]);
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
    let session = world.database.session().await.unwrap();
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
        let mut url = url::Url::parse(&world.server.url()).unwrap();
        url.set_username(name).unwrap();
        url.set_password(Some("x")).unwrap();
        let mut command = world.command("sender", &SENDER);
        command.env("DATABASE_URL", url.as_str());
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
        shows(process.metrics(), &[("sender_pending", 777.0), ("store_up", 1.0)]);
        let age = values(process.metrics())["call_assistant_loop_age_seconds{loop=\"gauges\"}"];
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
    let id = Pid::from_raw(still.id().cast_signed()).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    let took = counted_by(&session, &processes).await;
    // Its session is ended ten seconds after its statement, which it may have sent well before it was stopped.
    assert!((5.0..45.0).contains(&took), "{took}");
    let set = "UPDATE gauges SET pending = 778, took = '1 hour'";
    session.batch_execute(set).await.unwrap();
    kill_process(id, Signal::CONT).unwrap();
    still.logs("counting for monitoring");
    for process in processes.values().chain([&still]) {
        shows(process.metrics(), &[("sender_pending", 778.0)]);
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
    let session = service.world.database.session().await.unwrap();
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
    let address = service.api.dashboard();
    for (state, count) in counts {
        shows(address, &[(&format!("sender_endpoints{{state=\"{state}\"}}"), count)]);
    }

    // A process with another key cannot sign for any of them.
    let mut command = service.world.command("sender", &SENDER);
    let other = Running::of({
        command.env(VARIABLE, KeyRing::new_line(2));
        command
    });
    shows(other.metrics(), &[("unreadable_secrets", rows.len() as f64 - deleted)]);
}

// D-95: what refuses is not away, and what it refuses is named, to who asks without the names of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_from_an_outage() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    session.batch_execute(include_str!("../../deploy/roles.sql")).await.unwrap();
    let url = log_in(&world, "call_assistant_api").await;
    let api = world.start("api", &[&["--database", &url], &SENDER[1..]].concat());
    let becomes = |status: u16, words: &str| {
        eventually(&format!("{status}: {words}"), || {
            let answer = request(api.metrics(), "GET", "/readyz", "", b"");
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
            "the schema is not this program's",
            "ALTER TABLE shards RENAME ends_at TO expires_at",
            1.0,
        ),
        (no_login, "the database refuses the login", "ALTER ROLE call_assistant_api_1 LOGIN", 0.0),
    ] {
        becomes(200, "stored");
        session.batch_execute(broken).await.unwrap();
        let said = becomes(503, words);
        assert!(!said.contains("call_assistant_api_1"), "{said}");
        shows(api.metrics(), &[("store_up", is_up)]);
        api.logs(&format!("error=\"{words}: "));
        let doctor = run_with(&world, &world.ring, &["doctor", "--database", &url]);
        assert!(doctor.out.contains(words), "{words}: {}", doctor.out);
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
    let [api, sender, operator] =
        ["call_assistant_api", "call_assistant_sender", "call_assistant_operator"];
    let api_url = log_in(&service.world, api).await;
    let sender_url = log_in(&service.world, sender).await;
    let operator_url = log_in(&service.world, operator).await;
    let start =
        |role, url: &str| service.world.start(role, &[&["--database", url], &SENDER[..]].concat());
    let why = |of: &Running| {
        let answer = request(of.metrics(), "GET", "/readyz", "", b"");
        match answer.status {
            200 => String::new(),
            503 => answer.json()["error"]["message"].as_str().unwrap().to_owned(),
            other => panic!("{other}: {}", answer.text()),
        }
    };
    let becomes = |of: &Running, expected: &str| {
        eventually(&format!("{expected:?} is why"), || (why(of) == expected).then_some(()));
    };
    let doctor = |role: &str, url: &str| {
        let arguments = ["doctor", "--role", role, "--database", url];
        run_with(&service.world, &service.world.ring, &arguments).out
    };

    let wrong = start("api", &sender_url);
    let lacking = "the login lacks a right: it is no member of call_assistant_api";
    assert_eq!(why(&wrong), lacking);
    wrong.logs(lacking);
    wrong.logs(&format!("ready=false reason=\"{lacking}\""));
    shows(wrong.metrics(), &[("rights_lacking", 1.0)]);
    let said = doctor("api", &sender_url);
    let line = format!("fail  rights        {lacking}: run deploy/roles.sql");
    assert!(said.contains(&line), "{said}");
    // Nothing is to be restarted.
    service.run("GRANT call_assistant_api TO call_assistant_sender_1").await;
    becomes(&wrong, "");
    shows(wrong.metrics(), &[("rights_lacking", 0.0)]);
    wrong.logs("the login has each right that it needs again");
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
    sender.logs("attempts are not stored");
    let log = sender.log();
    let line = log.lines().find(|line| line.contains("attempts are not stored")).unwrap();
    assert!(line.contains("permission denied for table "), "{line}");
    service.run("GRANT INSERT ON attempts, ended TO call_assistant_sender").await;
    service.becomes("SELECT count(*) FROM ended WHERE status = 'delivered'", 1).await;
}

fn ready(address: &str) -> u16 {
    request(address, "GET", "/readyz", "", b"").status
}

// D-95: a load balancer notices the end of a process before a request of a customer does.
#[tokio::test(flavor = "multi_thread")]
async fn who_ends_is_not_ready_first_and_is_watched_to_its_end() {
    const DRAIN: Duration = Duration::from_secs(15);
    let service = Service::new().await;
    let held = service.endpoint("/held", &[Reply::Held(204)]);
    let drain = DRAIN.as_secs().to_string();
    // An attempt may last longer than that.
    let flags = ["--drain-seconds", &drain, "--timeout-scale", "2.5"];
    let mut ending = service.world.start("all", &[&SENDER[..], &flags].concat());
    service.ping(&held);
    eventually("an attempt", || (service.receiver.got("/held").len() == 1).then_some(()));
    let metrics = ending.metrics().to_owned();
    assert_eq!((ready(ending.dashboard()), ready(&metrics)), (200, 200));

    let began = Instant::now();
    ending.ask_to_end();
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
    assert!(ending.ended().success());
    assert!(TcpStream::connect(&metrics).is_err());
    service.becomes("SELECT count(*) FROM ended WHERE status = 'delivered'", 1).await;
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
        process.logs(&format!("ERROR {why}"));
    }
    let answer = request(processes[1].metrics(), "GET", "/readyz", "", b"");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"]["message"], why);
    processes[1].logs(&format!("ready=false reason=\"{why}\""));
    assert_eq!(ready(processes[0].metrics()), 200);
    assert_eq!(ready(service.api.dashboard()), 200);
    // It is not ready either where nobody asks it.
    let unwatched = other("sender", &lacking, &[]);
    for sender in [&processes[1], &unwatched] {
        assert_eq!(sender.first["ready"], false);
    }
    drop(unwatched);

    // What waits for the key is late, whoever else is well.
    (0..3).for_each(|_| service.ping(&well));
    let sender = processes[1].metrics();
    shows(sender, &[("unreadable_due", 3.0), ("sender_held", 0.0)]);
    eventually("what waits is late", || {
        (values(sender)["call_assistant_sender_oldest_due_seconds"] > 1.0).then_some(())
    });
    // What was damaged is nobody's key: a process without it would be no better. Its number is free again.
    service.run("UPDATE endpoints SET secrets = '\\x00'").await;
    assert_eq!(ready(processes[1].metrics()), 503);
    let rotated = run_with(&service.world, &lacking, &["rotate-keys"]);
    assert_eq!(rotated.out, "{\"sealed\":0,\"unreadable\":1}\n", "{}", rotated.err);
    for process in &processes {
        eventually("it is ready", || (ready(process.metrics()) == 200).then_some(()));
        shows(process.metrics(), &[("unreadable_secrets", 0.0)]);
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
    let sender = service.world.start("sender", &SENDER);
    eventually("the other one", || (service.receiver.got("/well").len() == 1).then_some(()));
    sender.logs(&format!("an endpoint cannot be read endpoint={id} error="));
    sender.logs("with key 1: changed");
    for number in [2, 3] {
        sender.logs(&format!("a delivery or its event cannot be read delivery=dlv_{number}_"));
    }
    shows(sender.metrics(), &[("unreadable_rows", 3.0)]);
    service.becomes("SELECT count(*) FROM deliveries", 3).await;
    let none = ["unreadable_secrets", "unreadable_due"];
    shows(sender.metrics(), &none.map(|name| (name, 0.0)));
    eventually("what cannot be begun is late", || {
        let late = values(sender.metrics());
        late.get("call_assistant_sender_oldest_due_seconds").filter(|late| **late > 1.0).copied()
    });
    // A later version has migrated: when such a row is due, that version knows.
    service.run("INSERT INTO migrations (number, digest) VALUES (1000, 'later')").await;
    eventually("nothing is late", || {
        let late = values(sender.metrics());
        late.get("call_assistant_sender_oldest_due_seconds").filter(|late| **late == 0.0).copied()
    });
    shows(sender.metrics(), &[("unreadable_rows", 3.0)]);
    assert_eq!(ready(sender.metrics()), 200);
    assert_eq!(ready(service.api.dashboard()), 200);

    let run = |arguments: &[&str]| run_with(&service.world, &service.world.ring, arguments);
    let named = format!("endpoint {id} (key 1, damaged)");
    for command in [&["ring", "check"][..], &["doctor"]] {
        let said = run(command);
        assert!(said.status == Some(1) && said.out.contains(&named), "{command:?}: {}", said.out);
    }
    let cures = ["put the key back", "`endpoints rotate ID`", "`endpoints delete ID`"];
    let doctor = run(&["doctor"]).out;
    assert!(cures.iter().all(|cure| doctor.contains(cure)), "{doctor}");
    let found: Value = serde_json::from_str(&run(&["ring", "check", "--json"]).out).unwrap();
    let expected = json!([{ "endpoint_id": id, "key": 1, "cause": "damaged" }]);
    assert_eq!((&found["unreadable"], &found["endpoints"]), (&json!(1), &expected));

    let rotated = run(&["endpoints", "rotate", id]);
    assert!(rotated.status == Some(0) && rotated.out.contains("whsec_"), "{}", rotated.err);
    assert_eq!(run(&["ring", "check"]).status, Some(0));
    service.ping(&endpoints[1]);
    eventually("the mended one", || (!service.receiver.got("/hurt").is_empty()).then_some(()));
    service.run(DAMAGE).await;
    let deleted = run(&["endpoints", "delete", id]);
    assert_eq!(deleted.status, Some(0), "{}", deleted.err);
    assert_eq!(run(&["ring", "check"]).status, Some(0));
    let both = format!("{}\n{}", KeyRing::new_line(2), service.world.ring);
    let rotated = run_with(&service.world, &both, &["rotate-keys"]);
    assert_eq!(rotated.out, "{\"sealed\":3,\"unreadable\":0}\n", "{}", rotated.err);
}
