//! The binary, started, asked and stopped.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A process that runs until this is dropped.
#[derive(Debug)]
pub struct Process(pub Child);

/// A service that runs until this is dropped.
#[derive(Debug)]
pub struct Service {
    process: Process,
    /// The first line it printed.
    pub first: Value,
    log: Arc<Mutex<String>>,
}

/// A file that is there until this is dropped.
#[derive(Debug)]
pub struct File(PathBuf);

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Process {
    /// Starts the service with these flags, on ports of its own.
    pub fn start(flags: &[&str]) -> Self {
        let mut command = command();
        command.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Asks it to end, and waits until it has.
    #[cfg(unix)]
    pub fn terminate(&mut self) -> ExitStatus {
        self.ask_to_end();
        eventually("it ends", || self.0.try_wait().unwrap())
    }

    /// Asks it to end. The shell has `kill` where nothing else does.
    #[cfg(unix)]
    pub fn ask_to_end(&self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("sh").args(["-c", "kill -TERM $0", &pid]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Service {
    /// Starts the demonstration with these flags, on ports of its own.
    pub fn start(flags: &[&str]) -> Self {
        let mut process = Process::start(flags);
        let log = Arc::new(Mutex::new(String::new()));
        let (mut stderr, kept) = (process.0.stderr.take().unwrap(), Arc::clone(&log));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let first = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("no first line: {}", log.lock().unwrap()));
        Self { process, first, log }
    }

    /// The address of the public API, `127.0.0.1:PORT`.
    pub fn api(&self) -> &str {
        self.first["api"].as_str().unwrap().strip_prefix("http://").unwrap()
    }

    /// The address of the dashboard.
    pub fn dashboard(&self) -> &str {
        self.first["dashboard"].as_str().unwrap().strip_prefix("http://").unwrap()
    }

    /// The secret of a key, by account and state.
    pub fn key(&self, account: &str, state: &str) -> String {
        let accounts = self.first["accounts"].as_array().unwrap();
        let account = accounts.iter().find(|found| found["id"] == account).unwrap();
        let keys = account["keys"].as_array().unwrap();
        let key = keys.iter().find(|key| key["state"] == state).unwrap();
        key["secret"].as_str().unwrap().to_owned()
    }

    /// `GET`s a path of the public API.
    pub fn get(&self, path: &str, key: &str) -> Answer {
        let authorization = format!("Authorization: Bearer {key}\r\n");
        request(self.api(), "GET", path, &authorization, b"")
    }

    /// Asks the dashboard, and expects this status.
    pub fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let body = body.to_string();
        let answer = request(self.dashboard(), method, path, "", body.as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        answer.json()
    }

    /// What it has written to standard error, and was read: all of it only once it has ended.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until its log has this text this number of times.
    #[track_caller]
    pub fn logged(&self, text: &str, times: usize) {
        eventually(&format!("{times} times {text:?}"), || {
            (self.log().matches(text).count() == times).then_some(())
        });
    }

    /// Asks it to end, as an init system does, and returns when it has begun to.
    #[cfg(unix)]
    pub fn ask_to_end(&self) {
        self.process.ask_to_end();
        eventually("it begins to end", || self.log().contains(" stopping").then_some(()));
    }

    /// Waits until it has ended, and its log is complete.
    #[cfg(unix)]
    pub fn ended(&mut self) -> ExitStatus {
        // Whoever reads the log has the other one.
        eventually("its log ends", || (Arc::strong_count(&self.log) == 1).then_some(()));
        eventually("it ends", || self.process.0.try_wait().unwrap())
    }

    /// Asks it to end, as an init system does, and waits until it has.
    #[cfg(unix)]
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.terminate()
    }

    /// Its peak memory in KiB, where the system tells.
    pub fn peak_memory(&self) -> Option<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.log.lock().unwrap());
        }
    }
}

impl File {
    pub fn new(name: &str, text: &str) -> Self {
        let name = format!("{}-{name}", std::process::id());
        let file = Self(folder().join(name));
        std::fs::write(&file.0, text).unwrap();
        file
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} comes twice");
        value
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Reads an answer to its end: `stream` has to close behind it.
    pub fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A peer that closes with something of ours unread may reset; what came counts.
        let _ = stream.read_to_end(&mut bytes);
        Self::parse(&bytes).unwrap_or_else(|| panic!("not HTTP: {bytes:?}"))
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Some(Self { status, headers, body: bytes[end + 4..].to_vec() })
    }
}

/// Names another host to test: its program and what goes before the flags, separated by spaces.
const OTHER: &str = "CALL_ASSISTANT_SERVICE";

/// The binary, which `cargo test` builds before it runs any test; or another host's.
pub fn command() -> Command {
    if let Ok(other) = std::env::var(OTHER) {
        let mut words = other.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        return command;
    }
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(Path::parent).unwrap();
    let name = format!("service{}", std::env::consts::EXE_SUFFIX);
    let binary: PathBuf = profile.join("examples").join(name);
    assert!(binary.exists(), "run `cargo build --example service` first");
    Command::new(binary)
}

/// A folder for files of tests, in the build's own.
fn folder() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.parent().and_then(Path::parent).unwrap().join("tests");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Sends one request on a connection of its own.
pub fn request(address: &str, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let length = match body {
        b"" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{length}{headers}\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    Answer::read(&mut stream)
}

/// A connection on which nothing lasts for ever.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Asks until there is an answer.
pub fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
