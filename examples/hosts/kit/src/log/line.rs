//! A line: what an event says, and how it is written.

use std::fmt::{Debug, Write as _};

use call_assistant::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::Format;
use crate::clock;
use crate::terminal::{escaped, is_unsafe};

/// The target of events about what is tried again until it succeeds.
pub(super) const TRIED: &str = "tried";

/// A layer that passes a line on for each event.
#[derive(Debug)]
pub(super) struct Lines<W>(pub(super) W);

/// A line that is not written yet.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) level: Level,
    pub(super) message: String,
    /// The fields that have a value. That of a cause is the last.
    pub(super) fields: Vec<(&'static str, Value)>,
    /// Whether the failure lasts until there is a success of the same name.
    pub(super) lasts: bool,
    /// Whether somebody without a key or a login caused it.
    pub(super) is_strangers: bool,
}

impl<S: Subscriber, W: Fn(Line) + 'static> Layer<S> for Lines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let lasts = metadata.target() == TRIED;
        let mut line = Line { lasts, ..Line::new(*metadata.level(), Vec::new()) };
        event.record(&mut line);
        (self.0)(line);
    }
}

impl Visit for Line {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }
}

impl Line {
    fn new(level: Level, fields: Vec<(&'static str, Value)>) -> Self {
        let (at, message) = (clock::now(), String::new());
        Self { at, level, message, fields, lasts: false, is_strangers: false }
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        match (field.name(), value.into()) {
            ("message", Value::String(text)) => self.message = text,
            ("stranger", value) => self.is_strangers = value == true,
            named => self.fields.push(named),
        }
    }

    /// Creates a line about lines that are not written.
    pub(super) fn of_more(message: &str, lines: u64) -> Self {
        let line = Self::new(Level::WARN, vec![("lines", lines.into())]);
        Self { message: message.to_owned(), ..line }
    }

    /// Adds fields before that of the cause, which is the last.
    pub(super) fn with(mut self, fields: [(&'static str, Value); 2]) -> Self {
        let all = &mut self.fields;
        let end = all.iter().position(|(name, _)| *name == "error").unwrap_or(all.len());
        all.splice(end..end, fields);
        self
    }

    /// Tells whether the line may be one too many.
    pub(super) fn is_counted(&self) -> bool {
        self.is_strangers || self.error().is_some()
    }

    /// Returns the cause of a failure.
    pub(super) fn error(&self) -> Option<String> {
        let error = self.fields.iter().find(|(name, _)| *name == "error");
        error.and_then(|(_, error)| error.as_str()).map(str::to_owned)
    }

    /// Returns the line and a line feed. Nothing forges another line or another field.
    pub(super) fn text(self, format: Format) -> String {
        let mut text = String::with_capacity(512);
        match format {
            Format::Text => {
                let (at, level) = (fixed(self.at), self.level);
                let _ = write!(text, "{at} {level:5} {}", escaped(&self.message));
                for (name, value) in &self.fields {
                    text.extend([" ", *name, "="]);
                    match value {
                        Value::String(plain) if is_plain(plain) => text.push_str(plain),
                        value => text.push_str(&escaped(&value.to_string())),
                    }
                }
            }
            Format::Json => {
                let level = self.level.as_str().to_ascii_lowercase();
                let fields = self.fields.into_iter();
                let mut object: Map<_, _> =
                    fields.map(|(name, value)| (name.to_owned(), value)).collect();
                object.insert("time".to_owned(), fixed(self.at).into());
                object.insert("level".to_owned(), level.into());
                object.insert("message".to_owned(), self.message.into());
                text.push_str(&escaped(&Value::Object(object).to_string()));
            }
        }
        text.push('\n');
        text
    }
}

fn is_plain(text: &str) -> bool {
    let special = |of: char| of.is_whitespace() || is_unsafe(of) || matches!(of, '"' | '=');
    let is_simple = |of: u8| of.is_ascii_graphic() && !matches!(of, b'"' | b'=');
    !text.is_empty() && (text.bytes().all(is_simple) || !text.contains(special))
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
    use tracing::info;

    use super::super::{Format, lines_of};
    use super::{Line, fixed};

    #[test]
    fn a_line_has_its_fields_and_forges_no_other() {
        let line = lines_of(|| {
            let (reason, error) = (None::<&str>, "no\nanswer");
            info!(endpoint = "whep_1", status = 204, reason, route = "a b=\"c\"\u{9b}", %error, "attempt\n2026");
        });
        let line = Line { at: Timestamp::from_unix_micros(1_500_000).unwrap(), ..line[0].clone() };
        let expected = "1970-01-01T00:00:01.500000Z INFO  attempt\\n2026 endpoint=whep_1 status=204 \
            route=\"a b=\\\"c\\\"\\u009b\" error=\"no\\nanswer\"\n";
        assert_eq!(line.clone().text(Format::Text), expected);
        let text = line.text(Format::Json);
        let object: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "time": "1970-01-01T00:00:01.500000Z", "level": "info", "message": "attempt\n2026",
            "endpoint": "whep_1", "status": 204, "route": "a b=\"c\"\u{9b}", "error": "no\nanswer",
        });
        assert_eq!(object, expected);
        assert!(text.strip_suffix('\n').is_some_and(|line| !line.contains('\n')), "{text:?}");
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
