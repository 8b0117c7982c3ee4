//! A recorder: it makes each thing happen that somebody is alerted of, and writes down what a monitoring system sees of
//! the running processes meanwhile. `tests/alerts/run` evaluates the rules over the recording, and shows for each bad day
//! what the log said and what `docs/operating.md` tells to do.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use call_assistant_postgres::queue::accept;
use rcgen::{CertificateParams, KeyPair};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::json;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::clocks;
use crate::migrating::log_in;
use crate::sending::LEAST;
use crate::support::receiver::{Receiver, Reply};
use crate::support::running::File;
use crate::support::service::{DAMAGE, Service};
use crate::support::{Running, shifted};

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];

/// How often to look, and how many times: each look stands for a minute of the rules.
const EVERY: Duration = Duration::from_millis(500);
const LOOKS: usize = 34;

/// How many times to look where senders are judged ten seconds after they lost their shards.
const MORE_LOOKS: usize = 54;

/// The look at which it begins.
const BEGIN: usize = 4;

/// The processes that are looked at, and what was seen.
struct Recording {
    name: &'static str,
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
    targets: BTreeMap<&'static str, Target>,
    looks: Vec<BTreeMap<&'static str, Option<String>>>,
}

/// One process, asked on one connection as a monitoring system does.
struct Target {
    address: String,
    log: Arc<Mutex<String>>,
    stream: Option<BufReader<TcpStream>>,
}

impl Target {
    fn look(&mut self) -> Option<String> {
        let seen = self.ask();
        if seen.is_none() {
            self.stream = None;
        }
        seen
    }

    fn ask(&mut self) -> Option<String> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            self.stream = Some(BufReader::new(stream));
        }
        let stream = self.stream.as_mut()?;
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
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

