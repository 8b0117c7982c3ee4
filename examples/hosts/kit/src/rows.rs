//! The port: what a sender asks of a store.
//!
//! Plain values of the library go in and come out. A store has no clock: each instant is an argument. Everybody
//! locks in one order, deliveries by ascending number and then endpoints by ascending number, and writes each row
//! under the version that was read.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Alert, Delivery, DueDelivery, EndpointHealth, LimitOf, LogEntry, Recovery, RecoveryFilter,
    SignedDestination,
};

use crate::log;
use crate::post::signed::Signed;
use crate::store::plan::Plan;

/// The result of a step of a store.
pub type Done<T> = Result<T, Failure>;

/// The future of a step of a store.
pub trait Step<T>: Future<Output = Done<T>> + Send {}

impl<T, F: Future<Output = Done<T>> + Send> Step<T> for F {}

/// Why a step has not happened, as far as the store knows.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing has happened.
    #[error("{0}")]
    Refused(Cause),
    /// A stored row has another version than the one that was read: roll back, lock it and read it again.
    #[error("somebody has changed the row since it was read")]
    Outdated,
    /// It may have happened: read again, and assume nothing. Only a commit fails so.
    #[error("{0}; it may have happened")]
    Unknown(Cause),
}

/// The cause of a failure, for the log.
pub type Cause = Box<dyn Error + Send + Sync>;

/// The shards that a sender owns, with the epoch of each lease: a shard with another epoch was another
/// sender's in between.
pub type Shards = BTreeMap<u16, i64>;

/// The rows of a sender.
pub trait Rows: Changes {
    /// How far a sender has seen what became pending. Its default has seen nothing.
    type Seen: Default + Send;

    /// Returns what became pending in these shards since it was last seen, once there is something, or after a
    /// while. A row may come twice, and none is left out, however late its transaction is committed.
    fn news(&self, shards: &Shards, seen: &mut Self::Seen) -> impl Step<News>;

    /// Returns what operators have set.
    fn limits(&self) -> impl Step<Vec<SetLimit>>;

    /// Returns what it takes to begin each of these, as it is stored now. `None` for one that has ended, or was
    /// erased, or that this process cannot read.
    fn to_begin(&self, keys: &[Key], now: Timestamp) -> impl Step<Vec<Option<ToBegin>>>;

    /// Returns the recoveries that run for endpoints of these shards and wait for nobody, by ascending number.
    fn recoveries(&self, shards: &Shards, now: Timestamp) -> impl Step<Vec<u64>>;
}

/// The beginning of transactions.
pub trait Changes: Clone + Send + Sync + 'static {
    type Change: Change;

    /// Begins a transaction.
    fn change(&self) -> impl Step<Self::Change>;
}

/// A transaction, which is all or nothing: others see it once it is committed. One that is dropped leaves nothing.
pub trait Change: Send {
    /// Locks deliveries, pending ones first, each by ascending number. One that is not there is left out, and so
    /// is a row whose number alone is the same.
    fn lock(&mut self, keys: &[Key]) -> impl Step<BTreeMap<u64, Locked>>;

    /// Reads endpoints by their numbers, as they are committed at this moment; with a lock, by ascending number.
    fn endpoints(
        &mut self,
        numbers: &[u32],
        lock: Lock,
    ) -> impl Step<BTreeMap<u32, EndpointHealth>>;

    /// Locks a page of what is pending of an endpoint, by ascending number after `after`, without waiting for
    /// what others hold.
    fn lock_pending(&mut self, endpoint: u32, after: u64) -> impl Step<Page<Delivery>>;

    /// Locks a page of the endpoints that disabled themselves and whose owner may have to be reminded, by
    /// ascending number after `after`, without waiting for what others hold.
    fn lock_disabled(
        &mut self,
        shards: &Shards,
        after: Option<u64>,
        now: Timestamp,
    ) -> impl Step<Page<(EndpointHealth, Names)>>;

    /// Locks a recovery. Its endpoint is not locked.
    fn lock_recovery(&mut self, id: u64) -> impl Step<Option<RunningRecovery>>;

    /// Counts a page of what an endpoint missed, after a delivery.
    fn count(&mut self, search: &Search, after: u64) -> impl Step<CountedPage>;

    /// Locks the first deliveries that an endpoint missed, `most` at most, by ascending number after `after` and
    /// up to `to`. It waits for what others hold.
    fn lock_missed(
        &mut self,
        search: &Search,
        after: u64,
        to: Option<u64>,
        most: u32,
    ) -> impl Step<MissedPage>;

    /// Writes each row under the version that was read.
    fn write(&mut self, writes: &Writes<'_>) -> impl Step<()>;

    fn commit(self) -> impl Step<()>;

    /// Ends it, and leaves nothing. Its connection may be used again.
    fn roll_back(self) -> impl Future<Output = ()> + Send;
}

/// Whether a row is locked when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    Yes,
    No,
}

/// The place of a delivery. Its number alone says nothing once a database went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub delivery: u64,
    pub endpoint: u32,
    /// The microsecond of its event's `created_at`.
    pub event_created_at: Timestamp,
}

impl Key {
    /// Returns the place of a delivery that is planned.
    pub fn of_planned(planned: &DueDelivery) -> Self {
        let DueDelivery { delivery, endpoint, event_created_at, .. } = *planned;
        Self { delivery, endpoint, event_created_at }
    }

