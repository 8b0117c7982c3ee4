//! Hosts that are broken on purpose, each with one fault: the checker of the chaos test finds them.
//!
//! ```text
//! cargo test --test broken
//! ```
//!
//! Each fault is a file of `faults`. All of them are applied to one copy, and the variable `BROKEN` tells a
//! process of it which fault it has. Each fault has a short scenario that leads to it, event by event.
//! The same scenario with a process that has no fault leaves nothing wrong.
//!
//! The simulation of senders finds what a store, a lease or a plan can show, and the faults of `faults/simulated`.
//! This prints the table of seeds and seconds:
//!
//! ```text
//! cargo test --test broken simulation -- --ignored --nocapture
//! ```
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod faults;
mod host;
mod patched;
mod receiver;
mod scenarios;

use std::time::Instant;

use crate::host::Host;

/// A fault: the file of the same name says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NoVersion,
    WaitingAlone,
    BeforeCommit,
    DeliveryAlone,
    EndpointAlone,
    EndpointBefore,
    DroppedReport,
    RowsIgnored,
    NoEpoch,
    PollerEnds,
    AttemptPanics,
}

/// Within how many days the simulation finds which fault. The hosts above have the first twelve.
const SIMULATED: [(&str, u32); 30] = [
    ("BeforeCommit", 500),
    ("DeliveryAlone", 500),
    ("DroppedReport", 500),
    ("EndpointAlone", 500),
    ("EndpointBefore", 500),
    ("NoEpoch", 500),
    ("NoVersion", 500),
    ("NumberAlone", 500),
    ("NumbersTrusted", 500),
    ("PollerEnds", 500),
    ("RowsIgnored", 500),
    ("WaitingAlone", 500),
    // Those of earlier days.
    ("AlwaysLate", 5_000),
    ("AnothersEvent", 5_000),
    ("BacklogAtStart", 5_000),
    ("EndpointUnlocked", 5_000),
    ("ForgottenAlert", 5_000),
    ("ForgottenRetries", 5_000),
    ("KindAsPlanned", 5_000),
    ("LeaseTooLong", 5_000),
    ("LoggedTwice", 5_000),
    ("LostReport", 5_000),
    ("LostWakeUp", 5_000),
    ("NeverSure", 5_000),
    ("OneAccount", 5_000),
    ("ReadBefore", 5_000),
    ("RecoveryStops", 5_000),
    ("RedeliveriesFirst", 5_000),
    ("RetryForgotten", 5_000),
    ("Starved", 5_000),
];

#[test]
#[ignore = "it builds an optimised copy: `.ci/run --long` does"]
fn the_simulation_finds_each_fault() {
    let simulation = patched::simulation();
    let only = std::env::var("ONLY").ok();
    let mut missed = Vec::new();
    for (fault, days) in SIMULATED {
        if only.as_ref().is_some_and(|only| !only.split(',').any(|only| only == fault)) {
            continue;
        }
        let began = Instant::now();
        let mut run = std::process::Command::new(&simulation);
        run.env("BROKEN", fault).args(["--until-found", "--seeds", &days.to_string()]);
        let said = String::from_utf8(run.output().unwrap().stdout).unwrap();
        let found =
            said.lines().find(|line| line.starts_with("seed ") && line.contains(" fails: "));
        let found = found.map(|found| found.chars().take(200).collect::<String>());
        let seconds = began.elapsed().as_secs_f32();
        println!("{fault:16} {seconds:6.1} s  {}", found.as_deref().unwrap_or("not found"));
        if found.is_none() {
            missed.push(fault);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// What is wrong in the end.
async fn run(fault: Option<Fault>, scenario: Fault) -> Vec<String> {
    let began = Instant::now();
    let mut host = Host::new(fault).await;
    match scenario {
        Fault::NoVersion | Fault::RowsIgnored => scenarios::sent_twice(&mut host, 503, 503).await,
        Fault::DroppedReport => scenarios::sent_twice(&mut host, 204, 410).await,
        Fault::NoEpoch => scenarios::goes_on(&mut host).await,
        Fault::WaitingAlone => scenarios::left_behind(&mut host).await,
        Fault::BeforeCommit => scenarios::cannot_be_stored(&mut host).await,
        Fault::DeliveryAlone | Fault::EndpointAlone => scenarios::fails_once(&mut host).await,
        Fault::EndpointBefore => scenarios::resets(&mut host).await,
        Fault::PollerEnds => scenarios::ends_by_itself(&mut host).await,
        Fault::AttemptPanics => scenarios::panics(&mut host).await,
    }
    let wrong = host.end().await;
    println!(
        "{fault:?} where {scenario:?} matters, {:.1} s: {wrong:#?}",
        began.elapsed().as_secs_f64()
    );
    wrong
}

/// Has a host with this fault, and expects the checker to say this of it.
///
/// A sender whose first transaction is not answered in time reads its rows again, whatever it
/// forgets. So the scenario may be repeated.
async fn caught(fault: Fault, by: &str) {
    let mut said = Vec::new();
    for _ in 0..3 {
        let wrong = run(Some(fault), fault).await;
        if wrong.iter().any(|wrong| wrong.contains(by)) {
            return;
        }
        said.push(wrong);
    }
    panic!("{fault:?}: {said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_fault_nothing_is_wrong() {
    let wrong = tokio::join!(
        run(None, Fault::NoVersion),
        run(None, Fault::DroppedReport),
        run(None, Fault::NoEpoch),
        run(None, Fault::WaitingAlone),
        run(None, Fault::BeforeCommit),
        run(None, Fault::DeliveryAlone),
        run(None, Fault::EndpointBefore),
    );
    let wrong = <[_; 7]>::from(wrong).concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_finds_each_fault() {
    tokio::join!(
        caught(Fault::NoVersion, "a result is stored over a row that was not read"),
        caught(Fault::WaitingAlone, "is still pending"),
        caught(Fault::BeforeCommit, "before the previous result was stored"),
        caught(Fault::DeliveryAlone, "it was not told of a result"),
        caught(Fault::EndpointAlone, "a result is in the log, and not in the row"),
        caught(Fault::EndpointBefore, "it was not told of a result"),
        caught(Fault::DroppedReport, "it was not told of a result"),
        caught(Fault::RowsIgnored, "a result is in the log, and not in the row"),
        caught(Fault::NoEpoch, "without a lease"),
    );
}

// No checker says these two: the process does.
#[tokio::test(flavor = "multi_thread")]
async fn a_poller_that_ends_and_an_attempt_that_panics_end_the_process() {
    for fault in [Fault::PollerEnds, Fault::AttemptPanics] {
        let wrong = run(Some(fault), fault).await;
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
