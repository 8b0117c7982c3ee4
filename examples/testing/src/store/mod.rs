//! The port over rows in memory that behave as PostgreSQL's do at read committed, and that misbehave on purpose.
//!
//! ```text
//! let store = Store::new(Time::default(), Arc::new(Calm));
//! store.add_endpoint(1, endpoint);
//! let change = store.change().await?;       // a transaction: its rows are locked, and others wait for it
//! ```
//!
//! Each statement sees what is committed when it begins, waits for the locks of others in their order, and looks
//! again at a row for which it has waited. Two that wait for each other are a deadlock, which ends one of them.
//! Each statement is a point of the schedule: a [`Director`] says how long it takes, and whether it fails. Nothing
//! needs a runtime.

mod change;
mod leases;
mod locks;
mod news;
mod statements;
mod tables;
mod time;

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use host::rows::{Changes, Done, Failure, SetLimit};
use host::store::plan::Plan;

use crate::judge;

pub use self::change::Tx;
pub use self::leases::Leased;
pub use self::news::Seen;
pub use self::tables::{DeliveryRow, EndpointRow, Place, RecoveryRow, Row, Tables};
pub use self::time::Time;

/// How long a statement waits for a lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// A step at which a store can be made to wait or to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Begin,
    LockPending,
    LockEnded,
    ReadEndpoints,
    LockEndpoints,
    LockDue,
    LockDisabled,
    LockRecovery,
    Count,
    LockMissed,
    Write,
    Commit,
    News,
    Limits,
    ReadDeliveries,
    Recoveries,
    Accept,
    Renew,
    Live,
    Claim,
    Release,
    /// It waits for another's lock.
    Wait,
}

/// A fault of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused, and has not happened.
    Refused,
    /// A commit has happened, and its answer is lost.
    Lost,
    /// Before it happens, the store goes back by so many commits: all connections are closed.
    GoesBack(usize),
    /// Before it happens, another server leads, whose clock is so many milliseconds ahead: all connections are closed.
    Clock(i64),
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    pub wait: Duration,
    pub fault: Option<Fault>,
}

/// What decides how steps go.
pub trait Director: Debug + Send + Sync {
    /// Decides about a step of a process.
    fn decide(&self, process: usize, step: Step) -> Verdict;
}

/// A director of a store in which nothing fails, for a runtime with time of its own.
#[derive(Clone, Copy, Debug)]
pub struct Calm;

impl Director for Calm {
    fn decide(&self, _: usize, _: Step) -> Verdict {
        Verdict::default()
    }
}

/// A store, as one process has it. Clones share the rows.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
    /// The sender whose store it is. 0: it is no sender's.
    process: usize,
}

#[derive(Debug)]
struct Shared {
    tables: Mutex<Tables>,
    director: Arc<dyn Director>,
    time: Time,
    /// The instant at which time began.
    start: Timestamp,
    /// By how many milliseconds the clock of the server that leads is ahead.
    ahead: AtomicI64,
    /// How many deliveries a step of a recovery looks at.
    window: usize,
}

impl Store {
    /// Creates an empty store.
    pub fn new(time: Time, director: Arc<dyn Director>, start: Timestamp, window: usize) -> Self {
        let tables = Mutex::default();
        let shared = Shared { tables, director, time, start, ahead: AtomicI64::new(0), window };
        Self { shared: Arc::new(shared), process: 0 }
    }

    /// Returns the store as a sender has it.
    #[must_use]
    pub fn of(&self, process: usize) -> Self {
        Self { process, ..self.clone() }
    }

    /// Tells the judge of a change.
    fn note(&self, tables: &mut Tables, tx: u64, change: judge::Change) {
        let process = (self.process != 0).then(|| format!("sender-{}", self.process));
        tables.note(tx, process, self.now(), change);
    }

