//! Causes that repeat: the first line is written, and at the end how many there were.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use call_assistant::Timestamp;

use super::Line;
use crate::clock;

/// How long after its last line a cause is over: 10 s. What is tried again is tried sooner.
const OVER: Duration = Duration::from_secs(10);

/// The most causes that last at a time: 64.
const MOST: usize = 64;

/// The causes that last.
#[derive(Debug, Default)]
pub(super) struct Repeated(BTreeMap<String, Cause>);

#[derive(Debug)]
struct Cause {
    first: Line,
    times: u64,
    last_at: Timestamp,
    last: Instant,
}

impl Repeated {
    /// Tells whether nothing lasts.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a line with a cause, and returns what is to be written: the line, unless it repeats one.
    pub(super) fn take(&mut self, line: Line, now: Instant) -> Vec<Line> {
        let Some(cause) = &line.cause else { return vec![line] };
        let key = format!("{cause}{:?}", line.fields);
        if let Some(known) = self.0.get_mut(&key) {
            known.times = known.times.saturating_add(1);
            (known.last_at, known.last) = (line.at, now);
            return Vec::new();
        }
        let mut lines = Vec::new();
        if self.0.len() >= MOST {
            let oldest = self.0.iter().min_by_key(|(_, cause)| cause.last);
            let oldest = oldest.map(|(key, _)| key.clone());
            lines.extend(oldest.and_then(|key| self.0.remove(&key)).and_then(Cause::end));
        }
        let cause = Cause { first: line.clone(), times: 1, last_at: line.at, last: now };
        self.0.insert(key, cause);
        lines.push(line);
        lines
    }

    /// Returns the last lines of causes that are over, or of all.
    pub(super) fn end(&mut self, now: Instant, all: bool) -> Vec<Line> {
        let over = |cause: &Cause| all || now.saturating_duration_since(cause.last) >= OVER;
        let ended: Vec<String> =
            self.0.iter().filter(|(_, cause)| over(cause)).map(|(key, _)| key.clone()).collect();
        ended.iter().filter_map(|key| self.0.remove(key)?.end()).collect()
    }
}

impl Cause {
    /// Returns the last line, if the first was not the only one.
    fn end(self) -> Option<Line> {
        let Self { first, times, last_at, .. } = self;
        let seconds = (last_at.since(first.at).as_secs_f64() * 1e3).round() / 1e3;
        let message = format!("over: {}", first.message).into();
        let last = Line { at: clock::now(), message, ..first };
        (times > 1).then(|| last.with("times", times).with("seconds", seconds))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::super::{Line, warn};
    use super::{MOST, OVER, Repeated};

    fn shown(lines: &[Line]) -> Vec<String> {
        let shown = |line: &Line| {
            let times = line.fields.iter().find(|(name, _)| *name == "times");
            let times = times.map(|(_, times)| format!(" {times}")).unwrap_or_default();
            format!("{}{times}", line.message)
        };
        lines.iter().map(shown).collect()
    }

    #[test]
    fn a_cause_is_written_at_its_beginning_and_its_end() {
        let (mut repeated, began) = (Repeated::default(), Instant::now());
        let at = |seconds: u64| began.checked_add(Duration::from_secs(seconds)).unwrap_or(began);
        let over = OVER.as_secs();
        assert_eq!(shown(&repeated.take(warn("plain"), at(0))), ["plain"]);
        assert!(repeated.is_empty());
        assert_eq!(shown(&repeated.take(warn("looks").because(&"away"), at(0))), ["looks"]);
        // Another loop of the same cause, and another cause.
        assert!(repeated.take(warn("leases").because(&"away"), at(1)).is_empty());
        assert_eq!(shown(&repeated.take(warn("leases").because(&"full"), at(2))), ["leases"]);
        let of_one = warn("leases").with("endpoint", "whep_1").because(&"away");
        assert_eq!(shown(&repeated.take(of_one, at(2))), ["leases"]);
        assert!(repeated.take(warn("looks").because(&"away"), at(over)).is_empty());
        assert!(repeated.end(at(over), false).is_empty());
        assert_eq!(shown(&repeated.end(at(2 * over), false)), ["over: looks 3"]);
        assert!(repeated.is_empty(), "what did not repeat has no end");
        assert_eq!(shown(&repeated.take(warn("looks").because(&"away"), at(60))), ["looks"]);
        assert!(repeated.take(warn("looks").because(&"away"), at(61)).is_empty());
        assert_eq!(shown(&repeated.end(at(61), true)), ["over: looks 2"]);
    }

    #[test]
    fn causes_take_bounded_memory() {
        let (mut repeated, now) = (Repeated::default(), Instant::now());
        for n in 0..10 * MOST {
            assert_eq!(repeated.take(warn("row").because(&n), now).len(), 1, "{n}");
        }
        assert_eq!(repeated.0.len(), MOST);
    }
}
