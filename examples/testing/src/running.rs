//! Programs, started, asked and stopped.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::HeaderMap;
use serde_json::{Value, json};

/// How long anything may take on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The path of an account of the demonstration.
pub const FJORD: &str = "/accounts/acct_fjord_dental";

/// A program that runs until it ends, or this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Mutex<Child>,
    stdout: Stream,
    stderr: Stream,
}

/// What a program has written so far. A thread that reads more of it has a clone.
type Stream = Arc<Mutex<Vec<u8>>>;

/// How a program ended, and all that it wrote. There is no code where a signal ended it.
#[derive(Clone, Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A service that runs until this is dropped.
#[derive(Debug)]
pub struct Service {
    process: Running,
    /// The first line it printed.
    pub first: Value,
}

/// A folder that is there until this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// A file that is there until this is dropped.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    _folder: Folder,
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Running {
    /// Starts a program without input.
    pub fn start(command: &mut Command) -> Self {
        Self::of(spawn(command.stdin(Stdio::null())))
    }

    /// Watches a program that was started. Its streams are read, unless somebody has taken them.
    pub fn of(mut child: Child) -> Self {
        let stdout = child.stdout.take().map_or_else(Stream::default, read);
        let stderr = child.stderr.take().map_or_else(Stream::default, read);
        Self { child: Mutex::new(child), stdout, stderr }
    }

    /// Waits for a line on standard output with this in it.
    #[track_caller]
    pub fn said(&self, text: &str) -> String {
        line_with(&self.stdout, text)
    }

    /// Waits for a line on standard error with this in it.
    #[track_caller]
    pub fn logged(&self, text: &str) -> String {
        line_with(&self.stderr, text)
    }

    /// Returns what it has written to standard error, and was read: all of it only once it has ended.
    pub fn log(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until its log has this text this number of times.
    #[track_caller]
    pub fn logged_times(&self, text: &str, times: usize) {
        eventually(&format!("{times} times {text:?}"), || {
            (self.log().matches(text).count() == times).then_some(())
        });
    }

    /// Ends it as `kill -9` does: without a word, wherever it stands.
    pub fn kill(&self) -> Told {
        self.child.lock().unwrap().kill().unwrap();
        self.ended()
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) -> Told {
        self.signal("INT");
        self.ended()
    }

    /// Asks it to end, as an init system does.
    pub fn terminate(&self) -> Told {
        self.signal("TERM");
        self.ended()
    }

    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Sends a signal. The shell has `kill` where nothing else does.
    pub fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", "kill -$0 $1", name, &id]).status().unwrap().success());
    }

    /// Waits for the end, and for all that was written before.
    #[track_caller]
    pub fn ended(&self) -> Told {
        let status = eventually("it ends", || self.child.lock().unwrap().try_wait().unwrap());
        for stream in [&self.stdout, &self.stderr] {
            eventually("a stream ends", || (Arc::strong_count(stream) == 1).then_some(()));
        }
        let [stdout, stderr] = [&self.stdout, &self.stderr].map(text);
        Told { code: status.code(), stdout, stderr }
    }

    /// Returns its peak memory in KiB, where the system tells.
    pub fn peak_memory(&self) -> Option<u64> {
        let id = self.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
        if std::thread::panicking() {
            println!("{}", self.log());
        }
    }
}

impl Told {
    /// Checks with which code a program ended, and that this is in its last words.
    #[track_caller]
    pub fn is(self, code: i32, words: &str) -> Self {
        let said = self.stderr.contains(words);
        assert!(self.code == Some(code) && said, "not {code} with {words:?}: {self:#?}");
        self
    }
}

/// Starts a program whose output can be read.
pub fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs a program with this input to its end.
#[track_caller]
pub fn run(command: &mut Command, input: &[u8]) -> Told {
    let mut child = spawn(command.stdin(Stdio::piped()));
    let stdin = child.stdin.take();
    let running = Running::of(child);
    // One that reads no input may be gone before all of it is written.
    let _ = stdin.unwrap().write_all(input);
    running.ended()
}

fn read(mut stream: impl Read + Send + 'static) -> Stream {
    let all = Stream::default();
    let kept = Arc::clone(&all);
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            kept.lock().unwrap().extend(&chunk[..read]);
        }
    });
    all
}

fn text(stream: &Stream) -> String {
    String::from_utf8_lossy(&stream.lock().unwrap()).into_owned()
}

#[track_caller]
fn line_with(stream: &Stream, wanted: &str) -> String {
    eventually(&format!("a line with {wanted:?}"), || {
        let is_over = Arc::strong_count(stream) == 1;
        let all = text(stream);
        let mut lines = all.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let found = lines.find(|line| line.contains(wanted)).map(str::to_owned);
        assert!(found.is_some() || !is_over, "no line with {wanted:?} in {all}");
        found
    })
}

impl Deref for Service {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.process
    }
}

