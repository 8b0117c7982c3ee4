//! A recorder: it makes each thing happen that somebody is alerted of, and writes down what a monitoring system sees of
//! the running processes meanwhile. `tests/alerts/run` evaluates the rules over the recording, and shows for each bad day
//! what the log said and what `docs/operating.md` tells to do.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use call_assistant_postgres::clock;
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use rcgen::{CertificateParams, KeyPair};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::clocks;
use crate::sending::LEAST;
use crate::support::receiver::{Receiver, Reply};
use crate::support::running::{File, request};
use crate::support::service::{DAMAGE, SENDER, Service};
use crate::support::{Running, ping_of, shifted};

/// How often to look, and how many times: each look stands for a minute of the rules.
const EVERY: Duration = Duration::from_millis(500);
const LOOKS: usize = 34;

/// How many times to look where senders are judged ten seconds after they lost their shards.
const MORE_LOOKS: usize = 54;

/// The look at which it begins.
const BEGIN: usize = 4;

/// The processes that are looked at, and what was seen.
struct Recording<'a> {
    name: String,
    /// The alerts that have to fire.
    fires: &'static [&'static str],
    /// Those that may fire too.
    may_fire: &'static [&'static str],
    /// The row or the section of `docs/operating.md` that an operator finds, by the words of its beginning, and words of
    /// what it tells to do.
    row: Option<[&'static str; 2]>,
    /// A pattern of a line that is in a log.
    says: Option<&'static str>,
    most: usize,
    targets: BTreeMap<&'static str, Target<'a>>,
    looks: Vec<BTreeMap<&'static str, Option<String>>>,
}

/// One process, asked on one connection as a monitoring system does.
struct Target<'a> {
    process: &'a Running,
    stream: Option<BufReader<TcpStream>>,
}

impl Target<'_> {
    fn look(&mut self) -> Option<String> {
        let seen = self.ask();
        if seen.is_none() {
            self.stream = None;
        }
        seen
    }

    fn ask(&mut self) -> Option<String> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.process.monitoring()).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            self.stream = Some(BufReader::new(stream));
        }
        let stream = self.stream.as_mut()?;
        let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        let (mut length, mut line) = (0, String::new());
        while stream.read_line(&mut line).ok()? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().ok()?;
            }
            line.clear();
        }
        let mut text = vec![0; length];
        stream.read_exact(&mut text).ok()?;
        String::from_utf8(text).ok().filter(|text| text.ends_with("# EOF\n"))
    }
}

impl<'a> Recording<'a> {
    /// Is named as the test. Some alerts have to fire, and others may.
    fn new(fires: &'static [&'static str], may_fire: &'static [&'static str]) -> Self {
        let (targets, looks) = (BTreeMap::new(), Vec::new());
        let name = thread::current().name().unwrap().rsplit(':').next().unwrap().to_owned();
        Self { name, fires, may_fire, row: None, says: None, most: LOOKS, targets, looks }
    }

    fn of(mut self, instance: &'static str, process: &'a Running) -> Self {
        self.targets.insert(instance, Target { process, stream: None });
        self
    }

    /// Has a bad day, for which `docs/operating.md` has a row or a section that begins like this and tells to do this.
    fn row(self, row: &'static str, to_do: &'static str) -> Self {
        Self { row: Some([row, to_do]), ..self }
    }

    /// Has a line in a log with this pattern.
    fn says(self, pattern: &'static str) -> Self {
        Self { says: Some(pattern), ..self }
    }

    /// Looks so many times.
    fn looks(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The lines about failures and shards so far.
    fn said(&self) -> Vec<String> {
        let logs = self.targets.iter().map(|(name, target)| (name, target.process.log()));
        let mut said = Vec::new();
        for (name, log) in logs {
            let kinds = ["WARN ", "ERROR", "INFO  shards", "INFO  over"];
            let told = log.lines().filter_map(|line| Some(line.split_once("Z ")?.1));
            let told = told.filter(|line| kinds.iter().any(|of| line.starts_with(of)));
            said.extend(told.map(|line| format!("{name}: {line}")));
        }
        said
    }

    /// Looks, and does something when it begins.
    async fn begin(self, mut step: impl AsyncFnMut()) {
        self.run(async |look| {
            if look == BEGIN {
                step().await;
            }
        })
        .await;
    }

    /// Looks, and does something before each look.
    async fn run(mut self, mut step: impl AsyncFnMut(usize)) {
        // Each process shows what it has read since the last of them started.
        tokio::time::sleep(Duration::from_secs(7)).await;
        let mut before = 0;
        for look in 0..self.most {
            if look == BEGIN {
                before = self.said().len();
            }
            let began = Instant::now();
            step(look).await;
            tokio::time::sleep(EVERY.saturating_sub(began.elapsed())).await;
            let seen = self.targets.iter_mut().map(|(name, target)| (*name, target.look()));
            self.looks.push(seen.collect());
        }
        let Ok(folder) = std::env::var("ALERTS_RECORDINGS") else { panic!("ALERTS_RECORDINGS") };
        let text = json!({
            "fires": self.fires, "may_fire": self.may_fire, "row": self.row, "says": self.says,
            "said": self.said(), "before": before, "begin": BEGIN, "looks": self.looks,
        });
        std::fs::write(format!("{folder}/{}.json", self.name), text.to_string()).unwrap();
    }
}

