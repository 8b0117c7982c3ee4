//! `sync`: whatever fails and whenever it dies, every call is in the file, once.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::ErrorCode;

use testing::running::{Folder, Running, Told, example, run};

use crate::killing::{KEY, Killing, ago, copied, fill};
use crate::refused;
use crate::service::{Fault, Faults, Service};

const NONE: Faults = |_| None;

fn sync(folder: &Folder, service: &Service) -> Command {
    sync_into(folder, ["state", "calls"], KEY, service)
}

fn sync_into(folder: &Folder, files: [&str; 2], key: &str, service: &Service) -> Command {
    let mut command = example("sync");
    command.args(["--api", &service.url(), "--key", key, "--time-scale", "0.001"]);
    let [state, out] = files.map(|name| folder.path(name));
    command.arg("--state").arg(state).arg("--out").arg(out);
    command
}

/// Syncs to the end, and checks how many calls were new.
#[track_caller]
fn synced(folder: &Folder, service: &Service, said: &str) -> Told {
    let told = run(&mut sync(folder, service), b"").is(0, "");
    assert!(told.stdout.starts_with(said), "{told:#?}");
    told
}

/// SYNC-1, SYNC-2, SYNC-3: everything first, and then what is new.
#[test]
fn a_second_run_adds_what_is_new() {
    let folder = Folder::new();
    let service = Service::start(10, NONE, "acct_1");
    fill(&service, 95);
    synced(&folder, &service, "95 new calls, 95 in all, up to ");
    assert_eq!(copied(&folder), service.lines());

    service.add("late", ago(80_000), ago(97_000));
    service.add("fresh", ago(20), ago(10));
    let watermark = fs::read_to_string(folder.path("state")).unwrap();
    let watermark: serde_json::Value = serde_json::from_str(&watermark).unwrap();
    let watermark: Timestamp = watermark["sync"]["watermark"].as_str().unwrap().parse().unwrap();
    let just_before = watermark.saturating_sub(Duration::from_secs(59));
    // Written within the lag below the watermark, though it became visible only now (LIST-7).
    service.add("within_the_lag", ago(99_000), just_before);
    let output = synced(&folder, &service, "2 new calls, 97 in all");
    let mut expected = service.lines();
    // Written long before it became visible: no lag of a minute catches that.
    expected.remove("late");
    assert_eq!(copied(&folder), expected);
    assert!(!format!("{output:?}").contains("no-output-may-show"));
}

/// `kill -9` again and again, while calls are written and requests fail: nothing is lost and
/// nothing doubled.
#[test]
fn killed_again_and_again_it_loses_nothing_and_doubles_nothing() {
    let folder = Folder::new();
    let faults: Faults = |number| match number % 11 {
        3 => Some(Fault::Error(ErrorCode::InternalError)),
        7 => Some(Fault::BrokenOff),
        _ => None,
    };
    let service = Service::start(5, faults, "acct_1");
    fill(&service, 600);
    let killing = Killing {
        times: 40,
        requests: 7,
        program: &|| sync(&folder, &service),
        on_and_on: &["--every", "1ms"],
        state: &folder.path("state"),
        counted: |state| state["out_len"].as_u64().unwrap(),
    };
    killing.loses_nothing_and_repeats_nothing(&folder, &service);
}

/// Every point between the two files at which a crash may have come.
#[test]
fn calls_without_their_state_are_cut_off_and_written_again() {
    let folder = Folder::new();
    let service = Service::start(10, NONE, "acct_1");
    fill(&service, 30);
    run(&mut sync(&folder, &service), b"");
    let whole = fs::read(folder.path("calls")).unwrap();
    for more in [&b"{"[..], b"{\"id\":\"call_x\"}\n", &whole[..100]] {
        fs::write(folder.path("calls"), [&whole, more].concat()).unwrap();
        fs::write(folder.path("state.new"), b"{\"format\":").unwrap();
        run(&mut sync(&folder, &service), b"").is(0, "");
        assert_eq!(fs::read(folder.path("calls")).unwrap(), whole);
    }
    // What no crash of this program makes is not repaired by guessing.
    fs::write(folder.path("calls"), &whole[..100]).unwrap();
    run(&mut sync(&folder, &service), b"").is(1, "the file is shorter than the state says");
    fs::write(folder.path("calls"), &whole).unwrap();
    fs::remove_file(folder.path("state")).unwrap();
    run(&mut sync(&folder, &service), b"").is(1, "the state file does not exist");
    fs::write(folder.path("state"), b"{\"format\":2}").unwrap();
    run(&mut sync(&folder, &service), b"").is(1, "format 2");
}

