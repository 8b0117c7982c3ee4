//! `check receiver` at a terminal. `kit.rs` holds it to a right receiver and to wrong ones.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testing::receiver::serving;
use testing::running::{Folder, Told, example, run};
use tools::check::http::connect;
use tools::check::receiver::LANGUAGES;

use crate::refused;

/// A secret whose rest is base64, as those of others are.
const SECRET: &str = "whsec_bm8tb3V0cHV0LW1heS1zaG93LXRoaXMtc2VjcmV0";

/// Starts a server that answers each request with these bytes. Returns its URL.
fn answering(bytes: &'static str) -> String {
    let address = serving(move |stream| {
        let mut lines = BufReader::new(&stream).lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let _ = (&stream).write_all(bytes.as_bytes());
    });
    format!("http://{address}/hooks")
}

fn check(arguments: &[&str]) -> Told {
    let mut command = example("check");
    run(command.arg("receiver").args(arguments).env("WEBHOOK_SECRET", SECRET), b"")
}

/// Returns the names of the rules with this verdict.
fn rules(told: &Told, verdict: &str) -> Vec<String> {
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    let rules = said["rules"].as_array().unwrap().iter();
    let rules = rules.filter(|rule| rule["verdict"] == verdict);
    rules.map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect()
}

const STORED: [&str; 4] =
    ["stored.first", "stored.again", "stored.twice_at_once", "stored.delivery_header"];

#[test]
fn what_answers_say_beside_their_class() {
    for (answer, rule, why) in [
        ("HTTP/1.1 204 -\r\n\r\n", "taken.genuine", ""),
        ("HTTP/1.1 100 -\r\nA: b\r\n\r\nHTTP/1.1 204 -\r\n\r\n", "taken.genuine", ""),
        // The status decides: a body that never ends is no failure.
        ("HTTP/1.1 204 -\r\nContent-Length: 9\r\n\r\n", "taken.genuine", ""),
        ("HTTP/1.1 204 -\r\nContent-Length: 0\r\n", "taken.genuine", "not a whole answer in HTTP"),
        ("SSH-2.0-x\r\n\r\n", "taken.genuine", "not a whole answer in HTTP"),
        ("HTTP/1.1 400 -\r\n\r\n", "refused.old", ""),
        ("HTTP/1.1 429 -\r\n\r\n", "refused.old", "429, which asks for the request again"),
        ("HTTP/1.1 410 -\r\n\r\n", "refused.old", "410, which disables the endpoint"),
        ("HTTP/1.1 503 -\r\n\r\n", "refused.old", "answered 503"),
        ("HTTP/1.1 302 -\r\n\r\n", "refused.old", "answered 302"),
    ] {
        let told = check(&[&answering(answer), "--only", rule]);
        assert_eq!(told.code, Some(i32::from(!why.is_empty())), "{answer:?}: {}", told.stdout);
        assert!(told.stdout.contains(why), "{answer:?}: {}", told.stdout);
    }
}

/// A finding says how to mend it, and names the file in the reader's language. All these files are there.
#[test]
fn a_finding_says_how_to_mend_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let url = answering("HTTP/1.1 500 -\r\n\r\n");
    let rows = LANGUAGES.map(|[language, verifier, receiver]| (Some(language), verifier, receiver));
    for (language, verifier, receiver) in rows.into_iter().chain([(None, "", "")]) {
        let rules = "refused.old,stored.again,read.chunked";
        let mut all = vec![url.as_str(), "--json", "--stored", "/dev/null", "--only", rules];
        all.extend(language.into_iter().flat_map(|language| ["--language", language]));
        let said: Value = serde_json::from_str(&check(&all).stdout).unwrap();
        let mend = |rule: &str| {
            let mut rules = said["rules"].as_array().unwrap().iter();
            let mend = rules.find(|one| one["rule"] == rule).unwrap()["mend"].as_str().unwrap();
            let (mend, file) = mend.split_once("; see ").unwrap();
            assert!(mend.len() > 20 && root.join(file).exists(), "{rule}: {mend}: {file}");
            file.to_owned()
        };
        assert!(mend("refused.old").ends_with(verifier), "{language:?}");
        assert!(mend("stored.again").ends_with(receiver), "{language:?}");
        assert!(mend("read.chunked").ends_with(receiver), "{language:?}");
    }
}

