//! The recent results of an endpoint.

use std::collections::VecDeque;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{LogEntry, Outcome};

use host::store::LastHour;

/// How many attempts are remembered of an endpoint; of a busy one they are less than an hour's.
const KEPT: usize = 4096;

/// The latest attempts of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Hour(VecDeque<Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Timestamp,
    took: Duration,
    /// Whether there was an answer: without one, its time says nothing of the endpoint.
    answered: bool,
    succeeded: bool,
}

impl Hour {
    /// Adds an attempt, if one was made.
    pub fn add(&mut self, entry: &LogEntry) {
        if entry.outcome == Outcome::Unsent {
            return;
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        let took = Duration::from_millis(entry.took_ms);
        let at = entry.began_at.saturating_add(took);
        let answered = matches!(entry.outcome, Outcome::Answered(_));
        let succeeded = entry.outcome.is_success();
        self.0.push_back(Sample { at, took, answered, succeeded });
    }

    /// Returns the last hour's.
    pub fn shown(&self, now: Timestamp) -> LastHour {
        let from = now.saturating_sub(Duration::from_secs(3600));
        let recent: Vec<&Sample> = self.0.iter().filter(|sample| sample.at >= from).collect();
        let answered = recent.iter().filter(|sample| sample.answered);
        let mut took: Vec<u128> = answered.map(|sample| sample.took.as_millis()).collect();
        took.sort_unstable();
        let percentile = |hundredth: usize| {
            let place = took.len().saturating_mul(hundredth).div_ceil(100).saturating_sub(1);
            took.get(place).map(|millis| u64::try_from(*millis).unwrap_or(u64::MAX))
        };
        let count = |samples: usize| u64::try_from(samples).unwrap_or(u64::MAX);
        LastHour {
            attempts: count(recent.len()),
            more: recent.len() >= KEPT,
            succeeded: count(recent.iter().filter(|sample| sample.succeeded).count()),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
        }
    }
}
