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
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::{SetupError, Signer, SigningSecret, Verifier};
use clap::{Args, Parser, Subcommand};
use host::flags::{last_words, parse_or_exit, say};
use tools::secrets;

use crate::evidence::{Delivery, Given, known, read_body};

/// Signatures of webhooks.
#[derive(Parser)]
#[command(name = "verify")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks whether a delivery is genuine. Exit status: 0 accepted, 1 mismatch, 2 nothing could be checked, 3 genuine but
    /// too old or too new, 4 the header is malformed.
    #[command(after_help = "check --signature 't=1767225600,v1=...' --body event.json")]
    Check(Judged),
    /// Looks for the cause of a mismatch in the body, the secret and the header. The secret's text is used exactly as
    /// given, because spaces in it may be the cause. Exit status: 0 the cause is proven, 1 the cause is guessed or not found,
    /// 2 the input cannot be used.
    #[command(after_help = "explain --headers captured.txt --body event.json")]
    Explain {
        #[command(flatten)]
        judged: Judged,
        /// Another captured request, or a folder of requests: two requests may have been mixed up.
        #[arg(long, value_name = "PATH")]
        known: Option<PathBuf>,
    },
    /// Signs a body, and prints the signature header's value. With several secrets there is a v1 for each.
    #[command(after_help = "sign --body event.json --headers")]
    Sign {
        /// The body, byte for byte [standard input].
        #[arg(long, value_name = "FILE")]
        body: Option<PathBuf>,
        /// Print all headers of a delivery, one on each line; the body must be an event.
        #[arg(long)]
        headers: bool,
        #[command(flatten)]
        given: Given,
    },
    /// Runs test vectors in the format of tests/vectors/README.md. Exit status: 0 all passed, 1 some failed, 2 the file cannot
    /// be read.
    #[command(after_help = "vectors tests/vectors/signatures.json")]
    Vectors {
        #[arg(value_name = "FILE")]
        file: String,
    },
}

/// A delivery, and by what it is judged.
#[derive(Args)]
struct Judged {
    #[command(flatten)]
    delivery: Delivery,
    #[command(flatten)]
    given: Given,
    /// The largest difference in time, in seconds, 1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = tolerance)]
    tolerance: Duration,
}

/// What the command line asks for cannot be done.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match parse_or_exit::<Program>().command {
        Command::Check(judged) => check(&judged),
        Command::Explain { judged, known } => explain(&judged, known.as_deref()),
        Command::Sign { body, headers, given } => sign(body.as_deref(), headers, &given),
        Command::Vectors { file } => vectors(&file),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(message) => {
            last_words(&format!("verify: {message}"));
            ExitCode::from(USAGE)
        }
    }
}

fn tolerance(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::from_secs(seconds) {
        Duration::ZERO => Err(SetupError::NoTolerance.to_string()),
        long if long > Verifier::MAX_TOLERANCE => Err(SetupError::LongTolerance.to_string()),
        tolerance => Ok(tolerance),
    }
}

fn check(Judged { delivery, given, tolerance }: &Judged) -> Result<u8, String> {
    let product = given.product.get();
    let captured = delivery.captured(&product)?;
    let headers = captured.headers(&product);
    let verifier = secrets::verifier(&given.secrets.texts()?)?.ok_or("no signing secret")?;
    let verifier =
        verifier.with_tolerance(*tolerance).map_err(|error| format!("--tolerance: {error}"))?;
    let now = given.now();

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
    given.hint(&headers, *tolerance, now).iter().for_each(|hint| say(hint));
    Ok(verdict::exit_status(&verdict))
}

fn explain(
    Judged { delivery, given, tolerance }: &Judged,
    others: Option<&Path>,
) -> Result<u8, String> {
    let (product, tolerance, now) = (given.product.get(), *tolerance, given.now());
    let captured = delivery.captured(&product)?;
    let known = others.map_or_else(|| Ok(Vec::new()), known)?;
    let headers = captured.headers(&product);
    let texts = given.secrets.texts()?;
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
    given.hint(&headers, tolerance, now).iter().for_each(|hint| say(hint));
    Ok(u8::from(!explanation.is_proven()))
}

fn sign(body: Option<&Path>, with_headers: bool, given: &Given) -> Result<u8, String> {
    let secrets = secrets::parse(&given.secrets.texts()?)?;
    let (product, now) = (given.product.get(), given.now());
    let mut secrets = secrets.into_iter();
    let newest = secrets.next().ok_or("no signing secret")?;
    let signer = secrets
        .try_fold(Signer::new(newest), |signer, previous| {
            signer.with_previous(previous, Timestamp::MAX, now)
        })
        .map_err(|error| error.to_string())?
        .with_product(product);
    let body = read_body(body)?;
    // Without it there is nothing, so that it could not be written is a failure.
    let write = |line: &str| {
        let written = writeln!(io::stdout(), "{line}");
        written.map_err(|error| format!("the signature cannot be written: {error}"))
    };
    if !with_headers {
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

fn vectors(path: &str) -> Result<u8, String> {
    let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let outcome = vectors::run(&text).map_err(|error| format!("{path}: {error}"))?;
    for failure in &outcome.failures {
        say(failure);
    }
    let failed = outcome.failures.len();
    say(&format!("{} cases, {failed} failed", outcome.cases));
    Ok(u8::from(failed > 0))
}