impl Recording {
    fn new(name: &'static str, fires: &'static [&'static str]) -> Self {
        let (targets, looks) = (BTreeMap::new(), Vec::new());
        Self { name, fires, may_fire: &[], row: None, says: None, most: LOOKS, targets, looks }
    }

    fn of(mut self, instance: &'static str, process: &Running) -> Self {
        let (address, log) = (process.monitoring().to_owned(), process.written());
        self.targets.insert(instance, Target { address, log, stream: None });
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

    /// Has alerts that may fire too.
    fn may_fire(self, may_fire: &'static [&'static str]) -> Self {
        Self { may_fire, ..self }
    }

    /// The lines about failures and shards so far.
    fn said(&self) -> Vec<String> {
        let logs = self.targets.iter().map(|(name, target)| (name, target.log.lock().unwrap()));
        let mut said = Vec::new();
        for (name, log) in logs {
            let told = log.lines().filter_map(|line| line.split_once("Z "));
            let told = told.map(|(_, line)| line).filter(|line| {
                ["WARN ", "ERROR", "INFO  shards", "INFO  over"]
                    .iter()
                    .any(|of| line.starts_with(of))
            });
            said.extend(told.map(|line| format!("{name}: {line}")));
        }
        said
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
    let senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
    let recording = Recording::new("one_endpoint_is_broken", &[])
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
    let sender = service.world.start("sender", &SENDER);
    let recording = Recording::new("the_database_is_away", &["StoreDown", "ApiFails"])
        .may_fire(&["StoreOutOfReach"])
        .row("StoreDown", "Repair the database")
        .says("no connection to")
        .of("api", &service.api)
        .of("sender", &sender);
    recording
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
    let mut sender = Some(service.world.start("sender", &SENDER));
    let recording =
        Recording::new("all_senders_die", &["NoSender", "WebhooksLate", "ProcessMissing"])
            .row("NoSender", "start one")
            .of("api", &service.api)
            .of("sender", sender.as_ref().unwrap());
    recording
        .run(async |look| {
            if look == BEGIN {
                sender = None;
            }
            service.ping(&well);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn one_sender_dies() {
    let service = Service::new().await;
    let left = service.world.start("sender", &SENDER);
    let mut dies = Some(service.world.start("sender", &SENDER));
    let recording = Recording::new("one_sender_dies", &["SenderDied", "ProcessMissing"])
        .row("SenderDied", "others have its shards")
        .says("a sender has vanished")
        .looks(MORE_LOOKS)
        .of("sender-1", &left)
        .of("sender-2", dies.as_ref().unwrap());
    service.becomes(LEAST, 32).await;
    recording
        .run(async |look| {
            if look == BEGIN {
                dies = None;
            }
        })
        .await;
}

// After a restart all leases have ended, and whoever is back first takes the shards of who is not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_restarts() {
    let mut service = Service::new().await;
    let senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
    let recording = Recording::new("the_database_restarts", &[])
        .may_fire(&["StoreDown", "StoreOutOfReach", "NoSender"])
        .row("`shards` in a log has `taken_over`, and no log", "the shards are shared again")
        .says("taken_over=[1-9]")
        .looks(MORE_LOOKS)
        .of("sender-1", &senders[0])
        .of("sender-2", &senders[1]);
    service.becomes(LEAST, 32).await;
    let late = Pid::from_raw(senders[1].id().cast_signed()).unwrap();
    recording
        .run(async |look| {
            if look == BEGIN {
                service.world.server.stop();
            }
            if look == BEGIN + 12 {
                kill_process(late, Signal::STOP).unwrap();
                service.world.server.launch().unwrap();
                tokio::time::sleep(Duration::from_secs(2)).await;
                kill_process(late, Signal::CONT).unwrap();
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn everything_dies() {
    let service = Service::new().await;
    let mut sender = Some(service.world.start("sender", &SENDER));
    let recording = Recording::new("everything_dies", &["NothingRuns", "ProcessMissing"])
        .of("sender", sender.as_ref().unwrap());
    recording
        .run(async |look| {
            if look == BEGIN {
                sender = None;
            }
        })
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
    let fires = &["WebhooksFailing", "EndpointsDisabled"];
    let recording = Recording::new("many_endpoints_fail", fires).of("sender", &sender);
    recording
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
    let sender = service.world.start("sender", &SENDER);
    let fires = &["FilesExhausted", "WebhooksUnsent"];
    let recording = Recording::new("a_sender_has_no_files_left", fires).of("sender", &sender);
    recording
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
    let sender = service.world.start("sender", &SENDER);
    let recording = Recording::new("writes_are_lost", &["SendersCollide"]).of("sender", &sender);
    recording
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
    let sender = service.world.start("sender", &SENDER);
    let recording = Recording::new("events_come_late", &["DeliveriesSlow"]).of("sender", &sender);
    let mut session = service.world.database.session().await.unwrap();
    recording
        .run(async |look| {
            let id = EventId::derived(&["acct_1", "ping", &look.to_string()]);
            let (account, version) =
                (AccountId::parse("acct_1").unwrap(), ApiVersion::parse("2026-01-15").unwrap());
            let now = Timestamp::from(std::time::SystemTime::now()).floor_to_micros();
            let then = now.saturating_sub(Duration::from_secs(15));
            let event = NewEvent::new(id, account, version, Origin::voice(), then).ping("Hello.");
            let change = session.transaction().await.unwrap();
            accept(&change, &event.unwrap(), None, None, now).await.unwrap();
            change.commit().await.unwrap();
        })
        .await;
    session.keep();
}

// Somebody holds a lock on what customers and people ask for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_is_slow() {
    let service = Service::new().await;
    let mut held = service.world.database.session().await.unwrap();
    let recording = Recording::new("the_database_is_slow", &["ApiSlow", "PoolExhausted"])
        .of("api", &service.api);
    let (over, ask) = (AtomicBool::new(false), AtomicBool::new(false));
    let (over, ask) = (&over, &ask);
    let change = held.transaction().await.unwrap();
    thread::scope(|scope| {
        for n in 0..32 {
            let api = &service.api;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match (ask.load(Ordering::Relaxed), n % 2) {
                        (false, _) => thread::sleep(EVERY),
                        (true, 0) => drop(api.get("/v1/calls?limit=1")),
                        (true, _) => drop(crate::support::running::request(
                            api.dashboard(),
                            "GET",
                            "/accounts/acct_1/overview",
                            "",
                            b"",
                        )),
                    }
                }
            });
        }
        let recorded = recording.run(async |look| {
            if look == BEGIN {
                let lock = "SET LOCAL idle_in_transaction_session_timeout = 0;
                    LOCK TABLE alerts, keys IN ACCESS EXCLUSIVE MODE";
                change.batch_execute(lock).await.unwrap();
                ask.store(true, Ordering::Relaxed);
            }
        });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(recorded));
        over.store(true, Ordering::Relaxed);
    });
    change.rollback().await.unwrap();
    held.keep();
}

// One loop is stuck, and the database answers all others.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_look_finds_the_queue_locked() {
    let service = Service::new().await;
    let sender = service.world.start("sender", &SENDER);
    let recording = Recording::new("a_look_finds_the_queue_locked", &["LoopStuck"])
        .row("LoopStuck", "find it in `pg_stat_activity`")
        .says("looking for deliveries error=")
        .of("sender", &sender);
    let mut held = service.world.database.session().await.unwrap();
    let change = held.transaction().await.unwrap();
    recording
        .run(async |look| {
            if look == BEGIN {
                let lock = "SET LOCAL idle_in_transaction_session_timeout = 0;
                    LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE";
                change.batch_execute(lock).await.unwrap();
            }
        })
        .await;
    change.rollback().await.unwrap();
    held.keep();
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
    Recording::new("a_process_lacks_a_key", &["SecretsUnreadable", "WebhooksLate"])
        .row("SecretsUnreadable", "Give each process the whole ring")
        .says("the key ring lacks keys that are in use")
        .of("sender", &sender)
        .run(async |_| {})
        .await;
}

// D-100: the row is counted as such, and nothing is late.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_row_is_damaged() {
    let service = Service::new().await;
    let hurt = service.endpoint("/hurt", &[Reply::Status(204)]);
    let sender = service.world.start("sender", &SENDER);
    service.run(DAMAGE).await;
    service.ping(&hurt);
    Recording::new("a_row_is_damaged", &["RowsUnreadable", "WebhooksLate"])
        .row("RowsUnreadable", "endpoints rotate ID`")
        .says("an endpoint cannot be read")
        .of("sender", &sender)
        .run(async |_| {})
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_process_lacks_a_right() {
    let service = Service::new().await;
    service.run(include_str!("../../deploy/roles.sql")).await;
    let url = log_in(&service.world, "call_assistant_api").await;
    // Its rights were granted by hand, so that it starts.
    for right in ["ALL ON ALL TABLES", "ALL ON ALL SEQUENCES"] {
        service.run(&format!("GRANT {right} IN SCHEMA public TO call_assistant_api_1")).await;
    }
    let sender = service.world.start("sender", &[&["--database", &url], &SENDER[..]].concat());
    Recording::new("a_process_lacks_a_right", &["RightsLacking"])
        .row("RightsLacking", "`deploy/roles.sql`")
        .says("the login lacks a right: it is no member of call_assistant_sender")
        .of("sender", &sender)
        .run(async |_| {})
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
    Recording::new("a_clock_is_wrong", &["ClockWrong"])
        .row("ClockWrong", "Run NTP")
        .of("sender", &sender)
        .run(async |_| {})
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
    let senders = [0; 2].map(|_| service.world.start("sender", &SENDER));
    let told = File::new("leader", "+45s\n");
    let recording =
        Recording::new("the_clock_of_the_database_is_wrong", &["DatabaseClockWrong", "NoSender"])
            // The database restarts.
            .may_fire(&["StoreOutOfReach"])
            .row("DatabaseClockWrong", "database's server")
            .says("one of the two is wrong")
            .of("api", &service.api)
            .of("sender-1", &senders[0])
            .of("sender-2", &senders[1]);
    recording
        .run(async |look| {
            if look == BEGIN {
                clocks::fail_over(&mut service.world, &library, Path::new(told.path()));
            }
        })
        .await;
}

// As a sender finds it that had renewed its leases often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn the_database_goes_back() {
    let service = Service::new().await;
    let sender = service.world.start("sender", &SENDER);
    let recording = Recording::new("the_database_goes_back", &["DatabaseWentBack"])
        .row("DatabaseWentBack", "failover.md#when-the-database-went-back")
        .says("the database went back")
        .of("sender", &sender);
    recording
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
    let sender = service.world.start("sender", &SENDER);
    Recording::new("the_disk_is_full", &["ApiFails", "LoopStuck", "NoSender"])
        .row("`No space left on device` in a log", "add disk")
        .says("No space left on device")
        .may_fire(&["WebhooksLate", "WritesWaiting"])
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
    let sender = service.world.start("sender", &SENDER);
    Recording::new("a_standby_is_away", &["WritesWaiting"])
        .may_fire(&["LoopStuck"])
        .row("WritesWaiting", "Start the standby")
        .says("leases error=")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                service.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
                service.run("SELECT pg_reload_conf()").await;
            }
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
    let sender = service.world.start("sender", &SENDER);
    Recording::new("a_lever_is_forgotten", &["LeverForgotten"])
        .row("LeverForgotten", "/undo`")
        .of("api", &service.api)
        .of("sender", &sender)
        .run(async |look| {
            if look == BEGIN {
                service.ping(&well);
                service.run("UPDATE levers SET set_at = now() - interval '25 hours'").await;
            }
        })
        .await;
}