fn calls(api: &Running) {
    (0..4).for_each(|_| drop(api.get("/v1/calls?limit=1")));
}

pub(crate) fn limit_files(process: &Running, most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    let pid = Pid::from_raw(process.id().cast_signed());
    prlimit(pid, Resource::Nofile, limit).unwrap();
}

fn open_files(process: &Running) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap().count() as u64
}

// One endpoint of one customer is silent, and everybody else is well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn one_endpoint_is_broken() {
    let service = Service::new().await;
    let silent = service.endpoint("/silent", &[Reply::Nothing]);
    let well: Vec<String> = (0..6)
        .map(|n| service.endpoint_of("acct_2", &format!("/well{n}"), &[Reply::Status(204)]))
        .collect();
    let senders = [(); 2].map(|()| service.sender());
    let recording = Recording::new(&[], &[])
        .row("one endpoint is suspect", "nothing: its owner is told")
        .of("api", &service.api)
        .of("sender-1", &senders[0])
        .of("sender-2", &senders[1]);
    service.becomes(LEAST, 32).await;
    recording
        .run(async |_| {
            service.ping(&silent);
            well.iter().for_each(|each| service.ping(each));
            calls(&service.api);
        })
        .await;
}

// Each loop fails with it, and none of them is stuck.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_is_away() {
    let mut service = Service::new().await;
    let sender = service.sender();
    Recording::new(&["StoreDown", "ApiFails"], &["StoreOutOfReach"])
        .row("StoreDown", "Repair the database")
        .says("no connection to")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                service.world.server.stop();
            }
            calls(&service.api);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn all_senders_die() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.sender();
    let recording = Recording::new(&["NoSender", "WebhooksLate", "ProcessMissing"], &[])
        .row("NoSender", "start one")
        .of("api", &service.api)
        .of("sender", &sender);
    recording
        .run(async |look| {
            if look == BEGIN {
                drop(sender.kill());
            }
            service.ping(&well);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn one_sender_dies() {
    let service = Service::new().await;
    let left = service.sender();
    let dies = service.sender();
    let recording = Recording::new(&["SenderDied", "ProcessMissing"], &[])
        .row("SenderDied", "others have its shards")
        .says("a sender has vanished")
        .looks(MORE_LOOKS)
        .of("sender-1", &left)
        .of("sender-2", &dies);
    service.becomes(LEAST, 32).await;
    recording.begin(async || drop(dies.kill())).await;
}

// After a restart all leases have ended, and whoever is back first takes the shards of who is not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_restarts() {
    let mut service = Service::new().await;
    let senders = [(); 2].map(|()| service.sender());
    let recording = Recording::new(&[], &["StoreDown", "StoreOutOfReach", "NoSender"])
        .row("`shards` in a log has `taken_over`, and no log", "the shards are shared again")
        .says("taken_over=[1-9]")
        .looks(MORE_LOOKS)
        .of("sender-1", &senders[0])
        .of("sender-2", &senders[1]);
    service.becomes(LEAST, 32).await;
    recording
        .run(async |look| {
            if look == BEGIN {
                service.world.server.stop();
            }
            if look == BEGIN + 12 {
                senders[1].signal("STOP");
                service.world.server.launch().unwrap();
                tokio::time::sleep(Duration::from_secs(2)).await;
                senders[1].signal("CONT");
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn everything_dies() {
    let service = Service::new().await;
    let sender = service.sender();
    Recording::new(&["NothingRuns", "ProcessMissing"], &[])
        .of("sender", &sender)
        .begin(async || drop(sender.kill()))
        .await;
}

// What takes a minute of failures and hours of them is set: some endpoints are suspect, and the others
// are one failure before they are disabled.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn many_endpoints_fail() {
    let service = Service::new().await;
    let bad: Vec<String> = (0..12)
        .map(|n| service.endpoint_of("acct_2", &format!("/bad{n}"), &[Reply::Close]))
        .collect();
    let more = ["--time-scale", "0.00001"];
    let sender = service.world.start("sender", &[&SENDER[..], &more].concat());
    Recording::new(&["WebhooksFailing", "EndpointsDisabled"], &[])
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                let fail = "UPDATE endpoints SET first_failures = 5, first_failed_at = now()
                        WHERE url LIKE '%/bad_';
                    UPDATE endpoints SET failures = 19 WHERE url SIMILAR TO '%/bad(4|5|6|7|8|9|10|11)'";
                service.run(fail).await;
            }
            if look >= BEGIN && look % 2 == 0 {
                bad.iter().take(4).for_each(|each| service.ping(each));
            }
            if look == BEGIN {
                bad.iter().skip(4).for_each(|each| service.ping(each));
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_sender_has_no_files_left() {
    let service = Service::new().await;
    let silent: Vec<String> = (2..=4)
        .flat_map(|account| (0..4).map(move |n| (account, n)))
        .map(|(account, n)| {
            let account = format!("acct_{account}");
            service.endpoint_of(&account, &format!("/silent-{account}-{n}"), &[Reply::Nothing])
        })
        .collect();
    let sender = service.sender();
    Recording::new(&["FilesExhausted", "WebhooksUnsent"], &[])
        .of("sender", &sender)
        .run(async |look| {
            // Nearly all are open first. With none left, how many there are cannot be read either.
            if look == BEGIN {
                let open = open_files(&sender);
                limit_files(&sender, open + open / 8 + 1);
            }
            // A few in each look: a connection that rests for ten seconds is closed, and there is no file for another.
            if (BEGIN + 7..BEGIN + 15).contains(&look) {
                for _ in 0..3 {
                    silent.iter().for_each(|each| service.ping(each));
                }
            }
        })
        .await;
}

// As if others were first each time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn writes_are_lost() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.sender();
    Recording::new(&["SendersCollide"], &[])
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                let lose = "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
                        $$ BEGIN RETURN NULL; END $$;
                    CREATE TRIGGER lose BEFORE UPDATE OR DELETE ON deliveries FOR EACH ROW
                        EXECUTE FUNCTION lose();";
                service.run(lose).await;
            }
            service.ping(&well);
        })
        .await;
}

// Events that an outbox relays fifteen seconds after what they report.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn events_come_late() {
    let service = Service::new().await;
    service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.sender();
    Recording::new(&["DeliveriesSlow"], &[])
        .of("sender", &sender)
        .run(async |look| {
            let then = clock::now().saturating_sub(Duration::from_secs(15));
            let event = ping_of("acct_1", &look.to_string(), then);
            service.accept(&event, clock::now().floor_to_micros()).await;
        })
        .await;
}

