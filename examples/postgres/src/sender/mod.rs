//! The webhook sender: owns shards of endpoints, sends what is due in the planner's order, and
//! stores what came of it.
//!
//! ```text
//! owner ── which shards ──► poller ── what became pending ──► Core ── reads, begins in memory ──► attempts
//!                                                              ▲                                     │
//!                                                              └── what is sent again ── settler ◄───┘
//! ```
//!
//! One task, [`Core`], has the planner; nothing else decides what is sent. Reading, sending and
//! storing are tasks of their own, and each tells the core by a [`Message`]. The order of storing
//! and sending is the one of "Owners" in `call_assistant::webhook::sender`.

mod begin;
mod counted;
mod days;
mod due;
mod owner;
mod poll;
mod settle;
mod slot;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{BeginError, Limits, Outcome, Planner, Row};
use http_body_util::Full;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) use self::counted::Counted;

use self::begin::{Pending, Read, Receiver};
use self::due::due;
use self::owner::{InHand, Owned, Owner};
use self::poll::{Found, Poller};
use self::settle::{Done, Settler, Stored};
use self::slot::Slot;
use crate::db::{self, Database, DbError, within};
use crate::deliveries::{self, Key};
use crate::host::post::{self, Trust};
use crate::host::scale::Scale;
use crate::key_ring::KeyRing;
use crate::support::shutdown::Shutdown;
use crate::support::{clock, log, random};

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) database: String,
    pub(crate) ring: KeyRing,
    pub(crate) allow_loopback: bool,
    pub(crate) trust_ca: Option<PathBuf>,
    pub(crate) scale: Scale,
    pub(crate) counted: Counted,
}

/// At once. Two hundred endpoints that fall silent together, and half as much again for second
/// attempts, leave room for all others.
const LIMITS: Limits = Limits { overall: 448, per_endpoint: 8 };

/// Deliveries read at once.
const BATCH: usize = 128;

/// With so many in hand, results wait for the database: then nothing more is begun.
const IN_HAND: usize = 4096;

/// How long to wait after the database did not answer.
const AFTER_ERROR: Duration = Duration::from_millis(200);

/// How long the end waits for attempts in flight, and for their results to be stored.
const DRAIN: Duration = Duration::from_secs(25);

/// What the core is told.
#[derive(Debug)]
enum Message {
    /// These are pending.
    Found(Vec<Found>),
    /// What was planned is read, or could not be.
    Read(Vec<(u64, u32)>, Result<Read, DbError>),
    /// Nothing of an attempt of this endpoint is left, no thread that looks up its name either.
    Finished { endpoint: u32, outcome: Outcome },
    /// These attempts are stored, and these endpoints are disabled by them.
    Stored { stored: Vec<Stored>, disabled: Vec<i32> },
}

/// A sender that runs.
#[derive(Debug)]
pub(crate) struct Running(JoinHandle<()>);

impl Running {
    /// Waits until it has ended: the end was asked for, and what was in flight is stored.
    pub(crate) async fn ended(self) {
        let _ = self.0.await;
    }
}

