//! Checks, explains and makes signatures, and runs test vectors, at a terminal and in scripts.
//!
//! ```text
//! export WEBHOOK_SECRET=whsec_...
//! verify check --signature 't=1767225600,v1=...' --body event.json
//! verify explain --headers captured.txt --body event.json
//! verify explain --request captured.http --known other-requests/
//! verify sign --body event.json --headers > headers.txt
//!     curl -H @headers.txt --data-binary @event.json http://127.0.0.1:9090/
//! verify vectors tests/vectors/signatures.json
//! ```
//!
//! Secrets come from an environment variable or a file, never from an argument: process lists and
//! shell histories show arguments. `check` prints its verdict as one word of
//! `tests/vectors/README.md` and returns it as the exit status:
//!
//! | status | verdict |
//! |---|---|
//! | 0 | accepted |
//! | 1 | mismatch: not these bytes, not this secret, or forged |
//! | 2 | nothing could be checked: a wrong flag, no such file, no secret |
//! | 3 | genuine, but too old or too new |
//! | 4 | the header is missing, repeated or malformed |

mod evidence;
mod vectors;
mod verdict;

use std::io::{self, Write as _};
use std::process::ExitCode;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::{Signer, SigningSecret, Verifier};
use host::flags::{Command, Commands, Flag, Flags, Help, last_words, say};
use tools::secrets;

use crate::evidence::{captured, hint, known, now, read_body, tolerance};

const SECRET_FILE: Flag = Flag::value(
    secrets::FILE,
    "FILE",
    "a file with the secrets, one on each line, newest first;\nthey are numbered from 0",
);
const SECRET_ENV: Flag = Flag::value(
    secrets::VARIABLE,
    "NAME",
    "an environment variable with the secrets [WEBHOOK_SECRET]",
);
const SIGNATURE: Flag = Flag::value("--signature", "TEXT", "the signature header's value");
const HEADERS: Flag =
    Flag::value("--headers", "FILE", "all headers instead: one line `Name: value` each");
const REQUEST: Flag =
    Flag::value("--request", "FILE", "a whole captured request instead: head, empty line, body");
const KNOWN: Flag = Flag::value(
    "--known",
    "PATH",
    "another captured request, or a folder of them: two requests\nmay have been mixed up",
);
const BODY: Flag = Flag::value("--body", "FILE", "the body, byte for byte [standard input]");
const NOW: Flag = Flag::value("--now", "TIME", "seconds since 1970, or RFC 3339 [the clock]");
const TOLERANCE: Flag =
    Flag::value("--tolerance", "SECONDS", "the largest difference in time, 1 to 3600 [300]");
const PRODUCT: Flag =
    Flag::value("--product", "NAME", "the product whose header names are used [Service]");

const CHECK: Help = Help {
    usage: "verify check (--signature TEXT | --headers FILE) [--body FILE] | --request FILE \
            [--secret-file FILE | --secret-env NAME]",
    about: "Checks whether a delivery is genuine. Exit status: 0 accepted, 1 mismatch, 2 nothing\n\
            could be checked, 3 genuine but too old or too new, 4 the header is malformed.",
    flags: &[&[
        SIGNATURE,
        HEADERS,
        REQUEST,
        BODY,
        SECRET_FILE,
        SECRET_ENV,
        NOW,
        TOLERANCE,
        PRODUCT,
    ]],
    positional: &[],
    example: "",
};

const EXPLAIN: Help = Help {
    usage: "verify explain (--signature TEXT | --headers FILE) [--body FILE] | --request FILE \
            [--secret-file FILE | --secret-env NAME]",
    about: "Looks for the cause of a mismatch: what happened to the body, the secret or the\n\
            header. The secret's text is used exactly as given, with its spaces: they may be the\n\
            cause. Exit status: 0 proven, 1 a guess or nothing found, 2 nothing could be done.",
    flags: &[&[
        SIGNATURE,
        HEADERS,
        REQUEST,
        KNOWN,
        BODY,
        SECRET_FILE,
        SECRET_ENV,
        NOW,
        TOLERANCE,
        PRODUCT,
    ]],
    positional: &[],
    example: "",
};

const SIGN: Help = Help {
    usage: "verify sign [--body FILE] [--headers] [--secret-file FILE | --secret-env NAME]",
    about: "Signs a body, and prints the signature header's value. With several secrets there is\n\
            a v1 for each.",
    flags: &[&[
        BODY,
        Flag::switch(
            "--headers",
            "print all headers of a delivery, one on each line; the body must be an event",
        ),
        SECRET_FILE,
        SECRET_ENV,
        NOW,
        PRODUCT,
    ]],
    positional: &[],
    example: "",
};

const VECTORS: Help = Help {
    usage: "verify vectors FILE",
    about: "Runs test vectors in the format of tests/vectors/README.md. Exit status: 0 all\n\
            passed, 1 some failed, 2 the file cannot be read.",
    flags: &[],
    positional: &["FILE"],
    example: "",
};

/// What the command line asks for cannot be done.
const USAGE: u8 = 2;

