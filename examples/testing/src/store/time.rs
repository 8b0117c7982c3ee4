//! Virtual time: it moves when somebody says so, to the next instant that somebody waits for.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Virtual time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Time(Arc<Mutex<Inner>>);

/// Waits, by their ends and the order in which they were asked for, each with what had stirred by then.
type Waits = BTreeMap<(Duration, u64), (u64, Waker)>;

#[derive(Debug, Default)]
struct Inner {
    now: Duration,
    /// How many waits there have been.
    asked: u64,
    timers: Waits,
    /// Of loops that look whether there is something to do.
    ticks: Waits,
    /// Of those who renew leases.
    beats: Waits,
    stirred: u64,
}

impl Time {
    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Waits for this long.
    pub async fn sleep(&self, wait: Duration) {
        self.wait(wait, |inner| &mut inner.timers).await;
    }

    /// Waits for this long and then until something has [stirred](Self::stir): for loops that look whether there
    /// is something to do, which would find nothing before.
    pub async fn tick(&self, wait: Duration) {
        self.wait(wait, |inner| &mut inner.ticks).await;
    }

    /// Waits for this long, as those do who renew leases: see [`next_beat`](Self::next_beat).
    pub async fn beat(&self, wait: Duration) {
        self.wait(wait, |inner| &mut inner.beats).await;
    }

    async fn wait(&self, wait: Duration, of: fn(&mut Inner) -> &mut Waits) {
        let until = self.now().saturating_add(wait);
        let mut key = None;
        poll_fn(|context| {
            let mut inner = self.lock();
            match key {
                Some(key) if !of(&mut inner).contains_key(&key) => Poll::Ready(()),
                Some(_) => Poll::Pending,
                None => {
                    key = Some(inner.add(until, of, context.waker()));
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Has somebody woken at an instant.
    pub fn wake_at(&self, at: Duration, waker: &Waker) {
        self.lock().add(at, |inner| &mut inner.timers, waker);
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
        due.into_values().for_each(|(_, waker)| waker.wake());
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
            None => inner.timers.pop_first().map(|(_, (_, waker))| waker),
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
    fn add(
        &mut self,
        at: Duration,
        of: fn(&mut Self) -> &mut Waits,
        waker: &Waker,
    ) -> (Duration, u64) {
        self.asked += 1;
        let (key, stirred) = ((at, self.asked), self.stirred);
        of(self).insert(key, (stirred, waker.clone()));
        key
    }

    fn tick(&self) -> Option<(Duration, u64)> {
        self.ticks.iter().find(|(_, (stirred, _))| *stirred < self.stirred).map(|(key, _)| *key)
    }
}
