//! Receives webhooks at a customer's endpoint: loses no event and acts on no event twice.
//!
//! `cargo run --example receiver -- --secret whsec_... --journal events.journal`
//!
//! # What happens to a delivery
//!
//! 1. **The exact bytes are read**, up to a maximum size and within a maximum time, and verified
//!    before anything else reads them.
//! 2. **The event is written to the journal, and the journal is synced to the disk.** One thread does
//!    this for all waiting deliveries together. The same thread knows which events the journal has:
//!    of two simultaneous deliveries of one event, one is the duplicate.
//! 3. **The sender gets its response**: 204, and may forget the event. A delivery that cannot be
//!    stored in time is answered 503, and the sender repeats it.
//! 4. **The event is acted on** by another thread, which reads the journal from where it stopped. A
//!    slow action does not delay any sender.
//!
//! # Why nothing is done twice, and nothing is lost
//!
//! The action of this example is to append one line to a file, the journal's name with `.actions`
//! appended. That line *is* the mark that the event was acted on: it tells the event's range in the
//! journal. Effect and mark are one write, so no crash can separate them.
//!
//! | the process dies | then, once it runs again |
//! |---|---|
//! | before the journal is on disk | the sender got no 2xx and sends the event again |
//! | after that, before the answer | the sender sends it again, and it is a duplicate |
//! | before the action's line is written | the journal is read from there on, and it is written |
//! | in the middle of either line | a line without its end was never finished: it is cut off |
//! | after the action's line | its mark is found, and it is not written again |
//!
//! A host with other actions keeps the same order: it writes a table with the event's id as the key
//! in the transaction that makes the change, or sends a request with the event's id as the
//! idempotency key. Standard output only shows the actions: each line is printed after it is
//! written, so a line that was not printed before a crash is still written.
//!
//! # A relay for developing a receiver
//!
//! `cargo run --example receiver -- --forward http://127.0.0.1:3000/hooks`
//!
//! With `--forward`, nothing is stored or acted on. Each request is verified, explained on the
//! terminal if it does not verify, kept as a file, and forwarded with its exact bytes and headers to
//! a program, whose answer goes to the sender: on this machine over `http`, on any over `https`, since the bodies
//! contain what callers said. An inbox says which event is a duplicate. `--replay ID` and `--since TIME` send what is kept once more, and `--sign-with-env NAME`
//! signs it again with a secret of that program: a signature expires after five minutes.
//!
//! # The files
//!
//! Both files are text, with one JSON object on each line. They contain what callers said, so protect
//! them accordingly. Only one receiver writes them at a time: a second one says so and exits. Every
//! id is kept, although no event is sent again after thirty days; a table would delete older ids.

mod actions;
mod intake;
mod journal;
mod kept;
mod relay;
mod told;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use call_assistant::Product;
use call_assistant::webhook::Verifier;
use clap::Parser;
use host::flags::{address, parse_or_exit, wrong};
use host::http::serve::{Limits, serve};
use host::log;
use host::program::{self, shutdown};
use tokio::net::TcpListener;
use tools::secrets::{self, Secrets};
use tools::{ProductFlag, files};

use crate::actions::Actions;
use crate::intake::Intake;
use crate::journal::Journal;

/// Receives webhooks: verifies, stores, answers, and prints each event. The program may be killed at any point: no event is
/// lost, and no event is acted on twice.
#[derive(Parser)]
#[command(name = "receiver", after_help = "--secret-file secrets --journal events.journal")]
struct Options {
    /// The endpoint's signing secret. Other users of this machine can read a command line: except in a trial, use
    /// --secret-file or --secret-env.
    #[arg(long, value_name = "whsec_...", conflicts_with_all = ["secret_file", "secret_env"])]
    secret: Option<String>,
    #[command(flatten)]
    secrets: Secrets,
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090", value_parser = address)]
    listen: SocketAddr,
    /// Where events are stored; FILE.actions is written next to it.
    #[arg(long, value_name = "FILE", default_value = "events.journal", conflicts_with = "forward")]
    journal: PathBuf,
    #[command(flatten)]
    product: ProductFlag,
    /// Look for the cause of a mismatch, at most once a second.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    relay: relay::Flags,
}

const LIMITS: Limits = Limits { connections: 512, patience: Duration::from_secs(5) };

