//! The kit's own tests: correct programs that share no code with this repository pass, and of programs with one flaw
//! each, each fails its case and no other.

use std::process::Command;

use serde_json::Value;
use testing::running::{Folder, Running, example, exchange};
use tools::check::case::{Verdict, run};
use tools::check::client::{self, Client};
use tools::check::sender::{self, Sender};
use tools::check::service::{self, Api};

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

/// The ids of cases that do not hold, with why.
type Failing = Vec<(String, String)>;

fn failing(verdicts: &[Verdict]) -> Failing {
    let failing =
        verdicts.iter().filter_map(|one| Some((one.id.to_owned(), one.why()?.to_owned())));
    failing.collect()
}

fn service(arguments: &[&str]) -> Failing {
    let (_running, first) = python(&[arguments, &[FIXTURE]].concat());
    let add_call = first["add_call"].as_str().unwrap().strip_prefix("http://").unwrap();
    let address = add_call.strip_suffix("/calls").unwrap().to_owned();
    let add_call = move || {
        let request = b"POST /calls HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
        exchange(&address, request).map(drop).ok_or_else(|| "no answer".to_owned())
    };
    let keys = std::fs::read_to_string(FIXTURE).unwrap();
    let api = Api::new(first["api"].as_str().unwrap(), None, &keys).unwrap();
    failing(&run(service::CASES, &api.with_add_call(Box::new(add_call)), &[], |_| {}))
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
fn a_correct_service_passes() {
    passes("service", service);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_service_has_its_case() {
    each_has_its_case("service", &SERVICES, service);
}

fn sender(arguments: &[&str]) -> Failing {
    let (_running, first) = python(arguments);
    let sender = Sender::new(first["control"].as_str().unwrap()).unwrap();
    failing(&run(sender::CASES, &sender, &[], |_| {}))
}

/// A flaw of a sender, and the case that tells of it.
const SENDERS: [(&str, &str); 17] = [
    ("WritesAgain", "envelope.same_bytes"),
    ("DecodedSecret", "signature.bytes"),
    ("OldTimestamp", "schedule.unscaled"),
    ("RedirectIsSuccess", "answers.redirects"),
    ("FollowsRedirects", "answers.redirects_stay"),
    ("ClientErrorsEnd", "answers.others"),
    ("FiveAttempts", "schedule.six"),
    ("ShortNight", "schedule.long_waits"),
    ("GoneIsFailure", "gone.disables"),
    ("NineteenDisable", "failing.nineteen"),
    ("NeverForgets", "failing.reset"),
    ("RedeliveryCounts", "failing.redelivery"),
    ("FloodsWhenEnabled", "disabled.no_flood"),
    ("KeepsCounting", "disabled.counter"),
    ("OneAtATime", "beside.dead"),
    ("SendsBesideItself", "overlap.none"),
    ("AnyAddress", "targets.refused"),
];

#[test]
#[ignore = "a minute: .ci/run --long --part kit"]
fn a_correct_sender_passes() {
    passes("sender", sender);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_sender_has_its_case() {
    each_has_its_case("sender", &SENDERS, sender);
}

fn client(arguments: &[&str]) -> Failing {
    client_of(&format!("cd {PROGRAMS} && exec python3 -B {}", arguments.join(" ")))
}

fn client_of(command: &str) -> Failing {
    let folder = Folder::new();
    failing(&run(client::CASES, &Client::new(command, folder.path("")), &[], |_| {}))
}

/// A flaw of a client, and the case that tells of it.
const CLIENTS: [(&str, &str); 12] = [
    ("CursorUnescaped", "walk.cursor_escaped"),
    ("StopsAtEmptyPage", "walk.empty_page"),
    ("IgnoresFlag", "walk.ends_by_flag"),
    ("NoCursorIsEnd", "walk.no_cursor"),
    ("StopsAtUnreadable", "walk.unreadable"),
    ("WatermarkIsNow", "again.late"),
    ("KnowsNothing", "again.nothing_twice"),
    ("AsksTooEarly", "retry.after_seconds"),
    ("IgnoresDates", "retry.after_date"),
    ("RepeatsRefusals", "refused.not_repeated"),
    ("FollowsRedirects", "key.to_no_stranger"),
    ("KeyInUrl", "key.in_the_header"),
];

#[test]
fn a_correct_client_passes() {
    passes("client", client);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_client_has_its_case() {
    each_has_its_case("client", &CLIENTS, client);
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
    assert_eq!(client_of(&command), []);
}

fn receiver(arguments: &[&str]) -> Failing {
    let (folder, secrets) =
        (Folder::new(), "whsec_dGhlLW5ld2VzdC1zZWNyZXQ\nwhsec_the-older-secret");
    let stored = folder.path("stored");
    let arguments = [arguments, &[stored.to_str().unwrap()]].concat();
    let (_running, first) = python_with(&arguments, secrets);
    let mut check = example("receiver-check");
    check.args([first["url"].as_str().unwrap(), "--json", "--stored"]).arg(&stored);
    let told = testing::running::run(check.env("WEBHOOK_SECRET", secrets), b"");
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    let broken = said["rules"].as_array().unwrap().iter().filter(|rule| rule["verdict"] != "holds");
    broken
        .map(|rule| (rule["rule"].as_str().unwrap().to_owned(), rule["why"].to_string()))
        .collect()
}

/// A flaw of a receiver, and the rule that tells of it.
const RECEIVERS: [(&str, &str); 15] = [
    ("Unescapes", "exact_bytes"),
    ("TakesUnsigned", "unsigned"),
    ("TimeUnsigned", "altered_time"),
    ("TakesOld", "old"),
    ("TakesFuture", "ahead"),
    ("ComparesStart", "prefix"),
    ("FirstDigestAlone", "any_digest"),
    ("NewSecretAlone", "old_secret"),
    ("ParsesFirst", "verified_first"),
    ("LargeRefused", "large"),
    ("UnknownRefused", "unknown_type"),
    ("FirstHeaderAlone", "two_headers"),
    ("AnswersFirst", "stored_first"),
    ("StoresTwice", "twice_at_once"),
    ("TellsByHeader", "delivery_header"),
];

#[test]
fn a_correct_receiver_passes_and_each_flaw_has_its_rule() {
    passes("receiver", receiver);
    each_has_its_case("receiver", &RECEIVERS, receiver);
}

/// Runs the correct program of a side: no case fails.
fn passes(side: &str, check: fn(&[&str]) -> Failing) {
    if has_python() {
        assert_eq!(check(&[&format!("{side}.py")]), []);
    }
}

/// Runs the programs of a side with one flaw each, a few beside each other: its case fails, and no other.
fn each_has_its_case(side: &str, flaws: &[(&str, &str)], check: fn(&[&str]) -> Failing) {
    if !has_python() {
        return;
    }
    let program = &format!("flawed_{side}s.py");
    for some in flaws.chunks(9) {
        std::thread::scope(|scope| {
            for (flaw, case) in some {
                scope.spawn(move || {
                    let failing = check(&[program, flaw]);
                    let ids: Vec<_> = failing.iter().map(|(id, _)| id.as_str()).collect();
                    assert_eq!(ids, [*case], "{flaw}: {failing:?}");
                });
            }
        });
    }
}