    /// Returns the place of a delivery, by the microsecond: a planner keeps no more.
    pub fn of(delivery: &Delivery) -> Self {
        Self {
            delivery: delivery.id(),
            endpoint: u32::try_from(delivery.endpoint()).unwrap_or(u32::MAX),
            event_created_at: delivery.event_created_at().floor_to_micros(),
        }
    }
}

/// Rows that became pending.
#[derive(Debug, Default)]
pub struct News {
    pub rows: Vec<PendingRow>,
    /// Whether what was told before is to be forgotten: what is pending of it comes again.
    pub again: bool,
    /// The reason, if the database went back.
    pub went_back: Option<String>,
}

/// A delivery that is pending.
#[derive(Clone, Copy, Debug)]
pub struct PendingRow {
    pub shard: u16,
    pub account: u32,
    pub delivery: Delivery,
}

/// A limit that an operator has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetLimit {
    pub of: LimitOf,
    /// How many attempts begin in a second at most; 0 for none.
    pub per_second: u32,
}

/// A delivery with all that an attempt needs.
#[derive(Debug)]
pub struct ToBegin {
    pub delivery: Delivery,
    /// Its public id.
    pub name: String,
    pub health: EndpointHealth,
    pub opened: Arc<Opened>,
    pub body: EventBody,
    pub traceparent: Option<String>,
}

/// The destination and the signer of an endpoint, made of its URL and its secrets.
#[derive(Debug)]
pub struct Opened {
    pub names: Names,
    /// `None` where this sender may not call it.
    pub destination: Option<SignedDestination>,
    pub signer: Signer,
}

/// The ids of an endpoint and of its account, for lines of the log, and its shard.
#[derive(Clone, Debug)]
pub struct Names {
    pub account: String,
    pub endpoint: String,
    pub shard: u16,
}

impl Names {
    /// Says in the log that the endpoint's owner is shown an alert.
    pub fn told(&self, alert: &Alert) {
        let Self { account, endpoint, .. } = self;
        let message = "the owner of an endpoint is told";
        log::warn!(account, endpoint, alert = alert.kind(), text = %alert, "{message}");
    }
}

/// A locked row, or one that is as if it were.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    /// Whether the stored row is pending; else it has ended.
    pub is_pending: bool,
    pub row: Delivery,
}

impl Locked {
    /// Returns a row as it was read.
    pub fn of(row: Delivery) -> Self {
        Self { is_pending: row.is_pending(), row }
    }
}

/// Some of many rows.
#[derive(Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The number of the last row, also of one that this process cannot read. `None`: none was left.
    pub last: Option<u64>,
}

/// A search among the deliveries of an endpoint.
#[derive(Clone, Debug)]
pub struct Search {
    pub shard: u16,
    pub endpoint: u32,
    pub missed: RecoveryFilter,
}

/// A page of a count.
#[derive(Clone, Copy, Debug)]
pub struct CountedPage {
    pub counted: u64,
    /// The last delivery that was looked at. `None`: all were.
    pub to: Option<u64>,
}

/// A page of what an endpoint missed.
#[derive(Debug)]
pub struct MissedPage {
    pub rows: Vec<Locked>,
    /// The delivery up to which was looked. `None`: up to the last.
    pub to: Option<u64>,
}

/// A recovery, and what its step rests on.
#[derive(Debug)]
pub struct RunningRecovery {
    pub recovery: Recovery<u64>,
    pub is_paused: bool,
    pub endpoint: EndpointHealth,
    pub names: Names,
    pub plan: Plan,
    /// How many redeliveries of its endpoint are pending.
    pub pending: u32,
    pub progress: Progress,
}

/// How far a recovery has come, beside what the library's says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub counted: u64,
    /// The last delivery that is counted. `None`: all are.
    pub counted_to: Option<u64>,
    /// The delivery up to which nothing is left to find.
    pub searched_to: Option<u64>,
}

/// The writes of a transaction.
#[derive(Debug)]
pub struct Writes<'a> {
    /// Each as its row was when it was locked, and as it is now.
    pub deliveries: Vec<(Locked, Delivery)>,
    pub endpoints: &'a [(u32, EndpointHealth)],
    /// Alerts of these endpoints: an alert comes of a change of its endpoint.
    pub alerts: &'a [(u32, Alert)],
    pub attempts: Vec<(Key, &'a LogEntry, Option<&'a Signed>)>,
    /// Whether an entry may be there already, since a commit was not answered: then it stays.
    pub may_be_there: bool,
    /// A recovery, and how far it has come, where that has changed.
    pub recovery: Option<(u64, &'a Recovery<u64>, Option<Progress>)>,
    /// How many deliveries an endpoint had missed, for its alert of that version.
    pub missed: Option<(&'a EndpointHealth, u64)>,
    /// Whether the pending deliveries are news: else their sender knows them already.
    pub are_news: bool,
    pub now: Timestamp,
}

impl Writes<'_> {
    /// Returns the writes of nothing, at an instant.
    pub fn at(now: Timestamp) -> Self {
        Self {
            deliveries: Vec::new(),
            endpoints: &[],
            alerts: &[],
            attempts: Vec::new(),
            may_be_there: false,
            recovery: None,
            missed: None,
            are_news: false,
            now,
        }
    }
}
