//! Failures that repeat: the first line is written, and at the end how many there were.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use call_assistant::Timestamp;

use super::Line;
use crate::clock;

/// How long after its last line a cause that waits for no success is silent: 10 s.
const SILENT: Duration = Duration::from_secs(10);

/// How long after a success without a failure what is tried again is over: 2 s.
const OVER: Duration = Duration::from_secs(2);

/// The most that is counted at a time: 64.
const MOST: usize = 64;

/// The most errors that are written of one failure that lasts: 8.
const MOST_ERRORS: usize = 8;

/// What is counted: failures that last by their names, other causes by their texts and fields.
#[derive(Debug, Default)]
pub(super) struct Repeated(BTreeMap<(bool, String), Cause>);

#[derive(Debug)]
struct Cause {
    first: Line,
    /// The errors that are written of a failure that lasts.
    errors: Vec<String>,
    times: u64,
    /// Whether it lasted, and the last try was a success.
    has_succeeded: bool,
    /// The time of the last line, or of the success.
    last_at: Timestamp,
    last: Instant,
}

impl Repeated {
    /// Tells whether nothing is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many failures wait for a success.
    pub(super) fn lasting(&self) -> usize {
        self.0.values().filter(|cause| cause.first.lasts && !cause.has_succeeded).count()
    }

    /// Takes a line with a cause, and returns what is to be written: the line, unless it repeats one.
    pub(super) fn take(&mut self, line: Line, now: Instant) -> Vec<Line> {
        let Some(error) = line.cause.clone() else { return vec![line] };
        let key = match line.lasts {
            true => line.message.clone().into_owned(),
            false => format!("{error}{:?}", line.fields),
        };
        let key = (line.lasts, key);
        if let Some(known) = self.0.get_mut(&key) {
            known.times = known.times.saturating_add(1);
            (known.has_succeeded, known.last_at, known.last) = (false, line.at, now);
            let is_new = line.lasts && !known.errors.contains(&error);
            if !is_new || known.errors.len() >= MOST_ERRORS {
                return Vec::new();
            }
            known.errors.push(error);
            return vec![line];
        }
        let mut lines = Vec::new();
        if self.0.len() >= MOST {
            // What lasts is kept for its end, rather than what nobody tries again.
            let oldest = self.0.iter().min_by_key(|(_, cause)| (cause.first.lasts, cause.last));
            let oldest = oldest.map(|(key, _)| key.clone());
            lines.extend(oldest.and_then(|key| self.0.remove(&key)).and_then(Cause::end));
        }
        let (first, last_at) = (line.clone(), line.at);
        let (errors, has_succeeded) = (vec![error], false);
        let cause = Cause { first, errors, times: 1, has_succeeded, last_at, last: now };
        self.0.insert(key, cause);
        lines.push(line);
        lines
    }

    /// Notes that what has failed has succeeded, unless it is noted.
    pub(super) fn succeeded(&mut self, name: &str, at: Timestamp, now: Instant) {
        let known = self.0.get_mut(&(true, name.to_owned()));
        if let Some(known) = known.filter(|known| !known.has_succeeded) {
            (known.has_succeeded, known.last_at, known.last) = (true, at, now);
        }
    }

    /// Returns the last lines of what is over or silent, or of all.
    pub(super) fn end(&mut self, now: Instant, all: bool) -> Vec<Line> {
        let ended = self.0.iter().filter(|(_, cause)| all || cause.has_ended(now));
        let ended: Vec<_> = ended.map(|(key, _)| key.clone()).collect();
        ended.iter().filter_map(|key| self.0.remove(key)?.end()).collect()
    }
}

