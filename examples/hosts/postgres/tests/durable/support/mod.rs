//! Processes of this host over a server of their own, for tests that look from outside.

pub(crate) use testing::{receiver, running, shifted};
pub(crate) mod service;

use std::borrow::BorrowMut;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::process::{Command, Stdio};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant_postgres::db::{self, Database, Session};
use call_assistant_postgres::key_ring::{KeyRing, VARIABLE};
use private_server::{PrivateServer, Settings};
use serde_json::{Value, json};

use self::running::{Answer, Told, eventually, request};

/// A database that is ready, and the ring that all its processes have.
pub(crate) struct World {
    pub(crate) server: PrivateServer,
    pub(crate) database: Database,
    pub(crate) ring: String,
}

/// A process that runs until this is dropped.
pub(crate) struct Running(running::Service);

/// A key that the tests' account has.
pub(crate) const KEY: &str = "service_live_0123456789abcdef0123456789abcdef";

/// An account with that key and `calls` calls.
pub(crate) fn data(calls: u64) -> Value {
    let call = |number: u64| {
        let started = 1_767_225_600 + number * 60;
        let at = |seconds: u64| {
            let seconds = i64::try_from(started + seconds).unwrap();
            Timestamp::from_unix(seconds).unwrap().to_string()
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

/// An event of an account.
pub(crate) fn ping_of(account: &str, occurrence: &str, created_at: Timestamp) -> EventBody {
    let id = EventId::derived(&[account, "ping", occurrence]);
    let account = AccountId::parse(account).unwrap();
    let version = ApiVersion::parse("2026-01-15").unwrap();
    let event = NewEvent::new(id, account, version, Origin::voice(), created_at.floor_to_micros());
    event.ping(occurrence).unwrap()
}

/// Runs a command. An empty ring is none.
pub(crate) fn run_at(url: &str, ring: &str, arguments: &[&str]) -> Told {
    let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
    command.args(arguments).env_remove(VARIABLE).env("DATABASE_URL", url);
    if !ring.is_empty() {
        command.env(VARIABLE, ring);
    }
    said(&mut command)
}

/// Runs a command to its end, and returns its output.
pub(crate) fn said(command: &mut Command) -> Told {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Told { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
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
        command
    }

    /// Starts a process, and waits until it is ready.
    pub(crate) fn start(&self, role: &str, flags: &[&str]) -> Running {
        Running::of(self.command(role, flags))
    }

    /// Runs a command.
    pub(crate) fn run(&self, arguments: &[&str]) -> Told {
        self.run_with(&self.ring, arguments)
    }

    /// Runs a command with another ring.
    pub(crate) fn run_with(&self, ring: &str, arguments: &[&str]) -> Told {
        run_at(&self.server.url(), ring, arguments)
    }

    /// Runs a command that succeeds.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> Told {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        said
    }

    /// Runs a command that prints JSON.
    #[track_caller]
    pub(crate) fn json_of(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[arguments, &["--json"]].concat()).stdout).unwrap()
    }

    pub(crate) async fn session(&self) -> Session {
        self.database.session().await.unwrap()
    }

    /// A transaction that is held open for as long as a loaded machine takes, after these statements.
    pub(crate) async fn held(&self, sql: &str) -> Session {
        let session = self.session().await;
        let begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0";
        session.batch_execute(&format!("{begin}; {sql}")).await.unwrap();
        session
    }

    /// Logs in a member of a role of `deploy/roles.sql`, and returns its URL.
    pub(crate) async fn log_in(&self, role: &str) -> String {
        let sql = format!("CREATE ROLE {role}_1 LOGIN PASSWORD 'x' IN ROLE {role}");
        let session = self.session().await;
        session.batch_execute(&sql).await.unwrap();
        session.keep();
        self.url_of(&format!("{role}_1"))
    }

    /// The URL of a login.
    pub(crate) fn url_of(&self, login: &str) -> String {
        let mut url = url::Url::parse(&self.server.url()).unwrap();
        url.set_username(login).unwrap();
        url.set_password(Some("x")).unwrap();
        url.into()
    }
}

impl Deref for Running {
    type Target = running::Service;

    fn deref(&self) -> &running::Service {
        &self.0
    }
}

impl Running {
    pub(crate) fn of(mut command: impl BorrowMut<Command>) -> Self {
        Self(running::Service::of(command.borrow_mut()))
    }

    /// Where it listens for monitoring.
    pub(crate) fn metrics(&self) -> &str {
        self.address("metrics")
    }

    /// The address that a monitoring system asks.
    pub(crate) fn monitoring(&self) -> &str {
        self.address(if self.first["metrics"].is_null() { "dashboard" } else { "metrics" })
    }

    /// What `/readyz` says.
    pub(crate) fn readyz(&self) -> Answer {
        request(self.monitoring(), "GET", "/readyz", "", b"")
    }

    /// Its metrics by their names with labels. It answers, whatever the database does.
    #[track_caller]
    pub(crate) fn values(&self) -> BTreeMap<String, f64> {
        let answer = request(self.monitoring(), "GET", "/metrics", "", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
        pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// The value of a metric.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.values().remove(&format!("call_assistant_{name}"))
    }

    /// Waits until it shows these metrics.
    #[track_caller]
    pub(crate) fn shows(&self, expected: &[(&str, f64)]) {
        eventually(&format!("{expected:?}"), || {
            let values = self.values();
            let value = |name: &str| values.get(&format!("call_assistant_{name}"));
            expected.iter().all(|(name, wanted)| value(name) == Some(wanted)).then_some(())
        });
    }

    /// `GET`s a path of the public API with [`KEY`].
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.0.get(path, KEY)
    }

    /// Ends it, as a service manager does.
    #[track_caller]
    pub(crate) fn end(&self) {
        assert_eq!(self.terminate().code, Some(0));
    }

    /// The lines that it has written to standard error.
    pub(crate) fn log(&self) -> String {
        let log = self.0.log();
        log[..log.rfind('\n').map_or(0, |end| end + 1)].to_owned()
    }

    /// Waits until a request is answered with this status.
    #[track_caller]
    pub(crate) fn becomes(&self, path: &str, status: u16) {
        let what = format!("{path} is {status}");
        eventually(&what, || (self.get(path).status == status).then_some(()));
    }
}
