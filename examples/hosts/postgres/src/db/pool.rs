//! A pool of connections, in which nothing waits without an end.

use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod,
    Runtime, TimeoutType, Timeouts,
};
use tokio::time::timeout;

use super::address::Address;
use super::class::{Class, named, named_of};
use super::connect::{Connector, Hosts};
use super::step::Breaker;
use crate::clock::DatabaseClock;

/// How long to wait for a connection of the pool, and for all of a step.
const WAIT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_secs(5);

/// The time of a step where a caller waits for the answer, and how long nobody tries again once the database
/// gives none.
const ANSWER: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(250);

/// How long a connection that was given up keeps its place in the pool: 250 ms. Its statement is cancelled for
/// as long as a step may take.
const HELD: Duration = Duration::from_millis(250);

/// How long a new connection may take, of which its server has said that it leads.
const PROBE: Duration = Duration::from_secs(1);

/// How every session is set. The server gives up a little earlier than a step, so that its answer says
/// why. A statement is planned once a connection, as tests have it planned: over forty days of
/// partitions a plan takes longer than its execution, and so does the start of a parallel worker. It is
/// planned to use an index, for what the planner knows of a queue's size is of another hour. Whoever gave
/// up has closed the connection: the server looks for that, and works for nobody.
pub const OPTIONS: &str = "-c statement_timeout=4500 -c lock_timeout=2000 \
    -c idle_in_transaction_session_timeout=10000 -c timezone=UTC -c jit=off \
    -c plan_cache_mode=force_generic_plan -c max_parallel_workers_per_gather=0 \
    -c enable_seqscan=off -c client_connection_check_interval=100";

/// The error of the function `not_erased`.
const ERASED: &str = "CA001";

/// The database. Clone it freely.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    hosts: Arc<Hosts>,
    patience: Duration,
    breaker: Arc<Breaker>,
    clock: DatabaseClock,
}

// How to connect may have a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("hosts", &self.hosts.places()).finish_non_exhaustive()
    }
}

/// The reason for a missing response of the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// There is no connection.
    #[error("{}no connection to {hosts}", named_of(error))]
    Connect {
        /// Each host and port, with what stood in the way there.
        hosts: String,
        /// What stood in the way.
        error: PoolError,
    },
    /// A statement failed.
    #[error("{}", describe(.0))]
    Statement(#[from] tokio_postgres::Error),
    /// There was no response in time. The request may have been executed.
    #[error("no response in time")]
    TimedOut,
    /// Nothing was sent, because there was no response a moment ago, or a connection was refused.
    #[error("{}", match .0 {
        Class::Silent => "the database did not respond a moment ago".to_owned(),
        class => format!("{class}, as a moment ago"),
    })]
    Unanswered(Class),
    /// A stored row is not one that this version can have written.
    #[error("{0}")]
    Row(String),
}

impl DbError {
    /// Makes the error of a row that cannot be read.
    pub fn row(error: impl fmt::Display) -> Self {
        Self::Row(error.to_string())
    }

    /// Tells whether a statement was refused because its account was erased. Nothing changes that.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        match self {
            Self::Statement(error) => error.code().is_some_and(|code| code.code() == ERASED),
            _ => false,
        }
    }

    /// Tells whether the database refused a connection or did not answer. A pool that is used up says
    /// nothing of the database.
    pub(super) fn is_unreachable(&self) -> bool {
        match self {
            Self::Connect { error, .. } => !matches!(error, PoolError::Timeout(TimeoutType::Wait)),
            _ => false,
        }
    }
}

impl Database {
    /// Prepares to connect to `url`, with so many connections at most. Nothing is connected yet.
    ///
    /// # Errors
    /// The URL is not one of a database.
    pub fn new(url: &str, connections: usize) -> Result<Self, String> {
        Self::at(&url.into(), connections)
    }

    /// Prepares to connect as [`new`](Self::new) does, where a private authority may be believed.
    ///
    /// # Errors
    /// The URL is not one of a database, or there is no certificate in the authority's file.
    pub fn at(address: &Address, connections: usize) -> Result<Self, String> {
        let (mut config, tls) = address.read()?;
        config
            .keepalives_idle(Duration::from_secs(30))
            .tcp_user_timeout(STEP)
            .application_name("call-assistant");
        let options = match config.get_options() {
            Some(given) => format!("{OPTIONS} {given}"),
            None => OPTIONS.to_owned(),
        };
        config.options(options);
        let hosts = Hosts::new(&config, tls)?;
        let manager = Manager::from_connect(
            config,
            Connector(Arc::clone(&hosts)),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let judge = Arc::clone(&hosts);
        let trusted = Hook::async_fn(move |client, metrics| {
            let judge = Arc::clone(&judge);
            Box::pin(async move {
                match judge.trusts(client, metrics).await {
                    true => Ok(()),
                    false => {
                        Err(HookError::message("the server is down, or is no longer the leader"))
                    }
                }
            })
        });
        let pool = Pool::builder(manager)
            .max_size(connections)
            // The connection that was used last: what its server process has in its caches is still there.
            .queue_mode(QueueMode::Lifo)
            .pre_recycle(trusted)
            .timeouts(Timeouts {
                wait: Some(WAIT),
                create: Some(hosts.limit()),
                recycle: Some(Duration::from_secs(1)),
            })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| error.to_string())?;
        let breaker = Arc::new(Breaker::new(Duration::ZERO));
        Ok(Self { pool, hosts, patience: STEP, breaker, clock: address.clock.clone() })
    }

