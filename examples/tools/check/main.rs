//! The conformance kit at a terminal: `check SIDE ...`. `check/README.md` is its page.

use std::path::Path;
use std::process::{Command, ExitCode};

use host::flags::{Flag, Help, last_words, say};
use tools::check::case::{Verdict, run};
use tools::check::report;
use tools::check::service::{self, Api};

const OUTPUT: &[Flag] = &[
    Flag::value("--only", "NAMES", "only these rules or groups of rules, with commas between"),
    Flag::switch("--list", "print the rules, and check nothing"),
    Flag::switch("--json", "print one JSON object instead of lines"),
    Flag::switch("--junit", "print JUnit's XML instead of lines"),
    Flag::value("--trust-ca", "FILE.pem", "extra CA certificates, besides the public ones"),
];

const SERVICE: Help = Help {
    usage: "check service URL --keys FILE [--add-call COMMAND] [--only NAMES] [--list] [--json | --junit]\n\
            \x20      [--trust-ca FILE.pem]",
    about: "Asks an implementation of the REST API what it has to answer and what it has to refuse. It serves\n\
            the accounts of the file, such as examples/tools/check/fixture.json. Exit status: 0 all rules\n\
            hold, 1 not all do or can be seen, 2 the command line is wrong.",
    flags: &[
        &[
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
        ],
        OUTPUT,
    ],
    positional: &["SIDE", "[URL]"],
    example: "",
};

fn main() -> ExitCode {
    let flags = SERVICE.parse_or_exit();
    if flags.text("SIDE") != Some("service") {
        SERVICE.exit("SIDE: expected service");
    }
    if flags.has("--list") {
        for case in service::CASES.iter().copied().flatten() {
            say(&format!("{:28} {:24} {}", case.id, case.clause, case.loses));
        }
        return ExitCode::SUCCESS;
    }
    let set_up = || {
        let url = flags.text("URL").ok_or("missing URL")?;
        let file = flags.text("--keys").ok_or("missing --keys")?;
        let keys = std::fs::read_to_string(file).map_err(|error| format!("--keys: {error}"))?;
        let api = Api::new(url, flags.text("--trust-ca").map(Path::new), &keys)?;
        api.reach()?;
        let Some(command) = flags.text("--add-call").map(str::to_owned) else { return Ok(api) };
        Ok::<_, String>(api.with_add_call(Box::new(move || shell(&command))))
    };
    let api = set_up().unwrap_or_else(|message| SERVICE.exit(&message));
    let only: Vec<&str> =
        flags.text("--only").map(|words| words.split(',').collect()).unwrap_or_default();
    let in_lines = !flags.has("--json") && !flags.has("--junit");
    let tell = |verdict: &Verdict| {
        if in_lines {
            report::line(verdict)
        }
    };
    let verdicts = run(service::CASES, &api, &only, tell);
    if verdicts.is_empty() {
        SERVICE.exit("--only: no rule has such a name; --list has them all");
    }
    say(&match (flags.has("--json"), flags.has("--junit")) {
        (true, _) => report::as_json("service", &verdicts).to_string(),
        (_, true) => report::as_junit("service", &verdicts),
        _ => report::sum(&verdicts),
    });
    if verdicts.iter().all(Verdict::holds) {
        return ExitCode::SUCCESS;
    }
    last_words("check: not every rule holds");
    ExitCode::FAILURE
}

/// Runs a command of the user's.
fn shell(command: &str) -> Result<(), String> {
    let status = Command::new("sh").args(["-c", command]).status();
    let status = status.map_err(|error| format!("--add-call: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("--add-call: {status}")) }
}
