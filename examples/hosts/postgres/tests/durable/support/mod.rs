//! Processes of this host over a server of their own, for tests that look from outside.

pub(crate) use testing::{receiver, running, shifted};
pub(crate) mod service;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use call_assistant_postgres::db::{self, Database};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::{PrivateServer, Settings};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::running::{Answer, eventually, request};

/// A database that is ready, and the ring that all its processes have.
pub(crate) struct World {
    pub(crate) server: PrivateServer,
    pub(crate) database: Database,
    pub(crate) ring: String,
}

/// A process that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    /// The first line it printed.
    pub(crate) first: Value,
    log: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

/// A key that the tests' account has.
pub(crate) const KEY: &str = "service_live_0123456789abcdef0123456789abcdef";

/// An account with that key and `calls` calls.
pub(crate) fn data(calls: u64) -> Value {
    let call = |number: u64| {
        let started = 1_767_225_600 + number * 60;
        let at = |seconds: u64| {
            let seconds = i64::try_from(started + seconds).unwrap();
            call_assistant::Timestamp::from_unix(seconds).unwrap().to_string()
        };
        json!({
            "id": format!("call_{number}"),
            "caller": { "contact_id": null, "phone_number": null, "display_name": null },
            "started_at": at(0), "answered_at": at(4), "ended_at": at(40),
            "duration_seconds": 36, "summary": "Hello.", "appointment_ids": [],
            "created_at": at(41),
        })
    };
    json!({ "accounts": [{
        "id": "acct_1",
        "timezone": "UTC",
        "keys": [{ "id": "cred_1", "name": "one", "secret": KEY }],
        "calls": (0..calls).map(call).collect::<Vec<_>>(),
    }]})
}

impl World {
    pub(crate) async fn new(settings: Settings) -> Self {
        let server = PrivateServer::start(settings).unwrap();
        let database = Database::new(&server.url(), 4).unwrap();
        db::migrate(&database).await.unwrap();
        Self { server, database, ring: KeyRing::new_line(1) }
    }

    /// Prepares a process with this role and these flags, on ports of its own.
    pub(crate) fn command(&self, role: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
        command.arg(role).env(VARIABLE, &self.ring).env("DATABASE_URL", self.server.url());
        if !matches!(role, "sender" | "recover" | "erase" | "rotate-keys" | "doctor") {
            command.args(["--listen", "127.0.0.1:0"]);
            if !flags.contains(&"--dashboard") {
                command.args(["--dashboard", "127.0.0.1:0"]);
            }
        }
        command.args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a process, and waits until it is ready.
    pub(crate) fn start(&self, role: &str, flags: &[&str]) -> Running {
        Running::of(self.command(role, flags))
    }
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (mut stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let first = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("no first line: {}", log.lock().unwrap()));
        Self { child, first, log, reader }
    }

    fn address(&self, name: &str) -> &str {
        self.first[name].as_str().unwrap().strip_prefix("http://").unwrap()
    }

    pub(crate) fn api(&self) -> &str {
        self.address("api")
    }

    pub(crate) fn dashboard(&self) -> &str {
        self.address("dashboard")
    }

    /// Where it listens for monitoring.
    pub(crate) fn metrics(&self) -> &str {
        self.address("metrics")
    }

    /// The address that a monitoring system asks.
    pub(crate) fn monitoring(&self) -> &str {
        self.address(if self.first["metrics"].is_null() { "dashboard" } else { "metrics" })
    }

    /// What it writes to standard error, from now on too.
    pub(crate) fn written(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.log)
    }

    /// `GET`s a path of the public API with [`KEY`].
    pub(crate) fn get(&self, path: &str) -> Answer {
        let authorization = format!("Authorization: Bearer {KEY}\r\n");
        request(self.api(), "GET", path, &authorization, b"")
    }

    /// Asks the dashboard, and expects this status.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let answer = request(self.dashboard(), method, path, "", body.to_string().as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        answer.json()
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn ask_to_end(&self) {
        let id = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
    }

    /// Waits until it has ended, and all that it wrote was read.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = eventually("the end", || self.child.try_wait().unwrap());
        eventually("the end of its log", || self.reader.is_finished().then_some(()));
        status
    }

    /// The lines that it has written to standard error.
    pub(crate) fn log(&self) -> String {
        let log = self.log.lock().unwrap();
        log[..log.rfind('\n').map_or(0, |end| end + 1)].to_owned()
    }

    /// Waits until its log has this text.
    #[track_caller]
    pub(crate) fn logs(&self, text: &str) {
        eventually(&format!("{text:?} in the log"), || self.log().contains(text).then_some(()));
    }

    /// Waits until a request is answered with this status.
    #[track_caller]
    pub(crate) fn becomes(&self, path: &str, status: u16) {
        eventually(&format!("{path} is {status}"), || {
            (self.get(path).status == status).then_some(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}", self.log());
        }
    }
}
