//! The side that copies calls out of the API. A command of the user's is run against a service with a script.

mod cases;
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use cases::CASES;
use script::Script;

use super::case::{Seen, ensure};

/// The key that the command is given.
const KEY: &str = "service_live_0000000000000000000000000000c11e";

/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// A client: a command for a shell.
#[derive(Debug)]
pub struct Client {
    command: String,
    folder: PathBuf,
    next: AtomicU32,
}

/// What a run of the command has said.
#[derive(Debug)]
struct Run {
    ids: Vec<String>,
    is_complete: bool,
    has_ended: bool,
}

impl Client {
    /// Creates one. What it keeps between two runs lies in this folder.
    pub fn new(command: &str, folder: PathBuf) -> Self {
        Self { command: command.to_owned(), folder, next: AtomicU32::new(0) }
    }

    /// Returns the name of a file for what the command keeps, which is not there yet.
    fn state(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("state-{}-{number}", std::process::id()))
    }

    /// Runs the command to its end.
    fn run(&self, script: &Script, state: &Path) -> Seen<Run> {
        let run = self.run_within(script, state, PATIENCE)?;
        ensure(run.has_ended, || format!("the command still ran after {PATIENCE:?}"))?;
        Ok(run)
    }

    /// Runs the command to its end, or for this long after its first request.
    fn run_within(&self, script: &Script, state: &Path, patience: Duration) -> Seen<Run> {
        let output = state.with_extension("output");
        let file = std::fs::File::create(&output).map_err(|error| error.to_string())?;
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).env("API_URL", script.url()).env("API_KEY", KEY);
        command.env("STATE", state).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("sh: {error}"))?;
        let began = Instant::now();
        let is_over = || {
            let asked = script.asked().first().map_or(began, |first| first.at);
            asked.elapsed() >= patience && (asked > began || began.elapsed() >= PATIENCE)
        };
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break Some(status),
                None if is_over() => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        let said = std::fs::read_to_string(&output).map_err(|error| error.to_string())?;
        let ids = said.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty());
        let is_complete = status.is_some_and(|status| status.success());
        Ok(Run { ids: ids.collect(), is_complete, has_ended: status.is_some() })
    }

    /// Runs it once, for a copy that has to be complete.
    fn copies(&self, script: &Script) -> Seen {
        let run = self.run(script, &self.state())?;
        once(&run.ids, script)?;
        ensure(run.is_complete, || "the copy is complete, and the exit status is not 0".to_owned())
    }
}

/// Requires each call of the script, however often.
fn none_lost(ids: &[String], script: &Script) -> Seen {
    let lost: Vec<String> = script.ids().into_iter().filter(|id| !ids.contains(id)).collect();
    ensure(lost.is_empty(), || format!("never copied: {lost:?}"))
}

/// Requires each call of the script once.
fn once(ids: &[String], script: &Script) -> Seen {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    ids.iter().for_each(|id| *times.entry(id).or_default() += 1);
    for id in script.ids() {
        let count = times.get(id.as_str()).copied().unwrap_or_default();
        ensure(count == 1, || format!("{id}: {count} times"))?;
    }
    Ok(())
}