// Somebody holds a lock on what customers and people ask for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_is_slow() {
    let service = Service::new().await;
    let mut held = None;
    let recording = Recording::new(&["ApiSlow", "PoolExhausted"], &[]).of("api", &service.api);
    let (over, ask) = (AtomicBool::new(false), AtomicBool::new(false));
    let (over, ask) = (&over, &ask);
    thread::scope(|scope| {
        for n in 0..32 {
            let api = &service.api;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match (ask.load(Ordering::Relaxed), n % 2) {
                        (false, _) => thread::sleep(EVERY),
                        (true, 0) => drop(api.get("/v1/calls?limit=1")),
                        (true, _) => {
                            let path = "/accounts/acct_1/overview";
                            drop(request(api.dashboard(), "GET", path, "", b""));
                        }
                    }
                }
            });
        }
        let recorded = recording.begin(async || {
            let lock = "LOCK TABLE alerts, keys IN ACCESS EXCLUSIVE MODE";
            held = Some(service.world.held(lock).await);
            ask.store(true, Ordering::Relaxed);
        });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(recorded));
        over.store(true, Ordering::Relaxed);
    });
}

// One loop is stuck, and the database answers all others.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_look_finds_the_queue_locked() {
    let service = Service::new().await;
    let sender = service.sender();
    let recording = Recording::new(&["LoopStuck"], &[])
        .row("LoopStuck", "find it in `pg_stat_activity`")
        .says("looking for deliveries error=")
        .of("sender", &sender);
    let (mut held, lock) = (None, "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE");
    recording.begin(async || held = Some(service.world.held(lock).await)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_process_lacks_a_key() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let mut command = service.world.command("sender", &SENDER);
    command.env(VARIABLE, KeyRing::new_line(2));
    let sender = Running::of(command);
    service.ping(&well);
    Recording::new(&["SecretsUnreadable", "WebhooksLate"], &[])
        .row("SecretsUnreadable", "Give each process the whole ring")
        .says("the key ring lacks keys that are in use")
        .of("sender", &sender)
        .begin(async || {})
        .await;
}