/// What a command does: the exit status.
type Run = fn(&Flags) -> Result<u8, String>;

const COMMANDS: Commands<Run> = Commands {
    program: "verify",
    about: "Signatures of webhooks.",
    groups: &[],
    statuses: "",
    commands: &[&[
        Command { name: "check", help: CHECK, run: check },
        Command { name: "explain", help: EXPLAIN, run: explain },
        Command { name: "sign", help: SIGN, run: sign },
        Command { name: "vectors", help: VECTORS, run: vectors },
    ]],
};

fn main() -> ExitCode {
    let (Command { run, .. }, flags) = COMMANDS.parse_or_exit();
    match run(&flags) {
        Ok(status) => ExitCode::from(status),
        Err(message) => {
            last_words(&format!("verify: {message}"));
            ExitCode::from(USAGE)
        }
    }
}

fn check(flags: &Flags) -> Result<u8, String> {
    let captured = captured(flags)?;
    let product = tools::product(flags)?;
    let headers = captured.headers(&product);
    let verifier = secrets::verifier(&secrets::texts(flags)?)?.ok_or("no signing secret")?;
    let verifier = verifier
        .with_tolerance(tolerance(flags)?)
        .map_err(|error| format!("--tolerance: {error}"))?;
    let now = now(flags)?;

    let result = verifier.verify_parts(headers, &captured.body, now);
    let verdict = verdict::of(&result);
    match result {
        Ok(verified) => {
            let (secret, age) = (verified.secret_index(), verified.age_seconds());
            say(&format!("{}: secret {secret}, {age} s old", verdict::word(&verdict)));
            match verified.event() {
                Ok(event) => say(&format!("event: {} {}", event.id, event.event_type())),
                Err(error) => say(&format!("no event: {error}")),
            }
        }
        Err(error) => say(&format!("{}: {error}", verdict::word(&verdict))),
    }
    hint(flags, &headers, now).iter().for_each(|hint| say(hint));
    Ok(verdict::exit_status(&verdict))
}

fn explain(flags: &Flags) -> Result<u8, String> {
    let captured = captured(flags)?;
    let known = known(flags)?;
    let product = tools::product(flags)?;
    let headers = captured.headers(&product);
    let texts = secrets::texts(flags)?;
    let (tolerance, now) = (tolerance(flags)?, now(flags)?);
    let evidence = secrets::evidence(headers, &captured.body, &texts).ok_or("no signing secret")?;
    let evidence = evidence.with_tolerance(tolerance);
    let evidence = known.iter().fold(evidence, |evidence, other| {
        evidence.with_known_delivery(other.headers(&product), &other.body)
    });
    let explanation = evidence.explain(now);
    say(&explanation.to_string());
    // A header that contradicts the body is refused where the event is read.
    if explanation.is_proven() && explanation.causes().is_empty() {
        let genuine = texts.iter().find_map(|text| {
            let verifier = Verifier::new(SigningSecret::parse(text).ok()?);
            verifier.with_tolerance(tolerance).ok()?.verify_parts(headers, &captured.body, now).ok()
        });
        if let Some(Err(error)) = genuine.map(|verified| verified.event()) {
            say(&format!("no event: {error}"));
        }
    }
    hint(flags, &headers, now).iter().for_each(|hint| say(hint));
    Ok(u8::from(!explanation.is_proven()))
}

fn sign(flags: &Flags) -> Result<u8, String> {
    let secrets = secrets::parse(&secrets::texts(flags)?)?;
    let (product, now) = (tools::product(flags)?, now(flags)?);
    let mut secrets = secrets.into_iter();
    let newest = secrets.next().ok_or("no signing secret")?;
    let signer = secrets
        .try_fold(Signer::new(newest), |signer, previous| {
            signer.with_previous(previous, Timestamp::MAX, now)
        })
        .map_err(|error| error.to_string())?
        .with_product(product);
    let body = read_body(flags)?;
    // Without it there is nothing, so that it could not be written is a failure.
    let write = |line: &str| {
        let written = writeln!(io::stdout(), "{line}");
        written.map_err(|error| format!("the signature cannot be written: {error}"))
    };
    if !flags.has("--headers") {
        write(signer.sign(&body, now).as_str())?;
        return Ok(0);
    }
    let event = EventBody::from_stored(&body)
        .map_err(|error| format!("the body is not an event: {error}"))?;
    for (name, value) in event.signed_request(&signer, now).headers() {
        // Every value is text that the signer has written.
        write(&format!("{name}: {}", value.to_str().unwrap_or_default()))?;
    }
    Ok(0)
}

fn vectors(flags: &Flags) -> Result<u8, String> {
    let path = flags.text("FILE").unwrap_or_default();
    let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let outcome = vectors::run(&text).map_err(|error| format!("{path}: {error}"))?;
    for failure in &outcome.failures {
        say(failure);
    }
    let failed = outcome.failures.len();
    say(&format!("{} cases, {failed} failed", outcome.cases));
    Ok(u8::from(failed > 0))
}
