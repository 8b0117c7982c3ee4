//! The hosts, each over a database of its own.

mod naive;
mod ours;
mod plain;
mod smith;

use std::fmt;
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};

use crate::receiver::{ACCEPTED, Receiver, micros};
use crate::server::Database;

pub(crate) const ENDPOINTS: u32 = 100;

/// How many accounts have these endpoints, in turns: one alone gets half of a sender's slots at most.
const ACCOUNTS: u32 = 4;

/// A way to send webhooks from PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    /// Claims and finishes with SKIP LOCKED in batches of 64 over 4 connections. It sends nothing.
    Loop,
    /// The durable host, with so many senders.
    Ours(u8),
    /// One transaction to begin and one to finish, over 16 connections, with this library.
    Naive,
    /// `webhooksmith`.
    Smith,
}

impl Host {
    pub(crate) const ALL: [Self; 6] =
        [Self::Loop, Self::Ours(1), Self::Ours(2), Self::Ours(4), Self::Naive, Self::Smith];
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop => f.write_str("plain loop, no HTTP"),
            Self::Ours(1) => f.write_str("ours, 1 sender"),
            Self::Ours(senders) => write!(f, "ours, {senders} senders"),
            Self::Naive => f.write_str("naive"),
            Self::Smith => f.write_str("webhooksmith"),
        }
    }
}

/// One of them at work.
#[derive(Debug)]
pub(crate) enum Running {
    Loop(plain::Plain),
    Ours(ours::Ours),
    Naive(naive::Naive),
    Smith(smith::Smith),
}

impl Running {
    /// Makes the tables and the endpoints: so many that answer, and so many that never do.
    pub(crate) async fn prepare(
        host: Host,
        database: &Database,
        receiver: &Receiver,
        endpoints: u32,
        silent: u32,
    ) -> Self {
        let urls: Vec<&str> = (0..endpoints)
            .map(|_| receiver.url.as_str())
            .chain((0..silent).map(|_| receiver.silent_url.as_str()))
            .collect();
        match host {
            Host::Loop => Self::Loop(plain::Plain::prepare(database).await),
            Host::Ours(senders) => Self::Ours(ours::Ours::prepare(database, &urls, senders).await),
            Host::Naive => Self::Naive(naive::Naive::prepare(database, &urls).await),
            Host::Smith => Self::Smith(smith::Smith::prepare(database, &urls).await),
        }
    }

    /// Accepts so many events, each for one of the endpoints that answer, in one transaction.
    pub(crate) async fn insert(&mut self, count: u32) {
        match self {
            Self::Loop(host) => host.insert(count).await,
            Self::Ours(host) => host.insert(count, 0..ENDPOINTS).await,
            Self::Naive(host) => host.insert(count, 0..ENDPOINTS).await,
            Self::Smith(host) => host.insert(count, 0..ENDPOINTS).await,
        }
    }

    /// Accepts so many events for the endpoints that never answer.
    pub(crate) async fn insert_dead(&mut self, count: u32) {
        let silent = ENDPOINTS..ENDPOINTS + 16;
        match self {
            Self::Loop(_) => {}
            Self::Ours(host) => host.insert(count, silent).await,
            Self::Naive(host) => host.insert(count, silent).await,
            Self::Smith(host) => host.insert(count, silent).await,
        }
    }

    /// Accepts so many events, and leaves it to [`go`](Self::go) to have them sent.
    pub(crate) async fn load(&mut self, count: u32) {
        match self {
            Self::Ours(host) => {
                host.insert(count, 0..ENDPOINTS).await;
                host.hold_back().await;
                host.start().await;
            }
            host => host.insert(count).await,
        }
    }

    /// Lets what is loaded be sent.
    pub(crate) async fn go(&mut self) {
        match self {
            Self::Ours(host) => host.let_go().await,
            host => host.start().await,
        }
    }

    /// Starts to send.
    pub(crate) async fn start(&mut self) {
        match self {
            Self::Loop(host) => host.start(),
            Self::Ours(host) => host.start().await,
            Self::Naive(host) => host.start(),
            Self::Smith(host) => host.start().await,
        }
    }

    /// Waits until everything is sent, and stored as sent.
    pub(crate) async fn until_done(&self, receiver: &Receiver, deliveries: u32) {
        let limit = Instant::now() + Duration::from_secs(600);
        while !matches!(self, Self::Loop(_)) && receiver.count() < deliveries {
            assert!(Instant::now() < limit, "{} of {deliveries} came", receiver.count());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        loop {
            let pending = match self {
                Self::Loop(host) => host.pending().await,
                Self::Ours(host) => host.pending().await,
                Self::Naive(host) => host.pending().await,
                Self::Smith(host) => host.pending().await,
            };
            if pending == 0 {
                return;
            }
            assert!(Instant::now() < limit, "{pending} are pending");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn stop(self) {
        match self {
            Self::Loop(host) => host.tasks.shutdown().await,
            Self::Ours(host) => host.stop(),
            Self::Naive(host) => host.tasks.shutdown().await,
            Self::Smith(host) => host.stop().await,
        }
    }
}

/// Tasks that end together.
#[derive(Debug, Default)]
pub(crate) struct Tasks(tokio::task::JoinSet<()>);

impl Tasks {
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    async fn shutdown(mut self) {
        self.0.shutdown().await;
    }
}

fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now()).floor_to_micros()
}

/// About a kilobyte that says when it was accepted.
fn message() -> String {
    format!("{ACCEPTED}{};{}", micros(), "0123456789abcdef".repeat(50))
}

/// An event of about a kilobyte.
fn event(account: &str, number: u64) -> EventBody {
    let account = AccountId::parse(account).expect("an id");
    let version = ApiVersion::parse("2026-01-15").expect("a version");
    let id = EventId::derived(&["bench", &number.to_string(), &micros().to_string()]);
    let event = NewEvent::new(id, account, version, Origin::voice(), now());
    event.ping(message()).expect("a short message")
}
