//! Steps of the clock: when someone sets it, waits must not become longer or shorter.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::DeliveryColumns;
use tokio::time::Instant;

use super::Tables;
use host::{clock, log};

/// What a correction of a clock is not: less than this from one look to the next.
const STEP: Duration = Duration::from_secs(1);

/// The distance and the direction in which a clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    Back(Duration),
    Forward(Duration),
}

/// A comparison of the clock with a monotonic one.
#[derive(Debug)]
pub(super) struct Watch {
    wall: Timestamp,
    steady: Instant,
    /// Whether it was set, and the sender does not know that.
    was_set: bool,
}

impl ClockStep {
    /// Returns the same instant by the clock as it is now.
    pub fn moved(self, at: Timestamp) -> Timestamp {
        match self {
            Self::Back(by) => at.saturating_sub(by),
            Self::Forward(by) => at.saturating_add(by),
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self { wall: clock::now(), steady: Instant::now(), was_set: false }
    }
}

impl Watch {
    /// Returns how far the clock was set since the last call.
    fn look(&mut self, now: Timestamp) -> Option<ClockStep> {
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

impl Tables {
    /// Checks whether somebody has set the machine's clock, before anything is written by it: what is written
    /// afterwards must not be moved.
    pub(super) fn look_at_clock(&mut self) {
        if let Some(step) = self.watch.look(clock::now()) {
            log::info!("the clock was set: {step:?}");
            self.clock_was_set(step);
            self.watch.was_set = true;
        }
    }

    /// Keeps the waits as long as they are when somebody has set the clock.
    pub fn clock_was_set(&mut self, step: ClockStep) {
        for row in self.deliveries.values_mut() {
            let at = step.moved(DeliveryColumns::from(row.state).at);
            row.make_due(at);
        }
        self.changed();
    }

    /// Returns whether the clock was set since the last call, so that what is pending has to be planned anew.
    pub fn was_clock_set(&mut self) -> bool {
        std::mem::take(&mut self.watch.was_set)
    }
}
