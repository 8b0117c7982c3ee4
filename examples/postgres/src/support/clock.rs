//! The one place where this host reads a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;

/// Seconds by which this process's clock is off, for tests of clocks that disagree.
pub const VARIABLE: &str = "CLOCK_OFF_BY";

/// The instant to hand to the library as its last argument, as precise as the database stores it.
pub fn now() -> Timestamp {
    let now = Timestamp::from(SystemTime::now()).floor_to_micros();
    let by = Duration::from_secs(off_by().unsigned_abs());
    if off_by() < 0 { now.saturating_sub(by) } else { now.saturating_add(by) }
}

fn off_by() -> i64 {
    static OFF_BY: OnceLock<i64> = OnceLock::new();
    *OFF_BY.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    })
}
