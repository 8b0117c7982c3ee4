//! Processes, and what is done to them.

use std::ffi::OsString;
use std::fmt;
use std::process::Child;
use std::time::{Duration, Instant};

use call_assistant_postgres::db::Database;
use private_server::PrivateServer;
use rustix::process::{Pid, Signal, kill_process};
use testing::shifted;

use crate::Plan;
use checker::load::{self, Addresses, Customers};
use checker::record;

/// By how many seconds the clocks of senders are wrong, in the order in which they start: with most of
/// these they send, and with some they have to rest.
const AHEAD: [i64; 8] = [20, 0, -20, 29, 1200, 0, -29, -1200];

/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(6);

pub(crate) struct Fleet {
    server: Option<PrivateServer>,
    url: String,
    ring: &'static str,
    senders: Vec<Child>,
    /// How many senders there have been.
    started: u32,
    apis: Vec<Child>,
    addresses: Addresses,
    paused: Vec<(usize, Instant)>,
    dice: u64,
    customers: Customers,
    plan: Plan,
    done: Done,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    senders: u32,
    apis: u32,
    databases: u32,
    restarts: u32,
    refused: u32,
    paused: u32,
    held: u32,
    asked: u32,
    shifted: u32,
    set_back: u32,
}

impl Done {
    /// What should have been done and was not.
    pub(crate) fn missing(&self) -> Option<String> {
        (self.set_back == 0).then(|| "no number was given again".to_owned())
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "killed: {} senders, {} API processes, {} database servers; {} restarts of the database, {} times away for \
             seconds; {} senders paused past their leases, {} asked to end, {} with a wrong clock; {} \
             transactions held open; what was accepted last lost, and its numbers given again, {} times",
            self.senders,
            self.apis,
            self.databases,
            self.restarts,
            self.refused,
            self.paused,
            self.asked,
            self.shifted,
            self.held,
            self.set_back
        )
    }
}

impl Fleet {
    pub(crate) fn start(
        server: PrivateServer,
        url: &str,
        ring: &'static str,
        addresses: Addresses,
        customers: Customers,
        plan: Plan,
    ) -> Self {
        let mut fleet = Self {
            server: Some(server),
            url: url.to_owned(),
            ring,
            senders: Vec::new(),
            started: 0,
            apis: Vec::new(),
            addresses,
            paused: Vec::new(),
            dice: plan.seed.max(1),
            customers,
            plan,
            done: Done::default(),
        };
        fleet.senders = (0..plan.senders).map(|_| fleet.sender()).collect();
        fleet.apis = (0..plan.apis).map(|nth| fleet.api(nth)).collect();
        fleet
    }

    /// One fault after the other, at random, until there were enough of them.
    pub(crate) async fn run(mut self, began: Instant) -> (Self, Done) {
        let pace = Duration::from_secs(self.plan.seconds) / self.plan.kills.max(1);
        let mut at = began;
        while self.done.senders + self.done.apis + self.done.databases < self.plan.kills {
            at += pace;
            tokio::time::sleep_until(at.into()).await;
            self.resume(Instant::now());
            self.revive();
            match self.roll(100) {
                0..=4 => self.crash_database().await,
                5..=6 => self.restart_database(Duration::ZERO).await,
                7 => self.restart_database(Duration::from_secs(2)).await,
                8..=12 => self.pause(),
                13..=15 => self.hold_transaction(),
                16..=18 => self.set_back().await,
                19..=23 => self.ask_to_end(),
                24..=38 => self.kill_api(),
                _ => self.kill_sender(),
            }
            // A fault that took its time does not make the next ones come all at once.
            at = at.max(Instant::now() - pace);
        }
        self.resume(Instant::now() + PAUSE);
        self.revive();
        // The dice may have left out what needs an endpoint that is silent and not disabled.
        for _ in 0..30 {
            if self.done.set_back > 0 {
                break;
            }
            self.set_back().await;
            tokio::time::sleep(pace).await;
            self.revive();
        }
        let done = self.done;
        (self, done)
    }

