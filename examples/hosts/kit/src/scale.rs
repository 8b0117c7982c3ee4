//! Clocks that run at another speed, for demonstrations and tests: six hours in seconds. The library
//! is not involved.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, DeliveryStatus, Ended, Settled};

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
    /// Scales a wait of the schedule.
    pub fn wait(self, wait: Duration) -> Duration {
        times(wait, self.waits)
    }

    /// Turns what waits for a next attempt from the schedule's clock to the wall clock.
    ///
    /// The schedule's clock runs `1 / waits` times as fast: an instant that it reaches some time
    /// after an attempt's end is reached after `waits` times that by the wall clock. Call this once,
    /// before anything of `settled` is stored. `ended` is what was settled.
    pub fn to_wall_clock<D: Ord + Clone, E>(
        self,
        settled: &mut Settled<D, E>,
        ended: &[Ended<'_, D, E>],
    ) {
        if self.waits == 1.0 {
            return;
        }
        // What another sender has stored is of the wall clock already, and no key here.
        let mut reached: BTreeMap<(D, Timestamp), Timestamp> = BTreeMap::new();
        let known = ended.iter().enumerate().filter(|(nth, _)| !settled.unknown.contains(nth));
        for ((_, ended), (_, entry)) in known.zip(&settled.log) {
            if let (Some(next), false) = (entry.next_at, entry.late) {
                let wait = self.wait(next.since(ended.at));
                let at = ended.at.saturating_add(wait).floor_to_micros();
                reached.insert((ended.delivery.clone(), next), at);
            }
        }
        let turn = |id: &D, at: &mut Timestamp| {
            if let Some(reached) = reached.get(&(id.clone(), *at)) {
                *at = *reached;
            }
        };
        for (id, entry) in &mut settled.log {
            entry.next_at.iter_mut().for_each(|at| turn(id, at));
        }
        for (id, _, at) in &mut settled.again {
            turn(id, at);
        }
        for (id, delivery) in &mut settled.deliveries {
            let mut columns = DeliveryColumns::from(*delivery);
            let (DeliveryStatus::Waiting, Some(read)) = (columns.status, delivery.if_version())
            else {
                continue;
            };
            turn(id, &mut columns.at);
            // As it was read, and due some moments earlier: each change of the version is to postpone it
            // by one, so that condition, version and due time are those of the step.
            let (due, moment) = (columns.at, Duration::from_micros(1));
            let changes = u32::try_from(columns.version.saturating_sub(read)).unwrap_or(1).max(1);
            let earlier = moment.saturating_mul(changes);
            (columns.version, columns.at) = (read, due.saturating_sub(earlier));
            let read = Delivery::from_columns(delivery.id(), delivery.endpoint(), columns);
            *delivery = read.unwrap_or(*delivery);
            for _ in 0..changes {
                delivery.postpone(moment, due);
            }
        }
    }

    /// Scales the time limit of an attempt.
    pub fn timeout(self, timeout: Duration) -> Duration {
        times(timeout, self.timeouts)
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

fn times(span: Duration, factor: f64) -> Duration {
    // Exactly what the schedule says, unless somebody asks for something else.
    if factor == 1.0 { span } else { span.mul_f64(factor) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

    use call_assistant::id::{AccountId, EventId};
    use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
    use call_assistant::webhook::sender::{Attempt, Endpoint, Outcome, RETRY_WAITS, settle};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(seconds).unwrap()
    }

    fn accepted() -> Delivery {
        let (id, account) = (EventId::parse("evt_1").unwrap(), AccountId::parse("acct_1").unwrap());
        let version = ApiVersion::parse("2026-01-15").unwrap();
        let event = NewEvent::new(id, account, version, Origin::voice(), at(0)).ping("").unwrap();
        Delivery::accept(&event, &Endpoint::new(1, at(0)), at(0))
    }

    /// Returns what is stored, logged and planned of one delivery by an attempt that ends at 100 s. The first
    /// is not written where the row is another's.
    fn settled(
        row: Delivery,
        attempt: Attempt,
        outcome: Outcome,
        waits: f64,
    ) -> (Option<Timestamp>, Option<Timestamp>, Option<Timestamp>) {
        let ended = [
            // One that nobody knows is left, and shifts no other.
            Ended { delivery: 9, endpoint: 9, attempt, outcome, at: at(50), response: None },
            Ended { delivery: 1, endpoint: 1, attempt, outcome, at: at(100), response: None },
        ];
        let endpoints = BTreeMap::from([(1, Endpoint::new(1, at(0)))]);
        let mut settled = settle(&ended, &BTreeMap::from([(1, row)]), &endpoints);
        let write = |delivery: &Delivery| (delivery.if_version(), delivery.version());
        let before = settled.deliveries.first().map(|(_, delivery)| write(delivery));
        Scale { waits, ..Scale::default() }.to_wall_clock(&mut settled, &ended);
        let stored = settled.deliveries.first().map(|(_, delivery)| *delivery);
        assert_eq!(stored.as_ref().map(write), before, "the condition and the version of the step");
        (
            stored.map(|stored| DeliveryColumns::from(stored).at),
            settled.log[0].1.next_at,
            settled.again.first().map(|(_, _, at)| *at),
        )
    }

    #[test]
    fn a_wait_is_as_much_shorter_as_the_clock_is_faster() {
        for (attempts, wait) in (0..).zip(RETRY_WAITS) {
            let columns = DeliveryColumns { attempts, ..accepted().into() };
            let mut row = Delivery::from_columns(accepted().id(), 1, columns).unwrap();
            let attempt = row.begin(&Endpoint::new(1, at(0)), at(90)).unwrap();
            for waits in [0.001, 0.5, 1.0, 2.0] {
                let due = Some(at(100).saturating_add(wait.mul_f64(waits)));
                let failed = settled(row, attempt, Outcome::TimedOut, waits);
                assert_eq!(failed, (due, due, due), "{waits} times the wait after {attempts}");
                // D-57: it is made again, and waits for nothing.
                let unsent = settled(row, attempt, Outcome::Unsent, waits);
                assert_eq!(unsent, (Some(at(100)), Some(at(100)), Some(at(100))), "{waits}");
            }
        }
    }

    #[test]
    fn what_has_ended_or_is_stored_stays() {
        let mut row = accepted();
        let attempt = row.begin(&Endpoint::new(1, at(0)), at(90)).unwrap();
        let ok = Outcome::Answered(http::StatusCode::OK);
        assert_eq!(settled(row, attempt, ok, 0.001), (Some(at(100)), None, None));
        // Another sender has stored the same attempt: this row is due by the wall clock.
        let due = Some(at(3_700));
        let columns =
            DeliveryColumns { attempts: 1, version: 7, at: at(3_700), ..accepted().into() };
        let row = Delivery::from_columns(accepted().id(), 1, columns).unwrap();
        assert_eq!(settled(row, attempt, Outcome::TimedOut, 0.001), (None, due, due));
    }
}
