//! The host's processes beside the one that is asked: what is killed is started again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use checker::load::{self, Addresses};
use checker::record;
use rustix::process::{Pid, Signal, kill_process};

use crate::beside;

/// This build's program, or another one, which may be broken on purpose.
pub(crate) fn program() -> OsString {
    let built = env!("CARGO_BIN_EXE_call-assistant-postgres");
    std::env::var_os("CLUSTER_PROGRAM").unwrap_or_else(|| built.into())
}

/// Whether what the host's processes write is shown.
pub(crate) fn is_logged() -> bool {
    std::env::var_os("CLUSTER_LOG").is_some()
}

/// The API processes that customers ask, and the senders: 2 of each.
pub(crate) const EACH: usize = 2;

/// A sender, and what it says of the database.
struct Sender {
    number: u32,
    process: Child,
    metrics: Arc<OnceLock<String>>,
    /// How many lines of its log say that the database went back.
    went_back: Arc<AtomicU32>,
}

pub(crate) struct Fleet {
    url: String,
    ring: &'static str,
    addresses: Addresses,
    apis: Vec<Child>,
    senders: Vec<Sender>,
    /// How many senders there have been.
    started: u32,
}

impl Fleet {
    pub(crate) fn start(url: &str, ring: &'static str, addresses: Addresses) -> Self {
        let (apis, senders) = (Vec::new(), Vec::new());
        let mut fleet = Self { url: url.to_owned(), ring, addresses, apis, senders, started: 0 };
        for nth in 0..EACH {
            let (api, sender) = (fleet.api(nth), fleet.sender());
            fleet.apis.push(api);
            fleet.senders.push(sender);
        }
        fleet
    }

    /// Kills one of each.
    pub(crate) fn kill(&mut self) {
        for process in self.processes().into_iter().step_by(EACH) {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// All API processes, and then all senders.
    fn processes(&mut self) -> Vec<&mut Child> {
        let senders = self.senders.iter_mut().map(|sender| &mut sender.process);
        self.apis.iter_mut().chain(senders).collect()
    }

    pub(crate) fn signal_senders(&self, signal: Signal) {
        for sender in &self.senders {
            let id = Pid::from_raw(sender.process.id().cast_signed()).unwrap();
            kill_process(id, signal).unwrap();
        }
    }

    /// How often each sender has said that the database went back: in its log, and in its metrics.
    pub(crate) fn went_back(&self) -> BTreeMap<u32, [u32; 2]> {
        let said = |sender: &Sender| {
            let metrics = beside::ask(sender.metrics.get()?, "GET", "/metrics", "", "")?.text();
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix("call_assistant_database_went_back_total "));
            let in_log = sender.went_back.load(Ordering::Relaxed);
            Some((sender.number, [in_log, line?.parse().ok()?]))
        };
        self.senders.iter().filter_map(said).collect()
    }

    /// Starts again what has ended, for a time.
    pub(crate) async fn live(&mut self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            for nth in 0..EACH {
                if let Ok(Some(_)) = self.apis[nth].try_wait() {
                    self.apis[nth] = self.api(nth);
                }
                if let Ok(Some(_)) = self.senders[nth].process.try_wait() {
                    self.senders[nth] = self.sender();
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn api(&self, nth: usize) -> Child {
        self.addresses.start(nth, self.command("api", &self.url))
    }

    fn sender(&mut self) -> Sender {
        self.started += 1;
        // The record has to tell one from another.
        let url = record::url_of(&self.url, &format!("sender-{}", self.started));
        let mut command = self.command("sender", &url);
        command.args(load::SCALE).args(["--metrics", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, log) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let (metrics, went_back) = <(Arc<OnceLock<String>>, Arc<AtomicU32>)>::default();
        let (address, counted) = (Arc::clone(&metrics), Arc::clone(&went_back));
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(out).read_line(&mut line);
            let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            let url = said["metrics"].as_str().unwrap_or_default();
            let _ = address.set(url.trim_start_matches("http://").to_owned());
        });
        thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                let is_said = line.contains("the database went back");
                counted.fetch_add(is_said.into(), Ordering::Relaxed);
                if is_logged() {
                    eprintln!("{line}");
                }
            }
        });
        Sender { number: self.started, process, metrics, went_back }
    }

    fn command(&self, role: &str, url: &str) -> Command {
        load::process(&program(), role, url, self.ring, is_logged())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
