//! `verify`: its verdicts, its exit status, and that it says enough and not too much.

use std::fs::File;
use std::process::{Command, Stdio};

use call_assistant::Timestamp;

use crate::{SECRET, ping, refused, signer};
use testing::running::{Folder, Told, example, run};

const NOW: i64 = 1_767_225_600;

fn verify(arguments: &[&str]) -> Command {
    let mut command = example("verify");
    command.args(arguments).env("WEBHOOK_SECRET", SECRET);
    command
}

fn signature(body: &[u8], at: i64) -> String {
    signer().sign(body, Timestamp::from_unix(at).unwrap()).as_str().to_owned()
}

fn check(signature: &str, body: &[u8]) -> Told {
    let now = NOW.to_string();
    run(&mut verify(&["check", "--signature", signature, "--now", &now]), body)
}

/// SIG-1 to SIG-4, D-40 to D-42: a verdict is a word and an exit status.
#[test]
fn check_says_its_verdict_in_a_word_and_with_its_status() {
    let body = br#"{"id":"evt_1"}"#;
    let good = signature(body, NOW);
    let upper = good.to_uppercase().replace("T=", "t=").replace(",V1=", ",v1=");
    let cases: [(&str, &[u8], i32, &str); 6] = [
        (&good, body, 0, "accepted: secret 0, 0 s old"),
        (&good, br#"{"id":"evt_2"}"#, 1, "mismatch"),
        (&signature(body, NOW - 301), body, 3, "too_old"),
        (&signature(body, NOW + 300), body, 0, "accepted: secret 0, -300 s old"),
        (&signature(body, NOW + 301), body, 3, "too_new"),
        (&upper, body, 4, "digest_uppercase"),
    ];
    for (signature, body, code, word) in cases {
        let output = check(signature, body).is(code, "");
        assert!(output.stdout.starts_with(word), "{word}: {}", output.stdout);
    }
}

/// D-44: what libraries for Standard Webhooks do to a secret is named as the cause.
#[test]
fn explain_names_the_cause() {
    let signature = signature(br#"{"id":"evt_1"}"#, NOW);
    let arguments = ["explain", "--signature", &signature, "--now", "1767225600"];
    let output = run(&mut verify(&arguments), br#"{"id": "evt_1"}"#).is(0, "");
    assert!(output.stdout.starts_with("proven: the body was read as JSON and written again"));

    let output = run(verify(&arguments).env("WEBHOOK_SECRET", "whsec_another"), b"{}").is(1, "");
    assert!(output.stdout.starts_with("no cause found"), "{}", output.stdout);

    // A space that came along with the secret is a cause, not a reason to refuse to look.
    let secret = format!(" {SECRET}");
    let output = run(verify(&arguments).env("WEBHOOK_SECRET", secret), br#"{"id":"evt_1"}"#);
    assert_eq!(
        output.stdout.trim_end(),
        "proven: the secret given has spaces or line ends around it"
    );
}

/// A whole request in a file, and others that it may have been mixed up with.
#[test]
fn explain_takes_captured_requests() {
    let folder = Folder::new();
    let (one, other) = (ping("evt_1"), ping("evt_2"));
    let request = |signed: &[u8], id: &str, body: &[u8]| {
        let signature = signature(signed, NOW);
        let head = format!(
            "POST /hooks HTTP/1.1\r\nX-Service-Signature: {signature}\r\nX-Service-Event: ping\r\n\
             X-Service-Delivery: {id}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let explain = |name: &str, content: Vec<u8>, more: &[&str]| {
        let path = folder.file(name, content);
        let mut command = verify(&["explain", "--now", "1767225600", "--request"]);
        let output = run(command.arg(path).args(more), b"");
        assert_eq!(output.stderr, "", "{name}");
        (output.code, output.stdout.trim_end().to_owned())
    };
    let good = request(one.as_bytes(), "evt_1", one.as_bytes());
    let right = "proven: nothing is wrong with the signature";
    assert_eq!(explain("good", good, &[]), (Some(0), right.to_owned()));

    // A header that contradicts the body is refused where the event is read.
    let (code, said) = explain("id", request(one.as_bytes(), "evt_9", one.as_bytes()), &[]);
    assert_eq!(code, Some(0));
    assert!(said.starts_with(&format!("{right}\nno event: ")), "{said}");

    // Headers of one delivery over the body of another: a folder has the right one.
    let mixed = || request(other.as_bytes(), "evt_2", one.as_bytes());
    let (code, said) = explain("mixed", mixed(), &[]);
    assert_eq!(code, Some(1), "{said}");
    let known = folder.path("known");
    std::fs::create_dir(&known).unwrap();
    std::fs::write(known.join("2.http"), request(other.as_bytes(), "evt_2", other.as_bytes()))
        .unwrap();
    let (code, said) = explain("mixed", mixed(), &["--known", known.to_str().unwrap()]);
    let words = "proven: header and body are not of one delivery: the header is that of known delivery number 1";
    assert_eq!((code, said.as_str()), (Some(0), words));
}

/// A capture is old by the clock, and nobody guesses from 4000.169679692s what to do.
#[test]
fn an_old_capture_is_judged_as_of_then() {
    let signature = signature(b"{}", NOW);
    for command in ["check", "explain"] {
        let output = run(&mut verify(&[command, "--signature", &signature]), b"{}");
        let said = output.stdout;
        assert!(said.contains(" days) old, more than the tolerance of 300s"), "{command}: {said}");
        let hint = "signed at 2026-01-01T00:00:00Z; to check it at that time: --now 1767225600\n";
        assert!(said.ends_with(hint), "{command}: {said}");
        // Also where something else is wrong.
        let output = run(&mut verify(&[command, "--signature", &signature]), b"[]");
        assert!(output.stdout.ends_with(hint), "{command}: {}", output.stdout);
    }
}

/// D-43: the secret that matched is named by its place, newest first, from 0 in each command. A line end belongs to no
/// secret, in a file and in a variable.
#[test]
fn both_commands_take_secrets_in_one_way() {
    let folder = Folder::new();
    let (signature, body) = (signature(b"{}", NOW), folder.file("body", "{}"));
    let arguments = ["--signature", &signature, "--now", "1767225600"];
    for end in ["", "\n", "\r\n"] {
        let text = format!("whsec_newer\n{SECRET}{end}");
        let file = folder.file("secrets", &text);
        for (command, expected) in [
            ("check", "accepted: secret 1, 0 s old"),
            ("explain", "proven: nothing is wrong with the signature"),
        ] {
            let from = |secrets: [&str; 2], variable: &str| {
                let mut verify = example("verify");
                verify.arg(command).args(arguments).arg("--body").arg(&body);
                if !secrets[0].is_empty() {
                    verify.args(secrets);
                }
                let output = run(verify.env(variable, &text), b"").is(0, "");
                let first = output.stdout.lines().next();
                assert_eq!(first, Some(expected), "{command} {end:?}: {}", output.stderr);
            };
            from(["--secret-file", file.to_str().unwrap()], "OTHER");
            from(["", ""], "WEBHOOK_SECRET");
            from(["--secret-env", "OTHER"], "OTHER");
        }
    }
    // Nothing there: nothing is checked, and that is said.
    run(example("verify").arg("check").args(arguments), b"{}").is(2, "WEBHOOK_SECRET");
    // Both are accepted, so the second one is no cause of what else is wrong.
    let of_two = |arguments: &[&str], body: &[u8]| {
        let mut command = verify(&["explain", "--now", "1767225600"]);
        command.args(arguments).env("WEBHOOK_SECRET", format!("whsec_newer\n{SECRET}"));
        run(&mut command, body).is(0, "").stdout
    };
    let said = of_two(&["--signature", &signature], b"{}\n");
    assert!(said.starts_with("proven: ") && !said.contains("secret"), "{said}");
    let event = ping("evt_1");
    let signature = self::signature(event.as_bytes(), NOW);
    let lines = format!("X-Service-Signature: {signature}\nX-Service-Delivery: evt_9\n");
    let headers = folder.file("headers", lines);
    let said = of_two(&["--headers", headers.to_str().unwrap()], event.as_bytes());
    assert!(said.starts_with("proven: nothing is wrong with the signature\nno event: "), "{said}");
    let mut ill = verify(&["check"]);
    run(ill.args(arguments).env("WEBHOOK_SECRET", "whsec_a\nb"), b"")
        .is(2, "secret 1, on line 2: ");
}

/// What `sign` writes, `check` accepts: as a value, and as all the headers of a delivery (DEL-1).
#[test]
fn sign_and_check_are_each_others_inverse() {
    let folder = Folder::new();
    let event = ping("evt_17");
    let output = run(&mut verify(&["sign"]), event.as_bytes());
    let value = output.stdout.trim_end();
    let output = run(&mut verify(&["check", "--signature", value]), event.as_bytes());
    assert!(output.stdout.ends_with("event: evt_17 ping\n"), "{}", output.stdout);

    let output = run(&mut verify(&["sign", "--headers"]), event.as_bytes());
    assert!(output.stdout.contains("x-service-delivery: evt_17\n"), "{}", output.stdout);
    let headers = folder.file("headers", &output.stdout);
    let arguments = ["check", "--headers", headers.to_str().unwrap()];
    run(&mut verify(&arguments), event.as_bytes()).is(0, "");

    // A signature that cannot be written is none.
    if let Ok(full) = File::create("/dev/full") {
        let status = verify(&["sign"]).stdin(Stdio::null()).stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(2));
    }

    // A captured request with the header in it twice (D-40).
    let line = run(&mut verify(&["sign", "--headers"]), event.as_bytes()).stdout;
    let twice = folder.file("twice", format!("POST / HTTP/1.1\r\n{line}{line}"));
    let arguments = ["check", "--headers", twice.to_str().unwrap()];
    let output = run(&mut verify(&arguments), event.as_bytes());
    assert_eq!((output.code, output.stdout.starts_with("repeated")), (Some(4), true));
}

#[test]
fn vectors_of_this_repository_pass_and_a_changed_one_does_not() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/signatures.json");
    let output = run(&mut verify(&["vectors", path]), b"").is(0, "");
    assert!(output.stdout.ends_with(" cases, 0 failed\n"));

    let folder = Folder::new();
    let text = std::fs::read_to_string(path).unwrap();
    let changed = folder.file("changed", text.replacen("\"age\": 0", "\"age\": 1", 1));
    let output = run(&mut verify(&["vectors", changed.to_str().unwrap()]), b"").is(1, "");
    assert!(output.stdout.starts_with("body: empty: expected"), "{}", output.stdout);

    let other = folder.file("other", r#"{"format":2,"cases":[]}"#);
    run(&mut verify(&["vectors", other.to_str().unwrap()]), b"").is(2, "format 2");
}

#[test]
fn a_wrong_command_line_is_named_and_never_shows_a_secret() {
    let cases = [
        ("", "expected one of check, explain"),
        ("chek", "unknown command chek; did you mean check?"),
        ("check", "expected one of --signature"),
        ("check --singature x", "did you mean --signature?"),
        ("check --secret SECRET", "unknown flag --secret"),
        ("check SECRET", "too many arguments"),
        ("check --signature x --now noon", "--now"),
        ("check --signature x --tolerance 0", "signature tolerance is zero"),
        ("explain --signature x --tolerance 0", "signature tolerance is zero"),
        ("explain --signature x --tolerance 3601", "is more than"),
        ("check --signature x --request y", "not allowed with --"),
        ("check --request x --body y", "not allowed with --"),
        ("check --headers /dev/null", "no line is `Name: value`"),
        ("explain --request /dev/null", "not a request"),
    ];
    refused(|| verify(&[]), &cases);
    for command in ["check", "explain", "sign", "vectors"] {
        let output = run(&mut verify(&[command, "--help"]), b"").is(0, "");
        assert!(output.stdout.contains(&format!("Usage: verify {command}")));
    }
}
