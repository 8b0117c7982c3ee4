//! The host's processes beside the one that is asked: what is killed is started again.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use call_assistant_postgres::key_ring;
use checker::load::Addresses;
use checker::record;

/// This build's program, or another one, which may be broken on purpose.
pub(crate) fn program() -> OsString {
    let built = env!("CARGO_BIN_EXE_call-assistant-postgres");
    std::env::var_os("CLUSTER_PROGRAM").unwrap_or_else(|| built.into())
}

/// Six hours in eleven seconds, ten seconds in half a second.
const SCALE: [&str; 4] = ["--time-scale", record::TIME_SCALE, "--timeout-scale", "0.05"];

/// The API processes that customers ask, and the senders: 2 of each.
pub(crate) const EACH: usize = 2;

pub(crate) struct Fleet {
    url: String,
    ring: &'static str,
    addresses: Addresses,
    apis: Vec<Child>,
    senders: Vec<Child>,
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
        for process in self.apis.iter_mut().take(1).chain(self.senders.iter_mut().take(1)) {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts again what has ended, for a time.
    pub(crate) async fn live(&mut self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            for nth in 0..EACH {
                if let Ok(Some(_)) = self.apis[nth].try_wait() {
                    self.apis[nth] = self.api(nth);
                }
                if let Ok(Some(_)) = self.senders[nth].try_wait() {
                    self.senders[nth] = self.sender();
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn api(&self, nth: usize) -> Child {
        self.addresses.forget(nth);
        let mut command = self.command("api", &self.url);
        command.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
        let mut api = command.stdout(Stdio::piped()).spawn().unwrap();
        self.addresses.hear(nth, api.stdout.take().unwrap());
        api
    }

    fn sender(&mut self) -> Child {
        self.started += 1;
        // The record has to tell one from another.
        let url = record::url_of(&self.url, &format!("sender-{}", self.started));
        self.command("sender", &url).args(SCALE).spawn().unwrap()
    }

    fn command(&self, role: &str, url: &str) -> Command {
        let mut command = Command::new(program());
        command
            .args([role, "--allow-loopback-endpoints", "--database", url])
            .env(key_ring::VARIABLE, self.ring)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if std::env::var_os("CLUSTER_LOG").is_none() {
            command.stderr(Stdio::null());
        }
        command
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for process in self.apis.iter_mut().chain(&mut self.senders) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
