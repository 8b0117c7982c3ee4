//! The whole service on one machine: the public REST API, the webhook sender, and a dashboard.
//!
//! ```text
//! cargo run --example service
//! ```
//!
//! All but the store and the sender is in `examples/hosts/kit`, which a durable host shares. `README.md`
//! in this folder describes the dashboard's JSON and the `--data` format.
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::rest::server::CursorKeys;
use clap::Parser;

use call_assistant_service::faults::Faults;
use call_assistant_service::local::Local;
use call_assistant_service::sandbox::{self, Sandbox};
use call_assistant_service::sender::{Pace, Sender};
use call_assistant_service::store::Store;
use host::dashboard::Dashboard;
use host::data::{self, demo};
use host::http::api::Api;
use host::http::monitor::Monitor;
use host::http::serve::{Limits, serve};
use host::options::{Sending, Serving};
use host::program::first_line::{self, Shown};
use host::program::watch::Watch;
use host::program::{self, listen, shutdown};
use host::store::{Refused, Store as _};
use host::{clock, flags, log, post, random, terminal};

/// The limits of the public API: an integration needs few connections, and idle ones are closed.
const PUBLIC: Limits = Limits { connections: 512, patience: Duration::from_secs(10) };

const DASHBOARD: Limits = Limits { connections: 256, patience: Duration::from_secs(10) };

/// The whole service on one machine: the public REST API, the webhook sender, and a dashboard. The first line on standard
/// output is JSON: both addresses, and the keys. Without --data it has demonstration data.
#[derive(Parser)]
#[command(name = "service", after_help = "--allow-loopback-endpoints --time-scale 0.001")]
struct Options {
    #[command(flatten)]
    serving: Serving,
    #[command(flatten)]
    sending: Sending,
}

fn main() -> ExitCode {
    let options: Options = flags::parse_or_exit();
    options.serving.process.log.set();
    program::run("service", run(options))
}

async fn run(Options { serving, sending }: Options) -> Result<(), Box<dyn Error>> {
    let Serving { process, endpoint_limit, .. } = &serving;
    let (access, ancestors) = serving.access_or_exit();
    let (now, allow_loopback) = (clock::now(), process.allow_loopback);
    let accounts = match &serving.data {
        Some(file) => data::load(file, allow_loopback, now)
            .map_err(|error| format!("{}: {error}", file.display()))?,
        None => data::read(&demo::data(now), allow_loopback, now)?,
    };
    let client = post::Client::new(sending.trust_ca.as_deref())?;

    let (trigger, stop) = shutdown::on_ctrl_c(Duration::ZERO)?;
    let public = listen("--listen", serving.listen).await?;
    let private = listen("--dashboard", serving.dashboard).await?;
    let metrics = match process.metrics {
        Some(address) => Some(listen("--metrics", address).await?),
        None => None,
    };
    let api_url = format!("http://{}", public.local_addr()?);
    let dashboard_url = format!("http://{}", private.local_addr()?);
    let mut line =
        first_line::for_programs(&api_url, &dashboard_url, &accounts, Shown::Secrets, now);
    if let Some(metrics) = &metrics {
        line["metrics"] = format!("http://{}", metrics.local_addr()?).into();
    }

    let tables = Arc::new(Store::new(*endpoint_limit));
    let faults = Faults::default();
    let pace = Pace { scale: sending.scale, per_second: sending.per_second };
    let sender = Sender::new(Arc::clone(&tables), client, pace, faults.clone());
    let sandbox = Sandbox { faults, mover: sender.mover(), store: Arc::clone(&tables) };
    let store = Local::new(tables, sender.load());
    store.load(accounts).await.map_err(|refused| match refused {
        Refused::Conflict(why) => why,
        other => format!("{other:?}"),
    })?;
    // The key of cursors is that of this process, so cursors expire with it.
    let api = Api::new(store.clone(), CursorKeys::new(1, random::bytes())).until(stop.clone());
    let monitor = Monitor::new(store.clone()).with_api(api.tally()).until(stop.clone());
    let dashboard = Dashboard::extended(store, sandbox.clone(), access, allow_loopback)
        .framed_by(&ancestors)
        .monitored(monitor.clone())
        .until(stop.clone());
    let answer_api =
        move |request, peer| sandbox::answer(api.clone(), sandbox.clone(), request, peer);
    let answer_dashboard = move |request, peer| dashboard.clone().answer(request, peer);
    let mut running = vec![
        tokio::spawn(serve(public, PUBLIC, answer_api, stop.clone())),
        tokio::spawn(serve(private, DASHBOARD, answer_dashboard, stop.clone())),
        tokio::spawn(sender.run(Watch::new(trigger, stop.clone()))),
    ];

    if let Some(metrics) = metrics {
        let answer = move |request, peer| monitor.clone().answer(request, peer);
        running.push(tokio::spawn(serve(metrics, DASHBOARD, answer, stop.clone())));
    }
    let banner = first_line::for_people(&api_url, &dashboard_url, &line);
    // A closed or unread stream must not stop the host.
    tokio::task::spawn_blocking(move || terminal::print(line));
    log::banner(&banner);
    log::info!(
        version = env!("CARGO_PKG_VERSION"),
        listens = format!("{api_url},{dashboard_url}"),
        "started",
    );
    stop.requested().await;
    log::info!("stopping");
    for task in running {
        task.await?;
    }
    Ok(())
}
