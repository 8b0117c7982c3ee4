//! One sliding window.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{RateLimitError, RateLimitReason};
use crate::Timestamp;
use crate::rest::Quota;

const SPAN: u64 = 60_000_000_000;

/// The admissions of one credential under one quota in the last 60 seconds.
pub(super) struct RateWindow {
    /// The instant of the newest admission. While there is no admission, the field has no meaning.
    newest: Timestamp,
    /// The admissions, oldest first, in nanoseconds on the window's own scale. The last admission is at
    /// `newest`, so all admissions move with `newest`.
    ticks: VecDeque<u64>,
}

impl Default for RateWindow {
    fn default() -> Self {
        Self { newest: Timestamp::MIN, ticks: VecDeque::new() }
    }
}

impl RateWindow {
    /// Decides whether a request is admitted now. Counts an admitted request.
    pub(super) fn check(&mut self, quota: Quota, now: Timestamp) -> Result<(), RateLimitError> {
        self.move_back(now);
        let passed = u64::try_from(now.since(self.newest).as_nanos()).unwrap_or(u64::MAX);
        let mut tick = self.ticks.back().map_or(0, |newest| newest.saturating_add(passed));
        while self.ticks.front().is_some_and(|oldest| tick.saturating_sub(*oldest) >= SPAN) {
            self.ticks.pop_front();
        }
        if self.ticks.is_empty() {
            // Gives the memory back, and begins a new scale.
            *self = Self::default();
            tick = 0;
        }
        let nth = self.ticks.len().checked_sub(usize::from(quota.per_minute()));
        if let Some(oldest) = nth.and_then(|nth| self.ticks.get(nth)) {
            let wait = Duration::from_nanos(SPAN.saturating_sub(tick.saturating_sub(*oldest)));
            // A clock that was set back must also reach the newest admission again.
            let wait = wait.saturating_add(self.newest.since(now));
            return Err(RateLimitError { wait, reason: RateLimitReason::Quota });
        }
        self.ticks.push_back(tick);
        self.newest = self.newest.max(now);
        Ok(())
    }

    /// Returns whether no request was admitted in the last 60 seconds. If a wrong clock stamped the newest
    /// admission far ahead, moves the window back, so that an unused window becomes idle.
    pub(super) fn becomes_idle(&mut self, now: Timestamp) -> bool {
        self.move_back(now);
        self.ticks.is_empty() || now.since(self.newest) >= Quota::SPAN
    }

    /// Returns the instant at which the window becomes idle, if no further request is admitted.
    pub(super) fn idle_at(&self) -> Timestamp {
        self.newest.saturating_add(Quota::SPAN)
    }

    /// Moves the window back to end at `now` if the clock that stamped its newest admission was
    /// wrong.
    fn move_back(&mut self, now: Timestamp) {
        if self.newest.since(now) > Quota::SPAN {
            self.newest = now;
        }
    }
}
