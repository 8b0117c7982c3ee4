//! Time for the impatient: six hours in seconds. The library knows nothing of it.

use std::time::Duration;

/// By how much this host shortens, or stretches, what it waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// For the waits between attempts.
    pub waits: f64,
    /// For the time an attempt may take.
    pub timeouts: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Self { waits: 1.0, timeouts: 1.0 }
    }
}

impl Scale {
    /// How long to wait where the schedule says `wait`.
    pub fn wait(self, wait: Duration) -> Duration {
        times(wait, self.waits)
    }

    /// How long an attempt may take where the library says `timeout`.
    pub fn timeout(self, timeout: Duration) -> Duration {
        times(timeout, self.timeouts)
    }
}

/// The greatest factor for waits: the library takes a due time of more than twice the longest wait
/// for the work of a clock that was wrong.
pub const MOST_WAITS: f64 = 2.0;

/// The greatest factor for attempts: ten seconds and a little more have to fit into a lease.
pub const MOST_TIMEOUTS: f64 = 2.5;

/// A factor from a command line.
///
/// # Errors
/// It is no number above 0, or above `most`.
pub fn factor(text: &str, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && factor <= most => Ok(factor),
        _ => Err(format!("not a number above 0 and up to {most}")),
    }
}

fn times(span: Duration, factor: f64) -> Duration {
    // Exactly what the schedule says, unless somebody asks for something else.
    if factor == 1.0 { span } else { span.mul_f64(factor) }
}