impl Service {
    /// Starts the demonstration with these flags, on ports of its own.
    pub fn start(flags: &[&str]) -> Self {
        Self::of(&mut service(flags))
    }

    /// Starts it with this command.
    pub fn of(command: &mut Command) -> Self {
        let process = Running::start(command);
        let first = serde_json::from_str(&process.said("")).unwrap();
        Self { process, first }
    }

    /// Returns the address of the public API, `127.0.0.1:PORT`.
    pub fn api(&self) -> &str {
        self.address("api")
    }

    /// Returns the address of the dashboard.
    pub fn dashboard(&self) -> &str {
        self.address("dashboard")
    }

    /// Returns an address that the first line has.
    pub fn address(&self, name: &str) -> &str {
        self.first[name].as_str().unwrap().strip_prefix("http://").unwrap()
    }

    /// Returns the secret of a key, by account and state.
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
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let body = body.to_string();
        let answer = request(self.dashboard(), method, path, "", body.as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        answer.json()
    }

    /// Returns what the dashboard shows at a path.
    #[track_caller]
    pub fn show(&self, path: &str) -> Value {
        self.ask("GET", path, &json!({}), 200)
    }

    /// Registers an endpoint, and returns it with its secret.
    #[track_caller]
    pub fn endpoint(&self, url: &str) -> Value {
        self.ask("POST", &format!("{FJORD}/endpoints"), &json!({ "url": url }), 201)
    }

    /// Registers an endpoint, and returns its path.
    #[track_caller]
    pub fn hook(&self, url: &str) -> String {
        endpoint_path(&self.endpoint(url))
    }

    /// Emits an event of a type that nobody knows.
    #[track_caller]
    pub fn emit(&self, event_type: &str) -> Value {
        let event = json!({ "type": event_type, "data": {} });
        self.ask("POST", &format!("{FJORD}/events"), &event, 201)
    }

    /// Records a call that has just ended.
    #[track_caller]
    pub fn call(&self) -> Value {
        self.ask("POST", &format!("{FJORD}/calls"), &json!({}), 201)
    }

    /// Pings the endpoint at this path, and returns the path of the delivery.
    #[track_caller]
    pub fn ping(&self, endpoint: &str) -> String {
        delivery_path(&self.ask("POST", &format!("{endpoint}/ping"), &json!({}), 201))
    }

    /// Waits for the delivery at this path until so many attempts were made.
    #[track_caller]
    pub fn after_attempts(&self, delivery: &str, count: usize) -> Value {
        eventually("the attempts", || {
            let shown = self.show(delivery);
            (shown["attempts"].as_array().unwrap().len() >= count).then_some(shown)
        })
    }

    /// Waits for what is at this path until it is pending no longer.
    #[track_caller]
    pub fn after_pending(&self, delivery: &str) -> Value {
        eventually("its end", || {
            Some(self.show(delivery)).filter(|shown| shown["pending"] == false)
        })
    }
}

/// Returns the path of an endpoint that was shown.
pub fn endpoint_path(endpoint: &Value) -> String {
    format!("/endpoints/{}", endpoint["id"].as_str().unwrap())
}

/// Returns the path of the first delivery of what was accepted.
pub fn delivery_path(accepted: &Value) -> String {
    format!("/deliveries/{}", accepted["deliveries"][0].as_str().unwrap())
}

impl Folder {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = profile().join("tests").join(format!("{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl File {
    pub fn new(name: &str, text: &str) -> Self {
        let folder = Folder::new();
        Self { path: folder.file(name, text), _folder: folder }
    }

    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
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

/// Tells whether another host is tested.
pub fn is_other() -> bool {
    std::env::var_os(OTHER).is_some()
}

/// Returns the service, which `cargo test` builds before it runs any test; or another host.
pub fn command() -> Command {
    let Ok(other) = std::env::var(OTHER) else { return example("service") };
    let mut words = other.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// Prepares the service with these flags, on ports of its own.
pub fn service(flags: &[&str]) -> Command {
    let mut command = command();
    command.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]).args(flags);
    command
}

/// Prepares the program of an example.
pub fn example(name: &str) -> Command {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = profile().join("examples").join(file);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    command.env_remove("WEBHOOK_SECRET");
    command
}

/// Returns where the build is: `target/PROFILE` of `target/PROFILE/deps/TEST`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// Returns headers as a request has them.
pub fn lines(headers: &HeaderMap) -> String {
    let headers = headers.iter();
    headers.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect()
}

/// Sends one request on a connection of its own.
#[track_caller]
pub fn request(address: &str, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let length = match body {
        b"" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{length}{headers}\r\n"
    );
    let answer = exchange(address, &[head.as_bytes(), body].concat());
    answer.unwrap_or_else(|| panic!("no answer to {method} {target}"))
}

/// Sends these bytes, and reads the answer, if there is one: the other side has to close behind it.
pub fn exchange(address: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // An answer may come before all of a request is read, and the rest be refused.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Answer::parse(&answer)
}

/// Connects, with a limit on every wait.
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
