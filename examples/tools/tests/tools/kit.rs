//! The kit's own tests: correct programs that share no code with this repository pass, and of programs with one flaw
//! each, each fails the cases that stand beside its name and no other. Each case has such a flaw.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use call_assistant::Product;
use serde_json::Value;
use testing::running::{Folder, Running, example, exchange};
use tools::check::case::{Case, Verdict, run};
use tools::check::client::{self, Client};
use tools::check::receiver::{self, Receiver};
use tools::check::sender::{self, Sender};
use tools::check::service::{self, Api};

use crate::listening;

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/python");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/fixture.json");

/// Starts one of the programs, and returns the line that it begins with.
fn python(arguments: &[&str]) -> (Running, Value) {
    python_with(arguments, "")
}

fn python_with(arguments: &[&str], secrets: &str) -> (Running, Value) {
    let mut command = Command::new("python3");
    command.current_dir(PROGRAMS).arg("-B").args(arguments).env("WEBHOOK_SECRET", secrets);
    let running = Running::start(&mut command);
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

/// A flaw, and the cases that tell of it.
type Flaw = (String, Vec<String>);

/// Returns the flaws of a side: `class NAME(...):  # CASE, CASE`, where the comment may go on in the next lines.
fn flaws(side: &str) -> Vec<Flaw> {
    let program = std::fs::read_to_string(format!("{PROGRAMS}/flawed_{side}s.py")).unwrap();
    let flaw = |class: &str| {
        let (name, rest) = class.split_once('(').unwrap();
        let comments = rest.lines().map_while(|line| Some(line.split_once("# ")?.1));
        let cases = comments.flat_map(|cases| cases.split(", ")).map(str::to_owned);
        (name.to_owned(), cases.collect::<Vec<_>>())
    };
    let all = program.split("\nclass ").skip(1).map(flaw);
    all.filter(|(_, cases)| !cases.is_empty()).collect()
}

/// The ids of cases that do not hold, with why.
type Failing = Vec<(String, String)>;

fn failing(verdicts: &[Verdict]) -> Failing {
    let failing =
        verdicts.iter().filter_map(|one| Some((one.id.to_owned(), one.why()?.to_owned())));
    failing.collect()
}

fn service(arguments: &[&str], only: &[&str]) -> Failing {
    let (_running, first) = python(&[arguments, &[FIXTURE]].concat());
    let add_call = first["add_call"].as_str().unwrap().strip_prefix("http://").unwrap();
    let address = add_call.strip_suffix("/calls").unwrap().to_owned();
    let add_call = move || {
        let request = b"POST /calls HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
        exchange(&address, request).map(drop).ok_or_else(|| "no answer".to_owned())
    };
    let keys = std::fs::read_to_string(FIXTURE).unwrap();
    let api = Api::new(first["api"].as_str().unwrap(), None, &keys).unwrap();
    failing(&run(service::CASES, &api.with_add_call(Box::new(add_call)), only, |_| {}))
}

#[test]
fn a_correct_service_passes() {
    passes("service", service);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_service_has_its_case() {
    each_has_its_case("service", service);
}

fn sender(arguments: &[&str], only: &[&str]) -> Failing {
    let (_running, first) = python(arguments);
    let sender = Sender::new(first["control"].as_str().unwrap()).unwrap();
    failing(&run(sender::CASES, &sender, only, |_| {}))
}

#[test]
#[ignore = "a minute: .ci/run --long --part kit"]
fn a_correct_sender_passes() {
    passes("sender", sender);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_sender_has_its_case() {
    each_has_its_case("sender", sender);
}

fn client(arguments: &[&str], only: &[&str]) -> Failing {
    client_of(&format!("cd {PROGRAMS} && exec python3 -B {}", arguments.join(" ")), only)
}

fn client_of(command: &str, only: &[&str]) -> Failing {
    let folder = Folder::new();
    failing(&run(client::CASES, &Client::new(command, folder.path("")), only, |_| {}))
}

#[test]
fn a_correct_client_passes() {
    passes("client", client);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_client_has_its_case() {
    each_has_its_case("client", client);
}

// RATE-4, RATE-5, SYNC-1 to SYNC-3, D-24, D-70, D-74
#[test]
fn our_own_sync_keeps_every_rule_of_a_client() {
    let sync = example("sync");
    let sync = sync.get_program().to_str().unwrap();
    let command = format!(
        r#"out=$STATE.out; had=$(cat $out 2>/dev/null | wc -l)
        {sync} --api $API_URL --key-env API_KEY --state $STATE --out $out; status=$?
        tail -n +$((had + 1)) $out | sed 's/.*"id":"\([^"]*\)".*/\1/'; exit $status"#
    );
    assert_eq!(client_of(&command, &[]), []);
}

/// The secrets of a receiver, newest first.
const SECRETS: [&str; 2] = ["whsec_dGhlLW5ld2VzdC1zZWNyZXQ", "whsec_the-older-secret"];

fn receiver(arguments: &[&str], only: &[&str]) -> Failing {
    let folder = Folder::new();
    let stored = folder.path("stored");
    let stored = stored.to_str().unwrap();
    let (_running, first) = python_with(&[arguments, &[stored]].concat(), &SECRETS.join("\n"));
    receiver_at(first["url"].as_str().unwrap(), stored, only)
}

fn receiver_at(url: &str, stored: &str, only: &[&str]) -> Failing {
    let secrets = SECRETS.map(str::to_owned);
    let receiver = Receiver::new(url, None, &secrets, Product::default(), Some(stored)).unwrap();
    failing(&run(receiver.cases(), &receiver, only, |_| {}))
}

// SIG-1 to SIG-5, D-40, D-41, D-43, D-45, D-46
#[test]
fn our_own_receiver_keeps_every_rule_of_a_receiver() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let mut command = example("receiver");
    command.args(["--listen", "127.0.0.1:0", "--journal"]).arg(&journal);
    command.env("WEBHOOK_SECRET", SECRETS.join("\n"));
    let (_running, address) = listening(Running::start(&mut command));
    let url = format!("http://{address}/hooks");
    assert_eq!(receiver_at(&url, journal.to_str().unwrap(), &[]), []);
}

#[test]
fn a_correct_receiver_passes_and_each_flaw_has_its_rule() {
    passes("receiver", receiver);
    each_has_its_case("receiver", receiver);
}

/// A case that no program fails may as well look at nothing.
#[test]
fn each_case_has_a_flaw() {
    fn ids<S>(tables: &[&[Case<S>]]) -> Vec<&'static str> {
        tables.iter().copied().flatten().map(|case| case.id).collect()
    }
    for (side, ids) in [
        ("service", ids(service::CASES)),
        ("sender", ids(sender::CASES)),
        ("client", ids(client::CASES)),
        ("receiver", ids(receiver::CASES)),
    ] {
        let flaws = flaws(side);
        let told: Vec<&str> =
            flaws.iter().flat_map(|(_, cases)| cases).map(String::as_str).collect();
        assert!(told.iter().all(|case| ids.contains(case)), "{side}: {told:?}");
        let without: Vec<_> = ids.iter().filter(|id| !told.contains(id)).collect();
        assert!(without.is_empty(), "no flaw of a {side} fails {without:?}");
    }
}

/// Runs the correct program of a side: no case fails.
fn passes(side: &str, check: fn(&[&str], &[&str]) -> Failing) {
    if has_python() {
        assert_eq!(check(&[&format!("{side}.py")], &[]), []);
    }
}

/// Groups of cases of a service that take long: they look only at programs whose flaw is about them.
const LONG: [&str; 2] = ["quotas", "wire"];

/// The other groups.
const SHORT: [&str; 13] = [
    "account", "head", "call", "paths", "methods", "list", "filters", "cursors", "keys", "scopes",
    "order", "hosts", "form",
];

/// Runs the programs of a side with one flaw each, a few beside each other: its cases fail, and no other.
fn each_has_its_case(side: &str, check: fn(&[&str], &[&str]) -> Failing) {
    if !has_python() {
        return;
    }
    let program = &format!("flawed_{side}s.py");
    let is_long = |case: &String| LONG.iter().any(|group| case.starts_with(group));
    // Those that take long begin first.
    let mut flaws = flaws(side);
    flaws.sort_by_key(|(_, cases)| !cases.iter().any(is_long));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..9 {
            scope.spawn(|| {
                while let Some((flaw, cases)) = flaws.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let only: &[&str] = match side {
                        "service" if !cases.iter().any(is_long) => &SHORT,
                        _ => &[],
                    };
                    let failing = check(&[program, flaw], only);
                    let ids: Vec<_> = failing.iter().map(|(id, _)| id.as_str()).collect();
                    assert_eq!(ids, *cases, "{flaw}: {failing:?}");
                }
            });
        }
    });
}