impl Cause {
    fn has_ended(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.last);
        match self.first.lasts {
            true => self.has_succeeded && since >= OVER,
            false => since >= SILENT,
        }
    }

    /// Returns the last line: of what has succeeded always, of other causes if they repeated.
    fn end(self) -> Option<Line> {
        let Self { first, times, has_succeeded, last_at, .. } = self;
        let how = if has_succeeded { "over" } else { "repeated" };
        let seconds = (last_at.since(first.at).as_secs_f64() * 1e3).round() / 1e3;
        let message = format!("{how}: {}", first.message).into();
        let last = Line { at: clock::now(), message, ..first };
        (has_succeeded || times > 1).then(|| last.with("times", times).with("seconds", seconds))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use call_assistant::Timestamp;

    use super::super::{Line, warn};
    use super::{MOST, MOST_ERRORS, OVER, Repeated, SILENT};

    /// The log of a process that began some time ago.
    struct Log {
        repeated: Repeated,
        began: Instant,
    }

    impl Log {
        fn new() -> Self {
            Self { repeated: Repeated::default(), began: Instant::now() }
        }

        fn instant(&self, seconds: f64) -> Instant {
            self.began.checked_add(Duration::from_secs_f64(seconds)).unwrap_or(self.began)
        }

        /// Takes a line so many seconds after the beginning.
        fn take(&mut self, line: Line, seconds: f64) -> Vec<String> {
            let line = Line { at: at(seconds), ..line };
            shown(&self.repeated.take(line, self.instant(seconds)))
        }

        fn failed(&mut self, name: &'static str, error: &str, seconds: f64) -> Vec<String> {
            self.take(Line { lasts: true, ..warn(name) }.because(&error), seconds)
        }

        fn succeeded(&mut self, name: &str, seconds: f64) {
            self.repeated.succeeded(name, at(seconds), self.instant(seconds));
        }

        fn end(&mut self, seconds: f64) -> Vec<String> {
            shown(&self.repeated.end(self.instant(seconds), false))
        }
    }

    fn at(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs_f64(seconds))
    }

    fn shown(lines: &[Line]) -> Vec<String> {
        let shown = |line: &Line| {
            let fields = line.fields.iter().map(|(name, value)| format!(" {name}={value}"));
            let error = line.cause.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
            format!("{}{error}{}", line.message, fields.collect::<String>())
        };
        lines.iter().map(shown).collect()
    }

    #[test]
    fn what_failed_once_is_over_too() {
        let mut log = Log::new();
        assert_eq!(log.failed("leases", "away", 0.0), ["leases away"]);
        assert!(log.end(3_600.0).is_empty(), "silence is no success");
        log.succeeded("levers", 3_600.0);
        assert!(log.end(7_200.0).is_empty(), "another has succeeded");
        log.succeeded("leases", 7_200.5);
        log.succeeded("leases", 7_202.0);
        assert_eq!(log.end(7_203.0), ["over: leases away times=1 seconds=7200.5"]);
        log.succeeded("leases", 7_203.0);
        assert!(log.end(9_000.0).is_empty() && log.repeated.is_empty(), "it is over once");
        assert_eq!(log.failed("leases", "away", 9_001.0), ["leases away"]);
    }

    #[test]
    fn a_failure_lasts_whatever_its_errors_and_the_others_are() {
        let mut log = Log::new();
        assert_eq!(log.failed("looks", "away", 0.0), ["looks away"]);
        // Another loop of the same error speaks for itself.
        assert_eq!(log.failed("leases", "away", 1.0), ["leases away"]);
        assert_eq!(log.repeated.lasting(), 2);
        assert_eq!(log.failed("looks", "refused", 2.0), ["looks refused"]);
        assert!(log.failed("looks", "away", 3.0).is_empty());
        assert!(log.failed("looks", "refused", 4.0).is_empty());
        log.succeeded("looks", 5.0);
        log.succeeded("leases", 31.0);
        assert_eq!(log.repeated.lasting(), 0);
        assert_eq!(log.end(6.0), [""; 0]);
        let over =
            ["over: leases away times=1 seconds=30.0", "over: looks away times=4 seconds=5.0"];
        assert_eq!(log.end(33.0), over);
    }

    #[test]
    fn an_outage_begins_and_ends_once_however_often_it_is_tried() {
        let mut log = Log::new();
        let mut lines = Vec::new();
        for n in 0..360_u32 {
            let seconds = f64::from(n) / 6.0;
            lines.extend(log.failed("looks", &format!("error {}", n % 10), seconds));
            // Another task of this name has a success between the failures.
            log.succeeded("looks", seconds + 0.1);
            lines.extend(log.end(seconds + 0.1));
        }
        let began = (0..MOST_ERRORS).map(|n| format!("looks error {n}"));
        assert_eq!(lines, began.collect::<Vec<_>>());
        assert_eq!(log.end(60.0), [""; 0]);
        let over = log.end(60.0 + OVER.as_secs_f64());
        assert_eq!(over, ["over: looks error 0 times=360 seconds=59.933"]);
    }

    #[test]
    fn a_log_that_ends_has_what_is_over_and_what_is_not() {
        let mut log = Log::new();
        for name in ["leases", "levers", "looks"] {
            assert_eq!(log.failed(name, "away", 0.0).len(), 1, "{name}");
        }
        assert!(log.failed("looks", "away", 1.0).is_empty());
        log.succeeded("leases", 1.5);
        let ended = shown(&log.repeated.end(log.instant(1.5), true));
        let expected =
            ["over: leases away times=1 seconds=1.5", "repeated: looks away times=2 seconds=1.0"];
        assert_eq!(ended, expected);
    }

    #[test]
    fn what_is_not_tried_again_has_repeated() {
        let (mut log, silent) = (Log::new(), SILENT.as_secs_f64());
        assert_eq!(log.take(warn("plain"), 0.0), ["plain"]);
        assert!(log.repeated.is_empty());
        assert_eq!(log.take(warn("row").because(&"bad"), 0.0), ["row bad"]);
        let of_one = warn("row").with("endpoint", "whep_1").because(&"bad");
        assert_eq!(log.take(of_one, 2.0), ["row bad endpoint=\"whep_1\""]);
        assert!(log.take(warn("another").because(&"bad"), silent).is_empty());
        log.succeeded("row", silent);
        assert_eq!(log.end(silent), [""; 0]);
        assert_eq!(log.end(2.0 * silent), ["repeated: row bad times=2 seconds=10.0"]);
        assert!(log.repeated.is_empty(), "what did not repeat has no end");
        assert_eq!(log.repeated.lasting(), 0);
    }

    #[test]
    fn causes_take_bounded_memory() {
        let mut log = Log::new();
        assert_eq!(log.failed("leases", "away", 0.0), ["leases away"]);
        for n in 0..10 * MOST {
            assert_eq!(log.take(warn("row").because(&n), 1.0).len(), 1, "{n}");
        }
        assert_eq!(log.repeated.0.len(), MOST);
        assert_eq!(log.repeated.lasting(), 1, "its end is to come");
    }
}
