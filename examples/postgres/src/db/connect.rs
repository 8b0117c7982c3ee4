//! Finding the server that leads: the hosts of an address are asked at the same time.
//!
//! A machine that is stopped still accepts TCP connections, and says nothing. So no host is waited for
//! before another is asked, but for the one that led last, which has a short head start. A host that
//! answers and does not lead is asked again for as long as another one is silent.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Connect, Metrics};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::hint;
use super::pool::innermost;
use host::random;

/// The time to connect to a host, handshake included, unless the address has a `connect_timeout`: 2 s.
const CONNECT: Duration = Duration::from_secs(2);

/// How long the host that led last is asked alone: 250 ms.
const HEAD_START: Duration = Duration::from_millis(250);

/// How long to wait before a host that does not lead is asked again: 250 ms.
const AGAIN: Duration = Duration::from_millis(250);

/// The longest wait before a connection is made while the server is being looked for: 200 ms. Each waits
/// for a random part of it, so that not all processes come at the same moment.
const SPREAD: Duration = Duration::from_millis(200);

/// How long after a connection was lost the server is being looked for: 3 s.
const LOOKING: Duration = Duration::from_secs(3);

/// How long a doubtful connection may take to prove itself: 250 ms.
const PROOF: Duration = Duration::from_millis(250);

/// The hosts of an address.
pub(super) struct Hosts {
    hosts: Vec<OneHost>,
    tls: MakeRustlsConnect,
    limit: Duration,
    /// The host that led when a connection was made last.
    leader: AtomicUsize,
    doubts: Mutex<Doubts>,
}

struct OneHost {
    config: Config,
    place: String,
    /// Why the last connection was not made.
    said: Mutex<String>,
}

/// What is known of connections that nobody uses.
#[derive(Clone, Copy, Debug, Default)]
struct Doubts {
    /// What was last used before has to prove that its server answers, and leads.
    since: Option<Instant>,
    /// What was last used before is of a server that did not.
    gone: Option<Instant>,
    /// When the last connection was lost, or could not be made.
    lost: Option<Instant>,
}

type Connected = (Client, JoinHandle<()>);

impl Hosts {
    /// Prepares to ask the hosts of an address.
    pub(super) fn new(config: &Config, tls: MakeRustlsConnect) -> Result<Arc<Self>, String> {
        let (hosts, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
        let (count, ports) = (hosts.max(addresses), config.get_ports().len());
        if count == 0 {
            return Err("--database: no host: expected postgresql://user@host/name".into());
        }
        for (what, found) in [("hosts", hosts), ("addresses", addresses)] {
            if found != 0 && found != count {
                return Err(format!("--database: {found} {what} for {count} servers"));
            }
        }
        if ports > 1 && ports != count {
            return Err(format!(
                "--database: {ports} ports for {count} hosts: expected one for each, or one for all"
            ));
        }
        let limit = config.get_connect_timeout().copied().unwrap_or(CONNECT);
        Ok(Arc::new(Self {
            hosts: (0..count).map(|number| OneHost::new(config, number, limit)).collect(),
            tls,
            limit,
            leader: AtomicUsize::new(0),
            doubts: Mutex::default(),
        }))
    }

    /// Returns the longest time that a connection may take.
    pub(super) fn limit(&self) -> Duration {
        self.limit.saturating_add(SPREAD)
    }

    /// Returns what each host said last.
    pub(super) fn said(&self) -> String {
        let said: Vec<String> = self.hosts.iter().map(OneHost::said).collect();
        said.join("; ")
    }

    /// Returns where the hosts are, without who connects.
    pub(super) fn places(&self) -> String {
        let places: Vec<&str> = self.hosts.iter().map(|host| host.place.as_str()).collect();
        places.join(", ")
    }

    /// Connects to the server that leads.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<Connected, Error> {
        let first = self.leader.load(Ordering::Relaxed);
        let mut asked = JoinSet::new();
        asked.spawn(Arc::clone(self).ask(first, Duration::ZERO));
        let mut early = timeout(HEAD_START, asked.join_next()).await.ok().flatten();
        for other in (0..self.hosts.len()).filter(|other| *other != first) {
            asked.spawn(Arc::clone(self).ask(other, Duration::ZERO));
        }
        let mut silent: Vec<usize> = (0..self.hosts.len()).collect();
        loop {
            let ended = match early.take() {
                Some(ended) => Some(ended),
                None => asked.join_next().await,
            };
            match ended {
                Some(Ok((number, Ok(connected)))) => {
                    if self.leader.swap(number, Ordering::Relaxed) != number {
                        self.doubt();
                    }
                    return Ok(connected);
                }
                Some(Ok((number, Err(error)))) => {
                    silent.retain(|other| *other != number);
                    if silent.is_empty() {
                        return Err(error);
                    }
                    asked.spawn(Arc::clone(self).ask(number, AGAIN));
                }
                // Nobody aborts a question, and one that panics is a defect.
                Some(Err(_)) | None => std::future::pending().await,
            }
        }
    }