    /// Asks every process to end. How many did so within their time; and the server, for the checks.
    pub(crate) async fn end(mut self) -> (usize, PrivateServer) {
        let mut all: Vec<Child> = self.senders.drain(..).chain(self.apis.drain(..)).collect();
        for process in &all {
            signal(process, Signal::TERM);
        }
        let limit = Instant::now() + Duration::from_secs(30);
        let mut ended = 0;
        for process in &mut all {
            loop {
                match process.try_wait() {
                    Ok(Some(status)) => {
                        ended += usize::from(status.success());
                        break;
                    }
                    _ if limit < Instant::now() => {
                        let _ = process.kill();
                        let _ = process.wait();
                        break;
                    }
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        }
        (ended, self.server.take().unwrap())
    }

    fn sender(&mut self) -> Child {
        let ahead = AHEAD[usize::try_from(self.started).unwrap() % AHEAD.len()];
        self.started += 1;
        let url = record::url_of(&self.url, &format!("sender-{}", self.started));
        let is_logged = std::env::var_os("CHAOS_LOG").is_some();
        let mut command = load::process(&program(), "sender", &url, self.ring, is_logged);
        command.args(load::SCALE);
        if let Some(library) = shifted::faketime().filter(|_| ahead != 0) {
            shifted::shift(&mut command, &library, ahead);
            self.done.shifted += 1;
        }
        command.spawn().unwrap()
    }

    fn api(&self, nth: usize) -> Child {
        let api = load::process(&program(), "api", &self.url, self.ring, false);
        self.addresses.start(nth, api)
    }

    /// Starts what has ended: what was killed, and what did not find the database.
    fn revive(&mut self) {
        for nth in 0..self.senders.len() {
            if let Ok(Some(_)) = self.senders[nth].try_wait() {
                self.senders[nth] = self.sender();
            }
        }
        for nth in 0..self.apis.len() {
            if let Ok(Some(_)) = self.apis[nth].try_wait() {
                self.apis[nth] = self.api(nth);
            }
        }
    }

    fn kill_api(&mut self) {
        let nth = usize::try_from(self.roll(u64::try_from(self.apis.len()).unwrap())).unwrap();
        let _ = self.apis[nth].kill();
        let _ = self.apis[nth].wait();
        self.apis[nth] = self.api(nth);
        self.done.apis += 1;
    }

    fn kill_sender(&mut self) {
        let nth = self.any_sender();
        let _ = self.senders[nth].kill();
        let _ = self.senders[nth].wait();
        self.paused.retain(|(paused, _)| *paused != nth);
        self.senders[nth] = self.sender();
        self.done.senders += 1;
    }

    fn ask_to_end(&mut self) {
        let nth = self.any_sender();
        signal(&self.senders[nth], Signal::TERM);
        self.done.asked += 1;
    }

    fn pause(&mut self) {
        let nth = self.any_sender();
        if self.paused.iter().all(|(paused, _)| *paused != nth) {
            signal(&self.senders[nth], Signal::STOP);
            self.paused.push((nth, Instant::now() + PAUSE));
            self.done.paused += 1;
        }
    }

    fn resume(&mut self, now: Instant) {
        let (due, rest) = self.paused.drain(..).partition(|(_, until)| *until <= now);
        self.paused = rest;
        let due: Vec<(usize, Instant)> = due;
        for (nth, _) in due {
            signal(&self.senders[nth], Signal::CONT);
        }
    }

    async fn crash_database(&mut self) {
        self.with_server(|server| {
            server.kill();
            server.launch().unwrap();
        })
        .await;
        self.done.databases += 1;
    }

    /// Where it is away for longer, connections are refused meanwhile.
    async fn restart_database(&mut self, away: Duration) {
        self.with_server(move |server| {
            server.stop();
            std::thread::sleep(away);
            server.launch().unwrap();
        })
        .await;
        match away {
            Duration::ZERO => self.done.restarts += 1,
            _ => self.done.refused += 1,
        }
    }

    async fn with_server(&mut self, work: impl FnOnce(&mut PrivateServer) + Send + 'static) {
        let mut server = self.server.take().unwrap();
        let thread = tokio::task::spawn_blocking(move || {
            work(&mut server);
            server
        });
        self.server = Some(thread.await.unwrap());
    }

    async fn set_back(&mut self) {
        self.done.set_back += u32::from(self.customers.lose().await);
    }

    /// A transaction that has a number and does not end for a while.
    fn hold_transaction(&mut self) {
        let url = self.url.clone();
        tokio::spawn(async move {
            let database = Database::new(&url, 1).ok()?;
            let mut session = database.session().await.ok()?;
            let change = session.transaction().await.ok()?;
            change.batch_execute("SELECT pg_current_xact_id()").await.ok()?;
            tokio::time::sleep(Duration::from_secs(8)).await;
            change.rollback().await.ok()
        });
        self.done.held += 1;
    }

    fn any_sender(&mut self) -> usize {
        usize::try_from(self.roll(u64::try_from(self.senders.len()).unwrap())).unwrap()
    }

    /// A xorshift: good enough, and the same for the same seed.
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for process in self.senders.iter_mut().chain(&mut self.apis) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// This build's program, or another one, for a run that outlasts the next build.
pub(crate) fn program() -> OsString {
    let built = env!("CARGO_BIN_EXE_call-assistant-postgres");
    std::env::var_os("CHAOS_PROGRAM").unwrap_or_else(|| built.into())
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}
