//! What this process counts and knows of itself, for monitoring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use call_assistant::webhook::sender::SenderTally;
use host::rows::ClockRow;

/// The counters of this process's sender. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tally: Mutex<SenderTally>,
    went_back: AtomicU64,
    clock: Mutex<Option<ClockRow>>,
    /// Why this process's sender sends nothing.
    idle: Mutex<Option<&'static str>>,
}

impl Counted {
    /// Changes the counters.
    pub(crate) fn count(&self, count: impl FnOnce(&mut SenderTally)) {
        count(&mut self.0.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the counts so far.
    pub(crate) fn read(&self) -> SenderTally {
        *self.0.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts that the database went back.
    pub(crate) fn went_back(&self) {
        self.0.went_back.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the database went back.
    pub(crate) fn times_back(&self) -> u64 {
        self.0.went_back.load(Ordering::Relaxed)
    }

    /// Notes how this process's clock compares with the database's.
    pub(crate) fn compared(&self, clock: ClockRow) {
        *self.0.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
    }

    /// Returns how this process's clock compared with the database's.
    pub(crate) fn clock(&self) -> Option<ClockRow> {
        *self.0.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why this process's sender sends nothing, or that it does.
    pub(crate) fn idles(&self, why: Option<&'static str>) {
        *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Returns why this process's sender sends nothing.
    pub(crate) fn idle(&self) -> Option<&'static str> {
        *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
