//! Virtual time: it moves when somebody says so, to the next instant that somebody waits for.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Virtual time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Time(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    now: Duration,
    /// How many waits there have been: of one instant, the first that was asked for is the first.
    asked: u64,
    timers: BTreeMap<(Duration, u64), Waker>,
    /// Waits of loops that look whether there is something to do, each with what had stirred by then.
    ticks: BTreeMap<(Duration, u64), (u64, Waker)>,
    stirred: u64,
    /// Waits of those who renew leases.
    beats: BTreeMap<(Duration, u64), Waker>,
}

impl Time {
    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Waits for this long.
    pub async fn sleep(&self, wait: Duration) {
        let until = self.now().saturating_add(wait);
        let mut key = None;
        poll_fn(|context| {
            let mut inner = self.lock();
            match key {
                Some(key) if !inner.timers.contains_key(&key) => Poll::Ready(()),
                Some(_) => Poll::Pending,
                None => {
                    inner.asked += 1;
                    let new = (until, inner.asked);
                    inner.timers.insert(new, context.waker().clone());
                    key = Some(new);
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Has somebody woken at an instant.
    pub fn wake_at(&self, at: Duration, waker: &Waker) {
        let mut inner = self.lock();
        inner.asked += 1;
        let key = (at, inner.asked);
        inner.timers.insert(key, waker.clone());
    }

    /// Waits for this long and then until something has [stirred](Self::stir): for loops that look whether there
    /// is something to do, which would find nothing before.
    pub async fn tick(&self, wait: Duration) {
        let until = self.now().saturating_add(wait);
        let mut key = None;
        poll_fn(|context| {
            let mut inner = self.lock();
            match key {
                Some(key) if !inner.ticks.contains_key(&key) => Poll::Ready(()),
                Some(_) => Poll::Pending,
                None => {
                    inner.asked += 1;
                    let (new, stirred) = ((until, inner.asked), inner.stirred);
                    inner.ticks.insert(new, (stirred, context.waker().clone()));
                    key = Some(new);
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Waits for this long, as those do who renew leases: see [`next_beat`](Self::next_beat).
    pub async fn beat(&self, wait: Duration) {
        let until = self.now().saturating_add(wait);
        let mut key = None;
        poll_fn(|context| {
            let mut inner = self.lock();
            match key {
                Some(key) if !inner.beats.contains_key(&key) => Poll::Ready(()),
                Some(_) => Poll::Pending,
                None => {
                    inner.asked += 1;
                    let new = (until, inner.asked);
                    inner.beats.insert(new, context.waker().clone());
                    key = Some(new);
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Returns when somebody renews leases next. Nobody does so by [`step`](Self::step).
    pub fn next_beat(&self) -> Option<Duration> {
        self.lock().beats.keys().next().map(|(at, _)| *at)
    }

    /// Moves to an instant, and has all renew their leases who would have by then.
    pub fn beat_at(&self, at: Duration) {
        let mut inner = self.lock();
        inner.now = inner.now.max(at);
        let later = inner.beats.split_off(&(at, u64::MAX));
        let due = std::mem::replace(&mut inner.beats, later);
        drop(inner);
        due.into_values().for_each(Waker::wake);
    }

    /// Notes that something has changed for which loops look.
    pub fn stir(&self) {
        self.lock().stirred += 1;
    }

    /// Returns the next instant at which somebody is woken.
    pub fn next(&self) -> Option<Duration> {
        let inner = self.lock();
        let timer = inner.timers.keys().next().map(|(at, _)| *at);
        let tick = inner.tick().map(|(at, _)| at.max(inner.now));
        timer.into_iter().chain(tick).min()
    }

    /// Moves to the next instant at which somebody is woken, and wakes the first. `false`: nobody waits.
    pub fn step(&self) -> bool {
        let Some(at) = self.next() else { return false };
        let mut inner = self.lock();
        inner.now = inner.now.max(at);
        let waker = match inner.tick().filter(|(tick, _)| *tick <= at) {
            Some(key) => inner.ticks.remove(&key).map(|(_, waker)| waker),
            None => inner.timers.pop_first().map(|(_, waker)| waker),
        };
        drop(inner);
        waker.inspect(Waker::wake_by_ref);
        true
    }

    /// Moves to an instant before which nobody waits.
    pub fn move_to(&self, at: Duration) {
        let mut inner = self.lock();
        inner.now = inner.now.max(at);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl Inner {
    fn tick(&self) -> Option<(Duration, u64)> {
        self.ticks.iter().find(|(_, (stirred, _))| *stirred < self.stirred).map(|(key, _)| *key)
    }
}
