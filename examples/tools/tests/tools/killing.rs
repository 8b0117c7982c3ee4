//! Killing a program that copies calls into a file, at any point, while calls are added.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use serde_json::Value;

use crate::{Stop, now};
use testing::running::{Folder, PATIENCE, Running, run};

use crate::service::Service;
use support::dice::Dice;

pub(crate) const KEY: &str = "service_live_the-one-that-no-output-may-show-either";

pub(crate) fn ago(seconds: u64) -> Timestamp {
    now().saturating_sub(Duration::from_secs(seconds))
}

/// Adds older calls, with ties in `started_at` and long calls that were written late.
pub(crate) fn fill(service: &Service, calls: u64) {
    for number in 0..calls {
        let started = ago(100_000 - number / 3 * 60);
        let written = started.saturating_add(Duration::from_secs(30 + number % 7 * 600));
        service.add(&format!("call_{number}"), started, written);
    }
}

/// Returns the lines of the file `calls` by their call's id. Each id is there once, and each line is whole.
#[track_caller]
pub(crate) fn copied(folder: &Folder) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for line in fs::read_to_string(folder.path("calls")).unwrap().lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let id = call["id"].as_str().unwrap().to_owned();
        assert_eq!(lines.insert(id.clone(), line.to_owned()), None, "{id} is there twice");
    }
    lines
}

/// How a program is killed.
pub(crate) struct Killing<'a> {
    pub(crate) times: u32,
    /// The most requests that it makes before it dies.
    pub(crate) requests: i64,
    pub(crate) program: &'a dyn Fn() -> Command,
    /// What keeps it going when it is up to date, if it would end.
    pub(crate) on_and_on: &'a [&'a str],
    /// The file with its state, and how many bytes of `calls` a state counts.
    pub(crate) state: &'a Path,
    pub(crate) counted: fn(&Value) -> u64,
}

impl Killing<'_> {
    /// Kills the program again and again, and then runs it to its end: every call is in the file,
    /// once. Returns how often it died between the calls and their state.
    #[track_caller]
    pub(crate) fn loses_nothing_and_repeats_nothing(
        &self,
        folder: &Folder,
        service: &Service,
    ) -> u32 {
        let mut dice = Dice::new(self.times.into());
        let done = AtomicBool::new(false);
        let [mut calls_ahead, mut ended] = [0; 2];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    // Anywhere in the list, and visible up to half a lag after it was written.
                    let started = ago(number * 7919 % 90_000);
                    service.add(&format!("new_{number}"), started, ago(number % 30));
                    std::thread::sleep(Duration::from_millis(15));
                }
            });
            // Ends the writer above also when something below fails.
            let _stop = Stop(&done);
            let mut took = [0; 3].map(|_| self.takes_to_store(service));
            took.sort();
            // The answer, the calls, the state, and a little more, however fast the disk is.
            let most = i64::try_from(took[1].as_micros()).unwrap() * 5 / 4;
            for kill in 0..self.times {
                let before = service.requests();
                let running = self.start();
                // One in five before it asks.
                if !dice.chance(20) {
                    let asked = 1 + dice.up_to(self.requests - 1).unsigned_abs();
                    wait_until(|| service.requests() >= before + asked);
                }
                std::thread::sleep(Duration::from_micros(dice.up_to(most).unsigned_abs()));
                let told = running.kill();
                assert!(told.code.is_none_or(|code| code == 0), "kill {kill}: {}", told.stderr);
                ended += u32::from(told.code.is_some());
                calls_ahead += u32::from(self.has_calls_ahead(folder));
            }
        });
        let output = run(&mut (self.program)(), b"");
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let (copied, expected) = (copied(folder), service.lines());
        let missing: Vec<_> = expected.keys().filter(|id| !copied.contains_key(*id)).collect();
        assert_eq!(missing, Vec::<&String>::new());
        assert!(copied == expected);
        println!("{} kills: {calls_ahead} between calls and state, {ended} late", self.times);
        assert!(ended < self.times / 2, "most kills came too late: {ended}");
        calls_ahead
    }

    fn start(&self) -> Running {
        Running::start((self.program)().args(self.on_and_on))
    }

    /// Returns how long it takes from a request until the state that follows it is stored.
    fn takes_to_store(&self, service: &Service) -> Duration {
        let (before, stored) = (service.requests(), fs::read(self.state).ok());
        let running = self.start();
        wait_until(|| service.requests() > before);
        let asked = Instant::now();
        wait_until(|| fs::read(self.state).ok() != stored);
        let took = asked.elapsed();
        running.kill();
        took
    }

    /// Returns whether it died after it had written calls and before it had stored the state.
    fn has_calls_ahead(&self, folder: &Folder) -> bool {
        let Ok(calls) = fs::metadata(folder.path("calls")) else { return false };
        let counted = fs::read(self.state)
            .map_or(0, |state| (self.counted)(&serde_json::from_slice(&state).unwrap()));
        calls.len() > counted
    }
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it does not continue");
        std::thread::sleep(Duration::from_micros(50));
    }
}