    /// Asks one host, after a wait.
    async fn ask(
        self: Arc<Self>,
        number: usize,
        wait: Duration,
    ) -> (usize, Result<Connected, Error>) {
        sleep(wait).await;
        let Some(host) = self.hosts.get(number) else { return std::future::pending().await };
        if wait.is_zero() {
            host.says(format!("no response within {} s", self.limit.as_secs_f64()));
        }
        let connected = host.config.connect(self.tls.clone()).await;
        let connected = connected
            .inspect_err(|error| host.says(format!("{}{}", innermost(error), hint(error))))
            .map(|(client, connection)| {
                // Its end is told to whoever uses the client.
                (client, tokio::spawn(async { drop(connection.await) }))
            });
        (number, connected)
    }

    /// Ends what the server does for a connection.
    pub(super) async fn cancel(&self, client: &Client) {
        let token = client.cancel_token();
        let _ = timeout(PROOF, token.cancel_query(self.tls.clone())).await;
    }

    /// Doubts all connections that nobody uses: one was lost, or gave no answer in time.
    pub(super) fn doubt(&self) {
        let now = Some(Instant::now());
        let mut doubts = self.doubts();
        (doubts.since, doubts.lost) = (now, now);
    }

    /// Tells whether a connection may be used again.
    pub(super) async fn trusts(&self, client: &ClientWrapper, metrics: &Metrics) -> bool {
        let used = metrics.recycled.unwrap_or(metrics.created);
        let is_before =
            |instant: Option<Instant>| instant.is_some_and(|instant| used <= instant.into_std());
        let Doubts { since, gone, .. } = *self.doubts();
        if is_before(gone) {
            return false;
        }
        if !is_before(since) || leads(client).await {
            return true;
        }
        self.doubts().gone = since;
        false
    }

    fn doubts(&self) -> MutexGuard<'_, Doubts> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_looking(&self) -> bool {
        self.doubts().lost.is_some_and(|lost| lost.elapsed() < LOOKING)
    }
}

/// Tells whether the server of a connection answers in time, and accepts writes.
pub(super) async fn leads(client: &Client) -> bool {
    let asked = timeout(PROOF, client.simple_query("SHOW transaction_read_only")).await;
    asked.into_iter().flatten().flatten().any(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0) == Some("off"),
        _ => false,
    })
}

/// What the pool makes its connections with.
pub(super) struct Connector(pub(super) Arc<Hosts>);

impl Connect for Connector {
    fn connect(
        &self,
        _config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + '_>> {
        Box::pin(async {
            if self.0.is_looking() {
                let part = f64::from(u8::from_le_bytes(random::bytes())) / f64::from(u8::MAX);
                sleep(SPREAD.mul_f64(part)).await;
            }
            let connected = self.0.connect().await;
            if connected.is_err() {
                self.0.doubts().lost = Some(Instant::now());
            }
            connected
        })
    }
}

impl OneHost {
    fn new(config: &Config, number: usize, limit: Duration) -> Self {
        let only = of_one(config, number, limit);
        let host = match (only.get_hosts(), only.get_hostaddrs()) {
            ([Host::Tcp(name)], _) => name.clone(),
            ([Host::Unix(folder)], _) => folder.display().to_string(),
            (_, [address, ..]) => address.to_string(),
            _ => "the database".to_owned(),
        };
        let place = format!("{host}:{}", only.get_ports().first().copied().unwrap_or(5432));
        Self { config: only, place, said: Mutex::new("not asked".to_owned()) }
    }

    fn says(&self, what: String) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}: {said}", self.place)
    }
}

/// Copies how to connect, to one of the hosts. This program writes, so it needs the host that leads.
fn of_one(config: &Config, number: usize, limit: Duration) -> Config {
    let mut only = Config::new();
    match config.get_hosts().get(number) {
        Some(Host::Tcp(name)) => _ = only.host(name),
        Some(Host::Unix(folder)) => _ = only.host_path(folder),
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(number) {
        only.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(number).or_else(|| ports.first()) {
        only.port(*port);
    }
    if let Some(user) = config.get_user() {
        only.user(user);
    }
    if let Some(password) = config.get_password() {
        only.password(password);
    }
    if let Some(name) = config.get_dbname() {
        only.dbname(name);
    }
    if let Some(options) = config.get_options() {
        only.options(options);
    }
    if let Some(name) = config.get_application_name() {
        only.application_name(name);
    }
    if let Some(time) = config.get_tcp_user_timeout() {
        only.tcp_user_timeout(*time);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        only.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        only.keepalives_retries(retries);
    }
    only.connect_timeout(limit)
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    only
}
