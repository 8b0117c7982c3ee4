//! Failures that repeat: the first line is written, and at the end how many there were.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Level;

use super::line::Line;
use crate::clock;

/// How long after its last line a cause that waits for no success is silent, and the span in which lines of strangers
/// are counted: 10 s.
const SILENT: Duration = Duration::from_secs(10);

/// How long after a success without a failure what is tried again is over: 2 s.
const OVER: Duration = Duration::from_secs(2);

/// The most that is counted at a time: 64.
const MOST: usize = 64;

/// The most errors that are written of one failure that lasts: 8.
const MOST_ERRORS: usize = 8;

/// The most lines of strangers that are written in a span: 100.
const MOST_OF_STRANGERS: u64 = 100;

/// The counts of lines, by their causes.
#[derive(Debug)]
pub(super) struct Repeated {
    /// Failures that last by their names, other causes by their fields.
    causes: BTreeMap<(bool, String), Cause>,
    /// When the span of strangers' lines began, and how many there were in it.
    strangers: Option<(Instant, u64)>,
}

#[derive(Debug)]
struct Cause {
    first: Line,
    /// The errors that are written of a failure that lasts.
    errors: Vec<String>,
    times: u64,
    /// Whether it lasted, and the last try was a success.
    has_succeeded: bool,
    began: Instant,
    /// The time of the last line, or of the success.
    last: Instant,
}

impl Repeated {
    pub(super) const fn new() -> Self {
        Self { causes: BTreeMap::new(), strangers: None }
    }

    /// Takes a line, and returns what is to be written: the line, unless it is one too many.
    pub(super) fn take(&mut self, line: Line, now: Instant) -> Vec<Line> {
        if line.is_strangers {
            let (_, lines) = self.strangers.get_or_insert((now, 0));
            *lines = lines.saturating_add(1);
            if *lines > MOST_OF_STRANGERS {
                return Vec::new();
            }
        }
        let Some(error) = line.error() else { return vec![line] };
        let key = match line.lasts {
            true => line.message.clone(),
            false => format!("{:?}", line.fields),
        };
        let key = (line.lasts, key);
        if let Some(known) = self.causes.get_mut(&key) {
            known.times = known.times.saturating_add(1);
            (known.has_succeeded, known.last) = (false, now);
            let is_new = line.lasts && !known.errors.contains(&error);
            if !is_new || known.errors.len() >= MOST_ERRORS {
                return Vec::new();
            }
            known.errors.push(error);
            return vec![line];
        }
        let mut lines = Vec::new();
        if self.causes.len() >= MOST {
            // What lasts is kept for its end, rather than what nobody tries again.
            let oldest =
                self.causes.iter().min_by_key(|(_, cause)| (cause.first.lasts, cause.last));
            let oldest = oldest.map(|(key, _)| key.clone());
            lines.extend(oldest.and_then(|key| self.causes.remove(&key)).and_then(Cause::end));
        }
        let (first, errors, has_succeeded) = (line.clone(), vec![error], false);
        let cause = Cause { first, errors, times: 1, has_succeeded, began: now, last: now };
        self.causes.insert(key, cause);
        lines.push(line);
        lines
    }

    /// Notes that what has failed has succeeded, unless it is noted.
    pub(super) fn succeeded(&mut self, name: &str, now: Instant) {
        if self.causes.is_empty() {
            return;
        }
        let known = self.causes.get_mut(&(true, name.to_owned()));
        if let Some(known) = known.filter(|known| !known.has_succeeded) {
            (known.has_succeeded, known.last) = (true, now);
        }
    }

