//! The whole service on one machine: the public REST API, the webhook sender, and a dashboard.
//!
//! ```text
//! cargo run --example service
//! ```
//!
//! `README.md` beside this file describes the dashboard's JSON and the `--data` format.
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

mod api;
mod dashboard;
mod data;
mod demo;
mod flags;
mod input;
mod scale;
mod sender;
mod store;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::api::Api;
use crate::dashboard::Dashboard;
use crate::data::KnownKey;
use crate::flags::Options;
use crate::sender::{Sender, Trust};
use crate::store::{Store, Tables, key_state};
use crate::support::flags::last_words;
use crate::support::serve::{Limits, serve};
use crate::support::{clock, log, shutdown};

/// A customer's integration keeps few connections; a stranger may keep none for long.
const PUBLIC: Limits = Limits { connections: 512, patience: Duration::from_secs(10) };

const DASHBOARD: Limits = Limits { connections: 64, patience: Duration::from_secs(10) };

fn main() {
    let options = flags::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(&options));
            // A name that is still being looked up holds nobody up, nor does an unread line.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    log::flush();
    if let Err(error) = ended {
        last_words(&format!("service: {error}"));
        std::process::exit(1);
    }
}

async fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let now = clock::now();
    let store = Arc::new(Store::default());
    let keys = match &options.data {
        Some(file) => data::load(file, &mut store.lock(), options.allow_loopback, now)
            .map_err(|error| format!("{}: {error}", file.display()))?,
        None => data::fill(&demo::data(now), &mut store.lock(), options.allow_loopback, now)?,
    };
    let trust =
        Trust::new(options.trust_ca.as_deref()).map_err(|error| format!("--trust-ca: {error}"))?;

    let (_trigger, stop) = shutdown::on_ctrl_c()?;
    let public = listen("--listen", options.listen).await?;
    let private = listen("--dashboard", options.dashboard).await?;
    let (api_address, dashboard_address) = (public.local_addr()?, private.local_addr()?);

    let sender = Sender::new(Arc::clone(&store), trust, options.scale);
    let dashboard = Dashboard::new(Arc::clone(&store), sender.outbox(), options.allow_loopback);
    let api = Api::new(Arc::clone(&store));
    let answer_api = move |request, peer| api.clone().answer(request, peer);
    let answer_dashboard = move |request, peer| dashboard.clone().answer(request, peer);
    let running = [
        tokio::spawn(serve(public, PUBLIC, answer_api, stop.clone())),
        tokio::spawn(serve(private, DASHBOARD, answer_dashboard, stop.clone())),
        tokio::spawn(sender.run(stop.clone())),
    ];

    let (api_url, dashboard_url) =
        (format!("http://{api_address}"), format!("http://{dashboard_address}"));
    let line = first_line(&api_url, &dashboard_url, &store.lock(), &keys);
    // Whoever has closed either does not want to know, and whoever does not read stops nobody.
    tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    });
    let banner = banner(&api_url, &dashboard_url, options.data.is_none());
    let _ = std::io::stderr().write_all(banner.as_bytes());
    stop.requested().await;
    log::line("stopping");
    for task in running {
        task.await?;
    }
    Ok(())
}

async fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("{flag} {address}: {error}"))
}

/// One line of JSON for whoever started this: where it listens, and with what it can be asked.
fn first_line(api: &str, dashboard: &str, tables: &Tables, keys: &[KnownKey]) -> Value {
    let accounts: Vec<Value> = tables
        .accounts()
        .map(|account| {
            let of_it = keys.iter().filter(|key| key.account_id == account.id);
            let keys: Vec<Value> = of_it.map(|key| known_key(key, tables)).collect();
            json!({ "id": account.id, "keys": keys })
        })
        .collect();
    json!({ "api": api, "dashboard": dashboard, "accounts": accounts })
}

fn known_key(key: &KnownKey, tables: &Tables) -> Value {
    let stored = tables.key_by_digest(key.secret.digest().as_bytes());
    json!({
        "name": key.name,
        "secret": key.secret.reveal(),
        "state": stored.map(|stored| key_state(stored, clock::now())),
    })
}

/// What to try, for a person.
fn banner(api: &str, dashboard: &str, demonstration: bool) -> String {
    let key = if demonstration { "the secret of acct_fjord_dental's key full" } else { "a secret" };
    format!(
        "\n  Public API   {api}\n  Dashboard    {dashboard}\n\n\
         Try, with {key} from the line above:\n\n  \
         KEY=service_live_...\n  \
         curl -i -H \"Authorization: Bearer $KEY\" {api}/v1/account\n  \
         curl -i -H \"Authorization: Bearer $KEY\" '{api}/v1/calls?limit=3'\n  \
         curl -s {dashboard}/accounts\n\n\
         Stop with Ctrl-C. Each request is a line below.\n\n"
    )
}
