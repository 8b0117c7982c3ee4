//! What is wrong with a JSON text, and where, without quoting it.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde_json::error::Category;

use super::MAX_LEN;

/// Why a JSON text is not what it should be: what, in which field, at which line and column.
///
/// It never carries a value that stood in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    field: Option<String>,
    reason: String,
    line: usize,
    column: usize,
}

/// What is wrong with a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// It is longer than [`MAX_LEN`] bytes.
    TooLong,
    /// It is not UTF-8.
    NotUtf8,
    /// It is not JSON.
    Syntax,
    /// It ends too early.
    Truncated,
    /// A required field is missing.
    Missing,
    /// A field stands there twice.
    Duplicate,
    /// A value is of the wrong kind or form for its field.
    Value,
}

impl ParseError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// The field concerned, as a path: `caller.phone_number`, `data[3].started_at`. `None` for
    /// the whole text.
    ///
    /// A name that is not written like the specification's own (lowercase letters, digits and
    /// underscores, 40 at most) is shown as `?`, since it may be somebody's data. Below eight
    /// levels, which the specification has nowhere, a path ends in `...`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The line, from 1. Where the text is too long, 0.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in bytes, from 1; 0 is the end of the line before.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    pub(super) fn too_long(len: usize) -> Self {
        Self {
            kind: ParseErrorKind::TooLong,
            field: None,
            reason: alloc::format!("text of {len} bytes, more than {MAX_LEN}"),
            line: 0,
            column: 0,
        }
    }

    pub(super) fn not_utf8(bytes: &[u8], at: usize) -> Self {
        let before = bytes.get(..at).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n');
        Self {
            kind: ParseErrorKind::NotUtf8,
            field: None,
            reason: "not UTF-8".to_owned(),
            column: line.clone().next_back().unwrap_or_default().len().saturating_add(1),
            line: line.count(),
        }
    }

    pub(super) fn new(text: &str, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let at = offset(text, error.line(), error.column());
        let place = Place::find(text.as_bytes(), at);
        let (kind, field) = match error.classify() {
            Category::Eof => (ParseErrorKind::Truncated, place.here()),
            // A number that nobody looks into, cut off behind what has to be followed by a digit:
            // `serde_json` calls that no number.
            Category::Syntax
                if message.starts_with("invalid number")
                    && at >= text.len()
                    && text.ends_with(['.', 'e', 'E', '+', '-']) =>
            {
                (ParseErrorKind::Truncated, place.here())
            }
            Category::Syntax | Category::Io => (ParseErrorKind::Syntax, place.here()),
            Category::Data => {
                // The words are serde's, the name in them a field of our own types.
                if let Some(name) = named(&message, "missing field `") {
                    (ParseErrorKind::Missing, place.field(name))
                } else if let Some(name) = named(&message, "duplicate field `") {
                    (ParseErrorKind::Duplicate, place.field(name))
                } else {
                    (ParseErrorKind::Value, place.value())
                }
            }
        };
        Self {
            kind,
            field: (!field.is_empty()).then_some(field),
            reason: reason(kind, &message),
            line: error.line(),
            column: error.column(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.reason)?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " at line {line} column {}", self.column),
        }
    }
}

impl core::error::Error for ParseError {}

/// The field's name out of serde's message about a missing or repeated one.
fn named<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.split('`').next()
}

/// What can be said of a message without quoting the text.
///
/// serde names the value first and what was expected last; what was expected is text of ours or
/// serde's. Messages of any other form come from `serde_json` itself, which quotes nothing, or
/// from the errors of this crate, which carry no value either.
fn reason(kind: ParseErrorKind, message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(before, _)| before);
    if matches!(kind, ParseErrorKind::Syntax | ParseErrorKind::Truncated) {
        return message.to_owned();
    }
    if message.starts_with("invalid ") || message.starts_with("unknown ") {
        let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
        return alloc::format!("expected {}", expected.unwrap_or("something else"));
    }
    if message.starts_with("missing field") {
        return "required but missing".to_owned();
    }
    if message.starts_with("duplicate field") {
        return "given twice".to_owned();
    }
    message.to_owned()
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .fold(0, usize::saturating_add);
    before.saturating_add(column)
}

