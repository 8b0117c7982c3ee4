//! All calls of an account in a file, and every new one from then on, each once.
//!
//! `cargo run --example sync -- --api http://127.0.0.1:8080 --key service_live_... --state sync.json`
//!
//! Stop it whenever you like, by Ctrl-C or by `kill -9`, and start it again: it goes on where it
//! was. A line of `--out` is a call, and no call is missing and none is there twice.
//!
//! # Why that holds
//!
//! [`CallSync`] decides what to ask and which calls of an answer are fresh; what it asks of a host
//! is to save the calls and its next state *together*. Two files cannot be written at once, so the
//! state says how long the other file is:
//!
//! 1. the fresh calls are appended, and put onto the disk;
//! 2. the next state, with the new length, replaces the old one: a new file, put onto the disk and
//!    then renamed, so that there is the old state or the new one, never half of either.
//!
//! | it dies | then, once it runs again |
//! |---|---|
//! | before 1 or within it | the file is cut back to the length in the state, and the page asked for again |
//! | between 1 and 2 | the same |
//! | after 2 | nothing: both are there |
//!
//! One sync at a time writes these files: another that is begun with either of them says so and ends. A file
//! beside the state, whose name ends in `.lock`, is for that. Two that share a key do no harm, but each needs
//! files of its own.
//!
//! # Errors
//!
//! | | |
//! |---|---|
//! | 429, 500, no response, an incomplete one | requested again, after `Retry-After` and a backoff |
//! | the cursor is refused, or leads in a circle | the walk restarts; no call is written twice |
//! | the key, the plan, the account | a message with the request id, then exit |

mod asking;
mod progress;
mod store;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::ApiKey;
use call_assistant::rest::client::{Action, CallSync, Client, Pace, Retry, Step};
use call_assistant::rest::{BaseUrl, GetAccount, Quota};
use host::clock::{self, MovedClock};
use host::flags::{Flag, Flags, Help};
use host::program::shutdown::Shutdown;
use host::program::{self, shutdown};
use tools::client::Client as HttpClient;
use tools::secrets;

use crate::asking::{Failed, Host};
use crate::progress::Report;
use crate::store::Store;

const HELP: Help = Help {
    usage: "sync --api URL (--key KEY | --key-file FILE | --key-env NAME) --state FILE \
            [--out FILE] [--every SPAN]",
    about: "Writes all calls of an account into a file, each once, as one line of JSON; run again,\n\
            it adds those that are new. Stop it at any point.",
    flags: &[&[
        Flag::value("--api", "URL", "the service's base address: https://api.example.com"),
        Flag::value(
            "--key",
            "KEY",
            "the API key. Others on this machine can read a command line: outside of a\n\
             trial, use one of the next two",
        ),
        Flag::value("--key-file", "FILE", "a file with the key in its first line"),
        Flag::value("--key-env", "NAME", "an environment variable with the key [SERVICE_API_KEY]"),
        Flag::value("--state", "FILE", "the state of the sync, kept between runs"),
        Flag::value("--out", "FILE", "the file of the calls [calls.jsonl]"),
        Flag::value("--every", "SPAN", "repeat the sync after each such interval: 60s, 5m, 500ms"),
        Flag::value(
            "--since",
            "TIME",
            "begin with calls written at this time (RFC 3339); for a new state only",
        ),
        Flag::value("--trust-ca", "FILE", "extra CA certificates, as a PEM file"),
        Flag::value("--product", "NAME", "the product of the key [Service]"),
        Flag::value("--time-scale", "F", "multiplies the waits between requests; for tests [1]"),
    ]],
    positional: &[],
    example: "",
};

const DEFAULT_VARIABLE: &str = "SERVICE_API_KEY";

fn main() -> ExitCode {
    let flags = HELP.parse_or_exit();
    let set_up = SetUp::from_flags(&flags).unwrap_or_else(|message| HELP.exit(&message));
    program::run("sync", run(set_up))
}

/// The options of the command line.
struct SetUp {
    client: Client,
    http: HttpClient,
    begin: CallSync,
    every: Option<Duration>,
    time_scale: f64,
    state: PathBuf,
    out: PathBuf,
}

