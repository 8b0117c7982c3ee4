//! The one place where an example reads a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;

/// Returns the machine's time, the last argument of the library's functions.
pub fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

/// A clock that somebody moves: it is ahead of the machine's, by nothing at first. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MovedClock(Arc<AtomicU64>);

impl MovedClock {
    /// Returns its time.
    pub fn now(&self) -> Timestamp {
        now().saturating_add(self.ahead())
    }

    /// Returns how far it is ahead of the machine's.
    pub fn ahead(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Acquire))
    }

    /// Moves it forward to an instant.
    pub fn move_to(&self, instant: Timestamp) {
        let missing = instant.since(self.now()).as_nanos().div_ceil(1_000);
        self.0.fetch_add(u64::try_from(missing).unwrap_or(0), Ordering::AcqRel);
    }
}
