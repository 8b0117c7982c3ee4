//! The webhook sender over the tables in memory, with what a sandbox does to it: it moves the clock, and orders
//! faults. What is sent, and when, is decided by [`host::sender`].

mod attempt;
mod clock;

use std::sync::Arc;
use std::time::Duration;

use call_assistant::webhook::sender::SenderMetrics;
use host::post;
use host::program::scale::Scale;
use host::program::watch::Watch;
use host::sender::{Core, History, Load, Notes, Owned, Poster, Shell};
use tokio::sync::watch;
use tokio::time::Instant;

use self::attempt::FaultyPoster;
pub use self::clock::Mover;
use self::clock::{HostClock, forget_old};
use crate::faults::Faults;
use crate::store::{Rows, Store};

/// How long attempts in flight have to end after shutdown is requested.
const GRACE: Duration = Duration::from_secs(5);

/// How fast to send, as the command line has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    pub scale: Scale,
    /// The most attempts per second and endpoint; 0 is no limit.
    pub per_second: u32,
}

/// The sender, before it starts.
#[derive(Debug)]
pub struct Sender {
    store: Arc<Store>,
    client: post::Client,
    pace: Pace,
    faults: Faults,
    load: Load,
    mover: Mover,
}

impl Sender {
    /// Creates a sender of what is pending in a store, now and later.
    pub fn new(store: Arc<Store>, client: post::Client, pace: Pace, faults: Faults) -> Self {
        let mover = Mover::new(Arc::clone(&store));
        Self { store, client, pace, faults, load: Load::default(), mover }
    }

    /// Returns what the sender tells of what it has in flight.
    pub fn load(&self) -> Load {
        self.load.clone()
    }

    /// Returns what moves its clock.
    pub fn mover(&self) -> Mover {
        self.mover.clone()
    }

    /// Sends until shutdown. Nothing begins then, and attempts in flight have a few seconds to end; those that
    /// have not are given up, uncounted: the store has them as not sent.
    pub async fn run(self, watch: Watch) {
        let Self { store, client, pace, faults, load, mover } = self;
        let clock = HostClock { moved: store.clock.clone(), began: Instant::now() };
        let poster = Poster { client, scale: pace.scale, clock: clock.clone() };
        let old = forget_old(Arc::clone(&store));
        let old = tokio::spawn(watch.until_shutdown("dropping old rows", old));
        let shell = Shell {
            rows: Rows(Arc::clone(&store)),
            poster: FaultyPoster { poster, faults },
            clock,
            notes: Tallied(store),
            schedule: pace.scale.schedule(),
            owned: mover.owned(),
            history: History::default(),
            watch,
            grace: GRACE,
        };
        shell
            .run(Core::new(pace.per_second), |core, at| {
                load.note(core.planner(), at.now);
                mover.moves(core, at)
            })
            .await;
        old.abort();
    }
}

/// The counts, which are in the store.
#[derive(Clone, Debug)]
struct Tallied(Arc<Store>);

impl Notes for Tallied {
    fn count(&self, change: impl FnOnce(&mut SenderMetrics)) {
        self.0.lock().count(change);
    }
}

/// Returns all shards, for ever: there is one sender.
fn everything() -> watch::Sender<Owned> {
    watch::channel(Owned { shards: [(0, 0)].into(), until: Duration::MAX }).0
}