// D-100: the row is counted as such, and nothing is late.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_row_is_damaged() {
    let service = Service::new().await;
    let hurt = service.endpoint("/hurt", &[Reply::Status(204)]);
    let sender = service.sender();
    service.run(DAMAGE).await;
    service.ping(&hurt);
    Recording::new(&["RowsUnreadable", "WebhooksLate"], &[])
        .row("RowsUnreadable", "endpoints rotate ID`")
        .says("an endpoint cannot be read")
        .of("sender", &sender)
        .begin(async || {})
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_process_lacks_a_right() {
    let service = Service::new().await;
    service.run(include_str!("../../deploy/roles.sql")).await;
    let url = service.world.log_in("call_assistant_api").await;
    // Its rights were granted by hand, so that it starts.
    for right in ["ALL ON ALL TABLES", "ALL ON ALL SEQUENCES"] {
        service.run(&format!("GRANT {right} IN SCHEMA public TO call_assistant_api_1")).await;
    }
    let sender = service.world.start("sender", &[&["--database", &url], &SENDER[..]].concat());
    Recording::new(&["RightsLacking"], &[])
        .row("RightsLacking", "`deploy/roles.sql`")
        .says("the login lacks a right: membership in call_assistant_sender")
        .of("sender", &sender)
        .begin(async || {})
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_clock_is_wrong() {
    let Some(library) = shifted::faketime() else {
        println!("skipped: a wrong clock, for `faketime` is not installed");
        return;
    };
    let service = Service::new().await;
    let mut command = service.world.command("sender", &SENDER);
    shifted::shift(&mut command, &library, 20);
    let sender = Running::of(command);
    Recording::new(&["ClockWrong"], &[])
        .row("ClockWrong", "Run NTP")
        .of("sender", &sender)
        .begin(async || {})
        .await;
}

// D-103: one alert names it, however many senders rest.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_clock_of_the_database_is_wrong() {
    let Some(library) = shifted::faketime() else {
        println!("skipped: a wrong clock of the database, for `faketime` is not installed");
        return;
    };
    let mut service = Service::new().await;
    let senders = [0; 2].map(|_| service.sender());
    let told = File::new("leader", "+45s\n");
    let recording = Recording::new(&["DatabaseClockWrong", "NoSender"], &["StoreOutOfReach"])
        .row("DatabaseClockWrong", "database's server")
        .says("one of the two is wrong")
        .of("api", &service.api)
        .of("sender-1", &senders[0])
        .of("sender-2", &senders[1]);
    recording
        .begin(async || {
            clocks::fail_over(&mut service.world, &library, Path::new(told.path()));
        })
        .await;
}

