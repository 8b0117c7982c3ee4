//! `--time-scale` and `--timeout-scale`: shorter waits for a demonstration or a test. Six hours take seconds.

use std::time::Duration;

use call_assistant::webhook::sender::RetrySchedule;

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
    /// Returns the waits between attempts.
    pub fn schedule(self) -> RetrySchedule {
        RetrySchedule::default().scaled(self.waits)
    }

    /// Scales the time limit of an attempt.
    pub fn timeout(self, timeout: Duration) -> Duration {
        timeout.mul_f64(self.timeouts)
    }
}

/// The greatest factor for waits: the library takes a due time of more than twice the longest wait
/// for the work of a clock that was wrong.
pub const MOST_WAITS: f64 = 2.0;

/// The greatest factor for attempts: ten seconds and a little more have to fit into a lease.
pub const MOST_TIMEOUTS: f64 = 2.5;

/// Parses a factor of a command line.
///
/// # Errors
/// The text is not a number above 0 and up to `most`.
pub fn factor(text: &str, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && factor <= most => Ok(factor),
        _ => Err(format!("expected a number above 0, at most {most}")),
    }
}
