//! The public API and the dashboard, listening.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::command_line::Serving;
use crate::db::{self, Database};
use crate::host::api::Api;
use crate::host::dashboard::Dashboard;
use crate::host::first_line;
use crate::host::rows::NewAccount;
use crate::host::store::{Refused, Store as _};
use crate::key_ring::KeyRing;
use crate::store::Postgres;
use crate::support::serve::{Limits, serve};
use crate::support::shutdown::Shutdown;
use crate::support::{clock, log};

/// A customer's integration keeps few connections; a stranger may keep none for long.
const PUBLIC: Limits = Limits { connections: 512, patience: Duration::from_secs(10) };

const DASHBOARD: Limits = Limits { connections: 64, patience: Duration::from_secs(10) };

/// What answers requests.
#[derive(Debug)]
pub(crate) struct Running {
    /// What to say on standard output.
    pub(crate) line: Value,
    /// What to say to a person.
    pub(crate) banner: String,
    tasks: [JoinHandle<()>; 2],
}

/// Adds the accounts, and answers requests until the end is asked for.
///
/// # Errors
/// The database is not as this build needs it, or an address cannot be listened on.
pub(crate) async fn start(
    database: Database,
    ring: KeyRing,
    serving: Serving,
    accounts: Vec<NewAccount>,
    stop: Shutdown,
) -> Result<Running, Box<dyn Error>> {
    db::check(&database).await?;
    let public = listen("--listen", serving.listen).await?;
    let private = listen("--dashboard", serving.dashboard).await?;
    let api_url = format!("http://{}", public.local_addr()?);
    let dashboard_url = format!("http://{}", private.local_addr()?);
    let line = first_line::for_programs(&api_url, &dashboard_url, &accounts, clock::now());
    let banner = first_line::for_people(&api_url, &dashboard_url, serving.data.is_none());

    let store = Postgres::new(database, ring);
    store.load(accounts).await.map_err(|refused| match refused {
        Refused::Unavailable(why) | Refused::Conflict(why) => why,
        other => format!("{other:?}"),
    })?;
    let api = Api::new(store.clone(), store.cursors()).until(stop.clone());
    let dashboard =
        Dashboard::new(store, serving.access, serving.allow_loopback).until(stop.clone());
    let answer_api = move |request, peer| api.clone().answer(request, peer);
    let answer_dashboard = move |request, peer| dashboard.clone().answer(request, peer);
    let tasks = [
        tokio::spawn(serve(public, PUBLIC, answer_api, stop.clone())),
        tokio::spawn(serve(private, DASHBOARD, answer_dashboard, stop)),
    ];
    Ok(Running { line, banner, tasks })
}

impl Running {
    /// Waits until the end was asked for and what had begun has been answered.
    pub(crate) async fn ended(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                log::line(&format!("a server ended: {error}"));
            }
        }
    }
}

async fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("{flag} {address}: {error}"))
}