// As a sender finds it that had renewed its leases often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_goes_back() {
    let service = Service::new().await;
    let sender = service.sender();
    Recording::new(&["DatabaseWentBack"], &[])
        .row("DatabaseWentBack", "failover.md#when-the-database-went-back")
        .says("the database went back")
        .of("sender", &sender)
        .run(async |look| {
            if look == 2 * BEGIN {
                service.run("UPDATE senders SET renewals = 0").await;
            }
        })
        .await;
}

// No statement that writes finds room.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_disk_is_full() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let sender = service.sender();
    Recording::new(&["ApiFails", "LoopStuck", "NoSender"], &["WebhooksLate", "WritesWaiting"])
        .row("`No space left on device` in a log", "add disk")
        .says("No space left on device")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                service.ping(&well);
                let no_room = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                        RAISE EXCEPTION 'could not extend file: No space left on device'
                            USING ERRCODE = 'disk_full'; END $$;
                    DO $$ DECLARE name text; BEGIN
                        FOR name IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')
                                AND relnamespace = 'public'::regnamespace AND NOT relispartition LOOP
                            EXECUTE format('CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON %I
                                FOR EACH ROW EXECUTE FUNCTION no_room()', name);
                        END LOOP; END $$";
                service.run(no_room).await;
            }
            calls(&service.api);
        })
        .await;
}

// A standby that a COMMIT waits for is away.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_standby_is_away() {
    let service = Service::new().await;
    let sender = service.sender();
    Recording::new(&["WritesWaiting"], &["LoopStuck"])
        .row("WritesWaiting", "Start the standby")
        .says("leases error=")
        .of("api", &service.api)
        .of("sender", &sender)
        .begin(async || {
            service.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
            service.run("SELECT pg_reload_conf()").await;
        })
        .await;
}

// Set on a bad day, which is over.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_lever_is_forgotten() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    let pause = json!({ "account_id": "acct_1", "per_second": 0 });
    service.api.ask("POST", "/levers", &pause, 201);
    let sender = service.sender();
    Recording::new(&["LeverForgotten"], &[])
        .row("LeverForgotten", "/undo`")
        .of("api", &service.api)
        .of("sender", &sender)
        .begin(async || {
            service.ping(&well);
            service.run("UPDATE levers SET set_at = now() - interval '25 hours'").await;
        })
        .await;
}

// No sender drops it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_day_is_kept() {
    let service = Service::new().await;
    service.run("SELECT add_day(((now() AT TIME ZONE 'UTC')::date - 35))").await;
    Recording::new(&["DayKept"], &[]).of("api", &service.api).begin(async || {}).await;
}

// The only process that reaches no database, beside one that does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn one_process_is_cut_off() {
    let mut service = Service::new().await;
    let cut = Service::new().await;
    Recording::new(&["StoreOutOfReach"], &[])
        .of("api-1", &cut.api)
        .of("api-2", &service.api)
        .begin(async || service.world.server.stop())
        .await;
}

