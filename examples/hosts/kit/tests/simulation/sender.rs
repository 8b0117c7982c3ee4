//! A sender: the core, the loops beside it, and what carries its commands out in the place of the shell.

use std::collections::VecDeque;
use std::fmt::Display;
use std::future::poll_fn;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{RetrySchedule, SenderMetrics};
use host::rows::{Key, Rows as _};
use host::sender::leases::{self, Leases, Owner};
use host::sender::{
    Begun, Clock, Command, Core, Ended, Event, History, Keeper, Load, Moment, Notes, Owned,
    Post as _, Slot, count_missed, park, settle,
};
use testing::store::{Leased, Store, Time};
use tokio::sync::{mpsc, watch};

use crate::net::Poster;
use crate::plan::SHARDS;
use crate::tasks::Spawner;
use crate::trace::Trace;

/// The clock of a process.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) time: Time,
    pub(crate) store: Store,
    /// Whether it is a loop's that looks whether there is something to do.
    pub(crate) looks: bool,
    /// Whether it agrees with the store's.
    pub(crate) agrees: Arc<AtomicBool>,
    /// By how many milliseconds the store's was ahead when this process has last heard of it.
    pub(crate) heard: Arc<AtomicI64>,
}

impl Clock for Watch {
    fn at(&self) -> Moment {
        let is_true = self.agrees.load(Ordering::Relaxed);
        let now = self.store.by(self.heard.load(Ordering::Relaxed));
        Moment { now, steady: self.time.now(), is_true }
    }

    fn machine(&self) -> Timestamp {
        self.store.by(0)
    }

    async fn sleep(&self, wait: Duration) {
        match self.looks {
            true => self.time.tick(wait).await,
            false => self.time.sleep(wait).await,
        }
    }
}

/// Nobody looks at the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncounted;

impl Notes for Uncounted {
    fn count(&self, _: impl FnOnce(&mut SenderMetrics)) {}

    fn tried<T>(&self, _: &'static str, _: &Result<T, impl Display>) {}
}

/// Starts a sender, and returns what it owns. It ends once it is to stop and nothing is in hand.
pub(crate) fn start(
    store: Store,
    (process, name): (usize, String),
    poster: Poster,
    (time, trace, spawner): (&Time, &Arc<Trace>, &Spawner),
) -> (Stop, watch::Receiver<Owned>) {
    let (inbox, events) = mpsc::unbounded_channel();
    let (owned, receiver) = watch::channel(Owned::default());
    let history = History::default();
    let stop = Stop::default();
    let agrees = Arc::clone(&poster.agrees);
    let heard = Arc::new(AtomicI64::new(store.ahead()));
    let rows = Leased {
        store: store.clone(),
        shards: SHARDS,
        agrees: Arc::clone(&agrees),
        heard: Arc::clone(&heard),
    };
    let clock = Watch { time: time.clone(), store: store.clone(), looks: false, agrees, heard };
    let keeper = Keeper {
        rows: store.clone(),
        clock: clock.clone(),
        notes: Uncounted,
        owned: receiver.clone(),
        history: history.clone(),
        inbox,
    };
    let looking = Keeper { clock: Watch { looks: true, ..clock.clone() }, ..keeper.clone() };
    spawner.spawn(process, keeper.clone().news());
    spawner.spawn(process, looking.clone().recoveries());
    spawner.spawn(process, looking.reminders());
    let load = Load::default();
    let owner = Owner {
        leases: Leases::new(name, NonZeroU16::new(SHARDS).unwrap()),
        rows,
        clock,
        notes: Uncounted,
        owned,
        load: load.clone(),
        history,
    };
    let (trace, spawner) = (Arc::clone(trace), spawner.clone());
    let hands = Hands { process, keeper, poster, load, stop: stop.clone(), trace, spawner };
    hands.spawner.spawn(process, hands.clone().owns(owner));
    hands.spawner.spawn(process, hands.clone().run(events));
    (stop, receiver)
}

/// What asks a sender to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    is_asked: Arc<AtomicBool>,
    is_idle: Arc<AtomicBool>,
}

impl Stop {
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}

/// What carries commands out.
#[derive(Clone)]
struct Hands {
    process: usize,
    keeper: Keeper<Store, Watch, Uncounted>,
    poster: Poster,
    load: Load,
    stop: Stop,
    trace: Arc<Trace>,
    spawner: Spawner,
}

