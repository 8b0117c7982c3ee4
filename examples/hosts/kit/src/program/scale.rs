//! `--time-scale` and `--timeout-scale`: shorter waits for a demonstration or a test. Hours take seconds.

use std::time::Duration;

use call_assistant::webhook::sender::RetrySchedule;

use crate::flags::{Flag, Flags};

/// The factors of this host's waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The factor of the waits between attempts.
    pub waits: f64,
    /// The factor of an attempt's time limit.
    pub timeouts: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Self { waits: 1.0, timeouts: 1.0 }
    }
}

impl Scale {
    /// The flag of the waits between attempts.
    pub const WAITS: Flag = Flag::value(
        "--time-scale",
        "F",
        "multiplies the waits between attempts: with 0.001, an\nhour lasts 3.6 seconds [1]",
    );

    /// The flag of an attempt's time limit.
    pub const TIMEOUTS: Flag = Flag::value(
        "--timeout-scale",
        "F",
        "multiplies the ten-second limit of an attempt; at most 2.5 [1]",
    );

    /// Reads both flags.
    ///
    /// # Errors
    /// One of them is not a number above 0, or is more than the greatest factor.
    pub fn read(flags: &Flags) -> Result<Self, String> {
        let factor = |name, most| match flags.text(name).unwrap_or("1").parse() {
            Ok(factor) if factor > 0.0 && factor <= most => Ok(factor),
            _ => Err(format!("{name}: expected a number above 0, at most {most}")),
        };
        // A due time of more than twice the longest wait would count as that of a wrong clock. Ten seconds
        // and a little more have to fit into a lease.
        Ok(Self { waits: factor("--time-scale", 2.0)?, timeouts: factor("--timeout-scale", 2.5)? })
    }

    /// Returns the waits between attempts.
    pub fn schedule(self) -> RetrySchedule {
        RetrySchedule::default().scaled(self.waits)
    }

    /// Scales the time limit of an attempt.
    pub fn timeout(self, timeout: Duration) -> Duration {
        timeout.mul_f64(self.timeouts)
    }
}