// They never answer, while everybody else is well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn many_endpoints_of_one_customer_hang() {
    let service = Service::new().await;
    // As many as their customer has only where an operator allows it.
    let more = ["--allow-loopback-endpoints", "--max-endpoints", "500"];
    let generous = service.world.start("api", &more);
    let silent: Vec<String> = (0..500)
        .map(|n| {
            let url = service.receiver.url(&format!("/silent{n}"), &[Reply::Nothing]);
            let made =
                generous.ask("POST", "/accounts/acct_2/endpoints", &json!({ "url": url }), 201);
            format!("/endpoints/{}", made["id"].as_str().unwrap())
        })
        .collect();
    drop(generous);
    let well: Vec<String> = (3..=4)
        .map(|n| {
            service.endpoint_of(&format!("acct_{n}"), &format!("/well{n}"), &[Reply::Status(204)])
        })
        .collect();
    let sender = service.sender();
    Recording::new(&[], &[])
        .row("many endpoints are `suspect`", "then nothing")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                silent.iter().for_each(|each| service.ping(each));
            }
            well.iter().for_each(|each| service.ping(each));
        })
        .await;
}

// It neither renews its leases nor answers, and goes on later.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_sender_stands_still() {
    let service = Service::new().await;
    let (left, stuck) = (service.sender(), service.sender());
    let recording = Recording::new(&["SenderDied", "ProcessMissing"], &[])
        .row("SenderDied", "others have its shards")
        .says("a sender has vanished")
        .of("sender-1", &left)
        .of("sender-2", &stuck);
    service.becomes(LEAST, 32).await;
    recording.begin(async || stuck.signal("STOP")).await;
    stuck.signal("CONT");
}

// A backlog that a sender works off: of `BACKLOG_ROWS`, or of 20,000 deliveries.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_backlog_is_sent() {
    let service = Service::new().await;
    let well = service.endpoint("/well", &[Reply::Status(204)]);
    service.ping(&well);
    let rows = std::env::var("BACKLOG_ROWS").map_or(20_000, |rows| rows.parse::<u32>().unwrap());
    let many = format!(
        "BEGIN;
        SET LOCAL statement_timeout = 0;
        INSERT INTO deliveries (shard, endpoint, account_id, event_id, event_created_at, status,
            at, attempts, manual, generation, version)
        SELECT shard, endpoint, account_id, event_id, event_created_at, 'waiting',
            now() - interval '10 minutes', 0, false, generation, 0
        FROM deliveries, generate_series(1, {rows});
        COMMIT"
    );
    let mut sender = None;
    Recording::new(&["WebhooksLate"], &["NoSender"])
        .row("WebhooksLate", "a backlog ends by itself")
        .of("api", &service.api)
        .run(async |look| {
            if look == BEGIN {
                service.run(&many).await;
            }
            if look == BEGIN + 10 {
                sender = Some(service.sender());
            }
        })
        .await;
    drop(sender);
}

// The sender verifies, and tells the owner why nothing arrives.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_certificate_has_expired() {
    let service = Service::new().await;
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    leaf.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let leaf = leaf.self_signed(&key).unwrap();
    let (chain, key) =
        (vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap());
    let tls = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let receiver = Receiver::with(Some(tls));
    let asked = json!({ "url": receiver.url("/expired", &[Reply::Status(204)]) });
    let made = service.api.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
    let expired = format!("/endpoints/{}", made["id"].as_str().unwrap());
    let ca = File::new("expired.pem", &leaf.pem());
    let flags = [&SENDER[..], &["--trust-ca", ca.path(), "--time-scale", "0.0001"]].concat();
    let sender = service.world.start("sender", &flags);
    Recording::new(&[], &[])
        .row("one endpoint is suspect", "nothing: its owner is told")
        .says("alert=failing")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look >= BEGIN {
                service.ping(&expired);
            }
        })
        .await;
    let reasons = "SELECT count(*) FROM attempts WHERE reason = 'certificate_expired'";
    assert!(service.count(reasons).await > 0);
}