impl SetUp {
    fn from_flags(flags: &Flags) -> Result<Self, String> {
        let product = tools::product(flags)?;
        let api = flags.text("--api").ok_or("missing --api")?;
        let base = BaseUrl::parse(api).map_err(|error| format!("--api: {error}"))?;
        let key = key_text(flags)?;
        let key = ApiKey::parse_for(&product, &key).map_err(|error| format!("the key: {error}"))?;
        let begin = match flags.text("--since") {
            Some(text) => {
                let since: Timestamp = text.parse().map_err(|error| format!("--since: {error}"))?;
                CallSync::since(since)
            }
            None => CallSync::new(),
        };
        let every = flags.text("--every").map(|text| {
            span(text).ok_or("--every: expected a span such as 60s, 5m, 2h or 500ms".to_owned())
        });
        let every = every.transpose()?;
        let expected = "a number from 0 to 1000000";
        let time_scale: f64 = flags.read("--time-scale", 1.0, expected)?;
        if !(0.0..=1e6).contains(&time_scale) {
            return Err(format!("--time-scale: expected {expected}"));
        }
        let state = flags.text("--state").ok_or("missing --state")?;
        let state = PathBuf::from(state);
        let out = PathBuf::from(flags.text("--out").unwrap_or("calls.jsonl"));
        if store::files_of(&state).contains(&out) {
            return Err("--out: the same file as --state".to_owned());
        }
        let http = HttpClient::new(flags.text("--trust-ca").map(Path::new), 1)?;
        let client = Client::from_parts(base, key);
        Ok(Self { client, http, begin, every, time_scale, state, out })
    }
}

/// Returns the key as it stands where the flags point. Only a file's line end is no part of it.
fn key_text(flags: &Flags) -> Result<String, String> {
    match (flags.text("--key"), flags.text("--key-file"), flags.text("--key-env")) {
        (Some(key), None, None) => Ok(key.to_owned()),
        (None, Some(path), None) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("--key-file: {error}"))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        (None, None, name) => {
            let name = name.unwrap_or(DEFAULT_VARIABLE);
            secrets::variable(name)
                .map_err(|error| format!("no API key: the environment variable {name} {error}"))
        }
        _ => Err("expected one of --key, --key-file and --key-env".to_owned()),
    }
}

/// Reads a span of time as people write it.
fn span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let span = match text.strip_prefix(digits)? {
        "ms" => Duration::from_millis(number),
        "" | "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        "h" => Duration::from_secs(number.saturating_mul(3600)),
        _ => return None,
    };
    Some(span).filter(|span| !span.is_zero())
}

async fn run(set_up: SetUp) -> Result<(), String> {
    let SetUp { client, http, begin, every, time_scale, state, out } = set_up;
    let (_trigger, shutdown) = shutdown::on_ctrl_c(Duration::ZERO)
        .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let mut store = Store::open(&state, &out, begin)?;
    let mut host =
        Host { http, report: Report::new(), shutdown, time_scale, clock: MovedClock::default() };
    match keep(&mut host, &client, &mut store, every).await {
        Ok(()) | Err(Failed::Stopped) => Ok(()),
        Err(Failed::Flow(error)) => {
            Err(format!("{error}: {}", asking::who_must_act(error.action())))
        }
        Err(Failed::Store(error)) => Err(error),
    }
}

/// Brings the files up to date, again and again if that is asked for.
async fn keep(
    host: &mut Host,
    client: &Client,
    store: &mut Store,
    every: Option<Duration>,
) -> Result<(), Failed> {
    // Nine waits: four minutes or so, in which a service may be restarted.
    let retry = Retry::new().with_tries(10);
    // A key of the other mode is refused before anything is asked with it.
    if let Step::Done(Err(error)) = client.sync(store.sync().clone()).next([0; 8], clock::now()) {
        return Err(Failed::Flow(error));
    }
    let mut account = client.fetch(GetAccount).with_retry(retry);
    let account = match host.run(&mut account, |_, never| match *never {}).await {
        Ok(account) => Some(account),
        // Which says nothing of whether the key may list calls.
        Err(Failed::Flow(error)) if error.action() == Action::GrantScope => None,
        Err(failed) => return Err(failed),
    };
    let mut pace = Pace::new(Quota::READS);
    loop {
        let sync = store.sync().clone();
        let flow = match &account {
            Some(account) => client.sync_of(account, sync),
            None => client.sync(sync),
        };
        let mut flow = flow.with_retry(retry).with_pace(pace);
        let synced = host.run(&mut flow, |report, batch| {
            for item in &batch.unreadable {
                report.say(&format!("kept an unreadable call: {}", item.error()));
            }
            store.save(batch)
        });
        match (synced.await, every) {
            (Ok(()), _) => {
                let fresh = flow.progress().calls;
                host.report.end(fresh, store.calls(), store.sync().watermark());
            }
            // Whatever it is, it may be over when the next sync is due.
            (Err(Failed::Flow(error)), Some(_))
                if matches!(error.action(), Action::Retry | Action::ContactSupport) =>
            {
                host.report.say(&error.to_string());
            }
            (Err(failed), _) => return Err(failed),
        }
        let Some(every) = every else { return Ok(()) };
        pace = flow.pace().clone();
        pause(every, &host.shutdown).await?;
    }
}

async fn pause(span: Duration, shutdown: &Shutdown) -> Result<(), Failed> {
    tokio::select! {
        () = tokio::time::sleep(span) => Ok(()),
        () = shutdown.requested() => Err(Failed::Stopped),
    }
}
