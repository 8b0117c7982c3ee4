//! Steps of the clock: when someone sets it, waits must not become longer.

use std::time::Duration;

use call_assistant::Timestamp;
use tokio::time::Instant;

use crate::store::ClockStep;

/// What a correction of a clock is not: less than this from one look to the next.
const STEP: Duration = Duration::from_secs(1);

/// A comparison of the clock with a monotonic one.
#[derive(Debug)]
pub(super) struct Watch {
    wall: Timestamp,
    steady: Instant,
}

impl Watch {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { wall: now, steady: Instant::now() }
    }

    /// Returns how far the clock was set since the last call.
    pub(super) fn look(&mut self, now: Timestamp) -> Option<ClockStep> {
        let steady = Instant::now();
        let expected = self.wall.saturating_add(steady.duration_since(self.steady));
        (self.wall, self.steady) = (now, steady);
        let (back, forward) = (expected.since(now), now.since(expected));
        if back >= STEP {
            Some(ClockStep::Back(back))
        } else {
            (forward >= STEP).then_some(ClockStep::Forward(forward))
        }
    }
}
