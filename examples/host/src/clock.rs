//! The one place where an example reads a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;

/// By how many microseconds this program's time is ahead of the machine's: a sandbox moves it.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// The instant to hand to the library as its last argument.
pub fn now() -> Timestamp {
    machine().saturating_add(ahead())
}

/// The machine's time, which others on it have too.
pub fn machine() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

/// By how much this program's time is ahead of the machine's.
pub fn ahead() -> Duration {
    Duration::from_micros(AHEAD.load(Ordering::Acquire))
}

/// Moves this program's time to an instant, unless it is there already.
pub fn move_to(instant: Timestamp) {
    let missing = instant.since(now()).as_nanos().div_ceil(1_000);
    AHEAD.fetch_add(u64::try_from(missing).unwrap_or(0), Ordering::AcqRel);
}