impl Hands {
    /// Renews leases, until the sender has ended.
    async fn owns(self, mut owner: Owner<Leased, Watch, Uncounted>) {
        let (mut event, mut is_stopping) = (leases::Event::Woken, false);
        let time = self.keeper.clock.time.clone();
        loop {
            let before = owner.owned.borrow().shards.clone();
            let (until, done) = owner.round(event).await;
            let owned = owner.owned.borrow().clone();
            if owned.shards != before {
                self.trace.say(|| format!("owns {}: {:?}", self.process, owned.shards));
                self.keeper.rows.nudge();
            }
            if let Err(why) = done {
                self.trace.say(|| format!("owns {}: {why}", self.process));
            }
            self.hear(Event::Owned(owned));
            let Some(until) = until else { return };
            let wait = until.saturating_sub(time.now());
            match is_stopping {
                true => time.sleep(wait).await,
                false => time.beat(wait).await,
            }
            event = match self.stop.is_asked() {
                true if self.stop.is_idle.load(Ordering::Relaxed) => leases::Event::Ended,
                true if !is_stopping => leases::Event::Stopped,
                _ => leases::Event::Woken,
            };
            is_stopping = self.stop.is_asked();
        }
    }

    async fn run(self, mut events: mpsc::UnboundedReceiver<Event>) {
        let (mut core, mut commands) = (Core::new(0), VecDeque::new());
        let clock = &self.keeper.clock;
        let mut wakes = None;
        poll_fn(|context| {
            let at = clock.at();
            while let Poll::Ready(Some(event)) = events.poll_recv(context) {
                core.hear(event, at, &mut commands);
            }
            if self.stop.is_asked() {
                core.stop();
            }
            while let Some(command) = commands.pop_front().or_else(|| core.next(at)) {
                self.carry_out(command);
            }
            self.load.note(core.planner(), at.now);
            self.stop.is_idle.store(core.is_idle(), Ordering::Relaxed);
            // A microsecond more, for what is planned is rounded to one.
            let wait = core.wait(at).map(|wait| wait + Duration::from_micros(1));
            let until = wait.map(|wait| at.steady.saturating_add(wait));
            if until
                .is_some_and(|until| wakes.is_none_or(|wakes| until < wakes || wakes <= at.steady))
            {
                wakes = until;
                clock.time.wake_at(until.unwrap(), context.waker());
            }
            Poll::<()>::Pending
        })
        .await;
    }

    fn carry_out(&self, command: Command) {
        let own = self.clone();
        let (rows, clock) = (own.keeper.rows.clone(), own.keeper.clock.clone());
        let now = clock.at().now;
        match command {
            Command::Read(planned) => self.spawner.spawn(self.process, async move {
                let keys: Vec<Key> = planned.iter().map(Key::of_planned).collect();
                let read = rows.to_begin(&keys, now).await;
                own.hear(Event::Read(planned, read));
            }),
            Command::Post(begun) => {
                self.spawner.spawn(self.process, async move { own.attempt(*begun).await });
            }
            Command::Store(batch, how) => self.spawner.spawn(self.process, async move {
                let settled = settle(&rows, RetrySchedule::default(), &batch, how, now).await;
                own.trace.say(|| {
                    let ids: Vec<u64> = batch.iter().map(|ended| ended.key.delivery).collect();
                    let done = settled.as_ref().map(|settled| &settled.disabled);
                    format!("store {}: {how:?} {ids:?} {done:?}", own.process)
                });
                own.hear(Event::Stored(batch, how, Box::new(settled)));
            }),
            Command::Park(endpoint) => self.spawner.spawn(self.process, async move {
                let parked = park(&rows, endpoint, now).await;
                own.trace.say(|| format!("park {}: endpoint {endpoint} {parked:?}", own.process));
                own.hear(Event::Parked(endpoint, parked));
            }),
            Command::CountMissed(health, opened) => self.spawner.spawn(self.process, async move {
                let _ = count_missed(&rows, &health, &opened.names, now).await;
            }),
            Command::LookAgain(why) => {
                self.trace.say(|| format!("look {}: {why:?}", self.process));
                self.keeper.history.look_again(why.as_deref());
                rows.nudge();
            }
        }
    }

    async fn attempt(&self, begun: Begun) {
        let (told, endpoint) = (self.clone(), begun.key.endpoint);
        let slot = Slot::new(move |outcome, took| {
            told.hear(Event::Freed { endpoint, outcome, took });
        });
        let sent = self.poster.post(&begun, &slot).await;
        let (outcome, took) = (sent.outcome, sent.took);
        let Begun { key, row, attempt, opened, .. } = begun;
        let ended = Ended { key, row, attempt, opened, at: sent.at, sent };
        self.hear(Event::Ended(Box::new(ended)));
        slot.finish(outcome, took);
    }

    fn hear(&self, event: Event) {
        // The core may have ended.
        let _ = self.keeper.inbox.send(event);
    }
}
