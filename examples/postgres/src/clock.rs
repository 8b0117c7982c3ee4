//! The one place where this host reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::SystemTime;

use call_assistant::Timestamp;

/// The instant to hand to the library as its last argument, as precise as the database stores it.
pub fn now() -> Timestamp {
    Timestamp::from(SystemTime::now()).floor_to_micros()
}
