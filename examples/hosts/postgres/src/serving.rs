//! The public API and the dashboard, listening.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::db::Database;
use crate::health::Process;
use crate::store::Postgres;
use crate::{clock, clocks, exit, sender};
use host::auth::access::{Access, Ancestors};
use host::dashboard::Dashboard;
use host::http::api::Api;
use host::http::monitor::Monitor;
use host::http::serve::{Limits, serve};
use host::log;
use host::options::Serving;
use host::program::first_line::{self, Shown};
use host::program::listen;
use host::program::shutdown::{self, Shutdown, Trigger};
use host::program::watch::Watch;
use host::store::{NewAccount, Store as _};

/// The limits of the public API: an integration needs few connections, and idle ones are closed.
const PUBLIC: Limits = Limits { connections: 512, patience: Duration::from_secs(10) };

/// More than the requests of one owner that wait.
const DASHBOARD: Limits = Limits { connections: 256, patience: Duration::from_secs(10) };

const MONITORING: Limits = Limits { connections: 64, patience: Duration::from_secs(10) };

/// The running servers.
#[derive(Debug)]
pub(crate) struct Running {
    /// The line for standard output.
    pub(crate) line: Value,
    /// The text for people.
    pub(crate) banner: String,
    tasks: Vec<JoinHandle<()>>,
    monitoring: Option<Monitoring>,
}

/// The server of monitoring, which ends last: it tells of the end of everything else.
#[derive(Debug)]
pub(crate) struct Monitoring {
    task: JoinHandle<()>,
    end: Trigger,
}

impl Monitoring {
    /// Ends it.
    pub(crate) async fn end(self) {
        self.end.pull();
        let _ = self.task.await;
    }
}

/// Adds the accounts, and answers requests until shutdown.
///
/// # Errors
/// The database is not migrated to this build, or an address is not available.
pub(crate) async fn start(
    process: &Process,
    serving: &Serving,
    (access, ancestors): (Access, Ancestors),
    (accounts, shown): (Vec<NewAccount>, Shown),
) -> Result<Running, Box<dyn Error>> {
    let Process { database, watch, .. } = process;
    let stop = watch.stop();
    clocks::reach(database).await?;
    let public = listen("--listen", serving.listen).await?;
    let private = listen("--dashboard", serving.dashboard).await?;
    let api_url = format!("http://{}", public.local_addr()?);
    let dashboard_url = format!("http://{}", private.local_addr()?);
    let metrics = match serving.process.metrics {
        Some(address) => Some(listen("--metrics", address).await?),
        None => None,
    };
    let mut line =
        first_line::for_programs(&api_url, &dashboard_url, &accounts, shown, clock::now());
    if let Some(metrics) = &metrics {
        let url = format!("http://{}", metrics.local_addr()?);
        line.as_object_mut().map(|line| line.insert("metrics".to_owned(), url.into()));
    }
    let banner = first_line::for_people(&api_url, &dashboard_url, &line);

    let store = Postgres::of(process)?.limited(serving.endpoint_limit);
    let lacks = until(stop.clone(), store.health.look().await?);
    store.load(accounts).await.map_err(exit::refused)?;
    tokio::spawn(watch.until_shutdown("the readings of monitoring", store.health.keep_readings()));
    let api = Api::new(store.clone(), store.cursors()).until(stop.clone());
    let monitor = Monitor::new(store.clone()).with_api(api.tally()).until(stop.clone());
    let dashboard = Dashboard::new(store, access, serving.process.allow_loopback)
        .framed_by(&ancestors)
        .monitored(monitor.clone())
        .until(stop.clone());
    let answer_api = move |request, peer| api.clone().answer(request, peer);
    let answer_dashboard = move |request, peer| dashboard.clone().answer(request, peer);
    let days = until(stop.clone(), sender::add_days(Database::at(database, 1)?));
    let tasks = vec![
        tokio::spawn(watch.until_shutdown("adding days", days)),
        tokio::spawn(watch.until_shutdown("the look for keys and rights", lacks)),
        tokio::spawn(watch.until_shutdown(
            "the server of the public API",
            serve(public, PUBLIC, answer_api, stop.clone()),
        )),
        tokio::spawn(watch.until_shutdown(
            "the server of the dashboard",
            serve(private, DASHBOARD, answer_dashboard, stop.clone()),
        )),
    ];
    let monitoring = metrics.map(|metrics| monitoring(metrics, monitor, watch));
    Ok(Running { line, banner, tasks, monitoring })
}

impl Running {
    /// Waits until shutdown was requested, what had begun has been answered, and the other has ended.
    pub(crate) async fn ended(self, other: impl Future) {
        let tasks = self.tasks;
        let servers = async {
            for task in tasks {
                if let Err(error) = task.await {
                    log::warn!(%error, "a server ended");
                }
            }
        };
        tokio::join!(servers, other);
        if let Some(monitoring) = self.monitoring {
            monitoring.end().await;
        }
    }
}

/// Runs a loop until shutdown.
pub(crate) async fn until(stop: Shutdown, task: impl Future<Output = ()>) {
    tokio::select! {
        () = task => {}
        () = stop.requested() => {}
    }
}

/// Answers `/metrics`, `/healthz` and `/readyz`, and nothing else.
fn monitoring(listener: TcpListener, monitor: Monitor<Postgres>, watch: &Watch) -> Monitoring {
    let answer = move |request, peer| monitor.clone().answer(request, peer);
    let (end, stop) = shutdown::manual();
    let serving = serve(listener, MONITORING, answer, stop);
    let task = tokio::spawn(watch.until_shutdown("the server of the metrics", serving));
    Monitoring { task, end }
}

/// Looks for keys and rights that are missing, in a process that answers nothing but monitoring, and returns where it listens
/// for that, if it has an address.
///
/// # Errors
/// The address is not available, or the database is not migrated to this build.
pub(crate) async fn monitor(
    process: &Process,
    address: Option<SocketAddr>,
) -> Result<Option<(SocketAddr, Monitoring)>, Box<dyn Error>> {
    let listener = match address {
        Some(address) => Some(listen("--metrics", address).await?),
        None => None,
    };
    clocks::reach(&process.database).await?;
    let (store, watch) = (Postgres::of(process)?, &process.watch);
    let lacks = until(watch.stop().clone(), store.health.look().await?);
    tokio::spawn(watch.until_shutdown("the look for keys and rights", lacks));
    let Some(listener) = listener else { return Ok(None) };
    let address = listener.local_addr()?;
    tokio::spawn(watch.until_shutdown("the readings of monitoring", store.health.keep_readings()));
    let monitor = Monitor::new(store).until(watch.stop().clone());
    Ok(Some((address, monitoring(listener, monitor, watch))))
}
