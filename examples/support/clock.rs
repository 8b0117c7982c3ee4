//! The one place where an example reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::SystemTime;

use call_assistant::Timestamp;

/// The instant to hand to the library as its last argument.
pub(crate) fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