    /// Returns the last lines of what is over or silent, or of all.
    pub(super) fn end(&mut self, now: Instant, all: bool) -> Vec<Line> {
        let causes = mem::take(&mut self.causes).into_iter();
        let (ended, causes): (BTreeMap<_, _>, _) =
            causes.partition(|(_, cause)| all || cause.has_ended(now));
        self.causes = causes;
        let mut lines: Vec<Line> = ended.into_values().filter_map(Cause::end).collect();
        let is_over = |(began, _): &mut _| all || now.saturating_duration_since(*began) >= SILENT;
        let strangers = self.strangers.take_if(is_over).map_or(0, |(_, lines)| lines);
        if strangers > MOST_OF_STRANGERS {
            let message = "too many requests without a key or a login: not every line was written";
            lines.push(Line::of_more(message, strangers.saturating_sub(MOST_OF_STRANGERS)));
        }
        lines
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
        let Self { first, times, has_succeeded, began, last, .. } = self;
        let how = if has_succeeded { "over" } else { "repeated" };
        let seconds = last.saturating_duration_since(began).as_secs_f64();
        let message = format!("{how}: {}", first.message);
        // The end of a failure is none.
        let level = if has_succeeded { Level::INFO } else { first.level };
        let line = Line { at: clock::now(), level, message, ..first };
        let seconds = (seconds * 1e3).round() / 1e3;
        (has_succeeded || times > 1)
            .then(|| line.with([("times", times.into()), ("seconds", seconds.into())]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

    use std::time::Duration;

    use tokio::time::Instant;

    use super::super::line::Line;
    use super::super::{Format, info, lines_of, tried, warn};
    use super::{Level, MOST, MOST_ERRORS, OVER, Repeated, SILENT};

    /// The log of a process that began some time ago.
    struct Log {
        repeated: Repeated,
        began: Instant,
    }

    impl Log {
        fn new() -> Self {
            Self { repeated: Repeated::new(), began: Instant::now() }
        }

        fn instant(&self, seconds: f64) -> Instant {
            self.began + Duration::from_secs_f64(seconds)
        }

        /// Takes the line of an event so many seconds after the beginning.
        fn take(&mut self, seconds: f64, event: impl FnOnce()) -> Vec<String> {
            let now = self.instant(seconds);
            let lines = lines_of(event).into_iter();
            shown(lines.flat_map(|line| self.repeated.take(line, now)))
        }

        fn failed(&mut self, name: &'static str, error: &str, seconds: f64) -> Vec<String> {
            self.take(seconds, || tried(name, &Err::<(), _>(error)))
        }

        fn succeeded(&mut self, name: &str, seconds: f64) {
            self.repeated.succeeded(name, self.instant(seconds));
        }

        fn end(&mut self, seconds: f64, all: bool) -> Vec<String> {
            shown(self.repeated.end(self.instant(seconds), all))
        }
    }

    /// Lines without their time and level.
    fn shown(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
        let shown = |line: Line| {
            let text = line.text(Format::Text);
            text.trim_end().splitn(3, ' ').nth(2).unwrap_or_default().trim_start().to_owned()
        };
        lines.into_iter().map(shown).collect()
    }

    #[test]
    fn what_failed_once_is_over_too() {
        let mut log = Log::new();
        assert_eq!(log.failed("leases", "away", 0.0), ["leases error=away"]);
        assert!(log.end(3_600.0, false).is_empty(), "silence is no success");
        log.succeeded("levers", 3_600.0);
        assert!(log.end(7_200.0, false).is_empty(), "another has succeeded");
        log.succeeded("leases", 7_200.5);
        log.succeeded("leases", 7_202.0);
        assert_eq!(log.end(7_203.0, false), ["over: leases times=1 seconds=7200.5 error=away"]);
        log.succeeded("leases", 7_203.0);
        assert!(
            log.end(9_000.0, false).is_empty() && log.repeated.causes.is_empty(),
            "it is over once"
        );
        assert_eq!(log.failed("leases", "away", 9_001.0), ["leases error=away"]);
    }

    #[test]
    fn a_failure_lasts_whatever_its_errors_and_the_others_are() {
        let mut log = Log::new();
        assert_eq!(log.failed("looks", "away", 0.0), ["looks error=away"]);
        // Another loop of the same error speaks for itself.
        assert_eq!(log.failed("leases", "away", 1.0), ["leases error=away"]);
        assert_eq!(log.failed("looks", "refused", 2.0), ["looks error=refused"]);
        assert!(log.failed("looks", "away", 3.0).is_empty());
        assert!(log.failed("looks", "refused", 4.0).is_empty());
        log.succeeded("looks", 5.0);
        log.succeeded("leases", 31.0);
        assert_eq!(log.end(6.0, false), [""; 0]);
        let over = [
            "over: leases times=1 seconds=30.0 error=away",
            "over: looks times=4 seconds=5.0 error=away",
        ];
        assert_eq!(log.end(33.0, false), over);
    }

    #[test]
    fn an_outage_begins_and_ends_once_however_often_it_is_tried() {
        let mut log = Log::new();
        let mut lines = Vec::new();
        for n in 0..360_u32 {
            let seconds = f64::from(n) / 6.0;
            lines.extend(log.failed("looks", &format!("e{}", n % 10), seconds));
            // Another task of this name has a success between the failures.
            log.succeeded("looks", seconds + 0.1);
            lines.extend(log.end(seconds + 0.1, false));
        }
        let began = (0..MOST_ERRORS).map(|n| format!("looks error=e{n}"));
        assert_eq!(lines, began.collect::<Vec<_>>());
        assert_eq!(log.end(60.0, false), [""; 0]);
        let over = log.repeated.end(log.instant(60.0 + OVER.as_secs_f64()), false);
        assert!(over.iter().all(|line| line.level == Level::INFO), "no warning");
        assert_eq!(shown(over), ["over: looks times=360 seconds=59.933 error=e0"]);
    }

    #[test]
    fn a_log_that_ends_has_what_is_over_and_what_is_not() {
        let mut log = Log::new();
        for name in ["leases", "levers", "looks"] {
            assert_eq!(log.failed(name, "away", 0.0).len(), 1, "{name}");
        }
        assert!(log.failed("looks", "away", 1.0).is_empty());
        log.succeeded("leases", 1.5);
        let ended = log.end(1.5, true);
        let expected = [
            "over: leases times=1 seconds=1.5 error=away",
            "repeated: looks times=2 seconds=1.0 error=away",
        ];
        assert_eq!(ended, expected);
    }

    #[test]
    fn what_is_not_tried_again_has_repeated() {
        let (mut log, silent) = (Log::new(), SILENT.as_secs_f64());
        assert_eq!(log.take(0.0, || warn!("plain")), ["plain"]);
        assert!(log.repeated.causes.is_empty());
        assert_eq!(log.take(0.0, || warn!(error = "bad", "row")), ["row error=bad"]);
        let of_one = || warn!(endpoint = "whep_1", error = "bad", "row");
        assert_eq!(log.take(2.0, of_one), ["row endpoint=whep_1 error=bad"]);
        assert!(log.take(silent, || warn!(error = "bad", "another")).is_empty());
        log.succeeded("row", silent);
        assert_eq!(log.end(silent, false), [""; 0]);
        assert_eq!(log.end(2.0 * silent, false), ["repeated: row times=2 seconds=10.0 error=bad"]);
        assert!(log.repeated.causes.is_empty(), "what did not repeat has no end");
    }

    #[test]
    fn causes_take_bounded_memory() {
        let mut log = Log::new();
        assert_eq!(log.failed("leases", "away", 0.0), ["leases error=away"]);
        for n in 0..10 * MOST {
            assert_eq!(log.take(1.0, || warn!(error = %n, "row")).len(), 1, "{n}");
        }
        assert_eq!(log.repeated.causes.len(), MOST);
        log.succeeded("leases", 2.0);
        let over = ["over: leases times=1 seconds=2.0 error=away"];
        assert_eq!(log.end(5.0, false), over, "what lasts is kept for its end");
    }

    #[test]
    fn strangers_have_a_hundred_lines_in_a_span_and_the_others_are_counted_once() {
        let (mut log, mut written, mut told) = (Log::new(), 0, 0);
        // Fifty lines a second for a minute, and a look each second.
        for second in 0..60_u32 {
            for _ in 0..50 {
                let stranger = || info!(stranger = true, "api");
                written += log.take(f64::from(second), stranger).len();
            }
            for line in log.end(f64::from(second), second == 59) {
                let (_, lines) = line.split_once("not every line was written lines=").unwrap();
                told += lines.parse::<usize>().unwrap();
            }
        }
        assert_eq!(written, 6 * 100);
        assert_eq!(written + told, 3_000);
        assert_eq!(log.end(60.0, true), [""; 0], "it is told once");
        assert_eq!(log.take(60.0, || info!(stranger = false, "api")), ["api"]);
    }
}
