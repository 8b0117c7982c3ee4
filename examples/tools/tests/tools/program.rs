//! Running a program, and a folder of its own for each test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take before a test fails. Nothing does, so it is never waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The binary of an example: `target/PROFILE/deps/tools-HASH` lies beside `target/PROFILE/examples`.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile.join("examples").join(name);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    command.env_remove("WEBHOOK_SECRET");
    command
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // One that reads no input may be gone before all of it is written.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// A program that runs until it is stopped. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// The lines of a stream as they come.
struct Lines {
    coming: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Starts a program whose standard output nobody reads.
    pub(crate) fn unread(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self { child, stdout: Lines::of(std::io::empty()), stderr }
    }

    /// Waits for a line on standard output with this in it.
    pub(crate) fn said(&mut self, text: &str) -> String {
        self.stdout.wait_for(text)
    }

    /// Waits for a line on standard error with this in it.
    pub(crate) fn logged(&mut self, text: &str) -> String {
        self.stderr.wait_for(text)
    }

    /// As `kill -9` does: without a word, wherever it stands.
    pub(crate) fn kill(mut self) -> Told {
        self.child.kill().unwrap();
        self.ended()
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(self) -> Told {
        let id = self.child.id().to_string();
        // The shell has `kill` where nothing else does.
        assert!(Command::new("sh").args(["-c", "kill -INT $0", &id]).status().unwrap().success());
        self.ended()
    }

    /// Waits for the end, and for all that was written before.
    pub(crate) fn ended(mut self) -> Told {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it has not ended");
            std::thread::sleep(Duration::from_millis(2));
        };
        self.stdout.drain();
        self.stderr.drain();
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(|it| it.seen.split_off(0));
        Told { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // What the program had to say about it.
            self.stderr.drain();
            println!("{:#?}", self.stderr.seen);
        }
    }
}

/// What a program has said in all. The code is `None` after a kill.
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (lines, coming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                if lines.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { coming, seen: Vec::new() }
    }

    fn wait_for(&mut self, text: &str) -> String {
        if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        loop {
            let Ok(line) = self.coming.recv_timeout(PATIENCE) else {
                panic!("no line with {text:?} among {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn drain(&mut self) {
        self.seen.extend(self.coming.iter());
    }
}

/// Says when a test is over, also when it fails: whoever waits for that is not waited for.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A folder that is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tools-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
