//! The one place where this host reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::SystemTime;

use call_assistant::Timestamp;

/// Returns the current instant, as precise as the database stores it.
pub fn now() -> Timestamp {
    Timestamp::from(SystemTime::now()).floor_to_micros()
}
