//! Lines that anybody can cause, without a key or a login: some are written, and the others are counted.

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

/// The most of these lines in [`SPAN`]: 100.
const MOST: u32 = 100;

/// The span in which lines are counted, and after which it is told how many were left out: 10 s.
const SPAN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Strangers {
    /// When the span began, and how many lines were written in it.
    began: Option<Instant>,
    written: u32,
    /// Since when lines are left out, and how many.
    since: Option<Instant>,
    left_out: u64,
}

impl Strangers {
    pub(super) const fn new() -> Self {
        Self { began: None, written: 0, since: None, left_out: 0 }
    }

    /// Takes a line, and returns whether it is to be written.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if !is_within(self.began, now) {
            (self.began, self.written) = (Some(now), 0);
        }
        let admits = self.written < MOST;
        if admits {
            self.written = self.written.saturating_add(1);
        } else {
            self.since.get_or_insert(now);
            self.left_out = self.left_out.saturating_add(1);
        }
        admits
    }

    /// Returns how many lines were left out, if it is time to tell, or the end.
    pub(super) fn tell(&mut self, now: Instant, is_end: bool) -> Option<u64> {
        if is_within(self.since, now) && !is_end {
            return None;
        }
        self.since.take().map(|_| mem::take(&mut self.left_out))
    }

    /// Tells whether nothing is to be told until another line comes.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.since.is_none() && !is_within(self.began, now)
    }
}

fn is_within(span: Option<Instant>, now: Instant) -> bool {
    span.is_some_and(|began| now.saturating_duration_since(began) < SPAN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use std::time::Duration;

    use tokio::time::Instant;

    use super::{MOST, SPAN, Strangers};

    #[test]
    fn so_many_are_written_in_a_span_and_each_other_line_is_counted_once() {
        let (mut strangers, began) = (Strangers::new(), Instant::now());
        let at = |millis| began.checked_add(Duration::from_millis(millis)).unwrap_or(began);
        assert!(strangers.is_quiet(began));
        let (mut written, mut told) = (0, Vec::new());
        // A thousand lines a second for a minute, and a look each second.
        for milli in 0..60_000 {
            written += u32::from(strangers.admits(at(milli)));
            told.extend((milli % 1_000 == 0).then(|| strangers.tell(at(milli), false)).flatten());
            assert!(!strangers.is_quiet(at(milli)), "{milli}");
        }
        assert_eq!(written, 6 * MOST);
        assert_eq!(told.len(), 5, "{told:?}");
        told.extend(strangers.tell(at(60_000), true));
        assert_eq!(told.iter().sum::<u64>(), 60_000 - u64::from(6 * MOST));
        assert_eq!(strangers.tell(at(60_000), true), None, "it is told once");
        assert!(strangers.is_quiet(at(60_000).checked_add(SPAN).unwrap_or(began)));
    }
}