/// As many levels of a text are named. The specification's own bodies have five.
const MAX_STEPS: usize = 8;

/// The names that lead to a place in a JSON text.
struct Place<'a> {
    /// The outermost levels: a text may be nothing but brackets, and its error must not be longer.
    steps: Vec<Step<'a>>,
    /// How many levels lie below those.
    deeper: usize,
    /// Whether the last byte closes the object or array that is innermost.
    closes: bool,
}

enum Step<'a> {
    Name(Option<&'a [u8]>),
    Item(usize),
}

impl<'a> Place<'a> {
    /// Walks the text up to `end`. The text is valid JSON up to there, or nearly so: whatever it
    /// is, this ends, and finds a path that is right where the text is.
    fn find(text: &'a [u8], end: usize) -> Self {
        let text = text.get(..end).unwrap_or(text);
        let mut steps: Vec<Step<'a>> = Vec::new();
        let mut deeper = 0_usize;
        let mut closes = false;
        let mut name_next = false;
        let mut at = 0_usize;
        while let Some(&byte) = text.get(at) {
            closes = false;
            // Below the levels that are named, only the brackets count.
            let named = deeper == 0;
            match byte {
                b'{' | b'[' if steps.len() == MAX_STEPS => deeper = deeper.saturating_add(1),
                b'{' => {
                    steps.push(Step::Name(None));
                    name_next = true;
                }
                b'[' => {
                    steps.push(Step::Item(0));
                    name_next = false;
                }
                b'}' | b']' => {
                    closes = at.saturating_add(1) == text.len();
                    match (closes, named) {
                        (true, _) => {}
                        (false, true) => drop(steps.pop()),
                        (false, false) => deeper = deeper.saturating_sub(1),
                    }
                    name_next = false;
                }
                b',' => match steps.last_mut() {
                    Some(Step::Name(_)) => name_next = named,
                    Some(Step::Item(item)) if named => *item = item.saturating_add(1),
                    _ => {}
                },
                b'"' => {
                    let from = at.saturating_add(1);
                    let len = string_len(text.get(from..).unwrap_or_default());
                    let to = from.saturating_add(len);
                    if let (true, Some(Step::Name(name))) = (name_next, steps.last_mut()) {
                        *name = text.get(from..to);
                        name_next = false;
                    }
                    at = to;
                }
                _ => {}
            }
            at = at.saturating_add(1);
        }
        Self { steps, deeper, closes }
    }

    /// What was being read when it went wrong.
    fn here(&self) -> String {
        let mut path = path(&self.steps);
        if self.deeper > 0 {
            path.push_str("...");
        }
        path
    }

    /// The value that ends here. Values with a type lie in the levels that are named.
    fn value(&self) -> String {
        if self.closes { path(around(&self.steps)) } else { path(&self.steps) }
    }

    /// A field of the innermost object that is still open, or that ends here.
    fn field(&self, name: &str) -> String {
        match path(around(&self.steps)) {
            around if around.is_empty() => name.to_owned(),
            around => alloc::format!("{around}.{name}"),
        }
    }
}

fn around<'s, 'a>(steps: &'s [Step<'a>]) -> &'s [Step<'a>] {
    steps.split_last().map_or(&[], |(_, around)| around)
}

fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Name(None) => {}
            Step::Name(Some(name)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(shown(name));
            }
            Step::Item(item) => path.push_str(&alloc::format!("[{item}]")),
        }
    }
    path
}

/// A name as the specification would write it, or a question mark for what may be data.
fn shown(name: &[u8]) -> &str {
    let ours = name.first().is_some_and(u8::is_ascii_lowercase)
        && name.len() <= 40
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if ours { core::str::from_utf8(name).unwrap_or("?") } else { "?" }
}

/// The bytes of a JSON string up to its closing quote, or to the end.
fn string_len(text: &[u8]) -> usize {
    let mut escaped = false;
    text.iter()
        .position(|&byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })
        .unwrap_or(text.len())
}
