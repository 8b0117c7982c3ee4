//! The log: lines on standard error, composed and written by their own thread.
//!
//! ```text
//! log::info("attempt").with("endpoint", id.as_str()).with("status", 204).write();
//! log::warn("the leases are not renewed").because(&error).write();
//! ```
//!
//! The reader of standard error may be slow or stopped. A server must not wait for it: a line is
//! dropped while the queue is full, and dropped lines are counted.
//!
//! What fails and is tried again fails many times a second. What is [`tried`] has a line when it begins to
//! fail, one for each of its first errors, and one when it has succeeded again. Any other line with a cause is
//! written once; those of the same cause are counted, and the count is written when there are no more.
//!
//! Lines about requests without a key or a login have a bound, too: see [`Line::of_stranger`].
//!
//! No crate does this: `tracing` with its subscriber is eleven more crates in the build of the service in
//! memory, and would leave the queue, the count and the cause that repeats to this module all the same.

mod repeated;
mod strangers;
mod writer;

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use call_assistant::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use self::strangers::Strangers;
use self::writer::Writer;
use crate::clock;
use crate::flags::{Flag, Flags, Help};
use crate::terminal;

/// The most lines that wait to be written.
const QUEUE: usize = 4096;

static QUEUED: OnceLock<SyncSender<Message>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// How many failures last of what is tried again.
static LASTING: AtomicUsize = AtomicUsize::new(0);
static STRANGERS: Mutex<Strangers> = Mutex::new(Strangers::new());
static LEAST: AtomicU8 = AtomicU8::new(Level::Info.as_u8());
static FORM: OnceLock<Format> = OnceLock::new();

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A defect, or a loss.
    Error,
    /// A failure that somebody may have to look at.
    Warn,
    /// A fact: a start, an attempt, a request, a change.
    Info,
    /// A detail.
    Debug,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Time, level, message, and `name=value` for each field.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// A line that is not written yet.
#[derive(Clone, Debug)]
#[must_use = "a line is written by `write`"]
pub struct Line {
    at: Timestamp,
    level: Level,
    message: Cow<'static, str>,
    fields: Vec<(&'static str, Value)>,
    cause: Option<String>,
    /// Whether the failure lasts until there is a success of the same name.
    lasts: bool,
    /// Whether somebody without a key or a login caused it.
    is_strangers: bool,
}

#[derive(Debug)]
enum Message {
    Line(Line),
    Succeeded(&'static str, Timestamp),
    Flush(SyncSender<()>),
}

/// The flag of the form of lines.
pub const FORMAT: Flag =
    Flag::value("--log-format", "FORMAT", "lines of the log: text or json [text]");

/// The flag of the least level.
pub const LEVEL: Flag = Flag::value(
    "--log-level",
    "LEVEL",
    "lines of the log from error, warn, info or debug on [info]",
);

/// Sets the log as the flags say. Exits with a message if they are wrong.
pub fn set_or_exit(help: &Help, flags: &Flags) {
    let read = |name, default| flags.text(name).unwrap_or(default);
    match (read("--log-format", "text").parse(), read("--log-level", "info").parse()) {
        (Ok(format), Ok(level)) => set(format, level),
        (Err(()), _) => help.exit("--log-format: expected text or json"),
        (_, Err(())) => help.exit("--log-level: expected error, warn, info or debug"),
    }
}

/// Sets the form of lines, and the least level that is written, before the first line.
pub fn set(format: Format, least: Level) {
    let _ = FORM.set(format);
    LEAST.store(least.as_u8(), Ordering::Relaxed);
}

/// Creates a line about a defect or a loss.
pub fn error(message: impl Into<Cow<'static, str>>) -> Line {
    Line::new(Level::Error, message.into())
}

/// Creates a line about a failure.
pub fn warn(message: impl Into<Cow<'static, str>>) -> Line {
    Line::new(Level::Warn, message.into())
}

/// Creates a line about a fact.
pub fn info(message: impl Into<Cow<'static, str>>) -> Line {
    Line::new(Level::Info, message.into())
}

/// Creates a line with a detail.
pub fn debug(message: impl Into<Cow<'static, str>>) -> Line {
    Line::new(Level::Debug, message.into())
}

/// Logs the result of what is tried again and again: one line for each of the first errors until it has succeeded,
/// however often it fails; and that the failure with this name is over, if there was one and none follows soon.
pub fn tried<T>(name: &'static str, done: &Result<T, impl Display>) {
    match done {
        Err(error) => Line { lasts: true, ..warn(name) }.because(error).write(),
        Ok(_) if LASTING.load(Ordering::Relaxed) > 0 => {
            let _ = queue().try_send(Message::Succeeded(name, clock::now()));
        }
        Ok(_) => {}
    }
}

impl Line {
    fn new(level: Level, message: Cow<'static, str>) -> Self {
        let (at, fields) = (clock::now(), Vec::new());
        Self { at, level, message, fields, cause: None, lasts: false, is_strangers: false }
    }

    /// Adds a field. Nothing secret belongs in it, and no number of a row; `null` is left out.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        if self.is_on() {
            self.fields.push((name, value.into()));
        }
        self
    }

    /// Adds the cause of a failure that nobody tries again, as the field `error`. Lines that differ in nothing
    /// but their messages are of one cause, and the first of them is written.
    pub fn because(mut self, cause: &impl Display) -> Self {
        if self.is_on() {
            self.cause = Some(cause.to_string());
        }
        self
    }

    /// Marks a line that somebody without a key or a login has caused, if so: a hundred of these are written in ten
    /// seconds, and one line that says how many more there were.
    pub fn of_stranger(self, is_strangers: bool) -> Self {
        Self { is_strangers, ..self }
    }

    /// Has the line written, or counts that it is left out or dropped.
    pub fn write(self) {
        if self.is_on()
            && (!self.is_strangers || strangers().admits(Instant::now()))
            && let Err(TrySendError::Full(_)) = queue().try_send(Message::Line(self))
        {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_on(&self) -> bool {
        self.level.as_u8() <= LEAST.load(Ordering::Relaxed)
    }
}

/// Writes a text for people who look at a terminal, if lines are texts.
pub fn banner(text: &str) {
    if *FORM.get_or_init(Format::default) == Format::Text {
        terminal::print_error(text.strip_suffix('\n').unwrap_or(text));
    }
}

/// Returns a time as a field: whole microseconds.
pub fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// Returns how many lines this process has dropped.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Waits until everything logged so far is written, for at most a second. Call it at a program's end.
pub fn flush() {
    let (done, wait) = sync_channel(1);
    if queue().try_send(Message::Flush(done)).is_ok() {
        let _ = wait.recv_timeout(Duration::from_secs(1));
    }
}

fn strangers() -> MutexGuard<'static, Strangers> {
    STRANGERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn queue() -> &'static SyncSender<Message> {
    QUEUED.get_or_init(|| {
        let (lines, queue) = sync_channel(QUEUE);
        let format = *FORM.get_or_init(Format::default);
        std::thread::spawn(move || Writer::new(format).run(&queue));
        lines
    })
}

impl Level {
    const fn as_u8(self) -> u8 {
        match self {
            Self::Error => 0,
            Self::Warn => 1,
            Self::Info => 2,
            Self::Debug => 3,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl FromStr for Level {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Error, Self::Warn, Self::Info, Self::Debug];
        all.into_iter().find(|level| level.as_str() == text).ok_or(())
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(()),
        }
    }
}
