//! The short program of `rest::client`'s page, killed at 200 points (SYNC-2, D-71).

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::rest::ErrorCode;

use crate::now;
use crate::program::{Folder, PATIENCE, Running, Stop, example, run, stderr};
use crate::service::{Fault, Faults, Service};
use crate::support::dice::Dice;

const KEY: &str = "service_live_the-one-that-no-output-may-show-either";

fn copy(folder: &Folder, service: &Service) -> Command {
    let mut command = example("copy");
    command.env("SERVICE_API_KEY", KEY).arg(service.url()).arg(folder.path("calls"));
    command
}

/// The lines of the file by their call's id. Each id is there once, and each line is whole.
#[track_caller]
fn copied(folder: &Folder) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for line in fs::read_to_string(folder.path("calls")).unwrap().lines() {
        let call: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = call["id"].as_str().unwrap().to_owned();
        assert_eq!(lines.insert(id.clone(), line.to_owned()), None, "{id} is there twice");
    }
    lines
}

fn ago(seconds: u64) -> Timestamp {
    now().saturating_sub(Duration::from_secs(seconds))
}

#[test]
fn killed_at_200_points_it_loses_nothing_and_repeats_nothing() {
    let folder = Folder::new();
    let faults: Faults = |number| match number % 31 {
        13 => Some(Fault::Error(ErrorCode::InternalError)),
        23 => Some(Fault::BrokenOff),
        29 if number < 200 => Some(Fault::Error(ErrorCode::InvalidCursor)),
        _ => None,
    };
    let service = Service::start(3, faults, "acct_1");
    for number in 0..150 {
        let started = ago(100_000 - number / 3 * 60);
        service.add(
            &format!("call_{number}"),
            started,
            started.saturating_add(Duration::from_secs(30)),
        );
    }
    let mut dice = Dice::new(200);
    let done = AtomicBool::new(false);
    let [mut with_calls_ahead, mut finished] = [0; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                // Anywhere in the list, and visible up to half a lag after it was written.
                service.add(
                    &format!("new_{number}"),
                    ago(number * 7919 % 90_000),
                    ago(number % 30),
                );
                std::thread::sleep(Duration::from_millis(40));
            }
        });
        let _stop = Stop(&done);
        for kill in 0..200 {
            let enough = service.requests() + 1;
            let running = Running::start(&mut copy(&folder, &service));
            // One in four before it asks, the others after: in the answer, the calls, the state.
            if dice.chance(75) {
                let began = Instant::now();
                while service.requests() < enough {
                    assert!(began.elapsed() < PATIENCE, "kill {kill}: it asks no more");
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
            std::thread::sleep(Duration::from_micros(dice.up_to(4_000).unsigned_abs()));
            let told = running.kill();
            assert!(told.code.is_none_or(|code| code == 0), "kill {kill}: {:?}", told.stderr);
            finished += u32::from(told.code.is_some());
            with_calls_ahead += u32::from(has_calls_ahead(&folder));
        }
    });
    let output = run(&mut copy(&folder, &service), b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (copied, expected) = (copied(&folder), service.lines());
    let missing: Vec<_> = expected.keys().filter(|id| !copied.contains_key(*id)).collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(copied == expected);
    println!("{with_calls_ahead} kills between calls and state, {finished} after the end");
    assert!(finished < 100, "most kills came too late: {finished}");
}

/// Whether it died after it had written calls and before it had stored the state.
fn has_calls_ahead(folder: &Folder) -> bool {
    let Ok(calls) = fs::metadata(folder.path("calls")) else { return false };
    let counted = fs::read(folder.path("calls.state")).map_or(0, |state| {
        let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
        state[0].as_u64().unwrap()
    });
    calls.len() > counted
}

#[test]
fn a_file_that_was_cut_is_not_filled_up() {
    let folder = Folder::new();
    let service = Service::start(3, |_| None, "acct_1");
    service.add("call_1", ago(20), ago(10));
    assert_eq!(run(&mut copy(&folder, &service), b"").status.code(), Some(0));
    fs::write(folder.path("calls"), "").unwrap();
    let output = run(&mut copy(&folder, &service), b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("are missing"), "{}", stderr(&output));
    assert_eq!(fs::read(folder.path("calls")).unwrap(), b"");
    for output in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(output).contains("no-output-may-show"));
    }
}