/// The calls are on the disk before the state that counts them: what fails at either of the two, at
/// any time, loses no call and doubles none. A state written first would count calls that never came.
#[test]
#[cfg(target_os = "linux")]
fn the_calls_are_written_before_the_state_that_counts_them() {
    let folder = Folder::new();
    let service = Service::start(10, NONE, "acct_1");
    fill(&service, 25);
    // No call can be written.
    std::os::unix::fs::symlink("/dev/full", folder.path("calls")).unwrap();
    run(&mut sync(&folder, &service), b"").is(1, "the calls cannot be written");
    fs::remove_file(folder.path("calls")).unwrap();
    synced(&folder, &service, "25 new calls, 25 in all");
    assert_eq!(copied(&folder), service.lines());

    // No state can be: what stands in its way is a folder.
    let [calls, state] = ["calls", "state"].map(|name| fs::read(folder.path(name)).unwrap());
    service.add("one_more", ago(2), ago(1));
    fs::create_dir(folder.path("state.new")).unwrap();
    let output = run(&mut sync(&folder, &service), b"").is(1, "");
    let written = fs::read(folder.path("calls")).unwrap();
    assert!(written.len() > calls.len() && written.starts_with(&calls), "{}", output.stderr);
    assert_eq!(fs::read(folder.path("state")).unwrap(), state);
    fs::remove_dir(folder.path("state.new")).unwrap();
    synced(&folder, &service, "1 new call, 26 in all");
    assert_eq!(copied(&folder), service.lines());
}

#[test]
fn with_an_interval_it_goes_on_until_it_is_interrupted() {
    let folder = Folder::new();
    let service = Service::start(10, NONE, "acct_1");
    fill(&service, 5);
    let running = Running::start(sync(&folder, &service).args(["--every", "5ms"]));
    running.said("5 new calls, 5 in all");
    service.add("one_more", ago(2), ago(1));
    running.said("1 new call, 6 in all");
    // Nobody else writes these files in the meantime, nor one of them.
    run(&mut sync(&folder, &service), b"").is(1, "another process is using it");
    for (state, out) in [("other", "calls"), ("state", "other")] {
        let mut other = sync_into(&folder, [state, out], KEY, &service);
        run(&mut other, b"").is(1, "another process is using it");
    }
    assert_eq!(running.interrupt().code, Some(0));
    assert_eq!(copied(&folder), service.lines());
}

/// RATE-5, ERR-5: what nobody but a person can mend is said in words, after one request.
#[test]
fn a_refusal_is_told_to_whoever_can_act() {
    let cases: [(Faults, &str); 4] = [
        (|_| Some(Fault::Error(ErrorCode::InvalidCredentials)), "create another key"),
        (|_| Some(Fault::Error(ErrorCode::PlanUpgradeRequired)), "plan does not include"),
        (|_| Some(Fault::Error(ErrorCode::SubscriptionInactive)), "subscription is not active"),
        (|_| Some(Fault::Error(ErrorCode::AccountClosed)), "scheduled for deletion"),
    ];
    for (faults, message) in cases {
        let folder = Folder::new();
        let service = Service::start(10, faults, "acct_1");
        run(&mut sync(&folder, &service), b"").is(1, message).is(1, "req_");
        assert_eq!(service.requests(), 1);
    }
    // A key that may list calls and nothing else is good enough.
    let folder = Folder::new();
    let faults: Faults =
        |number| (number == 1).then_some(Fault::Error(ErrorCode::InsufficientScope));
    let service = Service::start(10, faults, "acct_1");
    fill(&service, 3);
    run(&mut sync(&folder, &service), b"").is(0, "");
    assert_eq!(copied(&folder), service.lines());
    // And another account's calls do not get into the same file.
    run(&mut sync(&folder, &service), b"").is(0, "");
    let other = Service::start(10, NONE, "acct_2");
    run(&mut sync(&folder, &other), b"").is(1, "another account");
    // Nor do test calls get in between: the watermark would pass over those that are real.
    let key = KEY.replace("live", "test");
    let mut testing = sync_into(&folder, ["state", "calls"], &key, &service);
    run(&mut testing, b"").is(1, "the other mode");
}

#[test]
fn a_wrong_command_line_is_named_and_never_shows_a_key() {
    let cases = [
        ("", "missing --api"),
        ("--api example.com --key KEY", "--api"),
        ("--api http://h --state x --key the-one-that-no-output-may-show", "the key"),
        ("--api http://h --state x", "SERVICE_API_KEY"),
        ("--api http://h --key KEY --every often", "--every"),
        ("--api http://h --key KEY --sate x", "did you mean --state?"),
        ("--api http://h --key KEY", "missing --state"),
        ("--api http://h --key KEY --state x --out x", "--out: the same file"),
        ("--api http://h --key KEY --state x --out x.new", "--out: the same file"),
        ("--api http://h --key KEY --state x --out x.lock", "--out: the same file"),
    ];
    let with = |name: &str, value: &[u8]| {
        let mut command = example("sync");
        command.env_remove("SERVICE_API_KEY").env(name, OsStr::from_bytes(value));
        command
    };
    refused(|| with("OTHER", b""), &cases);
    let spoilt = [KEY.as_bytes(), b"\xff"].concat();
    refused(|| with("SERVICE_API_KEY", &spoilt), &[(cases[3].0, "is not UTF-8")]);
    let help = run(example("sync").arg("--help"), b"").is(0, "");
    assert!(help.stdout.contains("--state <FILE>"));
}