// No sender drops it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn a_day_is_kept() {
    let service = Service::new().await;
    service.run("SELECT add_day(((now() AT TIME ZONE 'UTC')::date - 35))").await;
    Recording::new("a_day_is_kept", &["DayKept"]).of("api", &service.api).run(async |_| {}).await;
}

// The only process that reaches no database, beside one that does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for another reader"]
async fn one_process_is_cut_off() {
    let mut service = Service::new().await;
    let cut = Service::new().await;
    let recording = Recording::new("one_process_is_cut_off", &["StoreOutOfReach"])
        .of("api-1", &cut.api)
        .of("api-2", &service.api);
    recording
        .run(async |look| {
            if look == BEGIN {
                service.world.server.stop();
            }
        })
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
    let sender = service.world.start("sender", &SENDER);
    Recording::new("many_endpoints_of_one_customer_hang", &[])
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
    let (left, stuck) =
        (service.world.start("sender", &SENDER), service.world.start("sender", &SENDER));
    let pid = Pid::from_raw(stuck.id().cast_signed()).unwrap();
    let recording = Recording::new("a_sender_stands_still", &["SenderDied", "ProcessMissing"])
        .row("SenderDied", "others have its shards")
        .says("a sender has vanished")
        .of("sender-1", &left);
    let recording = recording.of("sender-2", &stuck);
    service.becomes(LEAST, 32).await;
    recording
        .run(async |look| {
            if look == BEGIN {
                kill_process(pid, Signal::STOP).unwrap();
            }
        })
        .await;
    kill_process(pid, Signal::CONT).unwrap();
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
    let recording = Recording::new("a_backlog_is_sent", &["WebhooksLate"])
        .may_fire(&["NoSender"])
        .row("WebhooksLate", "a backlog ends by itself")
        .of("api", &service.api);
    recording
        .run(async |look| {
            if look == BEGIN {
                service.run(&many).await;
            }
            if look == BEGIN + 10 {
                sender = Some(service.world.start("sender", &SENDER));
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
    Recording::new("a_certificate_has_expired", &[])
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
