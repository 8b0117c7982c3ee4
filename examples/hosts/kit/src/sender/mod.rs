//! The webhook sender, over any store of rows.
//!
//! ```text
//! leases ── shards ──► news ── what became pending ──► core ── reads, begins in memory ──► attempts
//!                                                       ▲                                     │
//!                                                       └── what is sent again ── settle ◄────┘
//! ```
//!
//! [`Core`] decides: it hears an [`Event`] and gives out [`Command`]s, and has no clock, no future and no lock.
//! The transactions ([`settle`], [`park`], [`remind`], `recover`) are straight functions over the
//! [port](crate::rows). [`Shell`] carries commands out. Which shards are owned is decided apart, by [`leases`]. The order of
//! storing and sending is the one of "Owners" in
//! `call_assistant::webhook::sender`.

mod core;
mod history;
mod keep;
pub mod leases;
mod load;
mod park;
mod post;
mod recover;
mod remind;
mod settle;
mod shell;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DueDelivery, EndpointHealth, Outcome, SenderLimits, SenderMetrics, Settled,
};

pub use self::core::Core;
pub use self::history::History;
pub use self::keep::Keeper;
pub use self::load::{Load, Slot};
pub use self::park::park;
pub use self::post::{Post, Poster};
pub use self::remind::{count_missed, remind};
pub use self::settle::{How, postpone, settle};
pub use self::shell::Shell;
use crate::log;
use crate::post::Sent;
use crate::rows::{Done, Key, News, Opened, SetLimit, Shards, ToBegin};

/// The most attempts in flight. One account has at most half of them.
pub const LIMITS: SenderLimits = SenderLimits { overall: 448, per_endpoint: 8 };

/// How long to wait after an attempt that could not be made: the missing resource needs time.
pub const UNSENT: Duration = Duration::from_secs(1);

/// An instant, by each clock that a sender goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the clock of the store, which other processes compare with.
    pub now: Timestamp,
    /// Since an instant of this process, by a clock that nobody sets.
    pub steady: Duration,
    /// Whether this process's clock agrees with the store's: else nothing begins.
    pub is_true: bool,
}

/// The clocks of a sender.
pub trait Clock: Clone + Send + Sync + 'static {
    /// Returns this moment.
    fn at(&self) -> Moment;

    /// Returns this machine's time, by which receivers compare the `t` of a signature.
    fn machine(&self) -> Timestamp;

    /// Waits for this long.
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// Where a sender's counts go.
pub trait Notes: Clone + Send + Sync + 'static {
    /// Changes the counters.
    fn count(&self, change: impl FnOnce(&mut SenderMetrics));

    /// Notes that a round of this loop has succeeded.
    fn round(&self, _of: &'static str) {}

    /// Notes the result of what is tried again and again. The log of a process knows a failure by this name alone, so
    /// several senders of one process each need notes of their own.
    fn tried<T>(&self, of: &'static str, done: &Result<T, impl Display>) {
        log::tried(of, done);
    }

    /// Notes how many shards are owned, and how many senders that have vanished lost to this one so far.
    fn owns(&self, _shards: usize, _taken: usize) {}
}

/// The shards that a sender owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    pub shards: Shards,
    /// No attempt begins after this instant, by [`Moment::steady`], unless the leases are renewed.
    pub until: Duration,
}

impl Owned {
    /// Tells whether attempts may begin.
    pub fn is_valid(&self, at: Moment) -> bool {
        at.steady < self.until && at.is_true
    }
}

/// An event that a [`Core`] hears.
#[derive(Debug)]
pub enum Event {
    /// These shards are owned.
    Owned(Owned),
    /// This became pending, or is to be found again.
    News(News),
    /// These limits are set.
    Limits(Vec<SetLimit>),
    /// These planned deliveries are read, or could not be.
    Read(Vec<DueDelivery>, Done<Vec<Option<ToBegin>>>),
    /// Nothing of an attempt of this endpoint is left, no thread that looks up its name either.
    Freed { endpoint: u32, outcome: Outcome, took: Duration },
    /// An attempt has ended.
    Ended(Box<Ended>),
    /// These attempts are stored, or could not be.
    Stored(Vec<Ended>, How, Box<Done<Settled<u64, u32>>>),
    /// What was pending of this endpoint is parked, or could not be.
    Parked(u32, Done<()>),
}

/// A command that a [`Core`] gives out.
#[derive(Debug)]
pub enum Command {
    /// Read what it takes to begin these.
    Read(Vec<DueDelivery>),
    /// Make this attempt.
    Post(Box<Begun>),
    /// Store these attempts.
    Store(Vec<Ended>, How),
    /// Park what is pending of this endpoint.
    Park(u32),
    /// Count what this endpoint has missed.
    CountMissed(Box<EndpointHealth>, Arc<Opened>),
    /// Have everything found again; where the database went back, for this reason.
    LookAgain(Option<String>),
}

/// An attempt that is begun in memory.
#[derive(Debug)]
pub struct Begun {
    pub key: Key,
    /// The delivery as it was begun.
    pub row: Delivery,
    pub attempt: Attempt,
    /// Its public id.
    pub name: String,
    pub opened: Arc<Opened>,
    pub body: EventBody,
    pub traceparent: Option<String>,
    pub at: Moment,
}

/// An attempt that has ended.
#[derive(Debug)]
pub struct Ended {
    pub key: Key,
    /// The delivery as it was begun.
    pub row: Delivery,
    pub attempt: Attempt,
    pub opened: Arc<Opened>,
    pub at: Timestamp,
    pub sent: Sent,
}
