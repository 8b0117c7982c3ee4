//! The log: lines on standard error, written by their own thread.
//!
//! The reader of standard error may be slow or stopped. A server must not wait for it: a line is
//! dropped while the queue is full, and the number of dropped lines is logged later.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::clock;

/// The most lines that wait to be written.
const QUEUE: usize = 4096;

/// How long lines are collected before they are written: 5 ms. Whoever logs much wakes this thread seldom.
const COLLECTED: Duration = Duration::from_millis(5);

static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    lines: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// Writes one line, with the time in front. Nothing secret belongs in it, and control characters,
/// which could forge another line, are written as escapes.
pub fn line(text: &str) {
    let log = log();
    let line = Message::Line(format!("{} {}\n", clock::now(), escaped(text)));
    if let Err(TrySendError::Full(_)) = log.lines.try_send(line) {
        log.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until everything logged so far is written, for at most a second. Call it at a program's end.
pub fn flush() {
    let (done, wait) = sync_channel(1);
    if log().lines.try_send(Message::Flush(done)).is_ok() {
        let _ = wait.recv_timeout(Duration::from_secs(1));
    }
}

/// Returns a text with its control characters escaped.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_default()),
            false => escaped.push(character),
        }
    }
    escaped
}

fn log() -> &'static Log {
    LOG.get_or_init(|| {
        let (lines, queue) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        std::thread::spawn(move || write_all(&queue, &counter));
        Log { lines, dropped }
    })
}

fn write_all(queue: &Receiver<Message>, dropped: &AtomicU64) {
    let mut batch = String::new();
    while let Ok(first) = queue.recv() {
        std::thread::sleep(COLLECTED);
        let mut waiting = Vec::new();
        take(first, &mut batch, &mut waiting);
        // Lines that came meanwhile go out in the same write.
        while batch.len() < 256 * 1024
            && let Ok(next) = queue.try_recv()
        {
            take(next, &mut batch, &mut waiting);
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            batch.push_str(&format!("{} {lost} lines of this log were dropped\n", clock::now()));
        }
        // Standard error is closed: there is nowhere to report that.
        let _ = std::io::stderr().write_all(batch.as_bytes());
        batch.clear();
        for done in waiting {
            let _ = done.send(());
        }
    }
}

fn take(message: Message, batch: &mut String, waiting: &mut Vec<SyncSender<()>>) {
    match message {
        Message::Line(line) => batch.push_str(&line),
        Message::Flush(done) => waiting.push(done),
    }
}
