//! The conformance kit at a terminal: `check SIDE ...`. `check/README.md` is its page.

use std::path::Path;
use std::process::{Command, ExitCode};

use host::flags::{Flag, Flags, Help, last_words, say};
use tools::check::case::{Case, Verdict, run};
use tools::check::client::{self, Client};
use tools::check::report;
use tools::check::sender::{self, Sender};
use tools::check::service::{self, Api};

const HELP: Help = Help {
    usage: "check service URL --keys FILE [--add-call COMMAND] [--trust-ca FILE.pem] [OUTPUT]\n\
            \x20      check sender --control URL [OUTPUT]\n\
            \x20      check client COMMAND [OUTPUT]\n\
            OUTPUT: [--only NAMES] [--list] [--json | --junit]",
    about: "Holds a program in any language to the rules of its side of the protocol: a service of the REST\n\
            API, a sender of webhooks, or a client of the API. examples/tools/check/README.md says what each needs; receiver-check\n\
            does the same for a receiver. Exit status: 0 all rules hold, 1 not all do or can be seen, 2 the\n\
            command line is wrong.",
    flags: &[&[
        Flag::value(
            "--keys",
            "FILE",
            "the accounts that the service has, with their keys and calls",
        ),
        Flag::value(
            "--add-call",
            "COMMAND",
            "what a shell runs to record a call of the first account",
        ),
        Flag::value("--control", "URL", "the control plane of the sender"),
        Flag::value("--only", "NAMES", "only these rules or groups of rules, with commas between"),
        Flag::switch("--list", "print the rules, and check nothing"),
        Flag::switch("--json", "print one JSON object instead of lines"),
        Flag::switch("--junit", "print JUnit's XML instead of lines"),
        Flag::value("--trust-ca", "FILE.pem", "extra CA certificates, besides the public ones"),
    ]],
    positional: &["SIDE", "[URL]"],
    example: "",
};

fn main() -> ExitCode {
    let flags = HELP.parse_or_exit();
    let done = match flags.text("SIDE") {
        Some("service") => check(&flags, "service", service::CASES, api),
        Some("sender") => check(&flags, "sender", sender::CASES, |flags| {
            Sender::new(flags.text("--control").ok_or("missing --control")?)
        }),
        Some("client") => check(&flags, "client", client::CASES, |flags| {
            let command = flags.text("URL").ok_or("missing COMMAND")?;
            let folder = std::env::temp_dir().join(format!("check-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            Ok(Client::new(command, folder))
        }),
        _ => Err("SIDE: expected service, sender or client".to_owned()),
    };
    match done.unwrap_or_else(|message| HELP.exit(&message)) {
        true => ExitCode::SUCCESS,
        false => {
            last_words("check: not every rule holds");
            ExitCode::FAILURE
        }
    }
}

fn api(flags: &Flags) -> Result<Api, String> {
    let url = flags.text("URL").ok_or("missing URL")?;
    let file = flags.text("--keys").ok_or("missing --keys")?;
    let keys = std::fs::read_to_string(file).map_err(|error| format!("--keys: {error}"))?;
    let api = Api::new(url, flags.text("--trust-ca").map(Path::new), &keys)?;
    api.reach()?;
    Ok(match flags.text("--add-call").map(str::to_owned) {
        Some(command) => api.with_add_call(Box::new(move || shell(&command))),
        None => api,
    })
}

/// Checks one side, or lists its rules. Returns whether all of them hold.
fn check<S>(
    flags: &Flags,
    side: &str,
    cases: &[&[Case<S>]],
    set_up: impl FnOnce(&Flags) -> Result<S, String>,
) -> Result<bool, String> {
    if flags.has("--list") {
        for case in cases.iter().copied().flatten() {
            say(&format!("{:28} {:24} {}", case.id, case.clause, case.loses));
        }
        return Ok(true);
    }
    let words = flags.text("--only").unwrap_or_default();
    let only: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    let in_lines = !flags.has("--json") && !flags.has("--junit");
    let tell = |verdict: &Verdict| {
        if in_lines {
            report::line(verdict)
        }
    };
    let verdicts = run(cases, &set_up(flags)?, &only, tell);
    if verdicts.is_empty() {
        return Err("--only: no rule has such a name; --list has them all".to_owned());
    }
    say(&match (flags.has("--json"), flags.has("--junit")) {
        (true, _) => report::as_json(side, &verdicts).to_string(),
        (_, true) => report::as_junit(side, &verdicts),
        _ => report::sum(&verdicts),
    });
    Ok(verdicts.iter().all(Verdict::holds))
}

/// Runs a command of the user's.
fn shell(command: &str) -> Result<(), String> {
    let status = Command::new("sh").args(["-c", command]).status();
    let status = status.map_err(|error| format!("--add-call: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("--add-call: {status}")) }
}
