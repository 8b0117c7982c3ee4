//! The one place where an example reads a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;

/// How far this program's time is ahead of the machine's, in microseconds. A sandbox moves it.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// Returns the current instant, the last argument of the library's functions.
pub fn now() -> Timestamp {
    machine().saturating_add(ahead())
}

/// Returns the machine's time.
pub fn machine() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

/// Returns how far this program's time is ahead of the machine's.
pub fn ahead() -> Duration {
    Duration::from_micros(AHEAD.load(Ordering::Acquire))
}

/// Moves this program's time forward to an instant.
pub fn move_to(instant: Timestamp) {
    let missing = instant.since(now()).as_nanos().div_ceil(1_000);
    AHEAD.fetch_add(u64::try_from(missing).unwrap_or(0), Ordering::AcqRel);
}
