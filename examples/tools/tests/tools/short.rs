//! The short programs: each runs without an argument and shows what it says.

use testing::running::{Told, example, run};

/// Per program: lines of its output, in order, and what it logs.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("list_calls", &["call_3\n", "call_2\n", "call_1\n"], ""),
    ("rotate_secrets", &["secret 0 has matched", "Valid, the old one Revoked"], ""),
    (
        "send_event",
        &["POST https://hooks.example.com/calls", "refused", "POST https://", "204", "Delivered"],
        "",
    ),
    (
        "serve_api",
        &["/v1/account: 200", "/v1/calls: 200", "call_1: 200", "call_9: 404", "down: 500"],
        "there is no such call",
    ),
    ("sync_calls", &["1 calls, ", "2 calls, "], ""),
    (
        "verify_webhook",
        &["genuine: 204", "again: 204", "altered: 400"],
        "rejected: no v1 of the signature header matches the body",
    ),
];

/// Every program with a command line says what it takes and which version it is, to whoever reads a pipe.
#[test]
fn each_program_has_a_help_text_and_a_version() {
    let programs = ["check", "receiver", "receiver-check", "simulate", "sync", "tour", "verify"];
    for program in programs {
        for (flag, words) in [("--help", "Usage: "), ("--version", program)] {
            let told = run(example(program).arg(flag), b"").is(0, "");
            assert!(told.stdout.contains(words) && told.stderr.is_empty(), "{program} {flag}");
        }
    }
    assert!(run(example("copy").arg("--help"), b"").is(0, "").stdout.starts_with("usage: copy"));
}

#[test]
fn each_runs_without_arguments() {
    for (name, lines, logged) in PROGRAMS {
        let Told { stdout: out, stderr: log, .. } = run(&mut example(name), b"").is(0, "");
        let mut rest = out.as_str();
        for line in *lines {
            let at = rest.find(line).unwrap_or_else(|| panic!("{name}: no {line:?} in\n{out}"));
            rest = rest.split_at(at + line.len()).1;
        }
        assert!(log.contains(logged), "{name}: {log}");
        assert_eq!(log.is_empty(), logged.is_empty(), "{name}: {log}");
    }
}
