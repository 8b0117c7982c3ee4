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

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::ApiKey;
use call_assistant::rest::client::{Action, CallSync, Client, Pace, Retry, Step};
use call_assistant::rest::{BaseUrl, GetAccount, Quota};
use clap::Parser;
use host::clock::{self, MovedClock};
use host::flags::{parse_or_exit, wrong};
use host::program::shutdown::Shutdown;
use host::program::{self, shutdown};
use tools::client::Client as HttpClient;
use tools::{ProductFlag, secrets};

use crate::asking::{Failed, Host};
use crate::progress::Report;
use crate::store::Store;

/// Writes all calls of an account into a file, with one line of JSON per call. Each further run adds the new calls. The
/// program may be stopped at any point.
#[derive(Parser)]
#[command(
    name = "sync",
    after_help = "--api https://api.example.com --key-file key --state sync.json"
)]
struct Options {
    /// The service's base address: https://api.example.com.
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    api: BaseUrl,
    /// The API key. Other users of this machine can read a command line: except in a trial, use --key-file or --key-env.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["key_file", "key_env"])]
    key: Option<String>,
    /// A file with the key in its first line.
    #[arg(long, value_name = "FILE", conflicts_with = "key_env")]
    key_file: Option<PathBuf>,
    /// An environment variable with the key.
    #[arg(long, value_name = "NAME", default_value = "SERVICE_API_KEY")]
    key_env: String,
    /// The state of the sync, kept between runs.
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// The file of the calls.
    #[arg(long, value_name = "FILE", default_value = "calls.jsonl")]
    out: PathBuf,
    /// The interval after which the sync is repeated: 60s, 5m, 500ms.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    every: Option<Duration>,
    /// Begin with calls written at this time (RFC 3339); for a new state only.
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    since: Option<Timestamp>,
    /// Extra CA certificates, as a PEM file.
    #[arg(long, value_name = "FILE")]
    trust_ca: Option<PathBuf>,
    #[command(flatten)]
    product: ProductFlag,
    /// Multiplies the waits between requests; for tests.
    #[arg(long, value_name = "F", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
}

fn main() -> ExitCode {
    let options: Options = parse_or_exit();
    let (client, http) = set_up(&options).unwrap_or_else(|message| wrong(message));
    program::run("sync", run(options, client, http))
}

fn set_up(options: &Options) -> Result<(Client, HttpClient), String> {
    let key = ApiKey::parse_for(&options.product.get(), &key_text(options)?);
    let key = key.map_err(|error| format!("the key: {error}"))?;
    if store::files_of(&options.state).contains(&options.out) {
        return Err("--out: the same file as --state".to_owned());
    }
    let http = HttpClient::new(options.trust_ca.as_deref(), 1)?;
    Ok((Client::from_parts(options.api.clone(), key), http))
}

/// Returns the key as it stands where the flags point. Only a file's line end is no part of it.
fn key_text(options: &Options) -> Result<String, String> {
    let Options { key, key_file, key_env, .. } = options;
    match (key, key_file) {
        (Some(key), _) => Ok(key.clone()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("--key-file: {error}"))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        (None, None) => secrets::variable(key_env)
            .map_err(|error| format!("no API key: the environment variable {key_env} {error}")),
    }
}

/// Reads a span of time as people write it.
fn span(text: &str) -> Result<Duration, &'static str> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let span = digits.parse().ok().and_then(|number: u64| match text.strip_prefix(digits)? {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.saturating_mul(60))),
        "h" => Some(Duration::from_secs(number.saturating_mul(3600))),
        _ => None,
    });
    let span = span.filter(|span| !span.is_zero());
    span.ok_or("expected a span such as 60s, 5m, 2h or 500ms")
}

fn time_scale(text: &str) -> Result<f64, &'static str> {
    let scale = text.parse().ok().filter(|scale| (0.0..=1e6).contains(scale));
    scale.ok_or("expected a number from 0 to 1000000")
}

async fn run(options: Options, client: Client, http: HttpClient) -> Result<(), String> {
    let Options { every, time_scale, state, out, since, .. } = options;
    let begin = since.map_or_else(CallSync::new, CallSync::since);
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
