//! Checks a receiver of webhooks from outside: sends it what the protocol allows and what it forbids, and
//! says for each rule whether the receiver keeps it.
//!
//! ```text
//! WEBHOOK_SECRET=whsec_... cargo run --example receiver-check -- http://127.0.0.1:3000/hooks --stored events.log
//! holds   genuine          a genuine event is taken
//! BROKEN  old              what was signed ten minutes ago is refused
//!         signed ten minutes ago: answered 204
//! ...
//! 26 of 27 rules hold
//! ```
//!
//! A receiver takes an event by answering 2xx, and refuses a request by answering 4xx. Anything else breaks
//! a rule: 5xx lets the service send it again. So do 408, 425 and 429, which refuse a request for its time alone;
//! 410 disables the endpoint.
//!
//! `--stored PLACE` names a file, or an `http` address, that has the id of each event that the receiver has
//! stored, on a line of its own or within a line: one line for each event. It is read only. Without it, four rules
//! cannot be seen.
//! All events are pings of the account `acct_receiver_check`, or of a type that nobody knows, with ids that
//! begin with `evt_check_`.

mod endpoint;
mod rules;
mod sent;
mod stored;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use call_assistant::webhook::SigningSecret;
use clap::Parser;
use host::flags::{parse_or_exit, say, wrong};
use host::program;
use serde_json::json;
use tools::ProductFlag;
use tools::secrets::{self, Secrets};

use crate::endpoint::Endpoint;
use crate::rules::{Outcome, Verdict};
use crate::sent::Maker;
use crate::stored::Stored;

/// Sends a receiver of webhooks what it has to take and what it has to refuse, and says for each rule whether it holds. Exit
/// status: 0 all rules hold, 1 not all do or can be seen, 2 the command line is wrong.
#[derive(Parser)]
#[command(name = "receiver-check", after_help = "http://127.0.0.1:3000/hooks --stored events.log")]
struct Options {
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    secrets: Secrets,
    /// A file or an http address that has the id of each event that was stored.
    #[arg(long, value_name = "PLACE")]
    stored: Option<String>,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    product: ProductFlag,
    /// Extra CA certificates, besides the public ones.
    #[arg(long, value_name = "FILE.pem")]
    trust_ca: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options: Options = parse_or_exit();
    let set_up = || {
        let trust = options.trust_ca.as_deref();
        let endpoint = Endpoint::new(&options.url, trust)?;
        let texts = options.secrets.texts()?;
        let secrets = secrets::parse(&texts)?;
        let maker = Maker::new(options.product.get(), &texts, secrets)?;
        let stored = options.stored.as_ref().map(|place| Stored::new(place, trust)).transpose()?;
        Ok::<_, String>((endpoint, maker, stored))
    };
    let (endpoint, maker, stored) = set_up().unwrap_or_else(|message| wrong(message));
    program::run("receiver-check", async move {
        let verdicts = rules::check(&endpoint, &maker, stored.as_ref()).await;
        match options.json {
            true => say(&as_json(&verdicts).to_string()),
            false => print(&verdicts),
        }
        match verdicts.iter().all(|verdict| verdict.outcome == Outcome::Holds) {
            true => Ok(()),
            false => Err("not every rule holds"),
        }
    })
}

fn print(verdicts: &[Verdict]) {
    for Verdict { rule, says, outcome } in verdicts {
        say(&format!("{:7} {rule:16} {says}", outcome.as_str()));
        if let Outcome::Broken(why) = outcome {
            say(&format!("        {why}"));
        }
    }
    let count = |what: &str| verdicts.iter().filter(|one| one.outcome.as_str() == what).count();
    let unseen = match count(Outcome::Unseen.as_str()) {
        0 => String::new(),
        unseen => format!("; {unseen} cannot be seen without --stored"),
    };
    say(&format!("{} of {} rules hold{unseen}", count(Outcome::Holds.as_str()), verdicts.len()));
}

fn as_json(verdicts: &[Verdict]) -> serde_json::Value {
    let rules = verdicts.iter().map(|Verdict { rule, says, outcome }| {
        let why = match outcome {
            Outcome::Broken(why) => Some(why),
            Outcome::Holds | Outcome::Unseen => None,
        };
        json!({ "rule": rule, "says": says, "verdict": outcome.as_str().to_lowercase(), "why": why })
    });
    let holds = verdicts.iter().all(|verdict| verdict.outcome == Outcome::Holds);
    json!({ "holds": holds, "rules": rules.collect::<Vec<_>>() })
}

/// What a part of this program fails with.
type Fault = Box<dyn Error + Send + Sync>;

/// Makes a secret of nobody.
fn foreign() -> SigningSecret {
    SigningSecret::from_random(host::random::bytes())
}
