//! The log: lines on standard error, one for each event of `tracing`.
//!
//! ```
//! use host::log;
//!
//! let (endpoint, error) = ("whep_1", "connection reset");
//! log::info!(endpoint, status = 204, "attempt");
//! log::warn!(%error, "the leases are not renewed");
//! ```
//!
//! The reader of standard error may be slow or stopped. A server must not wait for it: a line is
//! dropped while the queue is full, and dropped lines are counted.
//!
//! A failure that is retried comes many times a second. A name that is [`tried`] has a line when it begins to
//! fail, one for each of its first errors, and one when it has succeeded again. Any other event with the field `error`
//! is written once; those of the same fields are counted, and the count is written when there are no more. `error` is
//! the last field.
//!
//! No argument of these macros begins with `log::`: `tracing` has a `log` of its own there.
//!
//! An event with the field `stranger` is one that somebody without a key or a login has caused, if it is true: a
//! hundred of these are written in ten seconds, and one line that says how many more there were.
//!
//! A program that embeds a host may install a subscriber first, with this log as one of its layers. The spans `api`,
//! `dashboard` and `attempt` have the ids of accounts, events, deliveries and requests, and the `traceparent` of
//! the caller. They are of the level `debug`: this log, which has the ids in its lines, pays nothing for them.
//! Nothing of another layer goes to endpoints.
//!
//! ```
//! use host::log;
//! use tracing_subscriber::filter::LevelFilter;
//! use tracing_subscriber::prelude::*;
//!
//! # let open_telemetry = tracing_subscriber::layer::Identity::new();
//! // let open_telemetry = tracing_opentelemetry::layer().with_tracer(tracer);
//! let lines = log::lines(log::Format::Json).with_filter(LevelFilter::INFO);
//! tracing_subscriber::registry().with(lines).with(open_telemetry).init();
//! ```

mod line;
mod repeated;

use std::fmt::Display;
use std::io::Write as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Subscriber;
pub use tracing::{error, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

use self::line::{Line, Lines, TRIED};
use self::repeated::Repeated;
use crate::flags::expected;
use crate::{lock, terminal};

/// The most lines that wait to be written.
const QUEUE: usize = 4096;

/// How long lines are collected before they are written: 5 ms. A busy log wakes the thread seldom.
const COLLECTED: Duration = Duration::from_millis(5);

/// How often to look for failures that have ended: each second.
const LOOK: Duration = Duration::from_secs(1);

static QUEUED: OnceLock<(SyncSender<Message>, Format)> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);
static REPEATED: Mutex<Repeated> = Mutex::new(Repeated::new());

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, message, and `name=value` for each field.
    Text,
    /// One JSON object.
    Json,
}

#[derive(Debug)]
enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// The flags of the log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Flags {
    /// Lines of the log: text or json.
    #[arg(long = "log-format", value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = expected::<Format>("text or json"))]
    format: Format,
    /// Lines of the log from error, warn, info or debug on.
    #[arg(long = "log-level", value_name = "LEVEL", default_value = "info")]
    #[arg(value_parser = level)]
    level: LevelFilter,
}

impl Default for Flags {
    fn default() -> Self {
        Self { format: Format::Text, level: LevelFilter::INFO }
    }
}

impl Flags {
    /// Sets the log as the flags say.
    pub fn set(self) {
        set(self.format, self.level);
    }
}

fn level(text: &str) -> Result<LevelFilter, &'static str> {
    let is_known = ["error", "warn", "info", "debug"].contains(&text);
    text.parse().ok().filter(|_| is_known).ok_or("expected error, warn, info or debug")
}

/// Sets the form of lines, and the least level that is written, unless the program has a subscriber of its own.
pub fn set(format: Format, least: LevelFilter) {
    let _ = tracing_subscriber::registry().with(least).with(lines(format)).try_init();
}

/// Returns the layer that writes lines of this form to standard error. The first form is that of the process.
pub fn lines<S: Subscriber>(format: Format) -> impl Layer<S> {
    QUEUED.get_or_init(|| {
        let (lines, queue) = sync_channel(QUEUE);
        thread::spawn(move || run(&queue, format));
        (lines, format)
    });
    Lines(write)
}

/// Logs the result of what is tried again and again: one line for each of the first errors until it has succeeded,
/// however often it fails; and that the failure with this name is over, if there was one and none follows soon.
pub fn tried<T>(name: &'static str, done: &Result<T, impl Display>) {
    match done {
        Err(error) => warn!(target: TRIED, %error, "{name}"),
        Ok(_) => repeated().succeeded(name, Instant::now()),
    }
}

/// Writes a text for people who look at a terminal, if lines are texts.
pub fn banner(text: &str) {
    if QUEUED.get().is_some_and(|(_, format)| *format == Format::Text) {
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
    if QUEUED.get().is_some_and(|(queue, _)| queue.try_send(Message::Flush(done)).is_ok()) {
        let _ = wait.recv_timeout(Duration::from_secs(1));
    }
}

/// Has a line written, or counts that it is left out or dropped.
fn write(line: Line) {
    let Some((queue, format)) = QUEUED.get() else { return };
    let send = |line: Line| {
        if let Err(TrySendError::Full(_)) = queue.try_send(Message::Line(line.text(*format))) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    };
    match line.is_counted() {
        true => repeated().take(line, Instant::now()).into_iter().for_each(send),
        false => send(line),
    }
}

/// Writes what comes, and each second what has ended.
fn run(queue: &Receiver<Message>, format: Format) {
    let (mut batch, mut told) = (String::new(), 0);
    loop {
        let first = queue.recv_timeout(LOOK).ok();
        if first.is_some() {
            // Lines that come meanwhile go out in the same write.
            thread::sleep(COLLECTED);
        }
        let mut flushed = None;
        for message in first.into_iter().chain(queue.try_iter().take(QUEUE)) {
            match message {
                Message::Line(line) => batch.push_str(&line),
                Message::Flush(done) => flushed = Some(done),
            }
        }
        let mut ended = repeated().end(Instant::now(), flushed.is_some());
        let dropped = dropped();
        if dropped > told {
            let more = dropped.saturating_sub(told);
            ended.push(Line::of_more("lines of this log were dropped", more));
            told = dropped;
        }
        batch.extend(ended.into_iter().map(|line| line.text(format)));
        // Standard error is closed: there is nowhere to report that.
        let _ = std::io::stderr().write_all(batch.as_bytes());
        batch.clear();
        if let Some(done) = flushed {
            let _ = done.send(());
        }
    }
}

fn repeated() -> MutexGuard<'static, Repeated> {
    lock(&REPEATED)
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

/// Returns a line for each event.
#[cfg(test)]
fn lines_of(events: impl FnOnce()) -> Vec<Line> {
    let (sender, lines) = std::sync::mpsc::channel();
    let layer = Lines(move |line| sender.send(line).unwrap_or_default());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
    lines.try_iter().collect()
}
