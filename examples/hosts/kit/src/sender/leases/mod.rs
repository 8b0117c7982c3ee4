//! The shards of a sender: leases in a store, renewed every second.
//!
//! Every sender counts how many live, and takes its share of the shards: those that nobody has, or that somebody
//! has not renewed in time. A sender with more than its share lets go of the rest, once nothing of it is in flight, or
//! after a second. All of this is economy. If two senders both believe that they own a shard, an event may be sent
//! twice, and the versions of the rows decide which result counts.
//!
//! [`Leases`] decides: it hears an [`Event`] and gives out [`Command`]s, and has no clock, no future and no lock.
//! [`LeaseRows`] is its port, and [`Owner`] carries commands out.

mod core;
mod owner;

use std::time::Duration;

use call_assistant::Timestamp;

pub use self::core::Leases;
pub use self::owner::Owner;
use super::Owned;
use crate::rows::{Shards, Step};

/// How long a lease lasts by the store's clock: 4 s. Its owner trusts it for 3 s from before the renewal.
pub const LEASE: Duration = Duration::from_secs(4);
const TRUSTED: Duration = Duration::from_secs(3);

/// What an owner of leases asks of a store. Leases end by the store's own clock.
pub trait LeaseRows: Send + 'static {
    /// Tells whether this process's clock agrees with the store's.
    fn agrees(&mut self) -> impl Step<bool>;

    /// Renews the leases that are still this sender's, each by its epoch, and then notes that this sender lives.
    fn renew(&mut self, held: &Shards) -> impl Step<Renewal>;

    /// Takes so many shards at most that nobody has, or whose leases have ended, each with a new epoch.
    fn claim(&mut self, wanted: usize) -> impl Step<Vec<Claim>>;

    /// Gives back the shards that are still this sender's, each by its epoch. A sender that leaves does not live
    /// any more, so that the others share what it had.
    fn release(&mut self, shards: &Shards, leaves: bool) -> impl Step<()>;
}

/// The result of a renewal.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The shards that are still this sender's.
    pub kept: Vec<u16>,
    /// How many senders live, this one included.
    pub live: usize,
    /// How often this sender has renewed its leases.
    pub count: i64,
    /// The history of the server: another after each promotion.
    pub timeline: String,
    /// The store's clock.
    pub at: Timestamp,
    /// The other senders that live.
    pub others: Vec<String>,
}

/// A shard that was taken.
#[derive(Clone, Debug)]
pub struct Claim {
    pub shard: u16,
    pub epoch: i64,
    /// The owner that has not given it back, unless that was long ago.
    pub before: Option<String>,
}

/// An event that [`Leases`] hear.
#[derive(Debug)]
pub enum Event {
    /// It is time, as [`Command::Wait`] said.
    Woken,
    /// Whether the clocks agree.
    Compared(bool),
    Renewed(Renewal),
    Claimed(Vec<Claim>),
    /// These are given back, and whether the sender has left.
    Released(Shards, bool),
    /// The store has not done what it was asked for, as far as is known.
    Refused,
    /// Shutdown is requested: nothing begins, and what is in flight may end.
    Stopped,
    /// Nothing is in flight any more, or it is given up.
    Ended,
}

/// A command that [`Leases`] give out.
#[derive(Debug)]
pub enum Command {
    /// Let the sender own this from now on.
    Own(Owned),
    /// Have everything found again; where the store went back, for this reason.
    LookAgain(Option<String>),
    /// Compare this process's clock with the store's.
    Compare,
    Renew(Shards),
    /// Take so many shards.
    Claim(usize),
    /// Give these back, and say whether the sender leaves.
    Release(Shards, bool),
    /// Wait until this instant, or until shutdown is requested or the sender has ended.
    Wait(Duration),
    /// Nothing is left to be done.
    End,
}
