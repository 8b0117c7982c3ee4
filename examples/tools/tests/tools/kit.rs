//! The kit's own tests: correct programs that share no code with this repository pass, and of programs with one flaw
//! each, each fails its case and no other.

use std::process::Command;

use serde_json::Value;
use testing::running::{Running, exchange};
use tools::check::case::{Verdict, run};
use tools::check::report;
use tools::check::service::{self, Api};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/python");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/fixture.json");

/// Starts one of the programs, and returns the line that it begins with.
fn python(arguments: &[&str]) -> (Running, Value) {
    let mut command = Command::new("python3");
    let running = Running::start(command.current_dir(PROGRAMS).args(["-B"]).args(arguments));
    let first = serde_json::from_str(&running.said("")).unwrap();
    (running, first)
}

/// Returns whether there is Python here.
fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no python3");
    }
    found
}

/// Returns the ids of the cases that do not hold, with why.
fn failing(verdicts: &[Verdict]) -> Vec<(&str, &str)> {
    verdicts.iter().filter_map(|verdict| Some((verdict.id, verdict.why()?))).collect()
}

fn service(arguments: &[&str]) -> Vec<Verdict> {
    let (_running, first) = python(&[arguments, &[FIXTURE]].concat());
    let add_call = first["add_call"].as_str().unwrap().strip_prefix("http://").unwrap();
    let address = add_call.strip_suffix("/calls").unwrap().to_owned();
    let add_call = move || {
        let request = b"POST /calls HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
        exchange(&address, request).map(drop).ok_or_else(|| "no answer".to_owned())
    };
    let keys = std::fs::read_to_string(FIXTURE).unwrap();
    let api = Api::new(first["api"].as_str().unwrap(), None, &keys).unwrap();
    run(service::CASES, &api.with_add_call(Box::new(add_call)), &[], |_| {})
}

/// A flaw of a service, and the case that tells of it.
const SERVICES: [(&str, &str); 14] = [
    ("LimitClamped", "list.limit_range"),
    ("AfterExcluded", "filters.after_is_included"),
    ("BeforeIncluded", "filters.before_is_not"),
    ("TiesReversed", "list.ties"),
    ("CursorOfAnyAccount", "cursors.of_others"),
    ("FiltersForgotten", "filters.on_all_pages"),
    ("FiltersMayChange", "cursors.of_other_filters"),
    ("ForeignCallTold", "call.foreign"),
    ("ExpiredTold", "keys.alike"),
    ("Cached", "form.no_store"),
    ("ScopeAfterParameters", "order.scope_then_parameters"),
    ("RefusalsUncounted", "quotas.refusals_count"),
    ("KeyInUrl", "keys.in_url"),
    ("OnePageMore", "list.last_page"),
];

#[test]
fn a_correct_service_passes_and_each_flaw_has_its_case() {
    if !has_python() {
        return;
    }
    let right = service(&["service.py"]);
    assert_eq!(failing(&right), []);
    assert_eq!(report::sum(&right), format!("{0} of {0} rules hold", right.len()));
    flawed(&SERVICES, service, "flawed_services.py");
}

/// Runs programs with a flaw each, a few beside each other.
fn flawed(flaws: &[(&str, &str)], check: fn(&[&str]) -> Vec<Verdict>, file: &str) {
    for some in flaws.chunks(5) {
        std::thread::scope(|scope| {
            for (flaw, expected) in some {
                scope.spawn(move || {
                    let verdicts = check(&[file, flaw]);
                    let failing = failing(&verdicts);
                    let ids: Vec<_> = failing.iter().map(|(id, _)| *id).collect();
                    assert_eq!(ids, [*expected], "{flaw}: {failing:?}");
                });
            }
        });
    }
}
