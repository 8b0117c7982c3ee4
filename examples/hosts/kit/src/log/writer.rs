//! The thread that composes and writes lines.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use tokio::time::Instant;

use call_assistant::Timestamp;
use serde_json::{Map, Value};

use super::repeated::Repeated;
use super::{Format, LASTING, Line, Message, dropped, strangers, warn};
use crate::terminal::{escaped, is_unsafe};

/// How long lines are collected before they are written: 5 ms. Whoever logs much wakes this thread seldom.
const COLLECTED: Duration = Duration::from_millis(5);

/// How often to look for failures that have ended: each second.
const LOOK: Duration = Duration::from_secs(1);

/// The most that is written at once: 256 KiB.
const MOST: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Writer {
    format: Format,
    repeated: Repeated,
    batch: String,
    waiting: Vec<SyncSender<()>>,
    /// How many lines were dropped, as was written last.
    dropped: u64,
}

impl Writer {
    pub(super) fn new(format: Format) -> Self {
        let (repeated, batch, waiting) = (Repeated::default(), String::new(), Vec::new());
        Self { format, repeated, batch, waiting, dropped: 0 }
    }

    /// Writes what comes, until nobody can log any more.
    pub(super) fn run(mut self, queue: &Receiver<Message>) {
        loop {
            let is_quiet = self.repeated.is_empty() && strangers().is_quiet(Instant::now());
            let look = if is_quiet { Duration::MAX } else { LOOK };
            match queue.recv_timeout(look) {
                Ok(first) => {
                    std::thread::sleep(COLLECTED);
                    self.take(first);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Lines that came meanwhile go out in the same write.
            while self.batch.len() < MOST
                && let Ok(next) = queue.try_recv()
            {
                self.take(next);
            }
            let (now, is_end) = (Instant::now(), !self.waiting.is_empty());
            let ended = self.repeated.end(now, is_end);
            ended.iter().for_each(|line| self.compose(line));
            LASTING.store(self.repeated.lasting(), Ordering::Relaxed);
            if let Some(lines) = strangers().tell(now, is_end) {
                let message = "requests without a key or a login have more lines than are written";
                self.compose(&warn(message).with("lines", lines));
            }
            let dropped = dropped();
            if dropped > self.dropped {
                let more = dropped.saturating_sub(self.dropped);
                self.compose(&warn("lines of this log were dropped").with("lines", more));
                self.dropped = dropped;
            }
            // Standard error is closed: there is nowhere to report that.
            let _ = std::io::stderr().write_all(self.batch.as_bytes());
            self.batch.clear();
            for done in self.waiting.drain(..) {
                let _ = done.send(());
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Line(line) => {
                let lines = self.repeated.take(line, Instant::now());
                lines.iter().for_each(|line| self.compose(line));
            }
            Message::Succeeded(name, at) => self.repeated.succeeded(name, at, Instant::now()),
            Message::Flush(done) => self.waiting.push(done),
        }
    }

    fn compose(&mut self, line: &Line) {
        match self.format {
            Format::Text => write_text(line, &mut self.batch),
            Format::Json => self.batch.push_str(&escaped(&json(line))),
        }
        self.batch.push('\n');
    }
}

/// Writes the time, the level, the message and the fields. Nothing forges another line or another field.
fn write_text(line: &Line, text: &mut String) {
    let level = line.level.as_str().to_ascii_uppercase();
    let _ = write!(text, "{} {level:5} {}", fixed(line.at), escaped(&line.message));
    for (name, value) in fields(line) {
        text.extend([" ", name, "="]);
        match &*value {
            Value::String(plain) if is_plain(plain) => text.push_str(plain),
            value => text.push_str(&escaped(&value.to_string())),
        }
    }
}

fn json(line: &Line) -> String {
    let mut object = Map::new();
    object.insert("time".to_owned(), fixed(line.at).into());
    object.insert("level".to_owned(), line.level.as_str().into());
    object.insert("message".to_owned(), line.message.as_ref().into());
    object.extend(fields(line).map(|(name, value)| (name.to_owned(), value.into_owned())));
    Value::Object(object).to_string()
}

fn fields(line: &Line) -> impl Iterator<Item = (&'static str, Cow<'_, Value>)> {
    let cause = line.cause.as_ref().map(|cause| ("error", Cow::Owned(cause.as_str().into())));
    let all = line.fields.iter().map(|(name, value)| (*name, Cow::Borrowed(value))).chain(cause);
    all.filter(|(_, value)| !value.is_null())
}

fn is_plain(text: &str) -> bool {
    let special = |of: char| of.is_whitespace() || is_unsafe(of) || matches!(of, '"' | '=');
    !text.is_empty() && !text.contains(special)
}

/// Returns an instant with six digits of its second, so that lines are in the order of their texts.
fn fixed(at: Timestamp) -> String {
    let micros = at.unix_micros().rem_euclid(1_000_000);
    let second = Timestamp::from_unix_micros(at.unix_micros().saturating_sub(micros));
    let second = second.unwrap_or(at).to_string();
    format!("{}.{micros:06}Z", second.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use call_assistant::Timestamp;
    use serde_json::{Value, json};

    use super::super::{Line, info};
    use super::{fixed, json, write_text};

    fn at(line: Line, micros: i64) -> Line {
        Line { at: Timestamp::from_unix_micros(micros).unwrap(), ..line }
    }

    #[test]
    fn a_line_has_its_fields_and_forges_no_other() {
        let line = info("attempt\n2026")
            .with("endpoint", "whep_1")
            .with("status", 204)
            .with("reason", None::<&str>)
            .with("route", "a b=\"c\"\u{9b}")
            .because(&"no\nanswer");
        let line = at(line, 1_500_000);
        let expected = "1970-01-01T00:00:01.500000Z INFO  attempt\\n2026 endpoint=whep_1 status=204 \
            route=\"a b=\\\"c\\\"\\u009b\" error=\"no\\nanswer\"";
        let mut text = String::new();
        write_text(&line, &mut text);
        assert_eq!(text, expected);
        let object: Value = serde_json::from_str(&json(&line)).unwrap();
        let expected = json!({
            "time": "1970-01-01T00:00:01.500000Z", "level": "info", "message": "attempt\n2026",
            "endpoint": "whep_1", "status": 204, "route": "a b=\"c\"\u{9b}", "error": "no\nanswer",
        });
        assert_eq!(object, expected);
        assert!(!json(&line).contains('\n'));
    }

    #[test]
    fn a_time_has_one_width() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_772_323_200_120_000, "2026-03-01T00:00:00.120000Z"),
        ] {
            assert_eq!(fixed(Timestamp::from_unix_micros(micros).unwrap()), expected, "{micros}");
        }
    }
}
