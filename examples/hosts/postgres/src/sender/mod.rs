//! The webhook sender: owns shards of endpoints, sends what is due in the planner's order, and
//! stores what came of it.
//!
//! ```text
//! owner ── which shards ──► poller ── what became pending ──► task ── reads, begins in memory ──► attempts
//!                                                              ▲                                     │
//!                                                              └── what is sent again ── settler ◄───┘
//! ```
//!
//! One task, [`SenderTask`], has the planner; nothing else decides what is sent. Reading, sending and
//! storing are tasks of their own, and each tells it by a [`Message`]. The order of storing
//! and sending is the one of "Owners" in `call_assistant::webhook::sender`.

mod attempt_log;
mod days;
mod history;
mod levers;
mod owner;
mod parking;
mod poll;
mod read;
mod recover;
mod remind;
mod settle;
mod shares;
mod task;
mod vanished;

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::webhook::sender::{Outcome, Planner};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) use self::days::add as add_days;
use self::history::History;
use self::levers::Valves;
use self::owner::{InHand, Owner};
use self::parking::Parking;
use self::poll::{PendingRow, Poller};
use self::read::{Reader, ToBegin};
use self::settle::{Settler, Stored};
use self::shares::Shares;
use self::task::SenderTask;
use crate::counted::Counted;
use crate::db::{self, Address, Database, DbError};
use crate::exit::Ended;
use crate::key_ring::KeyRing;
use host::log;
use host::post;
use host::random;
use host::scale::Scale;
use host::sending::{LIMITS, Load};
use host::watch::Watch;

/// The options of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) database: Address,
    pub(crate) ring: KeyRing,
    pub(crate) allow_loopback: bool,
    pub(crate) trust_ca: Option<PathBuf>,
    pub(crate) scale: Scale,
    /// The most attempts per second and endpoint; 0 is no limit.
    pub(crate) per_second: u32,
    pub(crate) counted: Counted,
}

impl Options {
    /// Adds the settings to the line about a start.
    pub(crate) fn told(&self, line: log::Line) -> log::Line {
        line.with("trust_ca", self.trust_ca.as_ref().map(|file| file.display().to_string()))
            .with("time_scale", self.scale.waits)
            .with("timeout_scale", self.scale.timeouts)
            .with("endpoint_rate", self.per_second)
    }
}

/// The most connections for what a sender does: 11; and for renewing its leases: 1. No work uses that one, so none
/// keeps the leases from being renewed.
const WORK: usize = 11;
const LEASES: usize = 1;

/// How long the end waits for attempts in flight, and for their results to be stored.
const DRAIN: Duration = Duration::from_secs(25);

/// A message to the task.
#[derive(Debug)]
enum Message {
    /// These are pending.
    Found(Vec<PendingRow>),
    /// The database went back: what is planned is to be found again.
    Forget,
    /// What was planned is read, or could not be.
    Read(Vec<(u64, u32)>, Result<ToBegin, DbError>),
    /// Nothing of an attempt of this endpoint is left, no thread that looks up its name either.
    Finished { delivery: u64, endpoint: u32, outcome: Outcome, took: Duration },
    /// These attempts are stored, and these endpoints are disabled by them.
    Stored { stored: Vec<Stored>, disabled: Vec<i32> },
}

/// A running sender.
#[derive(Debug)]
pub(crate) struct Running {
    task: JoinHandle<()>,
}

impl Running {
    /// Waits until it has ended: shutdown was requested, and results in flight are stored.
    pub(crate) async fn ended(self) {
        let _ = self.task.await;
    }
}

/// Starts a sender, which owns its share of the shards when this returns, unless its clock and the database's differ.
///
/// # Errors
/// The database is unavailable, or not of this version.
pub(crate) async fn start(options: Options, watch: Watch) -> Result<Running, Box<dyn Error>> {
    let database = Database::at(&options.database, WORK)?;
    let leases = Database::at(&options.database, LEASES)?;
    db::check(&database).await?;
    let client = post::Client::new(options.trust_ca.as_deref()).map_err(Ended::Usage)?;
    let name = format!("sender-{:016x}", u64::from_le_bytes(random::bytes()));

    let in_hand = Arc::new(InHand::default());
    let (counted, load) = (options.counted.clone(), Load::default());
    counted.sends(name.clone(), load.clone());
    counted.uses("sender", &database);
    counted.uses("leases", &leases);
    let history = History::new(counted.clone());
    let (mut owner, owned) =
        Owner::new(leases, name, Arc::clone(&in_hand), history.clone(), counted.clone());
    // What is paused is known before anything is sent.
    let (set, names) = levers::read(&database).await?;
    let (levers, set) = watch::channel(set);
    let levers = levers::keep(database.clone(), levers, names, counted.clone());
    owner.tick().await?;

    let (sender, messages) = mpsc::unbounded_channel();
    let (ended, to_settle) = mpsc::unbounded_channel();
    let settler = Settler {
        database: database.clone(),
        schedule: options.scale.schedule(),
        counted: counted.clone(),
        ended: to_settle,
        messages: sender.clone(),
        watch: watch.clone(),
    };
    let poller = Poller {
        database: database.clone(),
        owned: owned.clone(),
        messages: sender.clone(),
        history: history.clone(),
        counted: counted.clone(),
    };
    let recovering = recover::keep(database.clone(), owned.clone(), counted.clone());
    let (days_ring, days_counted) = (options.ring.clone(), counted.clone());
    let reminding = remind::keep(database.clone(), owned.clone(), counted);
    let task = SenderTask {
        planner: Planner::new(LIMITS).with_rate(options.per_second),
        known: HashMap::new(),
        levers: set,
        valves: Valves::default(),
        shares: Shares::default(),
        history,
        in_hand,
        owned,
        sender,
        messages,
        ended,
        reading: 0,
        attempts: JoinSet::new(),
        parking: Parking::default(),
        database: database.clone(),
        reader: Arc::new(Reader::new(database.clone(), options.ring, options.allow_loopback)),
        client,
        scale: options.scale,
        load,
        watch: watch.clone(),
    };
    let adding = days::add(database.clone());
    let dropping = days::drop_old(database, days_ring, days_counted);
    let run = async move {
        let others = [
            tokio::spawn(watch.until_shutdown("the sender's new days", adding)),
            tokio::spawn(watch.until_shutdown("the sender's old days", dropping)),
            tokio::spawn(watch.until_shutdown("the sender's levers", levers)),
            tokio::spawn(watch.until_shutdown("the sender's poller", poller.run())),
            tokio::spawn(watch.until_shutdown("the sender's reminders", reminding)),
            tokio::spawn(watch.until_shutdown("the sender's recoveries", recovering)),
        ];
        let settler = tokio::spawn(watch.until_shutdown("the sender's settler", settler.run()));
        let stop = watch.stop().clone();
        let owning = async move { owner.run(&stop).await };
        let owner = tokio::spawn(watch.until_shutdown("the sender's owner", owning));
        let stop = watch.stop().clone();
        let task = async move { task.run(&stop).await };
        let _ = tokio::spawn(watch.until_shutdown("the sender's task", task)).await;
        others.iter().for_each(JoinHandle::abort);
        let _ = tokio::time::timeout(DRAIN, settler).await;
        if let Ok(owner) = owner.await {
            owner.leave().await;
        }
    };
    Ok(Running { task: tokio::spawn(run) })
}
