//! The command line of the programs `check` and `receiver-check`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};
use host::flags::{last_words, parse_or_exit, say, wrong};

use super::case::{Case, Verdict, run};
use super::client::{self, Client};
use super::receiver::{self, LANGUAGES, Receiver};
use super::report;
use super::sender::{self, Sender};
use super::service::{self, Api};
use crate::ProductFlag;
use crate::secrets::Secrets;

/// Checks whether a program in any language follows the rules of its side of the protocol. examples/tools/check/README.md
/// describes the sides. Exit status: 0 all rules hold, 1 a rule is broken or unseen, 2 the command line is wrong.
#[derive(Parser)]
#[command(name = "check")]
struct Program {
    #[command(subcommand)]
    side: Side,
}

/// What is checked.
#[derive(Subcommand)]
enum Side {
    /// Checks a receiver: sends webhooks to its endpoint, some of which it must refuse.
    #[command(after_help = "receiver http://127.0.0.1:3000/hooks --stored events.log")]
    Receiver(Endpoint),
    /// Checks an implementation of the REST API: sends requests, some of which it must refuse.
    #[command(after_help = "service http://127.0.0.1:8080 --keys fixture.json")]
    Service(Service),
    /// Checks a sender of webhooks, over its control plane.
    #[command(after_help = "sender --control http://127.0.0.1:8080")]
    Sender {
        /// The control plane of the sender.
        #[arg(long, value_name = "URL", required_unless_present = "list")]
        control: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Checks a client of the API: runs it against a service that answers as the protocol allows.
    #[command(after_help = "client ./client")]
    Client {
        #[arg(value_name = "COMMAND", required_unless_present = "list")]
        command: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

/// Checks a receiver of webhooks: sends webhooks to its endpoint, some of which it must refuse, and reports for each rule
/// whether the rule holds. Exit status: 0 all rules hold, 1 a rule is broken or unseen, 2 the command line is wrong.
#[derive(Parser)]
#[command(name = "receiver-check", after_help = "http://127.0.0.1:3000/hooks --stored events.log")]
struct Endpoint {
    #[arg(value_name = "URL", required_unless_present = "list")]
    url: Option<String>,
    #[command(flatten)]
    secrets: Secrets,
    /// A file or an http address with the ids of the stored events.
    #[arg(long, value_name = "PLACE")]
    stored: Option<String>,
    /// The language whose example a finding names: python, node, edge (Web Crypto), go, php, ruby, java or csharp.
    #[arg(long, value_name = "NAME", value_parser = language)]
    language: Option<[&'static str; 3]>,
    #[command(flatten)]
    product: ProductFlag,
    /// Extra CA certificates, besides the public ones.
    #[arg(long, value_name = "FILE.pem")]
    trust_ca: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Service {
    #[arg(value_name = "URL", required_unless_present = "list")]
    url: Option<String>,
    /// The accounts that the service has, with their keys and calls.
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    keys: Option<PathBuf>,
    /// A shell command that records a call of the first account.
    #[arg(long, value_name = "COMMAND")]
    add_call: Option<String>,
    /// Extra CA certificates, besides the public ones.
    #[arg(long, value_name = "FILE.pem")]
    trust_ca: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// The flags of each side.
#[derive(Args)]
struct Output {
    /// Only these rules or groups of rules, with commas between them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the rules, and check nothing.
    #[arg(long)]
    list: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print JUnit's XML instead of lines.
    #[arg(long)]
    junit: bool,
}

/// Runs `check`.
pub fn check() -> ExitCode {
    let done = match parse_or_exit::<Program>().side {
        Side::Receiver(flags) => endpoint(&flags),
        Side::Service(flags) => held(&flags.output, "service", service::CASES, || api(&flags)),
        Side::Sender { control, output } => {
            held(&output, "sender", sender::CASES, || Sender::new(&control.unwrap_or_default()))
        }
        Side::Client { command, output } => {
            let folder = std::env::temp_dir().join(format!("check-{}", std::process::id()));
            let done = held(&output, "client", client::CASES, || {
                // A process of the same number may have been killed, and have left what its clients kept.
                let _ = std::fs::remove_dir_all(&folder);
                std::fs::create_dir(&folder)
                    .map_err(|error| format!("{}: {error}", folder.display()))?;
                Ok(Client::new(&command.unwrap_or_default(), folder.clone()))
            });
            let _ = std::fs::remove_dir_all(&folder);
            done
        }
    };
    ended("check", done)
}

/// Runs `receiver-check`.
pub fn receiver_check() -> ExitCode {
    ended("receiver-check", endpoint(&parse_or_exit()))
}

fn ended(program: &str, done: Result<bool, String>) -> ExitCode {
    match done.unwrap_or_else(|message| wrong(message)) {
        true => ExitCode::SUCCESS,
        false => {
            last_words(&format!("{program}: not every rule holds"));
            ExitCode::FAILURE
        }
    }
}

fn endpoint(flags: &Endpoint) -> Result<bool, String> {
    if flags.output.list {
        return held(&flags.output, "receiver", receiver::CASES, || Err(String::new()));
    }
    let Endpoint { url, secrets, stored, product, trust_ca, .. } = flags;
    let url = url.as_deref().unwrap_or_default();
    let (secrets, trust) = (secrets.texts()?, trust_ca.as_deref());
    let receiver = Receiver::new(url, trust, &secrets, product.get(), stored.as_deref())?;
    let mend = |one: &Verdict| {
        one.is_broken().then(|| receiver::mending(one.id, one.mend, flags.language))
    };
    report_on(&flags.output, "receiver", receiver.cases(), &receiver, &mend)
}

fn language(name: &str) -> Result<[&'static str; 3], String> {
    let names = LANGUAGES.map(|[name, ..]| name).join(", ");
    let found = LANGUAGES.into_iter().find(|[known, ..]| *known == name);
    found.ok_or_else(|| format!("expected one of {names}"))
}

fn api(Service { url, keys, add_call, trust_ca, .. }: &Service) -> Result<Api, String> {
    let keys = std::fs::read_to_string(keys.as_deref().unwrap_or(Path::new("")));
    let keys = keys.map_err(|error| format!("--keys: {error}"))?;
    let api = Api::new(url.as_deref().unwrap_or_default(), trust_ca.as_deref(), &keys)?;
    api.reach()?;
    Ok(match add_call.clone() {
        Some(command) => api.with_add_call(Box::new(move || shell(&command))),
        None => api,
    })
}

/// Checks one side, or lists its rules. Returns whether all of them hold.
fn held<S>(
    output: &Output,
    side: &str,
    cases: &[&[Case<S>]],
    set_up: impl FnOnce() -> Result<S, String>,
) -> Result<bool, String> {
    if output.list {
        for case in cases.iter().copied().flatten() {
            say(&format!("{:28} {:24} {}", case.id, case.clause, case.loses));
        }
        return Ok(true);
    }
    report_on(output, side, cases, &set_up()?, &|_| None)
}

fn report_on<S>(
    output: &Output,
    name: &str,
    cases: &[&[Case<S>]],
    side: &S,
    mend: report::Mend<'_>,
) -> Result<bool, String> {
    let only: Vec<&str> = output.only.iter().map(String::as_str).collect();
    let in_lines = !output.json && !output.junit;
    let tell = |verdict: &Verdict| {
        if in_lines {
            report::line(verdict, mend)
        }
    };
    let verdicts = run(cases, side, &only, tell);
    if verdicts.is_empty() {
        return Err("--only: no rule has such a name; --list has them all".to_owned());
    }
    say(&match (output.json, output.junit) {
        (true, _) => report::as_json(name, &verdicts, mend).to_string(),
        (_, true) => report::as_junit(name, &verdicts, mend),
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
