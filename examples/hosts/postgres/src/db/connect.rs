//! Finding the server that leads: the hosts of an address, and all addresses of a host's name, are asked at
//! the same time.
//!
//! A machine that is stopped still accepts TCP connections, and says nothing. So no host is waited for
//! before another is asked, but for the one that led last, which has a short head start. A host that
//! answers and does not lead is asked again for as long as another one is silent.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Connect, Metrics};
use tokio::net::lookup_host;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::hint;
use super::pool::innermost;
use host::{lock, random};

/// The time to connect to a host, handshake included, unless the address has a `connect_timeout`: 2 s.
const CONNECT: Duration = Duration::from_secs(2);

/// How long the host that led last is asked alone: 250 ms.
const HEAD_START: Duration = Duration::from_millis(250);

/// How long to wait before a host that does not lead is asked again, or a statement is cancelled again: 250 ms.
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
    /// Where the server was that led when a connection was made last.
    leader: Mutex<Place>,
    doubts: Mutex<Doubts>,
}

struct OneHost {
    config: Config,
    place: String,
    /// The name to find addresses of, and the port.
    name: Option<(String, u16)>,
    /// Why the last connection was not made, at each address.
    said: Mutex<BTreeMap<Option<IpAddr>, String>>,
}

/// One address of a host, if its name has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    number: usize,
    address: Option<IpAddr>,
}

impl Place {
    const fn of(number: usize) -> Self {
        Self { number, address: None }
    }

    const fn at(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }
}

/// What comes of a question.
enum Asked {
    /// A host has these addresses.
    Found(Place, BTreeSet<IpAddr>),
    /// A server leads.
    Connected(Place, Connected),
    /// A server does not lead, or does not answer.
    Failed(Place, Error),
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
            leader: Mutex::new(Place::of(0)),
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
        let first = *lock(&self.leader);
        let mut asked = JoinSet::new();
        asked.spawn(Arc::clone(self).begin(first));
        let mut silent = vec![first];
        let mut early = timeout(HEAD_START, asked.join_next()).await.ok().flatten();
        for other in (0..self.hosts.len()).map(Place::of).filter(|other| *other != first) {
            asked.spawn(Arc::clone(self).begin(other));
            silent.push(other);
        }
        let mut failed = None;
        loop {
            let ended = match early.take() {
                Some(ended) => Some(ended),
                None => asked.join_next().await,
            };
            match ended {
                Some(Ok(Asked::Connected(place, connected))) => {
                    if std::mem::replace(&mut *lock(&self.leader), place) != place {
                        self.doubt();
                    }
                    return Ok(connected);
                }
                Some(Ok(Asked::Found(host, addresses))) => {
                    silent.retain(|other| *other != host);
                    let places = addresses.into_iter().map(|address| host.at(address));
                    for place in places.filter(|place| *place != first) {
                        asked.spawn(Arc::clone(self).ask(place, Duration::ZERO));
                        silent.push(place);
                    }
                }
                Some(Ok(Asked::Failed(place, error))) => {
                    silent.retain(|other| *other != place);
                    failed = Some(error);
                    asked.spawn(Arc::clone(self).ask(place, AGAIN));
                }
                // Nobody aborts a question, and one that panics is a defect.
                Some(Err(_)) | None => std::future::pending().await,
            }
            if silent.is_empty()
                && let Some(error) = failed.take()
            {
                return Err(error);
            }
        }
    }

    /// Asks one host, or finds its addresses if it has a name.
    async fn begin(self: Arc<Self>, place: Place) -> Asked {
        if place.address.is_none()
            && let Some(host) = self.hosts.get(place.number)
            && let Some(name) = &host.name
        {
            let found = timeout(self.limit, lookup_host(name)).await;
            let found: BTreeSet<IpAddr> =
                found.into_iter().flatten().flatten().map(|address| address.ip()).collect();
            if !found.is_empty() {
                host.is_at(&found);
                return Asked::Found(place, found);
            }
        }
        self.ask(place, Duration::ZERO).await
    }

    /// Asks one host, after a wait.
    async fn ask(self: Arc<Self>, place: Place, wait: Duration) -> Asked {
        sleep(wait).await;
        let Some(host) = self.hosts.get(place.number) else { return std::future::pending().await };
        let mut config = host.config.clone();
        if let Some(address) = place.address {
            config.hostaddr(address);
        }
        if wait.is_zero() {
            host.says(place, format!("no response within {} s", self.limit.as_secs_f64()));
        }
        match config.connect(self.tls.clone()).await {
            Ok((client, connection)) => {
                // Its end is told to whoever uses the client.
                let connection = tokio::spawn(async { drop(connection.await) });
                Asked::Connected(place, (client, connection))
            }
            Err(error) => {
                host.says(place, format!("{}{}", innermost(&error), hint(&error)));
                Asked::Failed(place, error)
            }
        }
    }

    /// Cancels what the server does for a connection, until it answers or the connection is lost.
    ///
    /// A request to cancel has no answer of its own. It may be lost, and one that comes between two
    /// statements cancels nothing: so it is repeated.
    pub(super) async fn cancel(&self, client: &Client) {
        let token = client.cancel_token();
        loop {
            let _ = timeout(self.limit, token.cancel_query(self.tls.clone())).await;
            if timeout(AGAIN, client.simple_query("")).await.is_ok() {
                return;
            }
        }
    }

    /// Doubts all connections that nobody uses: one was lost, or gave no answer in time.
    pub(super) fn doubt(&self) {
        let now = Some(Instant::now());
        let mut doubts = lock(&self.doubts);
        (doubts.since, doubts.lost) = (now, now);
    }

    /// Tells whether a connection may be used again.
    pub(super) async fn trusts(&self, client: &ClientWrapper, metrics: &Metrics) -> bool {
        let used = metrics.recycled.unwrap_or(metrics.created);
        let is_before =
            |instant: Option<Instant>| instant.is_some_and(|instant| used <= instant.into_std());
        let Doubts { since, gone, .. } = *lock(&self.doubts);
        if is_before(gone) {
            return false;
        }
        if !is_before(since) || leads(client).await {
            return true;
        }
        lock(&self.doubts).gone = since;
        false
    }

    fn is_looking(&self) -> bool {
        lock(&self.doubts).lost.is_some_and(|lost| lost.elapsed() < LOOKING)
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
                lock(&self.0.doubts).lost = Some(Instant::now());
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
        let port = only.get_ports().first().copied().unwrap_or(5432);
        let name = match (only.get_hosts(), only.get_hostaddrs()) {
            ([Host::Tcp(name)], []) if name.parse::<IpAddr>().is_err() => {
                Some((name.clone(), port))
            }
            _ => None,
        };
        Self { place: format!("{host}:{port}"), name, config: only, said: Mutex::default() }
    }

    /// Forgets what was said at addresses that are no longer its own.
    fn is_at(&self, addresses: &BTreeSet<IpAddr>) {
        let is_known = |address: &Option<IpAddr>| address.is_some_and(|at| addresses.contains(&at));
        lock(&self.said).retain(|address, _| is_known(address));
    }

    fn says(&self, place: Place, what: String) {
        lock(&self.said).insert(place.address, what);
    }

    fn said(&self) -> String {
        let said = lock(&self.said);
        let each = said.iter().map(|(address, what)| match address {
            Some(address) if said.len() > 1 => format!("{address}: {what}"),
            _ => what.clone(),
        });
        let each: Vec<String> = each.collect();
        match each.is_empty() {
            true => format!("{}: not asked", self.place),
            false => format!("{}: {}", self.place, each.join(", ")),
        }
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
