//! Steps of the clock: somebody has set it, and what waits must not wait longer for that.

use std::time::Duration;

use call_assistant::Timestamp;
use tokio::time::Instant;

/// What a correction of a clock is not: less than this from one look to the next.
const STEP: Duration = Duration::from_secs(1);

/// How far a clock was set, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    Back(Duration),
    Forward(Duration),
}

/// Compares the clock with one that nobody sets.
#[derive(Debug)]
pub(super) struct Watch {
    wall: Timestamp,
    steady: Instant,
}

impl Watch {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { wall: now, steady: Instant::now() }
    }

    /// How far the clock was set since the last look.
    pub(super) fn look(&mut self, now: Timestamp) -> Option<ClockStep> {
        let steady = Instant::now();
        let expected = self.wall.saturating_add(steady.duration_since(self.steady));
        (self.wall, self.steady) = (now, steady);
        ClockStep::between(expected, now)
    }
}

impl ClockStep {
    fn between(expected: Timestamp, now: Timestamp) -> Option<Self> {
        let (back, forward) = (expected.since(now), now.since(expected));
        if back >= STEP {
            Some(Self::Back(back))
        } else {
            (forward >= STEP).then_some(Self::Forward(forward))
        }
    }

    /// The same instant by the clock as it is now.
    pub fn moved(self, at: Timestamp) -> Timestamp {
        match self {
            Self::Back(by) => at.saturating_sub(by),
            Self::Forward(by) => at.saturating_add(by),
        }
    }
}