    /// Returns all rows.
    pub fn tables(&self) -> MutexGuard<'_, Tables> {
        self.shared.tables.lock().unwrap()
    }

    /// Returns the store's time.
    pub fn now(&self) -> Timestamp {
        self.by(self.ahead())
    }

    /// Returns the time by a clock that is so many milliseconds ahead.
    pub fn by(&self, ahead: i64) -> Timestamp {
        self.shared.start.saturating_add(self.span(ahead)).floor_to_micros()
    }

    /// Returns by how many milliseconds the store's clock is ahead.
    pub fn ahead(&self) -> i64 {
        self.shared.ahead.load(Ordering::Relaxed)
    }

    /// Returns the store's time since the start.
    pub fn since_start(&self) -> Duration {
        self.span(self.ahead())
    }

    fn span(&self, ahead: i64) -> Duration {
        let (now, by) = (self.shared.time.now(), Duration::from_millis(ahead.unsigned_abs()));
        if ahead < 0 { now.saturating_sub(by) } else { now + by }
    }

    /// Adds an endpoint, outside of any transaction.
    pub fn add_endpoint(&self, number: u32, row: EndpointRow) {
        let mut tables = self.tables();
        tables.plans.entry(row.account).or_insert(Plan::LARGEST);
        let tx = tables.begin();
        let after = Some(tables::judged_endpoint(&row.health));
        let change = judge::Change::Endpoint { number: number.into(), before: None, after };
        self.note(&mut tables, tx, change);
        tables.write(tx, Place::Endpoint(number), Some(Row::Endpoint(row)));
        tables.commit(tx);
    }

    /// Returns since when a delivery is due, as it is stored.
    pub fn due(&self, delivery: u64, now: Timestamp) -> Option<Timestamp> {
        self.tables().delivery(0, Place::Pending(delivery))?.delivery.due(now)
    }

    /// Has everybody look again who waits for news.
    pub fn nudge(&self) {
        self.tables().nudge();
        self.shared.time.stir();
    }

    /// Sets what operators have set.
    pub fn set_limits(&self, limits: Vec<SetLimit>) {
        let mut tables = self.tables();
        tables.limits = limits;
        tables.nudge();
    }

    /// Accepts an event in a transaction of its own, and returns its deliveries.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn accept(
        &self,
        account: u32,
        event: impl FnOnce(Timestamp) -> EventBody,
    ) -> Done<(EventBody, Vec<u64>)> {
        let mut change = self.change().await?;
        let (event, ids) = change.accept(account, event).await?;
        host::rows::Change::commit(change).await?;
        Ok((event, ids))
    }

    /// Waits as the director says. Where the store goes back, it does so now.
    async fn step(&self, step: Step) -> Option<Fault> {
        let verdict = self.shared.director.decide(self.process, step);
        match verdict.wait {
            Duration::ZERO => yielded().await,
            wait => self.shared.time.sleep(wait).await,
        }
        match verdict.fault {
            Some(Fault::GoesBack(commits)) => self.go_back(commits),
            Some(Fault::Clock(ahead)) => {
                self.go_back(0);
                self.shared.ahead.store(ahead, Ordering::Relaxed);
            }
            _ => {}
        }
        verdict.fault
    }

    /// Goes back by so many commits. All connections are closed.
    pub fn go_back(&self, commits: usize) {
        self.tables().go_back(commits, self.since_start());
        self.shared.time.stir();
    }

    /// Tells whether a transaction that begins to wait for a lock is ended as one of two that wait for each other.
    fn is_ended_by_deadlock(&self) -> bool {
        self.shared.director.decide(self.process, Step::Wait).fault.is_some()
    }

    /// Waits for a step outside of a transaction.
    async fn read(&self, step: Step) -> Done<()> {
        match self.step(step).await {
            None => Ok(()),
            Some(fault) => Err(refused(format!("{step:?}: {fault:?}"))),
        }
    }
}

impl Changes for Store {
    type Change = Tx;

    async fn change(&self) -> Done<Tx> {
        self.read(Step::Begin).await?;
        let number = self.tables().begin();
        Ok(Tx { store: self.clone(), number })
    }
}

fn refused(why: impl Into<String>) -> Failure {
    Failure::Refused(why.into().into())
}

/// Lets others run.
async fn yielded() {
    let mut is_first = true;
    std::future::poll_fn(|context| match std::mem::take(&mut is_first) {
        true => {
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }
        false => std::task::Poll::Ready(()),
    })
    .await;
}