/// Starts a sender, which owns its share of the shards when this returns.
///
/// # Errors
/// The database is not there, or not of this version.
pub(crate) async fn start(options: Options, stop: Shutdown) -> Result<Running, String> {
    let database = Database::new(&options.database, 12)?;
    db::check(&database).await.map_err(|error| error.to_string())?;
    let trust =
        Trust::new(options.trust_ca.as_deref()).map_err(|error| format!("--trust-ca: {error}"))?;
    let name = format!("sender-{:016x}", u64::from_le_bytes(random::bytes()));

    let in_hand = Arc::new(InHand::default());
    let (mut owner, owned) = Owner::new(database.clone(), name, Arc::clone(&in_hand));
    owner.tick().await.map_err(|error| error.to_string())?;

    let (sender, messages) = mpsc::unbounded_channel();
    let (done, ended) = mpsc::unbounded_channel();
    let settler = Settler {
        database: database.clone(),
        scale: options.scale,
        counted: options.counted,
        done: ended,
        messages: sender.clone(),
    };
    let poller =
        Poller { database: database.clone(), owned: owned.clone(), messages: sender.clone() };
    let core = Core {
        planner: Planner::new(LIMITS),
        held: HashMap::new(),
        in_hand,
        owned,
        sender,
        messages,
        done,
        reading: 0,
        attempts: JoinSet::new(),
        database: database.clone(),
        ring: Arc::new(options.ring),
        allow_loopback: options.allow_loopback,
        trust,
        scale: options.scale,
    };
    Ok(Running(tokio::spawn(async move {
        let days = tokio::spawn(days::keep(database));
        let poller = tokio::spawn(poller.run());
        let settler = tokio::spawn(settler.run());
        let owning = stop.clone();
        let owner = tokio::spawn(async move { owner.run(&owning).await });
        core.run(&stop).await;
        poller.abort();
        days.abort();
        let _ = tokio::time::timeout(DRAIN, settler).await;
        if let Ok(owner) = owner.await {
            owner.leave().await;
        }
    })))
}

/// A delivery that this process knows of.
#[derive(Clone, Copy, Debug)]
struct Held {
    shard: i16,
    /// Whether it waits in the planner; else it is being read, sent or stored.
    is_planned: bool,
    due: Timestamp,
    is_retry: bool,
}

struct Core {
    planner: Planner,
    held: HashMap<u64, Held>,
    in_hand: Arc<InHand>,
    owned: watch::Receiver<Owned>,
    sender: mpsc::UnboundedSender<Message>,
    messages: mpsc::UnboundedReceiver<Message>,
    done: mpsc::UnboundedSender<Done>,
    /// Batches that are being read.
    reading: usize,
    attempts: JoinSet<()>,
    database: Database,
    ring: Arc<KeyRing>,
    allow_loopback: bool,
    trust: Trust,
    scale: Scale,
}

impl Core {
    async fn run(mut self, stop: &Shutdown) {
        let mut messages = Vec::new();
        loop {
            self.plan(clock::now());
            let next = self.next_look();
            tokio::select! {
                () = stop.requested() => break,
                Ok(()) = self.owned.changed() => self.let_go(),
                () = until(next) => {}
                _ = self.messages.recv_many(&mut messages, 1024) => {}
                Some(_) = self.attempts.join_next() => {}
            }
            for message in messages.drain(..) {
                self.hear(message, clock::now(), true);
            }
        }
        // What is in flight goes on to its end; nothing begins.
        let _ = tokio::time::timeout(DRAIN, async {
            while !self.attempts.is_empty() {
                tokio::select! {
                    Some(_) = self.attempts.join_next() => {}
                    Some(message) = self.messages.recv() => self.hear(message, clock::now(), false),
                }
            }
        })
        .await;
        self.attempts.shutdown().await;
    }

    /// Takes what is due from the planner, and has it read.
    fn plan(&mut self, now: Timestamp) {
        while self.reading < 4 && self.attempts.len() < IN_HAND && self.owned.borrow().is_valid() {
            let mut planned = Vec::new();
            while planned.len() < BATCH
                && let Some((id, endpoint)) = self.planner.next(now)
            {
                match self.held.get_mut(&id) {
                    Some(held) if held.is_planned => {
                        held.is_planned = false;
                        self.in_hand.add(held.shard);
                        planned.push((id, endpoint));
                    }
                    // It was found twice, and is under way.
                    _ => self.planner.finished(endpoint, Outcome::Unsent),
                }
            }
            if planned.is_empty() {
                return;
            }
            self.reading = self.reading.saturating_add(1);
            let ids: Vec<i64> = planned.iter().map(|(id, _)| id.cast_signed()).collect();
            let mut endpoints: Vec<i32> =
                planned.iter().map(|(_, endpoint)| endpoint.cast_signed()).collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            let (database, ring) = (self.database.clone(), Arc::clone(&self.ring));
            let (sender, loopback) = (self.sender.clone(), self.allow_loopback);
            tokio::spawn(async move {
                let read = begin::read(&database, &ring, loopback, &ids, &endpoints, clock::now());
                let read = within(read).await;
                if read.is_err() {
                    tokio::time::sleep(AFTER_ERROR).await;
                }
                let _ = sender.send(Message::Read(planned, read));
            });
        }
    }

