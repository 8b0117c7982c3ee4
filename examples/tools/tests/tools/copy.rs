//! The short program of `rest::client`'s page, killed at 240 points (SYNC-2, D-71).

use std::fs;
use std::process::Command;

use call_assistant::rest::ErrorCode;

use crate::killing::{KEY, Killing, ago, copied, fill};
use crate::service::{Fault, Faults, Service};
use testing::running::{Folder, example, run};

fn copy(folder: &Folder, service: &Service) -> Command {
    let mut command = example("copy");
    command.env("SERVICE_API_KEY", KEY).arg(service.url()).arg(folder.path("calls"));
    command
}

#[test]
fn killed_at_240_points_it_loses_nothing_and_repeats_nothing() {
    let folder = Folder::new();
    let faults: Faults = |number| match number % 31 {
        13 => Some(Fault::Error(ErrorCode::InternalError)),
        23 => Some(Fault::BrokenOff),
        29 if number < 200 => Some(Fault::Error(ErrorCode::InvalidCursor)),
        _ => None,
    };
    let service = Service::start(5, faults, "acct_1");
    fill(&service, 500);
    let killing = Killing {
        times: 240,
        requests: 1, // it waits for its pace before the next one
        program: &|| copy(&folder, &service),
        on_and_on: &[],
        state: &folder.path("calls.state"),
        counted: |state| state[0].as_u64().unwrap(),
    };
    let calls_ahead = killing.loses_nothing_and_repeats_nothing(&folder, &service);
    assert!(calls_ahead > 0, "no kill came between calls and state");
}

#[test]
fn a_file_that_was_cut_is_not_filled_up() {
    let folder = Folder::new();
    let service = Service::start(3, |_| None, "acct_1");
    service.add("call_1", ago(20), ago(10));
    run(&mut copy(&folder, &service), b"").is(0, "");
    assert_eq!(copied(&folder), service.lines());
    fs::write(folder.path("calls"), "").unwrap();
    let output = run(&mut copy(&folder, &service), b"").is(1, "shorter than the state");
    assert_eq!(fs::read(folder.path("calls")).unwrap(), b"");
    assert!(!format!("{output:?}").contains("no-output-may-show"));
}