    /// Returns the current instant by its clock, as was last heard of it.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> &DatabaseClock {
        &self.clock
    }

    /// Returns the same database for callers that prefer an error to a wait: its steps are short, and are
    /// refused at once for a moment after the database gave no answer. A step that is slow is only that:
    /// then the database is asked for something that is not.
    #[must_use]
    pub fn answering(self) -> Self {
        Self { patience: ANSWER, breaker: Arc::new(Breaker::new(PAUSE)), ..self }
    }

    /// Returns the same database for steps without a time limit. Each statement still has its own.
    #[must_use]
    pub fn unhurried(&self) -> Self {
        Self { patience: Duration::MAX, ..self.clone() }
    }

    /// Tells whether callers prefer an error to a wait.
    pub(super) fn is_answering(&self) -> bool {
        self.patience == ANSWER
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Tells whether the database answers at all, on a connection of its own.
    pub(super) async fn answers(&self) -> bool {
        let connected = timeout(PROBE, self.hosts.connect()).await;
        connected.is_ok_and(|connected| connected.is_ok())
    }

    /// Opens a connection that is none of the pool's.
    pub(super) async fn beside(&self) -> Option<tokio_postgres::Client> {
        Some(self.hosts.connect().await.ok()?.0)
    }

    /// Returns how many connections are in use, and how many callers wait for one.
    pub(crate) fn load(&self) -> [usize; 2] {
        let status = self.pool.status();
        [status.size.saturating_sub(status.available), status.waiting]
    }

    /// Takes a connection, for what is no step.
    ///
    /// # Errors
    /// None is to be had in time.
    pub async fn session(&self) -> Result<Session, DbError> {
        let connection = self.pool.get().await.map_err(|error| {
            let hosts = match &error {
                PoolError::Timeout(TimeoutType::Wait) => {
                    format!("{}: all connections of this process are in use", self.hosts.places())
                }
                _ => self.hosts.said(),
            };
            DbError::Connect { hosts, error }
        })?;
        Ok(Session { connection: Some(connection), hosts: Arc::clone(&self.hosts) })
    }

    /// Doubts the connections that nobody uses.
    pub(super) fn doubt(&self) {
        self.hosts.doubt();
    }
}

/// A connection. It is closed, and its transaction with it, unless its step reaches
/// [`keep`](Self::keep): one that broke off half way through is never used again.
pub struct Session {
    connection: Option<Object>,
    hosts: Arc<Hosts>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// Gives the connection back, for the next step.
    pub fn keep(mut self) {
        self.connection = None;
    }

    /// Closes the connection: its server has answered, and does nothing more for it.
    pub(super) fn close(mut self) {
        self.connection.take().map(Object::take);
    }
}

impl Deref for Session {
    type Target = Object;

    #[allow(clippy::expect_used, reason = "only `keep`, `close` and `drop` take it")]
    fn deref(&self) -> &Object {
        self.connection.as_ref().expect("a session has its connection")
    }
}

impl DerefMut for Session {
    #[allow(clippy::expect_used, reason = "only `keep`, `close` and `drop` take it")]
    fn deref_mut(&mut self) -> &mut Object {
        self.connection.as_mut().expect("a session has its connection")
    }
}

impl Drop for Session {
    /// Cancels what the server still does, then closes the connection. A COMMIT that waits for a standby
    /// would wait on without its client. The connection's place in the pool is free when that is done, or
    /// after a moment: a machine that is stopped must not keep all places from the server that leads next.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !connection.is_closed() => {
                let hosts = Arc::clone(&self.hosts);
                runtime.spawn(async move {
                    let cancelled = timeout(HELD, hosts.cancel(&connection)).await;
                    let client = Object::take(connection);
                    if cancelled.is_err() {
                        let _ = timeout(STEP, hosts.cancel(&client)).await;
                    }
                });
            }
            _ => drop(Object::take(connection)),
        }
    }
}

/// Describes an error with its class and the server's own message, which the error's text leaves out.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{}{}: {}", named(db), db.code().code(), db.message()),
        None => innermost(error),
    }
}

/// Returns the cause behind all causes, which is what a person needs.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