/// How long to act on received events after shutdown is requested.
const LAST_ACTIONS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let Options { secret, secrets, listen, journal, product, explain, relay } = parse_or_exit();
    let set_up = SetUp::new(secret, &secrets, &product, (explain, listen, journal));
    let set_up = set_up.unwrap_or_else(|message| wrong(message));
    let relay = relay::Plan::new(relay).unwrap_or_else(|message| wrong(message));
    program::run("receiver", async {
        match relay {
            Some(plan) => relay::run(plan, set_up).await,
            None => receive(set_up).await,
        }
    })
}

/// The options of the command line.
struct SetUp {
    verifier: Verifier,
    /// The secrets' texts.
    secrets: Vec<String>,
    /// Whether mismatches are to be explained.
    explains: bool,
    product: Product,
    listen: SocketAddr,
    journal: PathBuf,
}

impl SetUp {
    fn new(
        secret: Option<String>,
        secrets: &Secrets,
        product: &ProductFlag,
        (explains, listen, journal): (bool, SocketAddr, PathBuf),
    ) -> Result<Self, String> {
        let secrets = secret.map_or_else(|| secrets.texts(), |text| Ok(vec![text]))?;
        let verifier = secrets::verifier(&secrets)?.ok_or("no signing secret")?;
        let product = product.get();
        let verifier = verifier.with_product(product.clone());
        Ok(Self { verifier, secrets, explains, product, listen, journal })
    }
}

/// Receives until shutdown, or the disk fails.
async fn receive(set_up: SetUp) -> Result<(), String> {
    let (journal, actions) = recover(&set_up)?;
    let (listener, address) = listen(set_up.listen).await?;
    let (trigger, shutdown) = shutdown::on_ctrl_c(Duration::ZERO)
        .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;

    // The journal's thread tells the actions' thread up to where there is something to read.
    let (stored, to_act) = mpsc::channel();
    let _ = stored.send(journal.len());
    let stop = trigger.clone();
    let acting = std::thread::spawn(move || {
        let ended = actions.run(&to_act);
        stop.pull();
        ended
    });
    let (intake, storing) = Intake::start(
        set_up.verifier,
        set_up.product,
        set_up.explains.then_some(set_up.secrets),
        journal,
        stored,
        trigger,
    );
    let intake = Arc::new(intake);

    log::info!("listening on http://{address}");
    let handler = {
        let intake = Arc::clone(&intake);
        move |request, _peer| {
            let intake = Arc::clone(&intake);
            async move { intake.answer(request).await }
        }
    };
    serve(listener, LIMITS, handler, shutdown).await;

    log::info!("stopping: storing and acting on the received events");
    intake.stop().await;
    let failed = "a thread of the receiver has panicked";
    let ended = tokio::task::spawn_blocking(move || {
        storing.join().map_err(|_| failed)?.and_then(|()| acting.join().map_err(|_| failed)?)
    });
    match tokio::time::timeout(LAST_ACTIONS, ended).await {
        Ok(ended) => ended.map_err(|_| failed.to_owned())?,
        Err(_) => Err("stopped during an action: the next start continues from there".to_owned()),
    }
}

/// Listens, and says where.
async fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listener = program::listen("--listen", at).await?;
    let address = listener.local_addr().map_err(|error| format!("--listen: {error}"))?;
    Ok((listener, address))
}

/// Opens both files, cuts off what a crash left half-written, and says what was found.
fn recover(set_up: &SetUp) -> Result<(Journal, Actions), String> {
    let mut path = set_up.journal.clone().into_os_string();
    path.push(".actions");
    let path = PathBuf::from(path);
    let of_actions = |error: String| format!("{}: {error}", path.display());
    let actions = files::open_to_append(&path).map_err(|error| of_actions(error.to_string()))?;
    // Before anything is read: what another receiver is writing would look half-written.
    files::hold(&actions).map_err(of_actions)?;

    let of_journal = |error: String| format!("{}: {error}", set_up.journal.display());
    let journal = Journal::open(&set_up.journal).map_err(of_journal)?;
    let actions = Actions::of(actions, &set_up.journal, journal.len()).map_err(of_actions)?;
    log::info!(
        "journal {}: {} events, {} bytes still to act on",
        set_up.journal.display(),
        journal.events(),
        journal.len().saturating_sub(actions.reached()),
    );
    Ok((journal, actions))
}
