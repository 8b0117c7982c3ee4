//! The one place where this host reads a clock: the machine's, and what is known of the database's.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use host::lock;
use host::sender::{Clock, Moment};
use tokio::time::Instant;

/// Returns the current instant by this machine's clock, as precise as the database stores it. Receivers
/// compare `t` of a signature with theirs.
pub fn now() -> Timestamp {
    Timestamp::from(SystemTime::now()).floor_to_micros()
}

/// The clocks of a sender.
#[derive(Clone, Debug)]
pub(crate) struct HostClock {
    pub(crate) database: DatabaseClock,
    pub(crate) began: Instant,
}

impl Clock for HostClock {
    fn at(&self) -> Moment {
        let (steady, is_true) = (self.began.elapsed(), self.database.agrees());
        Moment { now: self.database.now(), steady, is_true }
    }

    fn machine(&self) -> Timestamp {
        now()
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

/// The greatest difference from this machine's clock at which a sender begins attempts: 30 seconds, a
/// tenth of what receivers accept.
pub(crate) const TOLERANCE: Duration = Duration::from_secs(30);

/// What the database's clock showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) when: Instant,
    pub(crate) at: Timestamp,
    /// By how much that may be wrong: half of the round trip.
    pub(crate) error: Duration,
}

/// The clock of a database, as was last heard of it. What is stored for other processes to compare is told by it.
/// Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseClock(Arc<Mutex<Option<Heard>>>);

impl DatabaseClock {
    /// Returns the current instant. It is this machine's until the database was heard.
    pub(crate) fn now(&self) -> Timestamp {
        lock(&self.0).map_or_else(now, |heard| heard.after(heard.when.elapsed()).floor_to_micros())
    }

    /// Tells whether this machine's clock agrees with the database's, which was heard.
    fn agrees(&self) -> bool {
        lock(&self.0).is_some_and(|heard| heard.agrees())
    }

    /// Notes what the database's clock showed.
    pub(crate) fn hear(&self, new: Heard) {
        let mut heard = lock(&self.0);
        *heard = Some(heard.map_or(new, |old| old.or_newer(new)));
    }
}

impl Heard {
    /// Returns by how many seconds this machine's clock is ahead now; negative if it is behind.
    pub(crate) fn ahead(&self) -> f64 {
        self.ahead_of(now(), self.when.elapsed())
    }

    /// Returns whether this machine's clock agrees now: it may be set between two looks.
    pub(crate) fn agrees(&self) -> bool {
        self.allows(self.ahead())
    }

    /// Returns whether so many seconds are no difference. How long the answer took is none.
    fn allows(&self, ahead: f64) -> bool {
        ahead.abs() <= TOLERANCE.saturating_add(self.error).as_secs_f64()
    }

    fn ahead_of(&self, machine: Timestamp, passed: Duration) -> f64 {
        let database = self.after(passed);
        machine.since(database).as_secs_f64() - database.since(machine).as_secs_f64()
    }

    fn after(&self, passed: Duration) -> Timestamp {
        self.at.saturating_add(passed)
    }

    /// Returns the more exact of two, if they agree: a slow answer moves no clock.
    fn or_newer(self, new: Self) -> Self {
        let passed = new.when.saturating_duration_since(self.when);
        // The monotonic clock drifts by less than 0.01 %.
        let error = self.error.saturating_add(passed.mul_f64(0.0001));
        let expected = self.after(passed);
        let differ = expected.since(new.at).max(new.at.since(expected));
        match differ <= error.saturating_add(new.error) && error <= new.error {
            true => self,
            false => new,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

    use super::*;

    // D-103
    #[test]
    fn the_clocks_differ_beyond_thirty_seconds_and_half_a_round_trip() {
        let at = |ms: i64| Timestamp::from_unix_micros(ms * 1000).unwrap();
        for (machine, half, agrees) in [
            (90_000, 0, true),
            (120_000, 0, true),
            (120_001, 0, false),
            (60_000, 0, true),
            (59_999, 0, false),
            (122_000, 2_000, true),
            (122_001, 2_000, false),
            (57_999, 2_000, false),
        ] {
            let error = Duration::from_millis(half);
            let heard = Heard { when: Instant::now(), at: at(80_000), error };
            let ahead = heard.ahead_of(at(machine), Duration::from_secs(10));
            assert_eq!(heard.allows(ahead), agrees, "{machine} ms, {half} ms: {ahead} s");
        }
    }

    #[test]
    fn a_slow_answer_moves_no_clock() {
        let (when, ms) = (Instant::now(), Duration::from_millis);
        let heard = |seconds: u64, at: i64, error| Heard {
            when: when + Duration::from_secs(seconds),
            at: Timestamp::from_unix_micros(at * 1000).unwrap(),
            error: ms(error),
        };
        let old = heard(0, 0, 1);
        for (new, is_taken) in [
            (heard(1, 1_000, 1), true),
            (heard(1, 1_001, 0), true),
            (heard(1, 1_030, 40), false),
            (heard(1, 1_300, 40), true),
            (heard(1, 700, 40), true),
            // By then the old one is no better.
            (heard(600, 600_030, 40), true),
        ] {
            let expected = if is_taken { new } else { old };
            assert_eq!(old.or_newer(new), expected, "{new:?}");
        }
    }
}
