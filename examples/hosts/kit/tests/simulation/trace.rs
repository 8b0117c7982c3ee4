//! What happened, line by line. Two runs of one seed have the same lines.

use std::fmt::Write as _;
use std::sync::Mutex;

use testing::store::Time;

/// The lines of a run, if somebody wants them.
#[derive(Debug)]
pub(crate) struct Trace {
    time: Time,
    text: Option<Mutex<String>>,
}

impl Trace {
    pub(crate) fn new(time: Time, is_wanted: bool) -> Self {
        Self { time, text: is_wanted.then(Mutex::default) }
    }

    /// Adds a line.
    pub(crate) fn say(&self, line: impl FnOnce() -> String) {
        if let Some(text) = &self.text {
            let at = self.time.now().as_micros();
            writeln!(text.lock().unwrap(), "{at:>12} {}", line()).unwrap();
        }
    }

    pub(crate) fn text(&self) -> String {
        self.text.as_ref().map(|text| text.lock().unwrap().clone()).unwrap_or_default()
    }
}