/// What cannot be seen does not hold. The older name is the same program.
#[test]
fn without_what_is_stored_four_rules_are_unseen() {
    let url = answering("HTTP/1.1 204 -\r\n\r\n");
    let told = check(&[&url, "--json", "--only", "stored"]).is(1, "not every rule holds");
    assert_eq!(rules(&told, "unseen"), STORED);
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(said["holds"], json!(false));

    // For people: a line for each rule, and how many hold.
    let mut command = example("receiver-check");
    let command = command.args([&url, "--only", "taken.genuine,stored"]);
    let told = run(command.env("WEBHOOK_SECRET", SECRET), b"").is(1, "receiver-check: not every");
    assert!(told.stdout.starts_with("holds   taken.genuine "), "{}", told.stdout);
    let last = "1 of 5 rules hold; 4 cannot be seen\n";
    assert!(told.stdout.ends_with(last), "{}", told.stdout);
    let all = told.stdout + &told.stderr;
    assert!(!all.contains(SECRET.trim_start_matches("whsec_")) && !all.contains("v1="), "{all}");
}

/// What shows nothing is not taken for a receiver that has stored nothing.
#[test]
fn a_place_that_shows_nothing_is_named() {
    let url = answering("HTTP/1.1 204 -\r\n\r\n");
    let (place, folder) = (answering("HTTP/1.1 500 -\r\nContent-Length: 0\r\n\r\n"), Folder::new());
    for (place, words) in [
        (place.as_str(), "--stored: answered 500"),
        (folder.path("none").to_str().unwrap(), "--stored: No such file"),
    ] {
        let told = check(&[&url, "--json", "--only", "stored", "--stored", place]);
        assert_eq!(rules(&told, "broken"), STORED);
        assert_eq!(told.stdout.matches(words).count(), 4, "{}", told.stdout);
    }
}

/// A name may have an address at which nobody listens.
#[test]
fn each_address_of_a_name_is_tried() {
    let [nobody, somebody] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [at_nobody, at_somebody] = [&nobody, &somebody].map(|one| one.local_addr().unwrap());
    drop(nobody);
    let stream = connect([at_nobody, at_somebody]).unwrap();
    assert_eq!(stream.peer_addr().unwrap(), at_somebody);
    assert!(connect([at_nobody]).is_err());
    assert!(connect([]).is_err());
}

/// An endpoint that is not there breaks what it has to take, and takes nothing that it must not.
#[test]
fn an_endpoint_that_is_away_breaks_every_rule() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let told = check(&[&url, "--json"]).is(1, "not every rule holds");
    assert_eq!(rules(&told, "holds"), [""; 0]);
    assert!(told.stdout.contains("a ping: 127.0.0.1:"), "{}", told.stdout);
}

/// A later process with the same number would take for copied what a client of this one has kept.
#[test]
fn a_check_of_a_client_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut command = example("check");
    command.args(["client", "echo > $STATE", "--only", "walk.no_calls"]);
    run(command.env("TMPDIR", folder.path("")), b"").is(0, "");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 0);
}

#[test]
fn a_wrong_command_line_of_a_check_is_named() {
    for name in ["check", "receiver-check"] {
        let program = || -> Command {
            let mut command = example(name);
            command.env("WEBHOOK_SECRET", "whsec_no-output-may-show-this");
            command.args((name == "check").then_some("receiver"));
            command
        };
        refused(
            program,
            &[
                ("", "missing URL"),
                ("ftp://h/", "URL: expected http://HOST:PORT/PATH or https://"),
                ("/hooks", "URL: expected http://HOST:PORT/PATH or https://"),
                ("http://a:b@h/", "URL: a user or a password is not allowed"),
                ("http://h/ --secret-env NOT_SET", "NOT_SET is not set"),
                ("http://h/ --stored http://", "--stored: "),
                ("http://h/ --language cobol", "expected one of python, node, "),
                ("http://h/ --only nothing", "--only: no rule has such a name"),
                ("http://h/ http://h/", "too many arguments"),
            ],
        );
    }
}
