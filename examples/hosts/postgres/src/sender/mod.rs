//! The webhook sender of this host: its leases, its rows, and the days of its tables. What is sent, and when, is
//! decided by [`host::sender`].

mod change;
mod days;
mod owner;
mod poll;
mod read;
mod rows;

use std::error::Error;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) use self::days::add as add_days;
use self::owner::Leased;
pub use self::rows::Rows;
use crate::clock::HostClock;
use crate::db::{self, Database};
use crate::exit::Ended;
use crate::health::Process;
use crate::queue::SHARDS;
use host::options::Sending;
use host::sender::leases::{Event, Leases, Owner};
use host::sender::{Core, Load, Owned, Poster, Shell};
use host::{post, random};

/// The most connections for what a sender does: 11; and for renewing its leases: 1. No work uses that one, so none
/// keeps the leases from being renewed.
const WORK: usize = 11;
const LEASES: usize = 1;

/// How long attempts in flight have to end after shutdown is requested.
const DRAIN: Duration = Duration::from_secs(25);

/// Starts a sender, which owns its share of the shards when this returns, unless its clock and the database's differ.
/// Its task ends once shutdown is requested, and results in flight are stored.
///
/// # Errors
/// The database is unavailable, or not of this version.
pub(crate) async fn start(
    process: &Process,
    sending: &Sending,
    allow_loopback: bool,
) -> Result<JoinHandle<()>, Box<dyn Error>> {
    let database = Database::at(&process.database, WORK)?;
    let leases = Database::at(&process.database, LEASES)?;
    db::check(&database).await?;
    let client = post::Client::new(sending.trust_ca.as_deref()).map_err(Ended::Usage)?;
    let name = format!("sender-{:016x}", u64::from_le_bytes(random::bytes()));

    let (ring, watch, counted) =
        (process.ring.clone(), process.watch.clone(), process.counted.clone());
    let load = Load::of_shards(SHARDS);
    counted.sends(name.clone(), load.clone());
    counted.uses("sender", &database);
    counted.uses("leases", &leases);
    let clock = HostClock { database: database.clock().clone(), began: Instant::now() };
    let (own, owned) = watch::channel(Owned::default());
    let mut owner = Owner {
        leases: Leases::new(name.clone(), SHARDS),
        rows: Leased::new(leases, name, counted.clone()),
        clock: clock.clone(),
        notes: counted.clone(),
        owned: own,
        load: load.clone(),
        history: counted.history().clone(),
    };
    owner.round(Event::Woken).await.1?;

    let shell = Shell {
        rows: Rows::new(database.clone(), ring.clone(), allow_loopback, counted.clone()),
        poster: Poster { client, scale: sending.scale, clock: clock.clone() },
        clock: clock.clone(),
        notes: counted.clone(),
        schedule: sending.scale.schedule(),
        owned,
        history: counted.history().clone(),
        watch: watch.clone(),
        grace: DRAIN,
    };
    let core = Core::new(sending.per_second);
    let adding = days::add(database.clone());
    let dropping = days::drop_old(database, ring, counted);
    let run = async move {
        let days = [
            tokio::spawn(watch.until_shutdown("the sender's new days", adding)),
            tokio::spawn(watch.until_shutdown("the sender's old days", dropping)),
        ];
        let (stop, (end, ended)) = (watch.stop().clone(), oneshot::channel::<()>());
        let owning = async move { owner.run(&stop, ended).await };
        let owner = tokio::spawn(watch.until_shutdown("the sender's owner", owning));
        let sending = shell.run(core, move |core, at| {
            load.note(core.planner(), at.now);
            false
        });
        let _ = tokio::spawn(watch.until_shutdown("the sender", sending)).await;
        days.iter().for_each(JoinHandle::abort);
        drop(end);
        let _ = owner.await;
    };
    Ok(tokio::spawn(run))
}
