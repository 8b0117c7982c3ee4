//! The sender's clock, which a sandbox moves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use host::clock::{self, MovedClock};
use host::lock;
use host::sender::{Clock, Core, Moment, Owned, remind};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::everything;
use crate::store::{Rows, Store};

/// How often what is older than thirty days is forgotten.
const HOUSEKEEPING: Duration = Duration::from_secs(60);

/// The clocks of the sender.
#[derive(Clone, Debug)]
pub(super) struct HostClock {
    pub(super) moved: MovedClock,
    pub(super) began: Instant,
}

impl Clock for HostClock {
    fn at(&self) -> Moment {
        let now = self.moved.now().floor_to_micros();
        Moment { now, steady: self.began.elapsed(), is_true: true }
    }

    fn machine(&self) -> Timestamp {
        clock::now()
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

/// Forgets what is older than thirty days, until this is dropped.
pub(super) async fn forget_old(store: Arc<Store>) {
    let mut ticks = tokio::time::interval(HOUSEKEEPING);
    loop {
        ticks.tick().await;
        store.lock().forget_old(store.now());
    }
}

/// What moves the sender's clock. Clones share it.
#[derive(Clone, Debug)]
pub struct Mover {
    store: Arc<Store>,
    under_way: Arc<Mutex<Option<Advance>>>,
    /// What the sender owns, which never changes: to say so again has it look.
    owned: Arc<watch::Sender<Owned>>,
}

/// A move of the clock under way.
#[derive(Debug)]
struct Advance {
    to: Timestamp,
    stops: u64,
    /// Whether nothing was in hand at the turn before.
    was_idle: bool,
    done: oneshot::Sender<u64>,
}

impl Mover {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, under_way: Arc::default(), owned: Arc::new(everything()) }
    }

    pub(super) fn owned(&self) -> watch::Receiver<Owned> {
        self.owned.subscribe()
    }

    /// Moves the clock. It stops at every due time on the way, and goes on when the attempts made
    /// then have ended. Returns how often it stopped; `None` if a later move has taken its place, or an
    /// earlier one went further.
    pub async fn advance(&self, to: Timestamp) -> Option<u64> {
        let (done, moved) = oneshot::channel();
        {
            let mut under_way = lock(&self.under_way);
            // No clock goes back.
            if to < self.store.now() {
                return None;
            }
            *under_way = Some(Advance { to, stops: 0, was_idle: false, done });
        }
        self.owned.send_modify(|_| {});
        moved.await.ok()
    }

    /// Takes the next step of a move, if one is under way and nothing is in hand. Returns whether the sender is
    /// to look again at once.
    pub(super) fn moves(&self, core: &Core, at: Moment) -> bool {
        let mut under_way = lock(&self.under_way);
        let Some(advance) = under_way.as_mut() else { return false };
        let next = core.planner().next_due();
        let is_idle =
            core.is_idle() && !self.store.lock().has_news() && next.is_none_or(|due| due > at.now);
        // What was on its way to the sender is heard at the next turn.
        if !is_idle || !std::mem::replace(&mut advance.was_idle, true) {
            advance.was_idle = is_idle;
            return is_idle;
        }
        advance.was_idle = false;
        if let Some(due) = next.filter(|due| *due <= advance.to) {
            advance.stops = advance.stops.saturating_add(1);
            self.store.clock.move_to(due);
            return true;
        }
        self.store.clock.move_to(advance.to);
        if let Some(Advance { stops, done, .. }) = under_way.take() {
            let store = Arc::clone(&self.store);
            tokio::spawn(async move {
                let now = store.now();
                store.lock().forget_old(now);
                let _ = remind(&Rows(store), &[(0, 0)].into(), now).await;
                let _ = done.send(stops);
            });
        }
        true
    }
}