    /// When to plan next, if nobody says anything before.
    fn next_look(&self) -> Option<Timestamp> {
        let may = self.reading < 4 && self.owned.borrow().is_valid();
        self.planner.next_due().filter(|_| may)
    }

    fn hear(&mut self, message: Message, now: Timestamp, goes_on: bool) {
        match message {
            Message::Found(found) => {
                for each in found {
                    self.find(each, now);
                }
            }
            Message::Read(planned, read) => {
                self.reading = self.reading.saturating_sub(1);
                match read {
                    Ok(mut read) if goes_on => {
                        for (id, endpoint) in planned {
                            self.begin(id, endpoint, &mut read, now);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        log::line(&format!("reading {} deliveries: {error}", planned.len()));
                        for (id, endpoint) in planned {
                            self.put_back(id, endpoint, Some(now));
                        }
                    }
                }
            }
            Message::Finished { endpoint, outcome } => self.planner.finished(endpoint, outcome),
            Message::Stored { stored, disabled } => {
                for each in stored {
                    let (id, endpoint) = (each.key.id.cast_unsigned(), each.key.endpoint);
                    if let Some(held) = self.held.get_mut(&id) {
                        held.is_retry = true;
                    }
                    self.release(id, endpoint.cast_unsigned(), each.again);
                    if disabled.contains(&endpoint) {
                        self.park(each.shard, endpoint);
                    }
                }
            }
        }
    }

    /// Holds a delivery that is pending, if its shard is owned.
    fn find(&mut self, found: Found, now: Timestamp) {
        let Some(due) = due(&found.delivery, self.scale, now) else { return };
        if !self.owned.borrow().shards.contains_key(&found.shard) {
            return;
        }
        let (id, endpoint) = (found.id.cast_unsigned(), found.endpoint.cast_unsigned());
        let is_retry = found.delivery.attempts() > 0;
        match self.held.get(&id) {
            // It is under way: what comes of it says when it is due next.
            Some(held) if !held.is_planned => return,
            // As it was planned, as nearly always; or somebody wants it earlier.
            Some(held) if held.due <= due => return,
            _ => {}
        }
        self.held.insert(id, Held { shard: found.shard, is_planned: true, due, is_retry });
        self.add(id, endpoint, due, is_retry);
    }

    fn add(&mut self, id: u64, endpoint: u32, due: Timestamp, is_retry: bool) {
        if is_retry {
            self.planner.add_retry(id, endpoint, due);
        } else {
            self.planner.add(id, endpoint, due);
        }
    }

    /// Begins an attempt in memory and sends it.
    fn begin(&mut self, id: u64, endpoint: u32, read: &mut Read, now: Timestamp) {
        let found = read.pending.remove(&id.cast_signed());
        let receiver = read.receivers.get(&endpoint.cast_signed());
        let held = self.held.get(&id).copied();
        let (Some(Pending { delivery, body }), Some(receiver), Some(held)) =
            (found, receiver, held)
        else {
            // It has ended, or was parked or erased. What this process cannot read stays.
            return self.put_back(id, endpoint, None);
        };
        if !self.owned.borrow().has(held.shard) {
            return self.put_back(id, endpoint, None);
        }
        // With `--time-scale` the host's due time comes before the schedule's: to the library the
        // attempt begins when the schedule says, which the clock has not reached.
        let by_schedule = match (delivery.due(now), due(&delivery, self.scale, now)) {
            (Some(schedule), Some(here)) if here <= now => schedule.max(now),
            _ => now,
        };
        let event_created_at = delivery.event_created_at();
        let mut row = Row::from(delivery);
        let attempt = match row.begin(&receiver.health, by_schedule) {
            Ok(attempt) => attempt,
            Err(BeginError::Parked) => {
                self.put_back(id, endpoint, None);
                return self.park(held.shard, endpoint.cast_signed());
            }
            Err(BeginError::Early { .. }) => {
                return self.put_back(id, endpoint, due(&delivery, self.scale, now));
            }
            Err(BeginError::Leased { until }) => return self.put_back(id, endpoint, Some(until)),
            Err(_) => return self.put_back(id, endpoint, None),
        };
        let key = Key { id: id.cast_signed(), endpoint: endpoint.cast_signed(), event_created_at };
        let Receiver { target, secrets, .. } = receiver;
        let Some(target) = target else {
            // This sender may not call it, nor does waiting change that.
            let done = Done {
                key,
                shard: held.shard,
                row,
                attempt,
                at: now,
                sent: post::Sent::without_answer(Outcome::Forbidden, now),
                began_at: now,
            };
            let _ = self.done.send(done);
            return self.planner.finished(endpoint, Outcome::Forbidden);
        };
        let patience = self.scale.timeout(attempt.deadline().since(attempt.began_at()));
        let request = attempt.request(target, &body, &secrets.signer(now), now).map(Full::from);
        let (target, trust, done) = (target.clone(), self.trust.clone(), self.done.clone());
        let slot = Slot::new(endpoint, self.sender.clone());
        self.attempts.spawn(async move {
            let sent = post::send(&target, request, &trust, patience, &slot).await;
            let (at, outcome) = (sent.at.floor_to_micros(), sent.outcome);
            let began_at = now;
            let _ = done.send(Done { key, shard: held.shard, row, attempt, at, sent, began_at });
            slot.finish(outcome);
        });
    }

    /// Ends what is in hand of a delivery that was planned and not begun.
    fn put_back(&mut self, id: u64, endpoint: u32, due: Option<Timestamp>) {
        self.planner.finished(endpoint, Outcome::Unsent);
        self.release(id, endpoint, due);
    }

    /// A delivery is no longer in hand: it waits until it is due, or is forgotten.
    fn release(&mut self, id: u64, endpoint: u32, due: Option<Timestamp>) {
        let Some(held) = self.held.get_mut(&id) else { return };
        self.in_hand.remove(held.shard);
        let (shard, is_retry) = (held.shard, held.is_retry);
        match due {
            Some(due) if self.owned.borrow().shards.contains_key(&shard) => {
                (held.is_planned, held.due) = (true, due);
                self.add(id, endpoint, due, is_retry);
            }
            _ => {
                self.held.remove(&id);
            }
        }
    }

    /// Forgets the deliveries of shards that are another's now.
    fn let_go(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        let held = &mut self.held;
        let before = held.len();
        held.retain(|_, held| !held.is_planned || owned.shards.contains_key(&held.shard));
        if held.len() < before {
            self.planner.retain(|id, _| held.contains_key(&id));
        }
    }

    /// Parks what is pending of an endpoint that is disabled, and forgets it.
    fn park(&mut self, shard: i16, endpoint: i32) {
        let held = &mut self.held;
        self.planner.retain(|id, of| {
            let stays = of != endpoint.cast_unsigned();
            if !stays {
                held.remove(&id);
            }
            stays
        });
        let database = self.database.clone();
        tokio::spawn(async move {
            while let Err(error) = deliveries::park(&database, shard, endpoint, clock::now()).await
            {
                log::line(&format!("parking of endpoint {endpoint}: {error}"));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
}

async fn until(due: Option<Timestamp>) {
    match due {
        // A millisecond more than the wait, for timers count in whole ones.
        Some(due) => {
            let wait = due.since(clock::now());
            tokio::time::sleep(wait.saturating_add(Duration::from_millis(1))).await;
        }
        // Not for ever: a lease may be valid again.
        None => tokio::time::sleep(AFTER_ERROR).await,
    }
}
