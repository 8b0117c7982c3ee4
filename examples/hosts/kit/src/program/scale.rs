//! `--time-scale` and `--timeout-scale`: shorter waits for a demonstration or a test. Hours take seconds.

use std::time::Duration;

use call_assistant::webhook::sender::RetrySchedule;

/// The factors of this host's waits.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args)]
pub struct Scale {
    /// Multiplies the waits between attempts: with 0.001, an hour lasts 3.6 seconds.
    // A due time of more than twice the longest wait would count as that of a wrong clock.
    #[arg(long = "time-scale", value_name = "F", default_value = "1")]
    #[arg(value_parser = |text: &str| factor(text, 2.0))]
    pub waits: f64,
    /// Multiplies the ten-second limit of an attempt; at most 2.5.
    // Ten seconds and a little more have to fit into a lease.
    #[arg(long = "timeout-scale", value_name = "F", default_value = "1")]
    #[arg(value_parser = |text: &str| factor(text, 2.5))]
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

/// Reads a factor.
fn factor(text: &str, most: f64) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| *factor > 0.0 && *factor <= most);
    factor.ok_or_else(|| format!("expected a number above 0, at most {most}"))
}
